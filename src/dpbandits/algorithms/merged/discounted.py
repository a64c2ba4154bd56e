"""Merged batches that fade: noisy sums count less the older they are, so that an arm which has
changed is noticed, and tried again.

What crosses the wall is what ``merged`` says: when a batch ends, the sum of its rewards.  One
person contributes one reward to one batch, so a record moves one sum by at most ``hi - lo``, and
batches are disjoint sets of records: each sum may spend the whole budget.  Which batch a record
falls into, and how long it is, depends on sums released before it, and on how many rounds ago.
Fading happens to what has been released: it is post-processing.  A sliding window, or a discount,
of raw rewards would hold a record in many sums.

**Fading.**  Let g be the discount of a round.  A batch of weight w (see ``law``) that ended n
rounds ago weighs w g^n.  Merged values and the law of their noise are those of ``law`` with these
weights, which is about what the sums say of the arm as they were drawn.  How much that says of the
arm as it is now fades as well: with W the sum of w g^n and F that of w g^2n, the exponent is
multiplied by F / W.  Without noise D is then that of W rounds, the discounted number of Garivier
& Moulines (2011), instead of W^2 / F.

**IMED** plays the arm of least F / W D(m_a, q) + ln W_a, q being max m cut to [0, 1 - 10^-6], where
D is finite.  Both terms fall while an arm is not played, ln W by the same in every round: so every
arm is tried again, after some half-lives at the latest, for a short batch if it looks as it did.

**Batches** grow as those of ``merged`` do, with the discounted rounds of the arm, but are no longer
than ``longest``: a change shows when a batch ends.  For the leader many short batches are worth
less than few long ones by 1 + 4 v / n, v the variance of noise.

**How fast.**  With L rounds from one change to the next, a half-life H costs some H rounds of an
arm that was the best in every L, and trying all others again in every few H rounds costs a number
that depends on H by its logarithm only: the sum is least for H in proportion to the root of L times
that number.  Means d apart are told apart in some 1 / d^2 rounds, and in sqrt(v) / d where noise
rules: for each arm in proportion to 1 + d sqrt(v), d being taken for 0.3, and the factor for what
had least regret.

There is no regret theorem.  The exponent holds for arms that do not change, and for lengths that
are known beforehand; here they depend on when an arm was last played.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

import numpy as np

from ...calls import is_open
from ...kernel import Generator, Vector, kernel
from ...policies import Card, Kernels, Options, Policy, Statistic, register
from ...privacy.budgets import Budget
from ...privacy.channels import Laplace
from ...protocol import Contexts
from ...validation import integer, real
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.episodes import CLOCK, record_pull_of, release_due
from ..bases.episodes import close as close_episode
from ..bases.sums import accumulate, sensitivity, summarise
from .law import MERGED, closest_exponent, law_of, merge, merged_estimates
from .merged import GROWTH, GROWTH_IN_NOISE, batch_rounds, weight_of

_HIGHEST = 1.0 - 1e-6  # mean that an arm is compared with: an exponent may not be infinite


class DiscountedParams(NamedTuple):
    n_arms: int
    optimism: float  # alpha
    decay: float  # -ln g
    longest: int  # batch
    growth: float  # of batches, where rewards scatter more than noise
    growth_in_noise: float
    first: int
    noise_scale: float  # s
    laplace: bool  # whether noise is Laplace's
    low: float
    width: float  # hi - lo


class DiscountedRaw(NamedTuple):
    total: np.ndarray  # (1,) sum of the rewards of the running batch


class DiscountedPublic(NamedTuple):
    estimate: np.ndarray  # (K,) merged values, as rewards are measured
    merged: np.ndarray  # (8, K) see ``law.Merged``, as of the arm's last batch
    fresh: np.ndarray  # (K,) F, of then
    rounds: np.ndarray  # (K,) discounted rounds, of then
    ended: np.ndarray  # (K,) when that batch ended
    awaited: np.ndarray  # (K,) rounds in batches that are over and not yet released
    pulls: np.ndarray  # (K,) rounds in all finished batches
    clock: np.ndarray  # (4,) see ``bases.episodes``; batches are episodes


class Memo(NamedTuple):
    """Slots of what is noted of a batch: those of an episode, and the round in which it ended."""

    arm: int = 0
    size: int = 1
    ended: int = 2


MEMO = Memo()


def init(params: DiscountedParams) -> tuple[DiscountedRaw, DiscountedPublic]:
    k = params.n_arms
    public = DiscountedPublic(
        estimate=np.zeros(k),
        merged=np.zeros((len(MERGED), k)),
        fresh=np.zeros(k),
        rounds=np.zeros(k),
        ended=np.zeros(k, np.int64),
        awaited=np.zeros(k, np.int64),
        pulls=np.zeros(k, np.int64),
        clock=np.zeros(len(CLOCK), np.int64),
    )
    return DiscountedRaw(np.zeros(1)), public


@kernel
def choose(
    params: DiscountedParams, public: DiscountedPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of least F / W D(m, max m) / alpha + ln W, max m cut to [0, 1); arms that were never
    played come first, and batches whose sum is still to come count in W, not in D.
    """
    target, now = 0.0, public.clock[CLOCK.rounds]
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        if public.pulls[a] == 0:
            return a, 1.0
        target = max(target, public.merged[MERGED.value, a])
    target, best, arm = min(target, _HIGHEST), np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        merged, weight, distance = public.merged[:, a], 0.0, 0.0
        if merged[MERGED.weight] > 0.0:
            left = np.exp(-params.decay * (now - public.ended[a]))
            weight = left * merged[MERGED.weight]
            share = left * public.fresh[a] / merged[MERGED.weight]
            found = closest_exponent(law_of(params, merged), merged[MERGED.value], target)
            distance = share * found
        if public.awaited[a] > 0:
            weight += weight_of(params, float(public.awaited[a]))
        index = distance / params.optimism + np.log(weight)
        if index < best:
            best, arm = index, a
    return arm, 1.0


