"""Policies with expert advice, at their budgets, and instances for them.

Experts are constant and there are two arms: the first two experts advise one arm each, the others
random distributions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...algorithms import EXP4, ExpertConversion, FrozenEXP4, LocalEXP4
from ...algorithms.bases.contextual import AdvicePolicy
from ...algorithms.exp4.values import Tuning
from ...environments import Advised, SwitchingBest
from ...privacy import ApproxDP, PureDP
from .exp4 import theorem_6, theorem_8
from .policies import BatchedEXP4
from .worst_case import instance

ARMS = 2
DELTA = 1e-6
PERIOD, MOVING_GAP = 20, 0.3  # rounds after which advice moves on, and the best arm with it


class Kind(NamedTuple):
    """A policy with advice, and what is proved of it."""

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
    """The two bounds of which Theorem 8 has the lesser, for the arms and the delta of this study.

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
