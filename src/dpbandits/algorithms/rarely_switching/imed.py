"""Linear IMED on rarely released sums: the statistic, its releases and what crosses the wall are
those of ``oful``; the choice is another function of what was released, and of V, which is public.

The index is that of ``linucb.imed``, arg min of

    D^2 / (2 w^2) - ln(w^2 / s_x^2) + ln margin ,    w^2 = alpha (r^4 / (r^2 + n^2) + share n^2) ,

margin but for the best, with r = s_x |x|_{V^-1}, n = v |V^-1 x| and v the standard deviation of a
release's noise: r^4 / (r^2 + n^2) is how much of the variance of a mean more rewards would take
away, and n^2 how much of it is noise.

Two things differ from what is released after every answer.  A sum that is released d ln T times
has a few times less noise.  And that noise stands for long, so that an arm which it hides does not
come back by itself: with ``share = 0``, 25 of 400 runs are lost on two axes at 1-zCDP, and none
with all of it (``docs/contexts/exploration.md``).  So its variance is part of w^2, all of it: then
w^2 is, up to r^2 n^2 / (r^2 + n^2), the variance of the released mean, and an arm that looks
worse is tried as often as it takes to say so in spite of the noise.

V is that of all rounds, not of the last release: who was tried in an episode is known better after
the next release, and others come first until then.  An error stands until then, too, the longer
the larger ``growth``; the smaller, the more noise.  There is no theorem of regret.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Unpack

from ...kernel import Generator, Matrix, kernel
from ...policies import Card, register
from ...privacy.budgets import Budget
from ...validation import choice, integer, real
from ..bases.linear import MODEL, ModelOptions
from ..maths.ridge import least_divergent_at_once
from .oful import CLOCK, COUNTERS, FACTS, KERNELS, OFULParams, OFULPublic, RarelySwitching


@kernel
def choose_divergent(
    params: OFULParams, public: OFULPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of least index, see above."""
    facts, d = public.facts, params.dimension
    arm = least_divergent_at_once(
        contexts,
        public.estimate,
        public.inverse.reshape((1, d, d)),
        facts[FACTS.longest : FACTS.longest + 1],
        facts[FACTS.scatter : FACTS.scatter + 1],
        facts[FACTS.noise : FACTS.noise + 1],
        facts[FACTS.spread : FACTS.spread + 1],
        float(public.clock[CLOCK.rounds]),
        params.horizon,
        params.share,
        params.margin,
        params.subgaussian,
        params.middle,
        params.half,
    )
    return arm, 1.0


@register(n_arms=3, dimension=2, horizon=30_000)
class RSLinearIMED(RarelySwitching):
    """Indexed minimum empirical divergence on rarely released sums, for a linear model: the default
    with public contexts.

    Plays arg min of ``D^2 / (2 w^2) - ln(w^2 / s^2) + ln margin``, with ``D`` what the arm lacks to
    the best, ``w^2`` the variance of that, the noise of the release included, and ``s`` how far
    rewards with such a mean may scatter; for the best without margin.  What is believed changes
    when det V has grown by 1 + C.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds, from which the number of releases is
            bounded.  With a longer one exploration is longer, too.  What ends learning is the
            number of releases, which may be reached some rounds later.
        counter: "tree", "honaker", "toeplitz", "buffered" or "independent"; see
            ``dpbandits.privacy.continual``.  By default the one with the least noise.
        growth: C; the smaller, the more releases share the budget, and the fewer runs are lost
            because what an arm has shown is released late.
        alpha: optimism; the lower, the more seldom is an arm tried that looks worse, and the more
            probably is the best one lost for good.
        margin: how many times the variance of the best an arm has to have, to be tried although it
            looks worse; 1 is plain IMED.
        share: of the noise's variance which explores.  Below 1 it is mostly less regret, and more
            runs are lost.
        **options: see ``ModelOptions``.

    When to choose: contexts are public, rewards private.  Little regret, without a theorem;
    ``AdaCOFUL`` and ``PrivateLinUCB`` have one.  ``LinearIMED`` learns from every answer, has one
    model per arm if wanted, and needs no horizon.

    Example:
        >>> from dpbandits import ZCDP
        >>> import numpy as np
        >>> policy = RSLinearIMED(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.pull(np.eye(3)[:2]).arm
        0
    """

    card = Card(
        title="linear IMED on rarely released sums of x * reward",
        source=(
            "after Bian & Tan (2024), Indexed Minimum Empirical Divergence-Based Algorithms for"
            " Linear Bandits; releases: Azize & Basu (2024), Concentrated Differential Privacy for"
            " Bandits, Theorem 3; counters: dpbandits.privacy.continual"
        ),
        noise=("Laplace", "Gaussian"),
    )
    kernels = replace(KERNELS, choose=choose_divergent)
    _options = MODEL  # there is no radius
    _searches = False
    _covers = False

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        counter: str | None = None,
        growth: float = 0.4,
        alpha: float = 1.8,
        margin: float = 2.5,
        share: float = 1.0,
        **options: Unpack[ModelOptions],
    ) -> None:
        self._horizon = integer("horizon", horizon, 1, 10**12)
        if counter is not None:
            self._counting = choice("counter", counter, COUNTERS)
        self._growth = real("growth", growth, 0.0, 1e6, strict=True)
        self._optimism = real("alpha", alpha, 1e-3, 1e3)
        self._margin = real("margin", margin, 1.0, 1e6)
        self._share = real("share", share, 0.0, 1e3)
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "horizon": self._horizon,
            "counter": counter,
            "growth": self._growth,
            "alpha": self._optimism,
            "margin": self._margin,
            "share": self._share,
        }
        super().__init__(own, budget=budget, **options)

    def _params(self) -> OFULParams:
        scatter = self._least_scatter
        return (
            super()
            ._params()
            ._replace(
                **self._for_imed(),
                log_odds=self._optimism,
                bias=0.0,
                noise_norm=0.0,
                noise=0.0 if self.budget is None else (self._noise_std / scatter) ** 2,
                share=self._share,
                margin=math.log(self._margin),
            )
        )
