"""Merged batches: all noisy sums that were ever released of an arm, weighted by what each is worth,
and an index that knows the law of their noise.

An arm is played for a batch of max(first, growth times its rounds so far).  What crosses the wall:
when a batch ends, the sum of its rewards.  One person contributes one reward to one batch, so a
record moves one sum by at most ``hi - lo``, and batches are disjoint sets of records: each sum may
spend the whole budget.  Which batch a record falls into, and how long it is, depends on sums
released before it only (Azize & Basu 2024, Theorem 12).  All that follows is post-processing.

**Merging.**  Rewards are scaled to [0, 1], and s is the noise on a sum.  Batch j of n_j rounds has
the sum S_j; its mean has a variance of at most 1 / (4 n_j) + v / n_j^2, where v is s^2 for normal
noise and 2 s^2 for Laplace noise, and its weight w_j is one over that, relative to a batch of one
round.  The merged value is m = sum of a_j S_j, a_j = w_j / (W n_j), W = sum of w_j, so that sum of
n_j a_j = 1.  It is never cut to [0, 1].

**The exponent.**  For a reward in [0, 1] with mean q, and l >= 0, ln E[exp(-l r)] is at most psi(l)
= ln(1 - q + q exp(-l)).  With N = 1 / sum of n_j a_j^2, the number of rounds that m would be worth
without noise, and l = N u, Markov's inequality batch by batch says

    P(m <= x)  <=  exp(-D(x, q)) ,
    D(x, q) = sup over u >= 0 of  N (-u x - psi(u) - cost(u)) ,

if N psi(u) bounds sum of n_j psi(a_j l), and N cost(u) the logarithm of E[exp(-l noise)].

* *Rewards.*  Let f(l) = psi(l) / l, so that the sum is l times the mean of f(a_j l) with weights
  n_j a_j, and the mean of a_j l with these weights is u.  f'' is the mean of t^2 psi'''(t l) over t
  in [0, 1], and psi'''(l) = -sigma''(ln(q / (1 - q)) - l), sigma the logistic function.  For q <=
  1/2 that is never positive: f is concave, and Jensen's inequality says that the sum is at most
  l f(u) = N psi(u).  For q > 1/2 f'' is at most a third of max |sigma''|, which is 1 / (6 sqrt(3)),
  and the sum at most N psi(u) + l^3 / (36 sqrt(3)) times the variance of a_j with these weights,
  sum of n_j a_j^3 - 1 / N^2.  That is put into the cost of q > 1/2, but for q = 1, where psi is
  straight.
* *Noise.*  Normal noise has s^2 l^2 / 2 times sum of a_j^2 = V.  Laplace noise has the sum of
  -ln(1 - (s a_j l)^2), where -ln(1 - y) / y rises: at most -(V / A^2) ln(1 - (s A l)^2), A the
  largest a_j.

By duality D is the least price of q - m, parted between the divergence of coins and that of noise.

The bound is for a number of batches that is fixed, and rewards of which each has a mean of at least
q, given the past.  Lengths are known beforehand: that of an arm's j-th batch depends on ``first``
and ``growth`` alone, and only how many there are depends on releases; a bound for all of them at
once costs their number, some ln(t) / ln(1 + growth).

**IMED** (Honda & Takemura 2015) plays arg min of D(m_a, q) / alpha + ln W_a, q being max m cut to
[0, 1]: without noise N kl / alpha + ln N; **KL-UCB** (Cappe et al. 2013) arg max of the largest q
with D(m_a, q) <= alpha ln t.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

import numpy as np

from ...kernel import Generator, Kernel, Vector, kernel
from ...policies import Card, Kernels, Options, Policy, Statistic, register
from ...policies.protocol import Contexts, Row
from ...privacy.budgets import RDP, ZCDP, ApproxDP, Budget, PureDP
from ...privacy.channels import Gaussian, Laplace
from ...validation import integer, real
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.episodes import CLOCK, MEMO, close, release_due
from ..bases.sums import accumulate, sensitivity, summarise
from ..maths.divergences import bernoulli_kl, kl_upper_bound

_STEPS = 60
_TOLERANCE = 1e-10
_ALMOST = 1.0 - 1e-12
_BENT = 1.0 / (36.0 * math.sqrt(3.0))  # half of a third of max |sigma''|
_STEEPEST = 600.0  # larger tilts are not looked at: upper bounds only grow
_SILENT = 1e-250  # noise below is none


class MergedParams(NamedTuple):
    n_arms: int
    optimism: float  # alpha
    growth: float
    first: int
    noise_scale: float  # s
    laplace: bool  # whether noise is Laplace's
    low: float
    width: float  # hi - lo


class MergedRaw(NamedTuple):
    total: np.ndarray  # (1,) sum of the rewards of the running batch


class MergedPublic(NamedTuple):
    estimate: np.ndarray  # (K,) merged values, as rewards are measured
    merged: np.ndarray  # (6, K)
    pulls: np.ndarray  # (K,) rounds in all finished batches
    clock: np.ndarray  # (4,) see ``bases.episodes``; batches are episodes


class Merged(NamedTuple):
    """Slots of ``MergedPublic.merged``, of sums over an arm's batches."""

    value: int = 0  # m
    weight: int = 1  # W, relative to a batch of one round
    squares: int = 2  # of w^2 / n
    noise: int = 3  # of w^2 / n^2
    cubes: int = 4  # of w^3 / n^2
    largest: int = 5  # w / n


