"""The parts of a paper's study, and the numbers that decide its claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..environments.base import World
from ..planning.yardsticks import regret_at_random
from ..plotting.numbers import abbreviated
from ..policies import Policy
from ..report.claims import VERDICT_CONFIDENCE, Claim
from ..report.exhibits import Exhibit, Panel, Series, Table
from ..report.intervals import Ratio, Statistic, curve, mean, ratio
from ..report.means import Estimate
from ..simulation import Result
from ..studies.cells import Cell

INSTANCES = 20  # of a setting, at most


@dataclass(frozen=True)
class Size:
    """The size of a computation: how much of a paper to compute."""

    quick: bool = False  # a small version that shows everything
    full: bool = False  # also at full length what is shortened otherwise
    runs: int | None = None  # instead of the paper's
    horizon: int | None = None  # likewise
    seed: int = 1  # of everything, random instances among it; see ``instances``
    data: Path | None = None  # the folder with real data; None leaves out what needs it


def cells_of(
    key: Callable[[str], str],
    stage: str,
    policies: Mapping[str, Policy],
    worlds: Sequence[tuple[int, World]],
    horizon: int,
    runs: int = 1,
    record: tuple[int, ...] | None = None,
) -> list[Cell]:
    """All of these policies, by the arguments of ``key``, in instances of one setting with their
    seeds.

    Regret is recorded at the rounds ``record``, by default those of ``recorded``.
    """
    return [
        Cell(
            key=key(name),
            stage=stage,
            policy=policy,
            environment=world,
            horizon=horizon,
            runs=runs,
            seed=seed,
            record=record or recorded(horizon),
        )
        for name, policy in policies.items()
        for seed, world in worlds
    ]


class Results:
    """The results of simulated cells by their keys, for use in claims.

    Instances of a setting stand side by side; a setting without random instances is one instance.
    """

    def __init__(self, cells: Sequence[Cell], results: Sequence[Any]) -> None:
        self._results: dict[str, list[Result]] = {}
        self._cells: dict[str, list[Cell]] = {}
        self._at_random: dict[tuple[str, int, int, int], np.ndarray] = {}
        for cell, result in zip(cells, results, strict=True):
            self._results.setdefault(cell.key, []).append(result)
            self._cells.setdefault(cell.key, []).append(cell)

    def final(self, key: str, column: str = "regret") -> np.ndarray:
        """Regret at the horizon, or another column of the runs, shape (instances, runs)."""
        return np.array([one.runs.sort_values("run")[column] for one in self._results[key]])

    def at_random(self, key: str, runs: int | None = None) -> np.ndarray:
        """Regret at the horizon of choosing at random instead, shape (instances, runs); of the
        first ``runs`` runs only, which without contexts say it all.
        """
        return np.array([self._random(cell, runs or cell.runs) for cell in self._cells[key]])

    def _random(self, cell: Cell, runs: int) -> np.ndarray:
        assert isinstance(cell.environment, World)
        assert cell.horizon is not None
        same = (repr(cell.environment), cell.horizon, runs, cell.seed)
        if same not in self._at_random:
            self._at_random[same] = regret_at_random(
                cell.environment, cell.horizon, runs=runs, seed=cell.seed
            )
        return self._at_random[same]

    def over_random(self, key: str) -> Estimate:
        """Final regret over that at random, from which ``Claim`` decides whether learning has
        begun.
        """
        return measured([self.final(key), self.at_random(key)], ratio)

    def curves(self, key: str, column: str = "regret") -> np.ndarray:
        """Regret, or another column, at the recorded rounds, shape (instances, runs, rounds)."""
        frames = [one.frame for one in self._results[key]]
        return np.array([one.pivot(index="run", columns="round", values=column) for one in frames])

    def rounds(self, key: str) -> np.ndarray:
        """The recorded rounds."""
        return np.sort(self._results[key][0].frame["round"].unique())


@dataclass(frozen=True)
class Findings:
    """The findings from the cells."""

    claims: Sequence[Claim]
    exhibits: Sequence[Exhibit]
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Plan:
    """The study of one paper at one size."""

    title: str  # of the report
    description: str
    cells: Sequence[Cell]
    assess: Callable[[Results], Findings]  # from their results to claims and figures
    notes: Sequence[str] = ()  # what a reader of the claims has to know besides
    shown: Sequence[str] | None = None  # by ``repr``, environments shown by themselves; all if None


def instances(seed: int, runs: int) -> list[tuple[int, int]]:
    """(seed, runs) of every random instance that a setting is measured on.

    Instances vary at least as much as runs.  So there are as many instances as affordable, and the
    runs are spread over them.  The first instance has the given seed itself.

    >>> instances(1, 100)[:2], len(instances(1, 100)), len(instances(1, 3))
    ([(1, 5), (1000001, 5)], 20, 3)
    """
    each = math.ceil(runs / INSTANCES)
    return [(seed + 10**6 * i, each) for i in range(runs // each)]


def spoken(rounds: int) -> str:
    """A number of rounds in words.

    >>> spoken(10_000_000), spoken(50_000), spoken(8192)
    ('10M', '50k', '8,192')
    """
    return abbreviated(rounds) if len(abbreviated(rounds)) <= 4 else f"{rounds:,}"


def recorded(horizon: int, points: int = 120) -> tuple[int, ...]:
    """Log-spaced rounds that end with the horizon and hold its hundredth part."""
    spaced = np.unique(np.geomspace(1, horizon, points).round().astype(int))
    return tuple(sorted({*map(int, spaced), horizon, max(1, horizon // 100)}))


# Numbers by which claims are decided -------------------------------------------------------------


def measured(columns: Sequence[np.ndarray], statistic: Statistic) -> Estimate:
    """A function of means with the interval that decides claims; there is none for a single run.

    Columns, one per mean, have one shape (instances, runs), or are refused; ``statistic`` makes
    values of shape (...) of means of shape (..., columns).

    >>> measured([np.array([[1.0, 3.0]]), np.array([[1.0, 3.0]])], lambda m: m[..., 0] / m[..., 1])
    Estimate(mean=1.0, low=1.0, high=1.0)
    """
    return Estimate(*map(float, curve(columns, statistic, VERDICT_CONFIDENCE)))


def largest(columns: Sequence[np.ndarray], statistic: Statistic) -> Estimate:
    """The largest of several numbers, with an interval for the largest true one.

    The largest of noisy numbers is too large.  So each number has an interval of its own, with the
    confidence that all of them hold together (Bonferroni).  The largest true one lies between the
    largest of their lower and of their upper ends.

    >>> largest([np.array([[1.0, 1.0]]), np.array([[3.0, 3.0]])], lambda means: means)
    Estimate(mean=3.0, low=3.0, high=3.0)
    """
    count = statistic(np.stack([column.mean() for column in columns])).size
    ends = curve(columns, statistic, 1.0 - (1.0 - VERDICT_CONFIDENCE) / count)
    return Estimate(*(float(end.max()) for end in ends))


def largest_of(questions: Sequence[Sequence[np.ndarray]], statistic: Statistic) -> Estimate:
    """As ``largest``, of numbers from columns of their own, such as those of different settings.

    >>> one, two = np.array([[1.0, 1.0]]), np.array([[2.0, 2.0]])
    >>> largest_of([[one, two], [two, one]], ratio)
    Estimate(mean=2.0, low=2.0, high=2.0)
    """
    confidence = 1.0 - (1.0 - VERDICT_CONFIDENCE) / len(questions)
    ends = np.array([curve(columns, statistic, confidence) for columns in questions])
    return Estimate(*map(float, ends.max(axis=0)))


# The ratios of pairs, shape (..., pairs), from means (first of all pairs, then second of all).
ratios = Ratio(lambda means: np.divide(*np.split(means, 2, axis=-1)))


def steps(means: np.ndarray) -> np.ndarray:
    """The rises from one mean to the next over the last, from means (strict to loose, open)."""
    return np.diff(means[..., :-1], axis=-1) / means[..., -1:]


# Curves of regret over random instances ----------------------------------------------------------


class Played(Protocol):
    """Policies that meet the same worlds, and the key of each one's results."""

    @property
    def policies(self) -> Mapping[str, Any]: ...

    def key(self, name: str) -> str: ...


def figure(
    name: str,
    reading: str,
    panels: Mapping[str, Played],
    each: str,
    names: Mapping[str, str],
    free: str,
    results: Results,
) -> Exhibit:
    """Mean regret over rounds, in panels by their titles, one for ``each``, for a reading's claims.

    Legends have ``names``, or else those of the policies; the line of the ``free`` one is dashed.
    """

    def line(played: Played, key: str, policy: Policy) -> Series:
        found, label = played.key(key), names.get(key) or policy.name or ""
        rounds, regret = results.rounds(found), results.curves(found)
        return Series(label, rounds, *curve([regret], mean), dashed=key == free)

    drawn = []
    for title, one in panels.items():
        lines = [line(one, *item) for item in one.policies.items()]
        drawn.append(Panel(title, "rounds", "mean regret", lines, x_scale="linear"))
    return Exhibit(
        name,
        f"{reading}: regret",
        "Mean over random instances, with 95 % bands; dashed without privacy.",
        f"{reading}: curves of mean regret, one panel per {each}.",
        drawn,
    )
