"""Merged batches: all noisy sums that were ever released of an arm, weighted by what each is worth,
and an index that knows the law of their noise.

An arm is played for a batch of max(first, growth times its rounds so far).  What crosses the wall:
when a batch ends, the sum of its rewards.  One person contributes one reward to one batch, so a
record moves one sum by at most ``hi - lo``, and batches are disjoint sets of records: each sum may
spend the whole budget.  Which batch a record falls into, and how long it is, depends on sums
released before it only (Azize & Basu 2024, Theorem 12).  All that follows is post-processing.

**Curvature.**  With ``variance="released"`` the sum of r (1 - r) crosses beside the sum of r, for
rewards scaled to [0, 1].  A record that changes from r to r', |r - r'| = d, moves the second by d
|1 - r - r'|, and r + r' is between d and 2 - d: at most d (1 - d).  So it moves both by at most d +
d (1 - d) = 1 - (1 - d)^2 <= 1 in the L1 norm, hence in the L2 norm: no more than the sum alone.

**Growth.**  Of a batch of n rounds the sum is worth n rounds where rewards scatter more than noise,
however they are parted into batches; where noise scatters more, its square is what counts, and few
long batches are worth more than many short ones.  So a batch is 1/3 of the arm's rounds before
where rewards rule, 3/2 where noise does, and between them in the proportion of their variances,
that of a reward taken for 1/10: so lengths are known beforehand.

**IMED** (Honda & Takemura 2015) plays arg min of D(m_a, q) / alpha + ln W_a, q being max m cut to
[0, 1]: without noise N kl / alpha + ln N; **KL-UCB** (Cappe et al. 2013) arg max of the largest q
with D(m_a, q) <= alpha ln t.  Value,
weight and exponent are those of ``law``, with their proofs.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from ...calls import is_open
from ...kernel import Generator, Kernel, Vector, kernel
from ...policies import Card, Kernels, Options, Policy, Statistic, register
from ...privacy.budgets import Budget
from ...privacy.channels import Laplace
from ...protocol import Contexts, Row, own_alone
from ...validation import choice, integer, real
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.episodes import CLOCK, MEMO, absorb_rounds, close, record_pull_of, release_due
from ..bases.linear import on_grid
from ..bases.sums import accumulate, summarise
from .law import (
    MERGED,
    await_batch,
    divergence_of,
    merge,
    merged_estimates,
    noise_variance,
    upper_bound_of,
)

GROWTH, GROWTH_IN_NOISE = 1.0 / 3.0, 1.5
_SCATTER = 0.1  # the variance of a reward that batches are planned for


class MergedParams(NamedTuple):
    n_arms: int
    optimism: float  # alpha
    growth: float  # of batches, where rewards scatter more than noise
    growth_in_noise: float
    first: int
    noise_scale: float  # s
    laplace: bool  # whether noise is Laplace's
    curved: bool  # whether the sum of r (1 - r) is released
    low: float
    width: float  # hi - lo
    movement: float  # the most that a record moves the statistic
    grid: float  # to which r (1 - r) is rounded; 0 for none


class MergedRaw(NamedTuple):
    total: np.ndarray  # of the running batch: the sum of rewards, and where released of r (1 - r)


class MergedPublic(NamedTuple):
    estimate: np.ndarray  # (K,) merged values, as rewards are measured
    merged: np.ndarray  # (8, K) see ``law.Merged``: of released batches
    awaited: np.ndarray  # (8, K) likewise of all finished batches, without what they brought
    pulls: np.ndarray  # (K,) rounds in all finished batches
    clock: np.ndarray  # (4,) see ``bases.episodes``; batches are episodes


def init(params: MergedParams) -> tuple[MergedRaw, MergedPublic]:
    k = params.n_arms
    public = MergedPublic(
        estimate=np.zeros(k),
        merged=np.zeros((len(MERGED), k)),
        awaited=np.zeros((len(MERGED), k)),
        pulls=np.zeros(k, np.int64),
        clock=np.zeros(len(CLOCK), np.int64),
    )
    return MergedRaw(np.zeros(2 if params.curved else 1)), public


@kernel
def choose_imed(
    params: MergedParams, public: MergedPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of least D(m, max m) / alpha + ln W, max m cut to [0, 1]; arms that were never played
    come first.
    """
    target = 0.0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        if public.pulls[a] == 0:
            return a, 1.0
        target = max(target, public.merged[MERGED.value, a])
    target, best, arm = min(target, 1.0), np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        merged, awaited = public.merged[:, a], public.awaited[:, a]
        distance = divergence_of(params, merged, awaited, merged[MERGED.value], target)
        index = distance / params.optimism + np.log(awaited[MERGED.weight])
        if index < best:
            best, arm = index, a
    return arm, 1.0