class Law(NamedTuple):
    """What the exponent of an arm knows of its batches."""

    rounds: float  # N
    noise: float  # normal: s^2 V N, Laplace: twice that
    pole: float  # s A N, where Laplace noise has no exponential moments any more; 0: normal
    bent: float  # of u^3 in the cost of q > 1/2


MERGED = Merged()


def init(params: MergedParams) -> tuple[MergedRaw, MergedPublic]:
    k = params.n_arms
    public = MergedPublic(
        estimate=np.zeros(k),
        merged=np.zeros((len(MERGED), k)),
        pulls=np.zeros(k, np.int64),
        clock=np.zeros(len(CLOCK), np.int64),
    )
    return MergedRaw(np.zeros(1)), public


# The exponent ----------------------------------------------------------------------------------


@kernel
def law_of(params: MergedParams, merged: Vector) -> Law:
    """Of an arm's column of ``merged``."""
    weight, squares = merged[MERGED.weight], merged[MERGED.squares]
    rounds, s = weight * weight / squares, params.noise_scale
    noise = s * s * merged[MERGED.noise] / squares
    spread = rounds * rounds * merged[MERGED.cubes] / weight**3 - 1.0
    pole = s * merged[MERGED.largest] * weight / squares
    return Law(
        rounds=rounds,
        noise=2.0 * noise if params.laplace else noise,
        pole=pole if params.laplace else 0.0,
        bent=_BENT * max(spread, 0.0),
    )


@kernel
def _cost(law: Law, u: float, bent: float) -> float:
    """cost(u)."""
    cubic, pole = bent * u * u * u, law.pole * law.pole
    if pole > 0.0:
        return cubic - 0.5 * law.noise / pole * np.log1p(-pole * u * u)
    return cubic + 0.5 * law.noise * u * u


@kernel
def _pull(law: Law, u: float, bent: float) -> float:
    """The slope of the cost."""
    return 3.0 * bent * u * u + law.noise * u / (1.0 - law.pole * law.pole * u * u)


@kernel
def _best_tilt(law: Law, x: float, q: float, bent: float) -> float:
    """The u of D(x, q), for x < q and some noise: by Newton's method on the slope of what is
    maximised, which falls; where a step would leave what encloses the root, by halving.
    """
    low, high = 0.0, (q - x) / law.noise
    if law.pole > 0.0:
        high = min(high, _ALMOST / law.pole)
    u = min((q - x) / (q * (1.0 - q) + law.noise), 0.5 * high)
    for _ in range(_STEPS):
        tilted = q / (q + (1.0 - q) * np.exp(min(u, 700.0)))
        slope = tilted - x - _pull(law, u, bent)
        if slope > 0.0:
            low = u
        else:
            high = u
        damped = 1.0 - law.pole * law.pole * u * u
        curve = tilted * (1.0 - tilted) + 6.0 * bent * u
        curve += law.noise * (2.0 - damped) / (damped * damped)
        following = u + slope / curve
        if not low <= following <= high:
            following = 0.5 * (low + high)
        moved = abs(following - u)
        u = following
        if moved <= _TOLERANCE * u:
            break
    return u


@kernel
def _worth(law: Law, x: float, q: float, u: float, bent: float) -> float:
    """N (-u x - psi(u) - cost(u)), or 0."""
    psi = -u if q >= 1.0 else np.log1p(q * np.expm1(-u))
    return law.rounds * max(-u * x - psi - _cost(law, u, bent), 0.0)


@kernel
def exponent(law: Law, x: float, q: float) -> float:
    """D(x, q), for q in [0, 1]."""
    if x >= q:
        return 0.0
    if law.noise < _SILENT:
        return law.rounds * bernoulli_kl(max(x, 0.0), q)
    bent = law.bent if 0.5 < q < 1.0 else 0.0
    return _worth(law, x, q, _best_tilt(law, x, q, bent), bent)


