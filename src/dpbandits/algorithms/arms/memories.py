"""Memories: the weight of an arm's noisy sums by their age.

Guarantee: that of ``held``, for any memory.  When a batch ends, the sum of its rewards crosses the
wall.  A memory weighs released sums, which is post-processing.  With a sliding window, or a
discount, of raw rewards a record would enter many sums.

**Discount.**  Let g be the discount of a round.  A batch of weight w (see ``law``) that ended n
rounds ago weighs w g^n.  Merged values and the law of their noise are those of ``law`` with these
weights; they describe the arm at the time of the sums.  Their relevance to the present arm fades as
well.  With W the sum of w g^n and F that of w g^2n, the exponent is multiplied by F / W.  Without
noise D is then that of W rounds, the discounted number of Garivier & Moulines (2011), instead of
W^2 / F.  Under IMED both terms of the index fade while an arm is not played, ln W by a constant per
round.  Hence every arm is tried again after some half-lives at the latest, for a short batch if it
has not changed.

A change shows only when a batch ends, hence no batch exceeds ``longest``.  For the leader many
short batches are worth less than few long ones by a factor of 1 + 4 v / n, v the variance of noise.

*How fast.*  Let L be the rounds from one change to the next.  In every L a half-life H costs about
H rounds of an arm that was the best before.  Every few H rounds all other arms are tried again, at
a cost that depends on H only by its logarithm.  The sum is least for H in proportion to the root of
L times that cost.  Means d apart are distinguished in some 1 / d^2 rounds, or in sqrt(v) / d if
noise dominates.  Hence each arm's cost is taken in proportion to 1 + d sqrt(v), with d = 0.3 and
the factor of least measured regret.  There is no regret theorem: the exponent holds for arms that
do not change, and for lengths that are known beforehand.  Here lengths depend on the time when an
arm was last played.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...constraints import Constraints, Integer, Real
from ...kernel import Kernel, Matrix, Vector, bind, kernel, unbound
from ...policies import Part
from ...protocol import own_alone
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.episodes import CLOCK, absorb_rounds
from ..bases.episodes import close as close_episode
from ..bases.episodes import withdraw as withdraw_episode
from .batches import weight_of
from .law import MERGED, await_batch, merge

# The highest mean that arms are compared with: at 1 an exponent may be infinite, and never fades.
_HIGHEST = 1.0 - 1e-6


class HeldMemo(NamedTuple):  # slots of what is noted of a batch, first those of an episode
    arm: int = 0
    size: int = 1
    ended: int = 2  # in which round, under a discount only


class Aged(NamedTuple):  # slots of a column beside those of ``law.Merged``
    fresh: int = len(MERGED)  # F, under a discount
    rounds: int = len(MERGED) + 1  # in the batches that count


MEMO, AGED = HeldMemo(), Aged()
ROWS = len(MERGED) + len(AGED)

# Merge, Forget ---------------------------------------------------------------------------------


@kernel
def all_finished(merged: Matrix, awaited: Matrix) -> Matrix:
    """The columns of all finished batches, as if those to come repeated their arm's value."""
    return awaited


@kernel
def whole(params: Any, public: Any, a: int) -> tuple[float, float]:
    """The weight of an arm, and the share left of its exponent: all of it."""
    return public.awaited[MERGED.weight, a], 1.0


@kernel
def played(params: Any, public: Any, a: int) -> float:
    """The rounds that the batches of an arm grow with."""
    return public.pulls[a]


weigh = unbound


@kernel
def _await(params: Any, public: Any, memo: Vector) -> None:
    """Take in a batch that has ended, without its rewards."""
    column, n = public.awaited[:, int(memo[MEMO.arm])], memo[MEMO.size]
    if params.forgets:
        column[:] = 0.0
    await_batch(column, n, weigh(params, n))
    column[AGED.rounds] += n


_await_batch = unbound


@kernel
def _close(params: Any, public: Any, memo: Vector) -> None:
    """Until a batch is released its rounds count as if they repeated the arm's estimate."""
    # First, because it writes the memo that the next line reads.
    close_episode(params, public, memo)
    _await_batch(params, public, memo)


@kernel
def withdraw(params: Any, public: Any, memo: Vector) -> None:
    """All batches that were not released are withdrawn: the released ones are left."""
    withdraw_episode(params, public, memo)
    arm = int(memo[MEMO.arm])
    public.awaited[:, arm] = public.merged[:, arm]


