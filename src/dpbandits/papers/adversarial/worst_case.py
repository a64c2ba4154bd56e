"""Worst regret over a family of instances, and how it grows, beside how its bound does."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from ...algorithms import EXP3, FTPL, HTINF
from ...environments import SwitchingBest
from ...environments.base import World
from ...policies import Policy
from ...privacy import PureDP
from ...report.claims import Claim, Expectation
from ...report.exhibits import Panel, Series
from ...report.intervals import Ratio, Statistic, curve
from ...report.means import Estimate
from ...studies.cells import Cell
from ..plans import Results, largest, measured, ratios, spoken
from .section import SLACK

USUAL_ARMS, USUAL_EPSILON = 4, 0.1

LEARNERS: dict[str, Any] = {"EXP3": EXP3, "HTINF": HTINF, "FTPL": FTPL}


class Playable(Protocol):
    """A policy at some size, with instances to play; the tuple identifies it."""

    @property
    def horizon(self) -> int: ...

    def policy(self) -> Policy: ...

    def instance(self, gap: float, changes: bool) -> World: ...

    def __iter__(self) -> Iterator[Any]: ...


S = TypeVar("S", bound=Playable)


class Setting(NamedTuple):
    """One policy at one size."""

    learner: str
    horizon: int
    n_arms: int
    epsilon: float
    batch: int | None = None  # 1 for noise on every reward
    calibration: Literal["exact", "paper"] = "exact"

    def policy(self) -> Policy:
        """The policy; tuned for the horizon where it takes one."""
        cls = LEARNERS[self.learner]
        options: dict[str, Any] = {} if cls is HTINF else {"horizon": self.horizon}
        return cls(
            self.n_arms,
            budget=PureDP(self.epsilon),
            batch=self.batch,
            calibration=self.calibration,
            noise="simulation",
            **options,
        )

    def instance(self, gap: float, changes: bool) -> SwitchingBest:
        """One of a family."""
        return instance(self.horizon, self.n_arms, gap, changes)


@functools.cache
def instance(horizon: int, n_arms: int, gap: float, changes: bool) -> SwitchingBest:
    """One arm is better by a gap; where it changes, another one after a quarter of the rounds."""
    best, switches = ([0, n_arms - 1], [horizon // 4]) if changes else ([n_arms // 2], [])
    return SwitchingBest(n_arms, best=best, switches=switches, horizon=horizon, gap=gap)


@dataclass(frozen=True)
class Probe:
    """A measurement of the worst mean regret over some instances."""

    prefix: str  # of the keys of its cells
    family: Sequence[tuple[float, bool]]  # gap, and whether the best arm changes
    runs: int
    seed: int

    @property
    def gaps(self) -> str:
        """Those of the family, in words."""
        return ", ".join(
            f"{gap:g}{' (changing)' if changes else ''}" for gap, changes in self.family
        )

    def cells(self, stages: Mapping[S, str]) -> list[Cell]:
        """One cell per setting and instance, for settings with the sweep they belong to."""
        return [
            Cell(
                key=self._key(setting, *kind),
                stage=stage,
                policy=setting.policy(),
                environment=setting.instance(*kind),
                horizon=setting.horizon,
                runs=self.runs,
                seed=self.seed,
                record=(setting.horizon,),
            )
            for setting, stage in stages.items()
            for kind in self.family
        ]

    def columns(self, results: Results, settings: Sequence[Playable]) -> list[np.ndarray]:
        """Final regrets, all kinds of a setting side by side."""
        return [
            results.final(self._key(setting, *kind)) for setting in settings for kind in self.family
        ]

    def worst(self, means: np.ndarray) -> np.ndarray:
        """The largest mean of every setting, shape (..., settings), from means of ``columns``."""
        return means.reshape(*means.shape[:-1], -1, len(self.family)).max(axis=-1)

    @property
    def worst_ratios(self) -> Ratio:
        """The ratios of worst regrets, from the first half of the settings to the second, one by
        one.
        """
        return Ratio(lambda means: ratios(self.worst(means)))

    def over_random(self, results: Results, settings: Sequence[Playable]) -> Estimate:
        """The largest of these settings' worst regrets over that of choosing at random on the same
        instances, from which ``Claim`` decides whether learning has begun in all of them.

        With advice one run is enough of it: regret counts expectations, and over the thousands of
        rounds of a cell its choices differ by less than a percent.
        """
        keys = [self._key(setting, *kind) for setting in settings for kind in self.family]
        random = self.worst(np.array([results.at_random(key, 1).item() for key in keys]))
        return largest(self.columns(results, settings), Ratio(lambda m: self.worst(m) / random))

    def slope(self, x: Sequence[float]) -> Statistic:
        """The slope of log worst regret in log x, by least squares."""
        weights = log_weights(x)
        return lambda means: np.log(self.worst(means)) @ weights

    def series(
        self,
        label: str,
        x: Sequence[float],
        results: Results,
        settings: Sequence[Playable],
        over: Sequence[Playable] = (),
        **looks: Any,
    ) -> Series:
        """Worst regret at every x, or its ratio to that of others."""
        columns = self.columns(results, [*settings, *over])
        found = curve(columns, self.worst_ratios if over else self.worst)
        return Series(label, np.array(x, float), *found, marks=True, **looks)

    def _key(self, setting: Playable, gap: float, changes: bool) -> str:
        return "/".join(map(str, (self.prefix, *setting, gap, "changes" if changes else "stays")))


def log_weights(x: Sequence[float]) -> np.ndarray:
    """The least-squares slope in log x is a product with these."""
    centred = np.log(x) - np.log(x).mean()
    return np.asarray(centred / (centred @ centred))


def bound(learner: str, horizon: float, n_arms: float, epsilon: float) -> float:
    """A learner's bound of Table 1 without its constant; logarithms as the corollaries prove them.

    >>> bound("HTINF", 10**6, 4, 0.25)
    4000.0
    """
    root = math.sqrt(n_arms * horizon / epsilon)
    if learner == "HTINF":
        return root
    return root * math.sqrt(math.log(n_arms)) * math.log(n_arms * horizon)


# How it grows --------------------------------------------------------------------------------


class Sweep(NamedTuple, Generic[S]):
    """The varied quantity, and the settings of the sweep."""

    symbol: str
    name: str
    values: Sequence[float]
    settings: Callable[[str], list[S]]
    held: str


def sweeps(
    setting: Callable[[str, int, int, float], S],
    rounds: Sequence[int],
    counts: Sequence[int],
    epsilons: Sequence[float],
    *,
    counted: tuple[str, str],
    usual: tuple[int, float],
    horizons: tuple[int, int],
) -> list[Sweep[S]]:
    """Sweeps over rounds, over numbers of the ``counted`` things, and over one over epsilon.

    Where they are not varied, number and epsilon are the ``usual`` ones.  ``horizons`` are the
    rounds where numbers are varied, and where epsilon is.
    """
    (symbol, name), (usual_count, usual_epsilon), (longer, shorter) = counted, usual, horizons
    return [
        Sweep(
            "T",
            "rounds",
            rounds,
            lambda policy: [setting(policy, t, usual_count, usual_epsilon) for t in rounds],
            f"{symbol} = {usual_count}, ε = {usual_epsilon:g}",
        ),
        Sweep(
            symbol,
            name,
            counts,
            lambda policy: [setting(policy, longer, count, usual_epsilon) for count in counts],
            f"{spoken(longer)} rounds, ε = {usual_epsilon:g}",
        ),
        Sweep(
            "1/ε",
            "1/ε",
            [1.0 / epsilon for epsilon in epsilons],
            lambda policy: [setting(policy, shorter, usual_count, one) for one in epsilons],
            f"{symbol} = {usual_count}, {spoken(shorter)} rounds",
        ),
    ]


def settings_of(sweeps: Iterable[Sweep[S]], names: Iterable[str], stage: str) -> dict[S, str]:
    """Every setting of some policies once, with the stage that it is part of."""
    names = list(names)
    return {
        setting: stage for sweep in sweeps for name in names for setting in sweep.settings(name)
    }


def panel(sweep: Sweep[S], probe: Probe, names: Iterable[str], results: Results) -> Panel:
    """Worst regret of some policies, on logarithmic axes."""
    lines = [probe.series(name, sweep.values, results, sweep.settings(name)) for name in names]
    return Panel(sweep.held, sweep.name, "worst mean regret", lines, y_scale="log")


def grows(
    name: str,
    sweep: Sweep[S],
    probe: Probe,
    results: Results,
    settings: Sequence[S],
    bounds: Sequence[float],
    source: str,
    reading: str,
    exponent: str = "",
) -> Claim:
    """The claim that the worst regret of a policy grows no faster than the bound on the same
    settings.  There is one setting for each value of the sweep.  ``exponent`` is a further remark
    on the theorem.
    """
    proved = float(np.log(bounds) @ log_weights(sweep.values))
    return Claim(
        f"{name}: worst regret grows with {sweep.symbol} no faster than the bound, whose slope is"
        f" {proved:.2f} here{exponent}. Measured: the slope of log regret in log {sweep.symbol},"
        f" for {sweep.name} from {spoken_value(min(sweep.values))} to"
        f" {spoken_value(max(sweep.values))} ({sweep.held}).",
        source,
        reading,
        measured(probe.columns(results, settings), probe.slope(sweep.values)),
        Expectation(high=proved + SLACK),
        over_random=probe.over_random(results, settings),
    )


def slopes(names: Iterable[str], sweeps: Sequence[Sweep[S]], claims: Sequence[Claim]) -> str:
    """The findings of ``grows``, in one sentence; claims are those of all names, sweep by sweep."""
    names, parts = list(names), []
    for i, sweep in enumerate(sweeps):
        of = zip(names, claims[i * len(names) :], strict=False)
        found = ", ".join(
            f"{name} {claim.measured.mean:.2f} {claim.range}"
            f" (bound {claim.expected.high - SLACK:.2f})"
            for name, claim in of
        )
        parts.append(f"in {sweep.symbol}, {found}")
    return "; ".join(parts) + "."


def spoken_value(value: float) -> str:
    """Rounds, arms or one over epsilon, in words.

    >>> spoken_value(1_000_000), spoken_value(2.0), spoken_value(50.0)
    ('1M', '2', '50')
    """
    return spoken(round(value)) if value >= 1000 else f"{value:g}"
