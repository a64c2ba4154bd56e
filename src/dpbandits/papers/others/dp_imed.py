"""KL-UCB and IMED on accumulated noisy sums, as published (Azize, Wu, Honda, Orabona, Ito & Basu
2025, Optimal Regret of Bandits under Differential Privacy).  They are indices and a memory of
``Arms``.

``algorithms.arms.held`` describes the releases, and proves that they are private.  All noisy sums
of an arm count alike, and x is that total over its n rounds, cut to [0, 1].  The index takes the
noise of all for that of a single sum: with

    d(x, y)  =  min over z of  epsilon |z - x| + kl(z, y) ,

DP-KLUCB plays the arm of the largest y with n d(x, y) <= ln t, and DP-IMED that of the least n d(x,
max x) + ln n.  Let Y = 1 - y (1 - exp(-epsilon)).  For x <= y the minimum is at z = max(x, y
exp(-epsilon) / Y). Where the second is larger, kl(z, y) is -epsilon z - ln Y, and so

    d(x, y)  =  -epsilon x - ln(1 - y (1 - exp(-epsilon))) ,

which is solved for y at once.  Both regrets are the growth of batches times the least possible, as
T grows: sum of gap ln(T) / d(mean, best mean).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...algorithms.arms.arms import Arms
from ...algorithms.arms.batches import Growing
from ...algorithms.arms.indices import Index, choose_largest, choose_least
from ...algorithms.arms.law import MERGED
from ...algorithms.arms.memories import Memory, adding
from ...algorithms.maths.bernoulli import bernoulli_kl, kl_upper_bound
from ...kernel import Kernel, kernel
from ...policies import Erratum, given, like, preset
from ...protocol import own_alone

_ERRATUM = Erratum(
    "DP-KLUCB and DP-IMED",
    (
        "The index accounts for too little noise.",
        "An arm's estimate adds up the noise of all its batches, but the index accounts for one"
        " draw.",
    ),
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
    # d is at most kl, so its bound is no lower; where d is kl at y, it is y.
    if scale == 0.0 or _is_free(x, y, scale):
        return y
    return min(np.expm1(-level - x / scale) / np.expm1(-1.0 / scale), 1.0)


@kernel
def dp_imed(params: Any, public: Any, a: int, target: float) -> float:
    """n d(x, target) + ln n."""
    n, x = public.pulls[a], min(max(public.merged[MERGED.value, a], 0.0), 1.0)
    return n * private_divergence(x, target, params.noise_scale) + np.log(n)


@kernel
def dp_kl_ucb(params: Any, public: Any, a: int, level: float) -> float:
    """The largest y with n d(x, y) <= level."""
    n, x = public.pulls[a], min(max(public.merged[MERGED.value, a], 0.0), 1.0)
    return private_upper_bound(x, level / n, params.noise_scale)


@kernel
def as_many(params: Any, n: float) -> float:
    """Every round weighs the same."""
    return n


@dataclass(frozen=True, repr=False)
class DPIMEDIndex(Index):
    """The index of DP-IMED (Azize et al. 2025): the arm of least ``n d(x, max x) + ln n``.

    When to choose: to compare with the published algorithm; ``IMED`` counts the noise of each sum.
    """

    title: ClassVar[str] = "DP-IMED"
    source: ClassVar[str] = (
        "Azize et al. (2025), Optimal Regret of Bandits under Differential Privacy"
    )
    errata: ClassVar[tuple[Erratum, ...]] = (_ERRATUM,)
    loop: ClassVar[Kernel] = choose_least
    each: ClassVar[Kernel | None] = dp_imed


@dataclass(frozen=True, repr=False)
class DPKLIndex(DPIMEDIndex):
    """DP-KLUCB's index (Azize et al. 2025): the arm of the largest y with ``n d(x, y) <= ln t``.

    When to choose: to compare with the published algorithm; ``KLUCB`` counts the noise of each sum.
    """

    title: ClassVar[str] = "DP-KLUCB"
    loop: ClassVar[Kernel] = choose_largest
    each: ClassVar[Kernel | None] = dp_kl_ucb


@dataclass(frozen=True, repr=False)
class Add(Memory):
    """All noisy sums of an arm, each weighted by its rounds, independently of its noise.

    When to choose: to compare with algorithms that add up; ``Merge`` has less noise.
    """

    title: ClassVar[str] = "noisy sums that are added up"
    source: ClassVar[str] = DPIMEDIndex.source
    close, publish, _ = adding(as_many)
    absorb: ClassVar[Kernel] = own_alone


def _added(name: str, index: type[Index], what: str) -> Any:
    return preset(
        name,
        Arms,
        "n_arms growth",
        f"{index.title} as published: noisy sums are added up, and the index takes their noise for"
        " one.  A batch is ``growth`` times all rounds of its arm before; the paper's ratio of"
        " batches is one more.",
        about={
            "title": f"{what} on noisy sums that are added up",
            "source": f"{DPIMEDIndex.source} (NeurIPS)",
            "noise": ("Laplace",),
            "errata": (_ERRATUM,),
        },
        index=index(),
        memory=Add(),
        batches=like(Growing, ratio=given("growth", 0.1)),
    )


DPIMED = _added("DPIMED", DPIMEDIndex, "IMED")
DPKLUCB = _added("DPKLUCB", DPKLIndex, "KL-UCB")