@kernel
def convex_exponent(law: Law, x: float, q: float) -> tuple[float, float]:
    """D(x, q) with ``bent`` in the cost of every q, which makes it convex in q, and its slope; for
    q in (0, 1).
    """
    if x >= q:
        return 0.0, 0.0
    if law.noise < _SILENT:
        x = max(x, 0.0)
        return law.rounds * bernoulli_kl(x, q), law.rounds * (q - x) / (q * (1.0 - q))
    u = _best_tilt(law, x, q, law.bent)
    shrunk = -np.expm1(-u)
    slope = law.rounds * shrunk / (1.0 - q * shrunk)
    return _worth(law, x, q, u, law.bent), slope


@kernel
def _turning_point(law: Law, x: float, bent: float) -> float:
    """The u at which x u + cost(u) begins to rise faster than u, for x < 1; at most _STEEPEST."""
    low, high = 0.0, min(_STEEPEST, (1.0 - x) / law.noise)
    if law.pole > 0.0:
        high = min(high, _ALMOST / law.pole)
    if x + _pull(law, high, bent) <= 1.0:
        return high
    for _ in range(_STEPS):
        u = 0.5 * (low + high)
        if x + _pull(law, u, bent) < 1.0:
            low = u
        else:
            high = u
    return high


@kernel
def _largest_mean(law: Law, x: float, level: float, bent: float) -> float:
    """The largest q for which N (-u x - psi(u) - cost(u)) <= level for all u: the least of h(u) =
    (1 - exp(-g(u))) / (1 - exp(-u)), g(u) = level / N + u x + cost(u).

    For q in [0, 1] h(u) <= q where a concave function of u is at least level / N, an interval: so h
    falls, and then rises.
    """
    offset = level / law.rounds
    low, high = 0.0, _turning_point(law, x, bent)
    if offset + high * x + _cost(law, high, bent) >= high:
        return 1.0  # g(u) >= u everywhere
    for _ in range(_STEPS):
        u = 0.5 * (low + high)
        g = offset + u * x + _cost(law, u, bent)
        rising = x + _pull(law, u, bent)
        if -rising * np.expm1(-u) < np.exp(g - u) - np.exp(-u):
            low = u
        else:
            high = u
    u = high
    g = offset + u * x + _cost(law, u, bent)
    return min(np.expm1(-g) / np.expm1(-u), 1.0) if g > 0.0 else 0.0


@kernel
def upper_bound(law: Law, x: float, level: float) -> float:
    """The supremum of the q in [0, 1] with D(x, q) <= level: D falls at 1/2 and jumps at 1, where
    ``bent`` begins and ends.
    """
    if x >= 1.0:
        return 1.0
    if law.noise < _SILENT:
        return kl_upper_bound(max(x, 0.0), level / law.rounds)
    beyond = _largest_mean(law, x, level, law.bent)
    if beyond > 0.5 or law.bent == 0.0:
        return beyond
    return _largest_mean(law, x, level, 0.0)


# Kernels ---------------------------------------------------------------------------------------


