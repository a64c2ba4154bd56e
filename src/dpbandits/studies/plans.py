"""What the study of a paper consists of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..environments import ArmsEnvironment, ContextEnvironment
from ..plotting.numbers import abbreviated
from ..policies import Policy
from ..report.claims import Claim
from ..report.exhibits import Exhibit, Table
from .cells import Cell, Results

INSTANCES = 20  # of a setting, at most


@dataclass(frozen=True)
class Size:
    """How much of a paper to compute.

    Attributes:
        quick: a small version that shows everything.
        full: also at full length what is shortened otherwise.
        runs, horizon: instead of the paper's; None for those.
        seed: of everything, random instances among it; see ``instances``.
        data: the folder with real data; None leaves out what needs it.
    """

    quick: bool = False
    full: bool = False
    runs: int | None = None
    horizon: int | None = None
    seed: int = 1
    data: Path | None = None


def cells_of(
    key: Callable[[str], str],
    stage: str,
    policies: Mapping[str, Policy],
    worlds: Iterable[tuple[int, ArmsEnvironment | ContextEnvironment]],
    *,
    horizon: int,
    runs: int = 1,
    record: tuple[int, ...] | None = None,
) -> list[Cell]:
    """All of these policies in all of these worlds.

    Args:
        key: by which a policy's cells are found.
        stage: see ``Cell``.
        policies: by what ``key`` takes.
        worlds: instances of one setting, each with its seed.
        horizon, runs: as ``simulate`` takes them.
        record: the rounds at which regret is recorded; by default those of ``recorded``.
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


@dataclass(frozen=True)
class Findings:
    """What came of the cells."""

    claims: Sequence[Claim]
    exhibits: Sequence[Exhibit]
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Plan:
    """The study of one paper at one size.

    Attributes:
        title, description: of the report.
        cells: what to simulate.
        assess: from their results to claims and figures.
        notes: what a reader of the claims has to know besides.
        shown: environments, by their ``repr``, whose results the page shows by themselves; None for
            all.
    """

    title: str
    description: str
    cells: Sequence[Cell]
    assess: Callable[[Results], Findings]
    notes: Sequence[str] = ()
    shown: Sequence[str] | None = None


def instances(seed: int, runs: int) -> list[tuple[int, int]]:
    """(seed, runs) of every random instance that a setting is measured on.

    What instances differ in is no smaller than what runs do, so that there are as many as is
    affordable, and the runs are spread over them.  The first instance has the given seed itself.

    >>> instances(1, 100)[:2], len(instances(1, 100)), len(instances(1, 3))
    ([(1, 5), (1000001, 5)], 20, 3)
    """
    each = math.ceil(runs / INSTANCES)
    return [(seed + 10**6 * i, each) for i in range(runs // each)]


def spoken(rounds: int) -> str:
    """A number of rounds as one says it.

    >>> spoken(10_000_000), spoken(50_000), spoken(8192)
    ('10M', '50k', '8,192')
    """
    return abbreviated(rounds) if len(abbreviated(rounds)) <= 4 else f"{rounds:,}"


def recorded(horizon: int, points: int = 120) -> tuple[int, ...]:
    """Log-spaced rounds that end with the horizon and hold its hundredth part."""
    spaced = np.unique(np.geomspace(1, horizon, points).round().astype(int))
    return tuple(sorted({*map(int, spaced), horizon, max(1, horizon // 100)}))