@kernel
def choose_kl(
    params: MergedParams, public: MergedPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of largest q with D(m, q) <= alpha ln t; of equals the one with fewer rounds."""
    level = params.optimism * np.log(public.clock[CLOCK.rounds] + 1.0)
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        if public.pulls[a] == 0:
            return a, 1.0
        merged = public.merged[:, a]
        index = upper_bound_of(params, merged, public.awaited[:, a], merged[MERGED.value], level)
        if index > best or (index == best and public.pulls[a] < public.pulls[arm]):
            best, arm = index, a
    return arm, 1.0


@kernel
def batch_rounds(params: Any, n: int) -> int:
    """Of the next batch of an arm of n rounds."""
    noise = noise_variance(params)
    share = noise / (noise + _SCATTER * n) if noise > 0.0 else 0.0
    growth = params.growth + (params.growth_in_noise - params.growth) * share
    return max(params.first, int(np.ceil(growth * n)))


@kernel
def hold_rounds(params: MergedParams, public: MergedPublic, arm: int) -> int:
    return batch_rounds(params, public.pulls[arm])


record_pull = record_pull_of(hold_rounds)


@kernel
def curvature(params: MergedParams, reward: float, n: int) -> float:
    """The sum of r (1 - r), in the units of rewards, of n equal rewards of that sum."""
    above = reward / n - params.low
    return n * on_grid(above * (1.0 - above / params.width), params.grid)


@kernel
def accumulate_curved(
    params: MergedParams, raw: MergedRaw, arm: int, x: Row, reward: float, n: int
) -> None:
    """The sum of rewards, and where it is released that of r (1 - r)."""
    accumulate(params, raw, arm, x, reward, n)
    if params.curved:
        raw.total[1] += curvature(params, reward, n)


@kernel
def sensitivity(params: MergedParams, public: MergedPublic, norm: int) -> float:
    return params.movement


@kernel
def weight_of(params: Any, n: float) -> float:
    """What the noisy sum of a batch weighs."""
    noise = noise_variance(params)
    return (0.25 + noise) / (0.25 / n + noise / (n * n))


@kernel
def scaled_mean(params: Any, memo: Vector, release: Vector) -> float:
    """What a noisy sum says of its arm, for rewards scaled to [0, 1]."""
    return (release[0] / memo[MEMO.size] - params.low) / params.width


@kernel
def await_batch_of(params: MergedParams, public: Any, memo: Vector) -> None:
    n = memo[MEMO.size]
    await_batch(public.awaited[:, int(memo[MEMO.arm])], n, weight_of(params, n))


@kernel
def close_and_await(params: MergedParams, public: MergedPublic, memo: Vector) -> None:
    """Until a batch is released its rounds count, as if they repeated what is known of the arm."""
    close(params, public, memo)
    await_batch_of(params, public, memo)


@kernel
def publish(params: MergedParams, public: Any, memo: Vector, release: Vector) -> None:
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    merged, weight = public.merged[:, arm], weight_of(params, n)
    merge(merged, n, scaled_mean(params, memo, release), weight)
    public.estimate[arm] = params.low + params.width * merged[MERGED.value]
    if params.curved:
        curve = release[1] / (n * params.width)
        merged[MERGED.curve] += (curve - merged[MERGED.curve]) * weight / merged[MERGED.weight]


@kernel
def absorb(params: MergedParams, public: MergedPublic, memo: Vector, release: Vector) -> None:
    """A batch of another worker."""
    absorb_rounds(params, public, memo)
    await_batch_of(params, public, memo)
    publish(params, public, memo, release)


def kernels_of(
    choose: Kernel, close: Kernel = close_and_await, publish: Kernel = publish
) -> Kernels:
    """Of a policy on batches that grow."""
    return Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate_curved,
        release_due=release_due,
        sensitivity=sensitivity,
        close=close,
        summarise=summarise,
        publish=publish,
        absorb=absorb if close is close_and_await else own_alone,
        skips_closed=True,
    )


class MergedPolicy(Policy):
    """The base of policies on merged batches.

    A subclass whose constructor takes no ``variance`` releases sums alone.
    """

    learns_off_policy = True

    _optimism: float
    _growth: tuple[float, float]  # where rewards rule, and where noise does
    _first: int
    _curved = False
    _arm_estimates = staticmethod(merged_estimates)

    def _statistic(self) -> Statistic:
        if not self._curved:
            return Statistic.of_rewards(self.reward_range, memo=len(MEMO))
        lo, hi = self.reward_range
        return Statistic(
            max_sensitivity=self._movement,
            max_abs_contribution=max(-lo, hi),
            size=2,
            memo=len(MEMO),
        )

    def params_for(self, n: int) -> Any:
        return self.params._replace(first=n)

    @property
    def _movement(self) -> float:
        # rounding r (1 - r) moves it by half a step, before and after
        lo, hi = self.reward_range
        return hi - lo + (self.grid if self._curved else 0.0)

    @property
    def takes_each_reward(self) -> bool:
        return self._curved

    def _params(self) -> MergedParams:
        lo, hi = self.reward_range
        return MergedParams(
            n_arms=self.n_arms,
            optimism=self._optimism,
            growth=self._growth[0],
            growth_in_noise=self._growth[1],
            first=self._first,
            noise_scale=self.noise_scale / (hi - lo),
            laplace=isinstance(self.channel, Laplace),
            curved=self._curved,
            low=lo,
            width=hi - lo,
            movement=self._movement,
            grid=self.grid if self._curved else 0.0,
        )


def growth_of(growth: float | None) -> tuple[float, float]:
    """Of batches where rewards scatter more than noise, and where noise does."""
    if growth is None:
        return GROWTH, GROWTH_IN_NOISE
    checked = real("growth", growth, 0.01, 100.0)
    return checked, checked


class WeighingPolicy(MergedPolicy):
    """The base of those that weigh sums by what they are worth, and choose batches by budget."""

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        alpha: float = 1.0,
        growth: float | None = None,
        first: int = 1,
        variance: str = "bound",
        **options: Unpack[Options],
    ) -> None:
        self._optimism = real("alpha", alpha, 1e-3, 1e3)
        self._growth = growth_of(growth)
        self._first = integer("first", first, 1, MOST_ROUNDS)
        self._curved = choice("variance", variance, ("bound", "released")) == "released"
        own = {
            "n_arms": n_arms,
            "alpha": self._optimism,
            "growth": growth,
            "first": self._first,
            "variance": variance,
        }
        super().__init__(own, budget=budget, **options)


SOURCE = (
    "{}; merged batches and the exponent of their noise: this package; parallel composition as in"
    " Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Theorem 12"
)
PROOF = (
    "dpbandits.algorithms.merged.merged; parallel composition as in Azize & Basu (2024), Theorem"
    " 12, and in pure DP their Appendix D"
)


@register(n_arms=3)
class MergedIMED(WeighingPolicy):
    """Indexed minimum empirical divergence on all noisy sums that were released of an arm.

    Plays arg min of ``D(m, max m) / alpha + ln W``: ``m`` the merged value of an arm, ``W`` its
    precision, exp(-D) a bound on the probability that an arm as good as the best is believed to be
    looks as bad, after so many batches.

    Args:
        n_arms: number of arms.
        budget: of any notion; None for the non-private counterpart.
        alpha: optimism; the lower, the more seldom is an arm tried that looks worse.
        growth: a batch is so many times all rounds of its arm before.  Default: 1/3 where rewards
            scatter more than the noise of the budget, 3/2 where noise does, and between them.
        first: rounds of an arm's first batch, and of the shortest.
        variance: of rewards: "bound", that of a coin; "released" learns it from a second sum, of
            ``(r - lo) (hi - r)``, which costs no privacy and no noise: for rewards that are seldom
            at the ends of their range.
        **options: see ``Options``.

    When to choose: finite arms with rewards that are random, under any notion.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = MergedIMED(3, budget=PureDP(1.0), seed=1)
        >>> decision = policy.pull()
        >>> policy.update(1.0)
        True
    """

    card = Card(
        title="IMED on merged noisy sums",
        source=SOURCE.format(
            "Honda & Takemura (2015), Non-asymptotic Analysis of a New Bandit Algorithm for"
            " Semi-bounded Rewards"
        ),
        proof=PROOF,
        noise=("Laplace", "Gaussian"),
    )
    kernels = kernels_of(choose_imed)


@register(n_arms=3)
class MergedKLUCB(WeighingPolicy):
    """KL-UCB on all noisy sums that were released of an arm.

    Plays arg max of the largest q with ``D(m, q) <= alpha ln t``: as good as the arm may be if it
    does not look worse than it is with a probability below t^-alpha, for its number of batches.

    Args:
        n_arms: number of arms.
        budget: of any notion; None for the non-private counterpart.
        alpha, growth, first, variance: as in ``MergedIMED``.
        **options: see ``Options``.

    When to choose: as ``MergedIMED``, where an index is wanted that is an upper confidence bound.

    Example:
        >>> from dpbandits import ZCDP
        >>> MergedKLUCB(3, budget=ZCDP(0.5), seed=1).pull().arm
        0
    """

    card = Card(
        title="KL-UCB on merged noisy sums",
        source=SOURCE.format(
            "Cappe et al. (2013), Kullback-Leibler Upper Confidence Bounds for Optimal Sequential"
            " Allocation"
        ),
        proof=PROOF,
        noise=("Laplace", "Gaussian"),
    )
    kernels = kernels_of(choose_kl)
