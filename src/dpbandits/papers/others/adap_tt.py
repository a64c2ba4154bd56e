"""AdaP-TT: the best arm at a confidence, with means of one episode each (Azize, Jourdan, Al Marjani
& Basu 2023).

Each arm has episodes of its own, which fill up side by side.  An episode ends when its arm has
twice as many rounds as at the episode's beginning, and its mean replaces the one before.  So an
arm's episodes last 1, 1, 2, 4, 8, ... rounds.  For the j-th episode, of n rounds, m is the released
mean, and s the scale of the noise on a sum, both in units of the reward range.

The end of an arm's episode releases the sum of its rewards.  The release covers the records of that
arm since its last release.  One person contributes to one episode, a record moves one sum by at
most ``hi - lo``, and each sum may spend the whole budget.  Lengths of episodes are fixed.  The arm
of a person depends on earlier releases and on counts of rounds only.  After each release, the
search decides from releases whether it is over.  Episodes that are open then are never released.

**Rounds.**  The leader is the arm of highest m + sqrt(ln t / (2 n)) + s ln t / n, with t the rounds
of all episodes that are over.  The challenger of a leader b is the arm of least (m_b - m_c) /
sqrt(1 / N_b + 1 / N_c), with N all rounds of an arm, including running episodes.  The leader is
played while it has had at most a share ``beta`` of the rounds in which it led, the challenger
otherwise.

**Stopping.** Let w_j = c / ((j + c - 1)(j + c)), j >= 1, c = 20.  They sum to one, because w_j is c
times the difference of 1 / (j + c - 1) and the next, and hardly fall before the c-th episode.  Let
b be the arm of highest m.  For another arm c let v = 1 / n_b + 1 / n_c and L = ln(2 (K - 1) /
(failure_probability w_j w_k)), with j and k the numbers of episodes of b and c.  Then b is
recommended as soon as for every c

    (m_b - m_c)^2 / v  >=  (sqrt(L / 2) + s sqrt(v) L)^2 ,  m_b > m_c .

That is the paper's statistic; the threshold is derived here.

**The error.**  Rewards are independent, in the range, and those of an arm have one mean.  Let b
have a lower mean than a best arm ``*``.  For fixed episodes j of b and k of ``*`` the difference of
m_b and m_* is at most A + B, with A from sampling errors and B from noise.  By Hoeffding's
inequality A reaches sqrt(v L / 2) with probability at most exp(-L).  Each of the two Laplace
variables of B, of scale s / n, reaches s L / n with probability exp(-L) / 2. So B reaches s v L
with at most exp(-L).  Together: at most 2 exp(-L) = failure_probability w_j w_k / (K
- 1).  Weights of all pairs j, k sum to one, and there are at most K - 1 arms b.  So some such arm
is recommended with probability at most ``failure_probability``.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, Unpack

import numpy as np

from ...algorithms.arms.interleaved import close, partition, withdraw
from ...algorithms.bases.episodes import MEMO
from ...algorithms.bases.sums import accumulate_by_arm, sensitivity
from ...calls import is_open
from ...constraints import Constraints, Real
from ...kernel import Generator, Vector, kernel
from ...policies import ArmEstimates, Card, Erratum, Kernels, Options, Policy, Statistic, register
from ...privacy.budgets import PureDP
from ...protocol import Contexts, Row
from ...session.estimates import standard_error
from .thompson import summarise_arm

_ERRATUM = Erratum(
    "AdaP-TT",
    (
        "The threshold of the experiments does not bound the error.",
        "Here AdaPTT has a threshold that is proved",
    ),
)


_IN_SIGHT = 20.0  # c: episodes double, and a search rarely takes more per arm


class AdaPTTParams(NamedTuple):
    n_arms: int
    level: float  # ln(2 (K - 1) / failure_probability)
    share: float  # beta
    low: float
    width: float  # hi - lo
    noise_scale: float  # s


class AdaPTTRaw(NamedTuple):
    total: np.ndarray  # (K,) sums of the running episodes


class AdaPTTPublic(NamedTuple):
    mean: np.ndarray  # (K,) released, in units of the reward range
    episodes: np.ndarray  # (K,) released ones
    size: np.ndarray  # (K,) rounds of the last of them
    pulls: np.ndarray  # (K,) rounds of all of them
    fresh: np.ndarray  # (K,) rounds in the running episode
    led: np.ndarray  # (2, K) rounds since an arm became the leader, and those of them it was played
    clock: np.ndarray  # (1,)


class Clock(NamedTuple):
    """Slots of ``AdaPTTPublic.clock``."""

    arm: int = 0  # of the last round


class Led(NamedTuple):
    """Slots of ``AdaPTTPublic.led``."""

    rounds: int = 0
    played: int = 1


CLOCK, LED = Clock(), Led()


@kernel
def price_of_batches(j: int) -> float:
    """ln(1 / w_j)."""
    return math.log((j + _IN_SIGHT - 1.0) * (j + _IN_SIGHT) / _IN_SIGHT)


def init(params: AdaPTTParams) -> tuple[AdaPTTRaw, AdaPTTPublic]:
    k = params.n_arms
    public = AdaPTTPublic(
        mean=np.zeros(k),
        episodes=np.zeros(k, np.int64),
        size=np.zeros(k, np.int64),
        pulls=np.zeros(k, np.int64),
        fresh=np.zeros(k, np.int64),
        led=np.zeros((len(LED), k), np.int64),
        clock=np.zeros(len(CLOCK), np.int64),
    )
    return AdaPTTRaw(np.zeros(k)), public


@kernel
def _leader(params: AdaPTTParams, public: AdaPTTPublic) -> int:
    """The first arm of highest upper confidence index; -1 while some arm has no release."""
    best, leader, rounds = -np.inf, -1, 0
    for a in range(params.n_arms):
        if public.episodes[a] == 0:
            return -1
        rounds += public.pulls[a]
    # Every arm has a release here, so ``rounds`` is positive.
    pressure = np.log(rounds)
    for a in range(params.n_arms):
        n = public.size[a]
        index = public.mean[a] + np.sqrt(0.5 * pressure / n) + params.noise_scale * pressure / n
        if index > best:
            best, leader = index, a
    return leader


@kernel
def choose(
    params: AdaPTTParams, public: AdaPTTPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """Leader or challenger; arms without a release first, where closed that of fewest rounds."""
    leader = _leader(params, public)
    if leader < 0:
        for a in range(params.n_arms):
            if public.pulls[a] == 0 and is_open(contexts, a):
                return a, 1.0
        for a in range(params.n_arms):
            if public.episodes[a] == 0 and is_open(contexts, a):
                return a, 1.0
    elif is_open(contexts, leader):
        led = public.led
        if led[LED.played, leader] <= params.share * (led[LED.rounds, leader] + 1):
            return leader, 1.0
    least, challenger = np.inf, leader
    for c in range(params.n_arms):
        if c == leader or not is_open(contexts, c):
            continue
        cost = float(public.pulls[c] + public.fresh[c])
        if leader >= 0:
            rounds = public.pulls[leader] + public.fresh[leader]
            spread = np.sqrt(1.0 / rounds + 1.0 / cost)
            cost = (public.mean[leader] - public.mean[c]) / spread
        if cost < least:
            least, challenger = cost, c
    return challenger, 1.0


@kernel
def record_pull(params: AdaPTTParams, public: AdaPTTPublic, arm: int, x: Row, n: int) -> None:
    leader = _leader(params, public)
    if leader >= 0:
        public.led[LED.rounds, leader] += n
        public.led[LED.played, leader] += n if arm == leader else 0
    public.fresh[arm] += n
    if n > 0:
        public.clock[CLOCK.arm] = arm


@kernel
def release_due(params: AdaPTTParams, public: AdaPTTPublic) -> bool:
    arm = public.clock[CLOCK.arm]
    return public.fresh[arm] >= max(public.pulls[arm], 1)


@kernel
def publish(params: AdaPTTParams, public: AdaPTTPublic, memo: Vector, release: Vector) -> None:
    """Replace the arm's mean, and forget earlier ones."""
    arm, n = int(memo[MEMO.arm]), int(memo[MEMO.size])
    public.mean[arm] = (release[0] / n - params.low) / params.width
    public.episodes[arm] += 1
    public.size[arm] = n


