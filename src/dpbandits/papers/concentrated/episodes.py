"""Optimism on doubling episodes: AdaC-UCB (Azize & Basu 2024, Algorithm 4), AdaP-UCB and AdaP-KLUCB
(2022), as indices and names of ``Arms``.

An arm is played for an episode as long as all its rounds before, and estimated from its last
episode.  ``algorithms.arms.held`` describes the releases, and proves that they are private.
AdaC-UCB is UCB with the variance of the noisy mean, eq. (14) of the paper for rewards in [0, 1]
with the true length of the episode.  (The paper writes half its rounds for it, which is wrong in
the first two episodes of an arm.)

An episode is a batch of people who all play one arm, hence its sum may come from a shuffler, with
the noise that their devices have added: AdaP-UCB and AdaP-KLUCB have a form for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...algorithms.arms.arms import Arms, ArmsShuffled
from ...algorithms.arms.batches import Growing
from ...algorithms.arms.indices import UCB
from ...algorithms.arms.law import MERGED
from ...algorithms.arms.memories import AGED, Forget, Memory, Merge
from ...algorithms.bases.shuffled import shuffled_card
from ...algorithms.maths.bernoulli import kl_upper_bound
from ...kernel import Kernel, kernel
from ...policies import Erratum, given, like, preset

_ADAC_UCB = Erratum(
    "AdaC-UCB",
    (
        "The paper does not say that noise is drawn once per released mean.",
        "Eq. (14) writes the index as mean + noise + bonus.",
        "New noise at each evaluation of the index would multiply the privacy loss.",
        "Here the noise is stored with the mean.",
        "Appendix E multiplies noise by sqrt(2 ln(1.25 / delta)) / epsilon.",
        "The proof of this factor needs epsilon <= 1.",
        "Here the analytic Gaussian mechanism is the default.",
        "Some of the paper's experiments add N(0, 1) noise to rewards, which no sensitivity bound"
        " covers.",
        "Here rewards are clipped.",
    ),
)
_ADAP_UCB = Erratum(
    "AdaP-UCB and AdaP-KLUCB",
    (
        "The parallel composition lemma divides the sum of rounds i to j by j - i, but these are"
        " j - i + 1 rounds.",
    ),
)


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
    """The index of AdaP-UCB (Azize & Basu 2022): ``m + sqrt(alpha ln t / 2n) + alpha s ln t / n``.
    n is the number of rounds of the last episode, and s the scale of its Laplace noise.

    Args:
        alpha: optimism.  The regret theorem needs more than 3.

    When to choose: to compare with the published algorithm.
    """

    alpha: float = 3.1

    title: ClassVar[str] = "AdaP-UCB"
    memory: ClassVar[type[Memory] | None] = Forget
    because: ClassVar[str] = "which counts the rounds and the noise of the last sum alone"
    source: ClassVar[str] = "Azize & Basu (2022), AdaP-UCB"
    errata: ClassVar[tuple[Erratum, ...]] = (_ADAP_UCB,)
    each: ClassVar[Kernel | None] = adap_ucb


@dataclass(frozen=True, repr=False)
class AdaPKLIndex(AdaPIndex):
    """The index of AdaP-KLUCB (Azize & Basu 2022): the largest q with ``n kl(m, q) <= alpha ln t``.
    ``m`` is the noisy mean plus ``alpha s ln t / n``.

    Args:
        alpha: optimism.  The regret theorem needs more than 3.

    When to choose: to compare with the published algorithm.
    """

    title: ClassVar[str] = "AdaP-KLUCB"
    each: ClassVar[Kernel | None] = adap_kl_ucb


_DOUBLING = Growing(ratio=1.0)
_ADAP_SOURCE = (
    "Azize & Basu (2022), AdaP-UCB; parallel composition: Azize & Basu (2024), Appendix D"
)

AdaCUCB = preset(
    "AdaCUCB",
    Arms,
    "n_arms beta forget",
    """UCB on the noisy mean of each arm's last episode (Azize & Basu 2024, Algorithm 4).  The
    regret theorem needs ``beta`` above 3; practice does better with 1.  ``forget=False`` estimates
    from all released episodes, at no privacy cost.""",
    about={
        "title": "UCB on noisy episode sums",
        "source": "Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Theorem 12",
        "proof": "",
        "noise": ("Gaussian",),
        "errata": (_ADAC_UCB,),
    },
    index=like(UCB, alpha=given("beta", 1.0)),
    memory=given("forget", True, values={True: Forget(), False: Merge()}),
    batches=_DOUBLING,
)


def _adap(name: str, index: type[AdaPIndex], title: str, doc: str) -> tuple[Any, Any]:
    """The central and the shuffled form."""
    parts: dict[str, Any] = {
        "index": like(index, "alpha"),
        "memory": Forget(),
        "batches": _DOUBLING,
    }
    about = {"title": title, "source": _ADAP_SOURCE, "proof": "", "errata": (_ADAP_UCB,)}
    about["noise"] = ("Laplace",)
    central = preset(name, Arms, "n_arms alpha", doc, about=about, **parts)
    card = shuffled_card(central.card)
    shuffled = preset(
        f"{name}SDP",
        ArmsShuffled,
        "n_arms alpha messages dropout",
        f"{doc[:-1]}, on sums that a shuffler has added up.",
        about={key: getattr(card, key) for key in ("title", "source", "proof", "errata")},
        **parts,
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