@kernel
def hold_rounds(params: DiscountedParams, public: DiscountedPublic, arm: int) -> int:
    elapsed = public.clock[CLOCK.rounds] - public.ended[arm]
    n = public.rounds[arm] * np.exp(-params.decay * elapsed) + public.awaited[arm]
    return min(batch_rounds(params, n), params.longest)


record_pull = record_pull_of(hold_rounds)


@kernel
def close(params: DiscountedParams, public: DiscountedPublic, memo: Vector) -> None:
    close_episode(params, public, memo)
    memo[MEMO.ended] = public.clock[CLOCK.rounds]
    public.awaited[int(memo[MEMO.arm])] += int(memo[MEMO.size])


@kernel
def fade(params: DiscountedParams, public: DiscountedPublic, arm: int, ended: int) -> float:
    """Count what is known of an arm as of round ``ended``, if that is later than its last; what a
    batch that ended then weighs as of the later of the two.
    """
    elapsed = ended - public.ended[arm]
    left = np.exp(-params.decay * abs(elapsed))
    if elapsed <= 0:  # releases may come in another order than batches ended
        return left
    merged = public.merged[:, arm]
    merged[MERGED.weight] *= left
    merged[MERGED.squares] *= left * left
    merged[MERGED.noise] *= left * left
    merged[MERGED.cubes] *= left * left * left
    merged[MERGED.largest] *= left
    merged[MERGED.second] *= left
    public.fresh[arm] *= left * left
    public.rounds[arm] *= left
    public.ended[arm] = ended
    return 1.0


@kernel
def publish(
    params: DiscountedParams, public: DiscountedPublic, memo: Vector, release: Vector
) -> None:
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    left = fade(params, public, arm, int(memo[MEMO.ended]))
    merged, weight = public.merged[:, arm], weight_of(params, n)
    merge(merged, n, (release[0] / n - params.low) / params.width, left * weight)
    public.fresh[arm] += left * left * weight
    public.rounds[arm] += left * n
    public.awaited[arm] -= int(n)
    public.estimate[arm] = params.low + params.width * merged[MERGED.value]


_GAP = 0.3  # between means that a half-life is planned for
_PACE = 14.0
_PARTS = 64.0  # batches in a half-life, where noise does not ask for longer ones
_FEWEST = 16.0  # batches in a half-life


