"""Indices and memories of finite arms as published, and the names of papers for them.

**Doubling episodes** (Azize & Basu 2022, 2024): an arm is played for an episode as long as all its
rounds before, and estimated from its last episode.  AdaC-UCB is UCB with the variance of that mean,
eq. (14) of the paper for rewards in [0, 1] with the true length of the episode.  (The paper writes
half its rounds for it, which is wrong in the first two episodes of an arm.)

**Sums that are added up** (Azize, Wu, Honda, Orabona, Ito & Basu 2025, Optimal Regret of Bandits
under Differential Privacy): all noisy sums of an arm count alike, and x is that total over its n
rounds, cut to [0, 1].  The index takes the noise of all for that of a single sum: with

    d(x, y)  =  min over z of  epsilon |z - x| + kl(z, y) ,

DP-KLUCB plays the arm of the largest y with n d(x, y) <= ln t, and DP-IMED that of the least n d(x,
max x) + ln n.  For x <= y the minimum is at z = max(x, y exp(-epsilon) / Y), Y = 1 - y (1 -
exp(-epsilon)): where the second is larger, kl(z, y) is -epsilon z - ln Y, and so

    d(x, y)  =  -epsilon x - ln(1 - y (1 - exp(-epsilon))) ,

which is solved for y at once.  Both regrets are the growth of batches times the least possible, as
T grows: sum of gap ln(T) / d(mean, best mean).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...kernel import Kernel, kernel
from ...policies import given, like, preset
from ...protocol import own_alone
from ..bases.errata import ADAC_UCB, ADAP_UCB, DP_IMED
from ..bases.shuffled import shuffled_card
from ..maths.divergences import bernoulli_kl, kl_upper_bound
from .arms import Arms, ArmsShuffled
from .batches import Growing
from .indices import UCB, Index, choose_largest, choose_least
from .law import MERGED
from .memories import AGED, Forget, Memory, Merge, adding, keep

# Doubling episodes -----------------------------------------------------------------------------


@kernel
def adap_ucb(params: Any, public: Any, a: int, level: float) -> float:
    """m + sqrt(alpha ln t / 2n) + alpha s ln t / n, with s the scale of the noise on a sum."""
    n = public.awaited[AGED.rounds, a]
    return (
        public.merged[MERGED.value, a] + np.sqrt(0.5 * level / n) + params.noise_scale * level / n
    )


@kernel
def adap_kl_ucb(params: Any, public: Any, a: int, level: float) -> float:
    """The largest q with n kl(m, q) <= alpha ln t, m the mean plus alpha s ln t / n, cut to [0, 1].

    Cutting makes many indices 1.  Such ties, which the paper leaves open, go to the arm with the
    shorter last episode: to the first arm they would go again and again, for ever longer episodes.
    """
    n = public.awaited[AGED.rounds, a]
    raised = public.merged[MERGED.value, a] + params.noise_scale * level / n
    return kl_upper_bound(min(max(raised, 0.0), 1.0), level / n)


@dataclass(frozen=True, repr=False)
class AdaPIndex(UCB):
    """The index of AdaP-UCB (Azize & Basu 2022): ``m + sqrt(alpha ln t / 2n) + alpha s ln t / n``,
    with n the rounds of the last episode and s the scale of its Laplace noise.

    Args:
        alpha: optimism.  The regret theorem needs more than 3.

    When to choose: to compare with the published algorithm.
    """

    alpha: float = 3.1

    title: ClassVar[str] = "AdaP-UCB"
    source: ClassVar[str] = "Azize & Basu (2022), AdaP-UCB"
    each: ClassVar[Kernel | None] = adap_ucb


@dataclass(frozen=True, repr=False)
class AdaPKLIndex(AdaPIndex):
    """The index of AdaP-KLUCB (Azize & Basu 2022): the largest q with ``n kl(m, q) <= alpha ln t``,
    with ``m`` the noisy mean plus ``alpha s ln t / n``.

    Args:
        alpha: optimism.  The regret theorem needs more than 3.

    When to choose: to compare with the published algorithm.
    """

    title: ClassVar[str] = "AdaP-KLUCB"
    each: ClassVar[Kernel | None] = adap_kl_ucb


_DOUBLING = Growing(ratio=1.0)
_ADAP_SOURCE = (
    "Azize & Basu (2022), AdaP-UCB; parallel composition as in Azize & Basu (2024), Appendix D"
)

AdaCUCB = preset(
    "AdaCUCB",
    Arms,
    "n_arms beta forget",
    """UCB on the noisy mean of each arm's last episode (Azize & Basu 2024, Algorithm 4).  The
    regret theorem needs ``beta`` above 3; practice does better with 1.  ``forget=False`` estimates
    from all released episodes, at no privacy cost.""",
    about={
        "title": "UCB on noisy episode sums (zCDP)",
        "source": (
            "Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Theorem 12"
        ),
        "proof": "",
        "noise": ("Gaussian",),
        "errata": (ADAC_UCB,),
    },
    index=like(UCB, alpha=given("beta", 1.0)),
    memory=given("forget", True, values={True: Forget(), False: Merge()}),
    batches=_DOUBLING,
)


def _adap(name: str, index: type[AdaPIndex], title: str, doc: str) -> tuple[Any, Any]:
    """The central and the shuffled form."""
    central = preset(
        name,
        Arms,
        "n_arms alpha",
        doc,
        about={
            "title": title,
            "source": _ADAP_SOURCE,
            "proof": "",
            "noise": ("Laplace",),
            "errata": (ADAP_UCB,),
        },
        index=like(index, "alpha"),
        memory=Forget(),
        batches=_DOUBLING,
    )
    card = shuffled_card(central.card)
    shuffled = preset(
        f"{name}SDP",
        ArmsShuffled,
        "n_arms alpha messages dropout",
        f"{doc[:-1]}, on sums that a shuffler has added up.",
        about={key: getattr(card, key) for key in ("title", "source", "proof", "errata")},
        index=like(index, "alpha"),
        memory=Forget(),
        batches=_DOUBLING,
    )
    return central, shuffled


AdaPUCB, AdaPUCBSDP = _adap(
    "AdaPUCB",
    AdaPIndex,
    "UCB on noisy episode sums (pure DP)",
    "UCB on the mean of each arm's last episode with Laplace noise (Azize & Basu 2022).",
)
AdaPKLUCB, AdaPKLUCBSDP = _adap(
    "AdaPKLUCB",
    AdaPKLIndex,
    "KL-UCB on noisy episode sums (pure DP)",
    "KL-UCB on the mean of each arm's last episode with Laplace noise (Azize & Basu 2022).",
)

# Sums that are added up ------------------------------------------------------------------------


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
    loop: ClassVar[Kernel] = choose_least
    each: ClassVar[Kernel | None] = dp_imed


@dataclass(frozen=True, repr=False)
class DPKLIndex(DPIMEDIndex):
    """The index of DP-KLUCB (Azize et al. 2025): the arm of the largest y with ``n d(x, y) <= ln
    t``.

    When to choose: to compare with the published algorithm; ``KLUCB`` counts the noise of each sum.
    """

    title: ClassVar[str] = "DP-KLUCB"
    loop: ClassVar[Kernel] = choose_largest
    each: ClassVar[Kernel | None] = dp_kl_ucb


_ADDING = adding(keep, as_many)


@dataclass(frozen=True, repr=False)
class Add(Memory):
    """All noisy sums of an arm, each weighted by its rounds, whatever its noise.

    When to choose: to compare with algorithms that add up; ``Merge`` has less noise.
    """

    title: ClassVar[str] = "noisy sums that are added up"
    source: ClassVar[str] = DPIMEDIndex.source
    close: ClassVar[Kernel] = _ADDING["close"]
    publish: ClassVar[Kernel] = _ADDING["publish"]
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
            "errata": (DP_IMED,),
        },
        index=index(),
        memory=Add(),
        batches=like(Growing, ratio=given("growth", 0.1)),
    )


DPIMED = _added("DPIMED", DPIMEDIndex, "IMED")
DPKLUCB = _added("DPKLUCB", DPKLIndex, "KL-UCB")