@kernel
def take_in(params: Any, public: Any, memo: Vector, release: Vector, weight: float) -> None:
    """Merge a release of that weight into the column of its arm."""
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    merged = public.merged[:, arm]
    merge(merged, n, (release[0] / n - params.low) / params.width, weight)
    public.estimate[arm] = params.low + params.width * merged[MERGED.value]
    if params.curved:
        curve = release[1] / (n * params.width)
        merged[MERGED.curve] += (curve - merged[MERGED.curve]) * weight / merged[MERGED.weight]


@kernel
def _publish(params: Any, public: Any, memo: Vector, release: Vector) -> None:
    merged, n = public.merged[:, int(memo[MEMO.arm])], memo[MEMO.size]
    if params.forgets:
        merged[:] = 0.0
    take_in(params, public, memo, release, weigh(params, n))
    merged[AGED.rounds] += n


_publish_batch = unbound


@kernel
def _absorb(params: Any, public: Any, memo: Vector, release: Vector) -> None:
    """A batch of another worker."""
    absorb_rounds(params, public, memo)
    _await_batch(params, public, memo)
    _publish_batch(params, public, memo, release)


def adding(weigh: Kernel) -> tuple[Kernel, Kernel, Kernel]:
    """``close``, ``publish``, ``absorb``: a batch of n rounds weighs ``weigh(params, n)``."""
    waits, publish = bind(_await, weigh=weigh), bind(_publish, weigh=weigh)
    absorb = bind(_absorb, _await_batch=waits, _publish_batch=publish)
    return bind(_close, _await_batch=waits), publish, absorb


ADDING = adding(weight_of)

# Discount --------------------------------------------------------------------------------------


@kernel
def all_released(merged: Matrix, awaited: Matrix) -> Matrix:
    """The columns with a law known to an index: those of released batches."""
    return merged


@kernel
def faded(params: Any, public: Any, a: int) -> tuple[float, float]:
    """The present weight of an arm, with unreleased batches, and the share left of its exponent."""
    merged, weight, share = public.merged[:, a], 0.0, 0.0
    if merged[MERGED.weight] > 0.0:
        left = np.exp(-params.decay * (public.clock[CLOCK.rounds] - public.ended[a]))
        weight = left * merged[MERGED.weight]
        # F fades twice as fast as W, so F / W fades as W does.
        share = left * merged[AGED.fresh] / merged[MERGED.weight]
    if public.awaited[AGED.rounds, a] > 0.0:
        weight += weight_of(params, public.awaited[AGED.rounds, a])
    return weight, share


@kernel
def lately_played(params: Any, public: Any, a: int) -> float:
    """The discounted rounds of an arm."""
    elapsed = public.clock[CLOCK.rounds] - public.ended[a]
    left = public.merged[AGED.rounds, a] * np.exp(-params.decay * elapsed)
    return left + public.awaited[AGED.rounds, a]


@kernel
def close_and_count(params: Any, public: Any, memo: Vector) -> None:
    close_episode(params, public, memo)
    memo[MEMO.ended] = public.clock[CLOCK.rounds]
    public.awaited[AGED.rounds, int(memo[MEMO.arm])] += memo[MEMO.size]


@kernel
def withdraw_and_count(params: Any, public: Any, memo: Vector) -> None:
    withdraw_episode(params, public, memo)
    public.awaited[AGED.rounds, int(memo[MEMO.arm])] -= memo[MEMO.size]


@kernel
def fade(params: Any, public: Any, arm: int, ended: int) -> float:
    """Discount an arm to round ``ended``, if it is later; returns the weight of a batch that ended
    then.
    """
    elapsed = ended - public.ended[arm]
    left = np.exp(-params.decay * abs(elapsed))
    if elapsed <= 0:  # releases may come in another order than batches ended
        return left
    # Sums fade by their power of w; the merged value is a quotient of two, and stays.
    merged = public.merged[:, arm]
    merged[MERGED.weight] *= left
    merged[MERGED.squares] *= left * left
    merged[MERGED.noise] *= left * left
    merged[MERGED.cubes] *= left * left * left
    merged[MERGED.largest] *= left
    merged[MERGED.second] *= left
    merged[AGED.fresh] *= left * left
    merged[AGED.rounds] *= left
    public.ended[arm] = ended
    return 1.0


@kernel
def publish_fading(params: Any, public: Any, memo: Vector, release: Vector) -> None:
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    # Earlier batches fade first, up to the end of this one.
    left = fade(params, public, arm, int(memo[MEMO.ended]))
    merged, weight = public.merged[:, arm], weight_of(params, n)
    take_in(params, public, memo, release, left * weight)
    merged[AGED.fresh] += left * left * weight
    merged[AGED.rounds] += left * n
    public.awaited[AGED.rounds, arm] -= n