def half_life_of(rounds_per_change: int, n_arms: int, noise: float) -> float:
    """For noise of that variance on a sum, of rewards in [0, 1]."""
    tried = n_arms * (1.0 + _GAP * math.sqrt(noise))
    return min(_PACE * math.sqrt(rounds_per_change * tried), 2.0 * rounds_per_change)


def longest_of(half_life: float, noise: float) -> int:
    """The longest batch."""
    return max(1, math.ceil(min(max(noise, half_life / _PARTS), half_life / _FEWEST)))


@register(n_arms=3, rounds_per_change=1000)
class DiscountedIMED(Policy):
    """Indexed minimum empirical divergence on noisy sums that fade, for rewards that change.

    Plays arg min of ``F / W D(m, max m) / alpha + ln W``: ``m`` the merged value of an arm, sums
    counting less the older they are, ``W`` what they weigh.  Every arm is tried again now and then.

    Args:
        n_arms: number of arms.
        budget: of any notion; None for the non-private counterpart.
        rounds_per_change: how many rounds pass from one change of a mean to the next, more or less.
        half_life: after how many rounds a sum counts half.  Default: from ``rounds_per_change``,
            arms and budget.
        longest: rounds of the longest batch.  Default: from half-life and budget.
        alpha: optimism; the lower, the more seldom is an arm tried that looks worse.
        **options: see ``Options``.

    When to choose: the best arm may change several times.  Where it never does, ``MergedIMED`` has
    less regret; where it changes as if against you, ``HTINF`` has a bound.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = DiscountedIMED(3, budget=ZCDP(0.5), rounds_per_change=2000, seed=1)
        >>> decision = policy.pull()
        >>> policy.update(1.0)
        True
        >>> round(policy.half_life)
        1236
    """

    learns_off_policy = True

    card = Card(
        title="IMED on noisy sums that fade",
        source=(
            "index after Honda & Takemura (2015), discount after Garivier & Moulines (2011), On"
            " Upper-Confidence Bound Policies for Switching Bandit Problems; merged batches that"
            " fade: this package"
        ),
        proof=(
            "dpbandits.algorithms.merged.discounted; parallel composition as in Azize & Basu"
            " (2024), Theorem 12, and in pure DP their Appendix D"
        ),
        noise=("Laplace", "Gaussian"),
    )
    kernels = Kernels(
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
        skips_closed=True,
    )

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        rounds_per_change: int = 10_000,
        half_life: float | None = None,
        longest: int | None = None,
        alpha: float = 1.0,
        **options: Unpack[Options],
    ) -> None:
        self._lull = integer("rounds_per_change", rounds_per_change, 1, MOST_ROUNDS)
        self._asked = None if half_life is None else real("half_life", half_life, 1.0, 1e15)
        self._longest = None if longest is None else integer("longest", longest, 1, MOST_ROUNDS)
        self._optimism = real("alpha", alpha, 1e-3, 1e3)
        own = {
            "n_arms": n_arms,
            "rounds_per_change": self._lull,
            "half_life": self._asked,
            "longest": self._longest,
            "alpha": self._optimism,
        }
        super().__init__(own, budget=budget, **options)

    @property
    def half_life(self) -> float:
        """After how many rounds a sum counts half."""
        return math.log(2.0) / float(self.params.decay)

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(self.reward_range, memo=len(MEMO))

    _arm_estimates = staticmethod(merged_estimates)

    def _params(self) -> DiscountedParams:
        lo, hi = self.reward_range
        scale, laplace = self.noise_scale / (hi - lo), isinstance(self.channel, Laplace)
        noise = scale * scale * (2.0 if laplace else 1.0)
        half_life = self._asked or half_life_of(self._lull, self.n_arms, noise)
        return DiscountedParams(
            n_arms=self.n_arms,
            optimism=self._optimism,
            decay=math.log(2.0) / half_life,
            longest=self._longest or longest_of(half_life, noise),
            growth=GROWTH,
            growth_in_noise=GROWTH_IN_NOISE,
            first=1,
            noise_scale=scale,
            laplace=laplace,
            low=lo,
            width=hi - lo,
        )
