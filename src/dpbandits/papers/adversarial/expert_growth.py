"""Bandits with expert advice: how worst regret grows with experts, rounds and 1/epsilon, and which
policy is ahead where.

Experts are constant and there are two arms: the first two experts advise one arm each, the others
random distributions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...algorithms import EXP4, ExpertConversion, FrozenEXP4, LocalEXP4
from ...algorithms.bases.contextual import AdvicePolicy
from ...algorithms.exp4.values import Tuning
from ...environments import Advised, SwitchingBest
from ...privacy import ApproxDP, PureDP
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel
from ...report.intervals import Ratio, ratio
from ..plans import Findings, Results, Size, cells_of, largest, measured, spoken
from .exp4 import theorem_6, theorem_8
from .policies import BatchedEXP4
from .section import PAPER, Section, horizon_of
from .worst_case import Probe, Sweep, grows, instance, panel, settings_of, sweeps

ARMS = 2
DELTA = 1e-6
PERIOD, MOVING_GAP = 20, 0.3  # rounds after which advice moves on, and the best arm with it

RUNS, QUICK_RUNS = 10, 8

GROWTH, QUICK_GROWTH = (0.03, 0.1, 0.3, 1.0), (0.1, 0.3)  # of rounds, in units of the horizon
SHARE = 0.3  # of the horizon, where something else changes
EXPERTS, QUICK_EXPERTS = (4, 16, 64, 256), (4, 16, 64)
EPSILONS, QUICK_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0), (0.1, 0.5, 1.0)
USUAL_EXPERTS, USUAL_EPSILON = 16, 0.5

SMALL, QUICK_SMALL = 0.02, 0.05  # epsilon, where those who release sums are expected to be ahead

# (gap, whether the best arm changes after a quarter)
FAMILY = ((0.1, False), (0.3, False), (0.9, False), (0.3, True))
QUICK_FAMILY = ((0.3, False), (0.3, True))

_MOST_MIXING = 0.5  # in the proof of Theorem 8
NO_WORSE = 1.02  # a ratio: what chance may add
SUMMING = ("BatchedEXP4", "EXP4", "FrozenEXP4")

GROWTHS = "Expert advice: measured growth"
COMPARED = "Expert advice: which policy is ahead"


class Kind(NamedTuple):
    """A policy with advice, and its proved bounds."""

    make: Callable[..., AdvicePolicy]
    pure: bool  # whether it is measured with pure DP, or with (epsilon, delta)-DP
    source: str
    exponents: Sequence[str]  # of the theorem in rounds, experts and 1/epsilon, without logarithms


_ROOT = ("1/2", "1/2", "1/2")
KINDS = {
    "ExpertConversion (HTINF)": Kind(
        functools.partial(ExpertConversion, learner="htinf"), True, "Corollary 4", _ROOT
    ),
    "ExpertConversion (EXP3)": Kind(
        functools.partial(ExpertConversion, learner="exp3"), True, "Corollary 4", _ROOT
    ),
    "LocalEXP4": Kind(LocalEXP4, True, "Theorem 5", ("1/2", "0", "1")),
    "BatchedEXP4": Kind(BatchedEXP4, False, "Theorem 6", ("2/3", "1/6", "1/3")),
    "EXP4": Kind(EXP4, False, "after Theorem 6", ("2/3", "1/6", "1/3")),
    "FrozenEXP4": Kind(FrozenEXP4, False, "after Theorem 6", ("2/3", "0", "1/3")),
    "BatchedEXP4, improved": Kind(
        functools.partial(BatchedEXP4, variant="improved"),
        False,
        "Theorem 8",
        ("2/3 and 3/5", "1/6 and 2/5", "1/3 and 2/5"),
    ),
}
IMPROVED = "BatchedEXP4, improved"


class Advice(NamedTuple):
    """One policy at one size."""

    name: str
    horizon: int
    n_experts: int
    epsilon: float

    def policy(self) -> AdvicePolicy:
        """The policy, tuned for the horizon."""
        return policy(self.name, ARMS, self.n_experts, self.horizon, self.epsilon)

    def instance(self, gap: float, changes: bool) -> Advised:
        """Constant experts on one of a family."""
        return _constant(instance(self.horizon, ARMS, gap, changes), self.n_experts, self.horizon)

    @property
    def bound(self) -> float:
        """On regret, as the policy states it, or Theorem 8; above the horizon it says nothing."""
        if self.name == IMPROVED:
            return self._theorem_8.bound
        return float(self.policy().regret_bound)  # type: ignore[attr-defined]

    @property
    def mixing(self) -> float:
        """The share of uniform play that the proof of Theorem 8 takes: 1/2 at most."""
        return self._theorem_8.mixing

    @property
    def _theorem_8(self) -> Tuning:
        return min(both_of_theorem_8(*self[1:]), key=lambda one: one.bound)


def both_of_theorem_8(horizon: int, n_experts: int, epsilon: float) -> tuple[Tuning, Tuning]:
    """The two bounds of Theorem 8, which takes the lesser, for the arms and the delta of this
    study.

    >>> first, second = both_of_theorem_8(10**6, 16, 0.5)
    >>> second.bound < first.bound, second.mixing > 0.5
    (True, True)
    """
    sizes = ARMS, n_experts, horizon, epsilon, -math.log(DELTA)
    return theorem_6(*sizes), theorem_8(*sizes)


@functools.cache
def policy(name: str, n_arms: int, n_experts: int, horizon: int, epsilon: float) -> AdvicePolicy:
    """A policy of the table, at its budget."""
    kind = KINDS[name]
    budget = PureDP(epsilon) if kind.pure else ApproxDP(epsilon, DELTA)
    return kind.make(n_arms, n_experts, budget=budget, horizon=horizon, noise="simulation")


@functools.cache
def _constant(world: SwitchingBest, n_experts: int, horizon: int) -> Advised:
    return Advised.constant(world, n_experts, horizon=horizon)


def moving(n_experts: int, horizon: int) -> Advised:
    """The best arm moves on with some of the experts, after every period."""
    switches = range(PERIOD, horizon, PERIOD)
    best = [i % ARMS for i in range(len(switches) + 1)]
    world = SwitchingBest(ARMS, best=best, switches=switches, horizon=horizon, gap=MOVING_GAP)
    return Advised.shifted(world, n_experts, period=PERIOD, horizon=horizon)


class Experts:
    """Sweeps, and comparisons on the same cells."""

    def __init__(self, size: Size) -> None:
        quick, longest = size.quick, horizon_of(size)
        rounds = [round(longest * share) for share in (QUICK_GROWTH if quick else GROWTH)]
        self.horizon = round(longest * SHARE)
        self.experts = QUICK_EXPERTS if quick else EXPERTS
        self.epsilons = QUICK_EPSILONS if quick else EPSILONS
        self.small = QUICK_SMALL if quick else SMALL
        self.probe = Probe(
            "experts",
            QUICK_FAMILY if quick else FAMILY,
            size.runs or (QUICK_RUNS if quick else RUNS),
            size.seed,
        )
        self.sweeps = sweeps(
            Advice,
            rounds,
            self.experts,
            self.epsilons,
            counted=("N", "experts"),
            usual=(USUAL_EXPERTS, USUAL_EPSILON),
            horizons=(self.horizon, self.horizon),
        )

    def section(self) -> Section:
        """Cells of sweeps, of a small epsilon, and of advice that moves."""
        settings = settings_of(self.sweeps, KINDS, GROWTHS)
        settings |= {self._usual(name, self.small): COMPARED for name in ("LocalEXP4", *SUMMING)}
        cells = self.probe.cells(settings)
        both = {name: self._usual(name, 1.0).policy() for name in ("EXP4", "FrozenEXP4")}
        place = [(self.probe.seed, moving(USUAL_EXPERTS, self.horizon))]
        size = self.horizon, self.probe.runs, (self.horizon,)
        cells += cells_of("moving/{}".format, COMPARED, both, place, *size)
        return Section(cells, self._assess, self._notes())

    def _usual(self, name: str, epsilon: float) -> Advice:
        return Advice(name, self.horizon, USUAL_EXPERTS, epsilon)

    def _settings(self, name: str) -> list[Advice]:
        return list(settings_of(self.sweeps, [name], GROWTHS))

    def _notes(self) -> list[str]:
        return [
            (
                "Expert advice: worst regret is the largest mean over instances with two arms, one"
                f" better by a gap of {self.probe.gaps}, against the best of N constant experts."
                f" ExpertConversion and LocalEXP4 have ε-DP, the others (ε, {DELTA:g})-DP, which is"
                " weaker: where the first two are ahead, they are so with the stronger guarantee."
                " Slopes of bounds are those of what the policies state (or Theorem 8, which is"
                " the lesser of two bounds), logarithms included."
            ),
            *self._noted(
                "The bound of {} is above the number of rounds, and says nothing, at {}.",
                lambda one: one.horizon <= one.bound < math.inf,
            ),
            *self._noted(
                "The proof of the bound of {} does not hold at {}: left out of its slopes.",
                lambda one: one.bound == math.inf,
            ),
            *self._noted(
                "Theorem 8, the bound of {}, is proved where it mixes in at most half of uniform"
                " play, and not at {}: its slopes there are those of its formula.",
                lambda one: one.name == IMPROVED and one.mixing > _MOST_MIXING,
            ),
        ]

    def _noted(self, says: str, which: Callable[[Advice], bool]) -> list[str]:
        """One sentence for every policy, with the settings that it is about."""
        notes = []
        for name in KINDS:
            found = [
                f"{spoken(one.horizon)} rounds, N = {one.n_experts}, ε = {one.epsilon:g}"
                for one in self._settings(name)
                if which(one)
            ]
            if found:
                notes.append(says.format(name, "; ".join(found)))
        return notes

    def _assess(self, results: Results) -> Findings:
        grown = [
            claim
            for sweep in self.sweeps
            for name in KINDS
            for claim in self._grows(name, sweep, results)
        ]
        below = [claim for name in KINDS for claim in self._below(name, results)]
        return Findings(
            [*grown, *below, *self._compared(results)],
            [self._figure(results), self._ratios(results)],
        )

    def _grows(self, name: str, sweep: Sweep[Advice], results: Results) -> list[Claim]:
        """Over the sizes at which the policy has a bound, where there are several."""
        found = {
            x: one
            for x, one in zip(sweep.values, sweep.settings(name), strict=True)
            if one.bound < math.inf
        }
        if len(found) < 2:
            return []
        kind, bounds = KINDS[name], [one.bound for one in found.values()]
        exponent = f" (exponent of the theorem: {kind.exponents[self.sweeps.index(sweep)]})"
        known, source = sweep._replace(values=list(found)), f"{PAPER}, {kind.source}"
        settings = list(found.values())
        return [
            grows(name, known, self.probe, results, settings, bounds, source, GROWTHS, exponent)
        ]

    def _below(self, name: str, results: Results) -> list[Claim]:
        """The claim that the bound holds, where it is not trivial."""
        told = [one for one in self._settings(name) if one.bound < one.horizon]
        if not told:
            return []
        bounds = np.array([one.bound for one in told])
        return [
            Claim(
                f"{name}: worst regret is below its bound. Measured: the largest ratio of the two,"
                f" over the {len(told)} settings where the bound is below the number of rounds.",
                "this package",
                GROWTHS,
                largest(
                    self.probe.columns(results, told),
                    Ratio(lambda means: self.probe.worst(means) / bounds),
                ),
                Expectation(high=1.0),
            )
        ]

    def _compared(self, results: Results) -> list[Claim]:
        last = self.epsilons[0]
        few, many = self.experts[0], self.experts[-1]
        conversion = "ExpertConversion (HTINF)"
        other = [name for name in KINDS if not name.startswith("ExpertConversion")]

        def at(name: str, n_experts: int) -> Advice:
            return Advice(name, self.horizon, n_experts, USUAL_EPSILON)

        def pair(
            first: str, second: str, epsilon: float, why: str = "", high: float = 1.0
        ) -> Claim:
            says = "has less regret than" if high == 1.0 else "is not worse than"
            statement = f"{first} {says} {second} at ε = {epsilon:g}{why}"
            return self._ratio(
                statement,
                self._usual(first, epsilon),
                [self._usual(second, epsilon)],
                results,
                high,
            )

        claims = [pair("EXP4", "BatchedEXP4", e, ", both (ε, δ)-DP") for e in self.epsilons]
        claims += [
            pair(IMPROVED, "BatchedEXP4", epsilon, ", the published variant", NO_WORSE)
            for epsilon in self.epsilons
        ]
        claims += [pair("FrozenEXP4", "EXP4", e, " where advice stands") for e in (last, 1.0)]
        return [
            *claims,
            self._moves(results),
            pair("LocalEXP4", "BatchedEXP4", 1.0),
            *(pair(name, "LocalEXP4", self.small) for name in SUMMING),
            self._ratio(
                f"{conversion} has less regret than all of the EXP4 family with {few} experts",
                at(conversion, few),
                [at(name, few) for name in other],
                results,
            ),
            self._ratio(
                f"With {many} experts LocalEXP4 has less regret than {conversion}",
                at("LocalEXP4", many),
                [at(conversion, many)],
                results,
            ),
        ]

    def _ratio(
        self,
        statement: str,
        one: Advice,
        others: Sequence[Advice],
        results: Results,
        high: float = 1.0,
    ) -> Claim:
        """The ratio of a policy's worst regret to the least of others."""

        def least(means: np.ndarray) -> np.ndarray:
            worst = self.probe.worst(means)
            return np.asarray(worst[..., 0] / worst[..., 1:].min(axis=-1))

        where = f"N = {one.n_experts}, {spoken(one.horizon)} rounds, ε = {one.epsilon:g}"
        return Claim(
            f"{statement}. Measured: the ratio of worst"
            f" regrets{' to the least of theirs' if len(others) > 1 else ''} ({where}).",
            "this package",
            COMPARED,
            measured(self.probe.columns(results, [one, *others]), Ratio(least)),
            Expectation(high=high, strict=high == 1.0),
        )

    def _moves(self, results: Results) -> Claim:
        return Claim(
            f"EXP4 has less regret than FrozenEXP4 where the best expert moves on every {PERIOD}"
            f" rounds, within a batch. Measured: the ratio of regrets (N = {USUAL_EXPERTS},"
            f" {spoken(self.horizon)} rounds, ε = 1).",
            "this package",
            COMPARED,
            measured([results.final(f"moving/{name}") for name in ("EXP4", "FrozenEXP4")], ratio),
            Expectation(high=1.0, strict=True),
        )

    def _figure(self, results: Results) -> Exhibit:
        return Exhibit(
            "figure-experts",
            "Expert advice: regret against rounds, experts and 1/ε",
            "Largest mean regret over the instances, with 95 % bars; both axes are logarithmic."
            " Fitted slopes stand among the claims, beside those of the bounds.",
            f"Worst regret of {len(KINDS)} policies with expert advice against rounds, experts and"
            " one over epsilon on logarithmic axes.",
            [panel(sweep, self.probe, KINDS, results) for sweep in self.sweeps],
        )

    def _ratios(self, results: Results) -> Exhibit:
        over_epsilon = self.sweeps[2]
        pairs = [("EXP4", "BatchedEXP4"), (IMPROVED, "BatchedEXP4")]
        pairs += [("FrozenEXP4", "EXP4"), ("LocalEXP4", "BatchedEXP4")]
        lines = []
        for pair in pairs:
            label, both = " over ".join(pair), map(over_epsilon.settings, pair)
            lines.append(self.probe.series(label, self.epsilons, results, *both))
        return Exhibit(
            "figure-experts-ratios",
            "Expert advice: what better noise saves",
            "Ratio of worst regrets with 95 % bars, below 1 is better for the one named first. EXP4"
            " has one Gaussian of the sensitivity that the batch really had, BatchedEXP4 Laplace"
            " noise for the worst case, and FrozenEXP4 one release per arm.",
            "Ratios of worst regrets of pairs of policies with expert advice, against epsilon.",
            [Panel(over_epsilon.held, "ε", "ratio of worst regrets", lines, line=1.0)],
        )