# Values ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Memory(Part, base=True):
    """Base class of memories.

    A memory of your own gives the kernels below: ``places`` of indices, ``rounds_of(params, public,
    a)``, by which batches grow, and ``close``, ``publish``, ``absorb`` and ``withdraw`` of the
    kernel protocol.
    """

    title: ClassVar[str] = ""
    source: ClassVar[str] = "merged batches, and how the index counts noise, are this package's"
    places: ClassVar[Mapping[str, Kernel]] = {"columns": all_finished, "standing": whole}
    rounds_of: ClassVar[Kernel] = played
    close: ClassVar[Kernel]
    publish: ClassVar[Kernel]
    absorb: ClassVar[Kernel] = own_alone
    withdraw: ClassVar[Kernel] = withdraw
    memo: ClassVar[int] = 2  # slots
    highest: ClassVar[float] = 1.0  # mean that an arm is compared with
    forgets: ClassVar[bool] = False  # whether estimates rest on the last batch alone

    def decay(self, n_arms: int, noise: float) -> float:
        """-ln of the discount of a round, for noise of that variance on a sum; 0 for none."""
        return 0.0

    def longest(self, n_arms: int, noise: float) -> int:
        """The longest batch that the memory allows."""
        return MOST_ROUNDS


@dataclass(frozen=True, repr=False)
class Merge(Memory):
    """Merges all released sums of an arm, each weighted by one over the variance of its mean.  That
    variance is 1 / (4 n) + v / n^2 for n rounds and noise of variance v.  Source: this package.

    When to choose: arms do not change.

    >>> Merge()
    Merge()
    """

    title: ClassVar[str] = "merged noisy sums"
    close, publish, absorb = ADDING


@dataclass(frozen=True, repr=False)
class Forget(Memory):
    """Uses only the noisy sum of an arm's last batch.

    When to choose: to compare with algorithms that estimate so (Azize & Basu 2022, 2024); ``Merge``
    has less noise at the same budget.
    """

    title: ClassVar[str] = "the last noisy sum"
    source: ClassVar[str] = "Azize & Basu (2024), Concentrated Differential Privacy for Bandits"
    close, publish, absorb = ADDING
    forgets: ClassVar[bool] = True


_GAP = 0.3  # between means that a half-life is planned for
_PACE = 14.0
_PARTS = 64.0  # batches in a half-life, where noise does not ask for longer ones
_FEWEST = 16.0  # batches in a half-life


@dataclass(frozen=True, repr=False)
class Discount(Memory):
    """Discounts noisy sums by their age, so every arm is tried again now and then.

    After n rounds a sum has 2^(-n / half_life) times its initial weight (discount after Garivier &
    Moulines 2011).

    Args:
        rounds_per_change: approximate number of rounds from one change of a mean to the next.
        half_life: number of rounds after which a sum counts half.  Default: from
            ``rounds_per_change``, arms and budget.

    When to choose: the best arm may change several times.  If it never does, ``Merge`` has less
    regret; if changes are adversarial, ``Adversarial`` has a regret bound.

    >>> Discount(5000)
    Discount(rounds_per_change=5000)
    """

    rounds_per_change: int = 10_000
    half_life: float | None = None

    title: ClassVar[str] = "noisy discounted sums"
    source: ClassVar[str] = (
        "discount after Garivier & Moulines (2011), On Upper-Confidence Bound Policies for"
        " Switching Bandit Problems; merged batches with a discount: this package"
    )
    places: ClassVar[Mapping[str, Kernel]] = {"columns": all_released, "standing": faded}
    rounds_of: ClassVar[Kernel] = lately_played
    close: ClassVar[Kernel] = close_and_count
    publish: ClassVar[Kernel] = publish_fading
    memo: ClassVar[int] = len(MEMO)
    highest: ClassVar[float] = _HIGHEST

    constraints: ClassVar[Constraints] = {
        "rounds_per_change": Integer(1, MOST_ROUNDS),
        "half_life": Real(1.0, 1e15) | None,
    }

    def planned(self, n_arms: int, noise: float) -> float:
        """The half-life for noise of that variance on a sum, of rewards in [0, 1]."""
        if self.half_life is not None:
            return self.half_life
        tried = n_arms * (1.0 + _GAP * math.sqrt(noise))
        lull = self.rounds_per_change
        return min(_PACE * math.sqrt(lull * tried), 2.0 * lull)

    def decay(self, n_arms: int, noise: float) -> float:
        return math.log(2.0) / self.planned(n_arms, noise)

    def longest(self, n_arms: int, noise: float) -> int:
        half_life = self.planned(n_arms, noise)
        return max(1, math.ceil(min(max(noise, half_life / _PARTS), half_life / _FEWEST)))