@kernel
def choose_imed(
    params: MergedParams, public: MergedPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of least D(m, max m) / alpha + ln W, max m cut to [0, 1]; arms that were never played
    come first.
    """
    target = 0.0
    for a in range(params.n_arms):
        if public.pulls[a] == 0:
            return a, 1.0
        target = max(target, public.merged[MERGED.value, a])
    target, best, arm = min(target, 1.0), np.inf, 0
    for a in range(params.n_arms):
        merged = public.merged[:, a]
        distance = exponent(law_of(params, merged), merged[MERGED.value], target)
        index = distance / params.optimism + np.log(merged[MERGED.weight])
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
        if public.pulls[a] == 0:
            return a, 1.0
        merged = public.merged[:, a]
        index = upper_bound(law_of(params, merged), merged[MERGED.value], level)
        if index > best or (index == best and public.pulls[a] < public.pulls[arm]):
            best, arm = index, a
    return arm, 1.0


@kernel
def hold_rounds(params: MergedParams, public: MergedPublic, arm: int) -> int:
    return max(params.first, int(np.ceil(params.growth * public.pulls[arm])))


@kernel
def record_pull(params: MergedParams, public: MergedPublic, arm: int, x: Row, n: int) -> None:
    clock = public.clock
    if clock[CLOCK.done] == 0:
        clock[CLOCK.arm], clock[CLOCK.size] = arm, hold_rounds(params, public, arm)
    clock[CLOCK.rounds] += n
    clock[CLOCK.done] += n


@kernel
def publish(params: MergedParams, public: MergedPublic, memo: Vector, release: Vector) -> None:
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    merged, s = public.merged[:, arm], params.noise_scale
    mean = (release[0] / n - params.low) / params.width
    variance = s * s * (2.0 if params.laplace else 1.0)
    weight = (0.25 + variance) / (0.25 / n + variance / (n * n))
    merged[MERGED.weight] += weight
    merged[MERGED.value] += (mean - merged[MERGED.value]) * weight / merged[MERGED.weight]
    merged[MERGED.squares] += weight * weight / n
    merged[MERGED.noise] += (weight / n) ** 2
    merged[MERGED.cubes] += weight**3 / (n * n)
    merged[MERGED.largest] = max(merged[MERGED.largest], weight / n)
    public.estimate[arm] = params.low + params.width * merged[MERGED.value]


def _kernels(choose: Kernel) -> Kernels:
    return Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        close=close,
        summarise=summarise,
        publish=publish,
    )


class MergedPolicy(Policy):
    """The base of policies on merged batches."""

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        alpha: float = 1.0,
        growth: float = 0.5,
        first: int = 1,
        **options: Unpack[Options],
    ) -> None:
        self._optimism = real("alpha", alpha, 1e-3, 1e3)
        self._growth = real("growth", growth, 0.01, 100.0)
        self._first = integer("first", first, 1, MOST_ROUNDS)
        own = {
            "n_arms": n_arms,
            "alpha": self._optimism,
            "growth": self._growth,
            "first": self._first,
        }
        super().__init__(own, budget=budget, **options)

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(self.reward_range, memo=len(MEMO))

    def _params(self) -> MergedParams:
        lo, hi = self.reward_range
        return MergedParams(
            n_arms=self.n_arms,
            optimism=self._optimism,
            growth=self._growth,
            first=self._first,
            noise_scale=self.noise_scale / (hi - lo),
            laplace=isinstance(self.channel, Laplace),
            low=lo,
            width=hi - lo,
        )


_SOURCE = (
    "{}; merged batches and the exponent of their noise: this package; parallel composition as in"
    " Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Theorem 12"
)
PROOF = (
    "dpbandits.algorithms.merged.merged; parallel composition as in Azize & Basu (2024), Theorem"
    " 12, and in pure DP their Appendix D"
)
CHANNELS = {PureDP: Laplace, ZCDP: Gaussian, ApproxDP: Gaussian, RDP: Gaussian}


@register(n_arms=3)
class MergedIMED(MergedPolicy):
    """Indexed minimum empirical divergence on all noisy sums that were released of an arm.

    Plays arg min of ``D(m, max m) / alpha + ln W``: ``m`` the merged value of an arm, ``W`` its
    precision, exp(-D) a bound on the probability that an arm as good as the best is believed to be
    looks as bad, after so many batches.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``, ``ZCDP``, ``ApproxDP`` or ``RDP``; None for the non-private counterpart.
        alpha: optimism; the lower, the more seldom is an arm tried that looks worse.
        growth: a batch is so many times all rounds of its arm before.
        first: rounds of an arm's first batch, and of the shortest.
        **options: see ``Options``.

    When to choose: finite arms with rewards that are random, under any notion.

    Example:
        >>> policy = MergedIMED(3, budget=PureDP(1.0), seed=1)
        >>> decision = policy.pull()
        >>> policy.update(1.0)
        True
    """

    card = Card(
        title="IMED on merged noisy sums",
        source=_SOURCE.format(
            "Honda & Takemura (2015), Non-asymptotic Analysis of a New Bandit Algorithm for"
            " Semi-bounded Rewards"
        ),
        proof=PROOF,
        channels=CHANNELS,
    )
    kernels = _kernels(choose_imed)


@register(n_arms=3)
class MergedKLUCB(MergedPolicy):
    """KL-UCB on all noisy sums that were released of an arm.

    Plays arg max of the largest q with ``D(m, q) <= alpha ln t``: as good as the arm may be if it
    does not look worse than it is with a probability below t^-alpha, for its number of batches.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``, ``ZCDP``, ``ApproxDP`` or ``RDP``; None for the non-private counterpart.
        alpha, growth, first: as in ``MergedIMED``.
        **options: see ``Options``.

    When to choose: as ``MergedIMED``, where an index is wanted that is an upper confidence bound.

    Example:
        >>> MergedKLUCB(3, budget=ZCDP(0.5), seed=1).pull().arm
        0
    """

    card = Card(
        title="KL-UCB on merged noisy sums",
        source=_SOURCE.format(
            "Cappe, Garivier, Maillard, Munos & Stoltz (2013), Kullback-Leibler Upper Confidence"
            " Bounds for Optimal Sequential Allocation"
        ),
        proof=PROOF,
        channels=CHANNELS,
    )
    kernels = _kernels(choose_kl)
