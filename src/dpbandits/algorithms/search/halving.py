"""The best arm with a given number of rounds: sequential halving (Karnin, Koren & Somekh 2013).

There are ceil(log2 K) phases, which share the rounds evenly.  In each phase every surviving arm is
played equally often; then the better half survives.  Remainders of the division go to the next
phase; that of the last phase is unused.

Guarantee:

* Protected: one person's reward, from all who see or override decisions, but for the operator.
* Adjacency: one record is another.  One person contributes one reward to one coordinate of one
  phase's vector.
* Sensitivity: when a phase ends, the vector of the surviving arms' reward sums crosses the wall,
  with independent noise in every coordinate.  A record moves it by at most ``hi - lo`` in the L1
  and in the L2 norm.

Phases are disjoint sets of records: each vector may spend the whole budget.  The length of a phase
depends on the number of rounds alone.

All sums are kept: an arm's value is the weighted mean of all its noisy sums.  The weight is one
over 1 / (4 n) + v / n^2, the largest possible variance of the sum's mean.  n are its rounds, and v
is the variance of the noise on a sum in units of the reward range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...kernel import Vector, kernel
from ...policies import ArmEstimates, Card, Kernels, Part, Policy, Statistic
from ...privacy.channels import Laplace
from ...validation import integer
from ..arms.arms import PROOF
from ..bases.quotas import CLOCK, FOREVER, choose, hold_rounds, record_pull, release_due
from ..bases.sums import Sums, accumulate_by_arm, sensitivity, summarise


class HalvingParams(NamedTuple):
    n_arms: int
    horizon: int
    phases: int
    width: float  # hi - lo
    variance: float  # of the noise on a sum, in units of the width


class HalvingPublic(NamedTuple):
    alive: np.ndarray  # (K,) bool
    value: np.ndarray  # (K,) merged, as rewards are measured
    weight: np.ndarray  # (K,) of what was merged
    goal: np.ndarray  # (K,) rounds of each arm in the running phase
    played: np.ndarray  # (K,) how many of them are over
    clock: np.ndarray  # (2,) of the phase, see ``quotas``
    rounds: np.ndarray  # (1,) not dealt out yet


@kernel
def _alive(params: HalvingParams, public: HalvingPublic) -> int:
    """How many arms are."""
    alive = 0
    for a in range(params.n_arms):
        alive += public.alive[a]
    return alive


@kernel
def _plan_phase(params: HalvingParams, public: HalvingPublic) -> None:
    """Plan the next phase: its arms share an equal part of the rounds left."""
    clock, alive = public.clock, _alive(params, public)
    rounds = np.int64(FOREVER)
    if alive > 1:
        rounds = public.rounds[0] // ((params.phases - clock[CLOCK.phase]) * alive)
        public.rounds[0] -= alive * rounds
    for a in range(params.n_arms):
        public.goal[a] = rounds if public.alive[a] else 0
        public.played[a] = 0
    clock[CLOCK.phase] += 1
    clock[CLOCK.left] = alive * rounds


def init(params: HalvingParams) -> tuple[Sums, HalvingPublic]:
    k = params.n_arms
    public = HalvingPublic(
        alive=np.ones(k, np.bool_),
        value=np.zeros(k),
        weight=np.zeros(k),
        goal=np.zeros(k, np.int64),
        played=np.zeros(k, np.int64),
        clock=np.zeros(2, np.int64),
        rounds=np.full(1, params.horizon),
    )
    _plan_phase(params, public)
    return Sums(np.zeros(k)), public


@kernel
def publish(params: HalvingParams, public: HalvingPublic, memo: Vector, release: Vector) -> None:
    """Merge, and keep the better half, rounded up; of equals the first."""
    for a in range(params.n_arms):
        if public.alive[a]:
            n = public.goal[a]
            weight = 1.0 / (0.25 / n + params.variance / (n * n))
            public.weight[a] += weight
            public.value[a] += (release[a] / n - public.value[a]) * weight / public.weight[a]
    for _ in range(_alive(params, public) // 2):
        least, worst = np.inf, 0
        for a in range(params.n_arms):
            # With <= the last of equals is dropped.
            if public.alive[a] and public.value[a] <= least:
                least, worst = public.value[a], a
        public.alive[worst] = False
    _plan_phase(params, public)


@kernel
def stop(params: HalvingParams, public: HalvingPublic) -> bool:
    return _alive(params, public) == 1


@kernel
def recommend(params: HalvingParams, public: HalvingPublic) -> int:
    """The survivor of highest value, of equals the first."""
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if public.alive[a] and public.value[a] > best:
            best, arm = public.value[a], a
    return arm


@dataclass(frozen=True, repr=False)
class Halving(Part):
    """Sequential halving: plays all remaining arms equally often, drops the worse half, and repeats
    (Karnin, Koren & Somekh 2013).

    When to choose: a study has so many people and no more, and has to name an arm at its end.  How
    often it errs is not promised.

    >>> Halving()
    Halving()
    """

    kernels: ClassVar[Kernels] = Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate_by_arm,
        release_due=release_due,
        sensitivity=sensitivity,
        summarise=summarise,
        publish=publish,
        stop=stop,
        recommend=recommend,
    )
    card: ClassVar[Card] = Card(
        title="Sequential halving on noisy sums",
        source="Karnin, Koren & Somekh (2013), Almost Optimal Exploration in Multi-Armed Bandits;"
        " merged noisy sums: this package",
        proof=PROOF.replace("arms.held", "search.halving"),
        noise=("Laplace", "Gaussian"),
    )

    def params(self, policy: Policy) -> HalvingParams:
        """The numbers it searches with."""
        (lo, hi), n = policy.reward_range, policy.n_arms
        phases = (n - 1).bit_length()  # ceil(log2 K)
        scale = policy.noise_scale / (hi - lo)
        return HalvingParams(
            n_arms=n,
            horizon=integer("horizon", policy.config["horizon"], n * phases),  # a round in each
            phases=phases,
            width=hi - lo,
            variance=scale * scale * (2.0 if isinstance(policy.channel, Laplace) else 1.0),
        )

    def statistic(self, policy: Policy) -> Statistic:
        """A sum for every arm."""
        return Statistic.of_rewards(policy.reward_range, size=policy.n_arms, sums_of="arms")

    @staticmethod
    def estimates(params: HalvingParams, public: HalvingPublic) -> ArmEstimates:
        """Estimates of every arm."""
        weight = np.where(public.weight > 0.0, public.weight, np.nan)
        means = np.where(public.weight > 0.0, public.value, np.nan)
        return ArmEstimates(means, params.width / np.sqrt(weight), alive=public.alive)
