"""KL-UCB and IMED on noisy sums that are added up, as published (Azize, Wu, Honda, Orabona, Ito &
Basu 2025, Optimal Regret of Bandits under Differential Privacy).

What crosses the wall, and when, is what ``merged`` says: one sum per batch, with Laplace noise.
All noisy sums of an arm are added up, with equal weights, and x is that total over its n rounds,
cut to [0, 1].  The index takes the noise of all for that of a single sum: with

    d(x, y)  =  min over z of  epsilon |z - x| + kl(z, y) ,

DP-KLUCB plays the arm of the largest y with n d(x, y) <= ln t, and DP-IMED that of the least n d(x,
max x) + ln n.  For x <= y the minimum is at z = max(x, y exp(-epsilon) / Y), Y = 1 - y (1 -
exp(-epsilon)): where the second is larger, kl(z, y) is -epsilon z - ln Y, and so

    d(x, y)  =  -epsilon x - ln(1 - y (1 - exp(-epsilon))) ,

which is solved for y at once.  Both regrets are the growth of batches times the least possible, as
T grows: sum of gap ln(T) / d(mean, best mean).
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from ...calls import is_open
from ...kernel import Generator, Vector, kernel
from ...policies import Card, Options, register
from ...privacy.budgets import PureDP
from ...protocol import Contexts
from ...validation import real
from ..bases.episodes import CLOCK, MEMO, close
from ..bases.errata import DP_IMED
from ..maths.divergences import bernoulli_kl, kl_upper_bound
from .law import MERGED, merge
from .merged import (
    PROOF,
    MergedParams,
    MergedPolicy,
    MergedPublic,
    kernels_of,
    scaled_mean,
)


@kernel
def _is_free(x: float, y: float, scale: float) -> bool:
    """Whether d(x, y) is kl(x, y): the z of its minimum is x."""
    return y * np.exp(-1.0 / scale) <= x * (1.0 + y * np.expm1(-1.0 / scale))


@kernel
def private_divergence(x: float, y: float, scale: float) -> float:
    """d(x, y) for noise of that scale, 1 / epsilon, and x <= y; kl without noise."""
    if x >= y:
        return 0.0
    if scale == 0.0:
        return bernoulli_kl(x, y)
    if _is_free(x, y, scale):
        return bernoulli_kl(x, y)
    return -x / scale - np.log1p(y * np.expm1(-1.0 / scale))


@kernel
def private_upper_bound(x: float, level: float, scale: float) -> float:
    """The largest y in [x, 1] with d(x, y) <= level."""
    y = kl_upper_bound(x, level)
    if scale == 0.0 or _is_free(x, y, scale):
        return y
    return min(np.expm1(-level - x / scale) / np.expm1(-1.0 / scale), 1.0)


@kernel
def choose_imed(
    params: MergedParams, public: MergedPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of least n d(x, max x) + ln n; arms that were never played come first."""
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
        n, x = public.pulls[a], min(max(public.merged[MERGED.value, a], 0.0), 1.0)
        index = n * private_divergence(x, target, params.noise_scale) + np.log(n)
        if index < best:
            best, arm = index, a
    return arm, 1.0


@kernel
def choose_kl(
    params: MergedParams, public: MergedPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of the largest y with n d(x, y) <= ln t; of equals the one with fewer rounds."""
    level, best, arm = np.log(public.clock[CLOCK.rounds] + 1.0), -np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        n, x = public.pulls[a], min(max(public.merged[MERGED.value, a], 0.0), 1.0)
        if n == 0:
            return a, 1.0
        index = private_upper_bound(x, level / n, params.noise_scale)
        if index > best or (index == best and n < public.pulls[arm]):
            best, arm = index, a
    return arm, 1.0


@kernel
def publish(params: MergedParams, public: MergedPublic, memo: Vector, release: Vector) -> None:
    """Add the sum up: every round weighs the same."""
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    merged = public.merged[:, arm]
    merge(merged, n, scaled_mean(params, memo, release), n)
    public.estimate[arm] = params.low + params.width * merged[MERGED.value]


class _Published(MergedPolicy):
    def __init__(
        self,
        n_arms: int,
        *,
        budget: PureDP | None,
        growth: float = 0.1,
        **options: Unpack[Options],
    ) -> None:
        checked = real("growth", growth, 0.01, 100.0)
        self._growth, self._optimism, self._first = (checked, checked), 1.0, 1
        super().__init__({"n_arms": n_arms, "growth": checked}, budget=budget, **options)


_SOURCE = "Azize et al. (2025), Optimal Regret of Bandits under Differential Privacy (NeurIPS)"


@register(n_arms=3)
class DPIMED(_Published):
    """DP-IMED as published: noisy sums are added up, and the index takes their noise for one.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``, or None for the non-private counterpart.
        growth: a batch is so many times all rounds of its arm before; the paper's ratio of batches
            is one more, and may be as near to 1 as one likes.
        **options: see ``Options``.

    When to choose: to compare with the published algorithm; ``MergedIMED`` weighs sums by what they
    are worth, counts the noise of each, and takes other budgets.

    Example:
        >>> DPIMED(3, budget=PureDP(1.0), seed=1).pull().arm
        0
    """

    card = Card(
        title="IMED on noisy sums that are added up",
        source=_SOURCE,
        proof=PROOF,
        noise=("Laplace",),
        errata=(DP_IMED,),
    )
    kernels = kernels_of(choose_imed, close, publish)


@register(n_arms=3)
class DPKLUCB(_Published):
    """DP-KLUCB as published: noisy sums are added up, and the index takes their noise for one.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``, or None for the non-private counterpart.
        growth: as in ``DPIMED``.
        **options: see ``Options``.

    When to choose: as ``DPIMED``.

    Example:
        >>> DPKLUCB(3, budget=PureDP(1.0), seed=1).pull().arm
        0
    """

    card = Card(
        title="KL-UCB on noisy sums that are added up",
        source=_SOURCE,
        proof=PROOF,
        noise=("Laplace",),
        errata=(DP_IMED,),
    )
    kernels = kernels_of(choose_kl, close, publish)