@kernel
def recommend(params: AdaPTTParams, public: AdaPTTPublic) -> int:
    """The arm of highest mean."""
    return int(np.argmax(public.mean))


@kernel
def stop(params: AdaPTTParams, public: AdaPTTPublic) -> bool:
    if params.n_arms == 1:
        return True
    best = recommend(params, public)
    for a in range(params.n_arms):
        if public.episodes[a] == 0:
            return False
    price = params.level + price_of_batches(public.episodes[best])
    for c in range(params.n_arms):
        if c != best:
            spread = 1.0 / public.size[best] + 1.0 / public.size[c]
            level = price + price_of_batches(public.episodes[c])
            bar = np.sqrt(0.5 * level * spread) + params.noise_scale * spread * level
            if public.mean[best] - public.mean[c] < bar:
                return False
    return True


@register(n_arms=3, failure_probability=0.1)
class AdaPTT(Policy):
    """Top Two search for the best arm with few errors, on the last noisy sum of each arm.

    Args:
        n_arms: number of arms.
        failure_probability: the probability of recommending another than the best arm.
        budget: ``PureDP``; None for the non-private counterpart.
        beta: the share of rounds for the leader.
        **options: see ``Options``.

    When to choose: to reproduce it; ``MergedTopTwo`` forgets nothing, and stops sooner.

    Example:
        >>> search = AdaPTT(2, failure_probability=0.05, budget=PureDP(1.0), seed=1)
        >>> while not search.stopped:
        ...     decision = search.pull()
        ...     _ = search.update(float(decision.arm == 1))
        >>> search.recommendation
        1
    """

    card = Card(
        title="Top Two on noisy sums of doubling episodes",
        source=(
            "Azize, Jourdan, Al Marjani & Basu (2023), On the Complexity of Differentially Private"
            " Best-Arm Identification with Fixed Confidence, AdaP-TT; threshold: this package"
        ),
        proof="module dpbandits.papers.others.adap_tt; parallel composition: Azize et al. (2023)",
        noise=("Laplace",),
        errata=(_ERRATUM,),
    )
    kernels = Kernels(
        init=init,
        choose=choose,
        record_pull=record_pull,
        accumulate=accumulate_by_arm,
        release_due=release_due,
        partition=partition,
        sensitivity=sensitivity,
        close=close,
        withdraw=withdraw,
        summarise=summarise_arm,
        publish=publish,
        stop=stop,
        recommend=recommend,
        skips_closed=True,
    )

    constraints: ClassVar[Constraints] = {
        "failure_probability": Real(0.0, 1.0, strict=True),
        "beta": Real(0.0, 1.0, strict=True),
    }

    def __init__(
        self,
        n_arms: int,
        *,
        failure_probability: float,
        budget: PureDP | None,
        beta: float = 0.5,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, "failure_probability": failure_probability, "beta": beta}
        super().__init__(own, budget=budget, **options)

    @staticmethod
    def _arm_estimates(params: AdaPTTParams, public: AdaPTTPublic) -> ArmEstimates:
        means = np.where(public.size > 0, params.low + params.width * public.mean, np.nan)
        errors = params.width * standard_error(public.size, 1.0, 2.0 * params.noise_scale**2)
        return ArmEstimates(means, errors, public.size)

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(
            self.reward_range, parts=self.n_arms, memo=len(MEMO), sums_of="arm"
        )

    def _params(self) -> AdaPTTParams:
        (lo, hi), rivals = self.reward_range, max(self.n_arms - 1, 1)
        return AdaPTTParams(
            n_arms=self.n_arms,
            level=math.log(2.0 * rivals / self.config["failure_probability"]),
            share=self.config["beta"],
            low=lo,
            width=hi - lo,
            noise_scale=self.noise_scale / (hi - lo),
        )
