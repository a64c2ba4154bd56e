"""Linear IMED: the statistic, its release and V are those of ``linucb``, and so is what crosses the
wall; the choice is another function of what was released.

**IMED** (Honda & Takemura 2015; for linear models Bian & Tan 2024) plays arg min of

    D^2 / (2 w^2) - ln(w^2 / s_x^2) + ln margin ,      w^2 = alpha s_x^2 |x|^2_{V^-1} ,

where s_x is the scatter of rewards and D what <x, estimate> lacks to the best, for which the margin
is left out: an arm is tried as often as it takes to say that it is worse, about as surely as the
best one is known, and only if its variance is more than ``margin`` times that of the best.  w is
the error that rewards make in one direction, and no bound for all at once; so exploration ends by
itself where contexts are diverse enough to teach everything, and goes on, logarithmically, where
they are not.  Bian & Tan have a confidence radius, of order sqrt(d ln T), in place of s_x.

**Rounds that pay.**  s_x^2 / w^2 is a number of rounds, how well an arm is known.  No arm counts as
known by more than n / alpha of them, with n = min(t, (T - t) / 10) after t rounds of a horizon of
T, or t without one.  Without that, features of nothing at all would be known for ever, and all
others be tried for as long; and what is learned of another arm pays in the T - t rounds that
remain, however well the best one is known, as for a Gittins index (Lattimore 2016, Regret Analysis
of the Finite-Horizon Gittins Index Strategy for Multi-Armed Bandits).  n grows for an eleventh of
the rounds and falls from there, so that exploration ends early.  T is an argument, and t and V are
public.  Where contexts are few this is a fifth to a third less regret, with shorter tails, because
alpha may be larger; where a gap is so small that T D^2 / s^2 is below a hundred or so, some runs
never find out.

**Scatter.**  Rewards in [lo, hi] whose mean is m have a variance of at most (hi - m) (m - lo)
(Bhatia & Davis 2000), with m in the middle (hi - lo)^2 / 4.  s_x^2 is the largest for means within
two standard deviations of <x, estimate>, those of rewards, for which s counts, and of the noise; or
s^2, if that is less.  An arm that happens to look extreme need not be so, hence these two.  The
regression weighs all rewards alike, and what it errs by along x comes mostly from rewards of
features like x, which have about that scatter; that this is so is no theorem.

Noise needs no exploration of its own here.  It changes with every release, so that an arm which it
has hidden comes back, as in Thompson sampling; what it hides is tried too often rather than too
seldom.  So D is what the arm lacks plus one standard deviation of the noise, v |V^-1 x|, but 0 for
the best.  There is no regret theorem: alpha = 1 is the law of normal rewards; alpha = 1.5, a tenth
of what remains, and a margin of 2, which Bian & Tan do not have, were chosen by measurement
(``docs/contexts/exploration.md``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Unpack

from ...kernel import Generator, Matrix, kernel
from ...policies import Card, register
from ...privacy.budgets import Budget
from ...validation import real
from ..bases.linear import MODEL, LinearPolicy, ModelOptions
from ..maths.ridge import least_divergent_at_once
from .linucb import CLOCK, FACTS, OPTIMISTIC, LinUCBParams, LinUCBPublic


@kernel
def choose_divergent(
    params: LinUCBParams, public: LinUCBPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of least index, see above."""
    facts, rounds = public.facts, 0
    for m in range(params.n_models):
        rounds += public.clock[CLOCK.rounds, m]
    arm = least_divergent_at_once(
        contexts,
        public.estimate,
        public.inverse,
        facts[FACTS.longest],
        facts[FACTS.radius],
        facts[FACTS.gap],
        facts[FACTS.spread],
        float(rounds),
        params.horizon,
        0.0,
        params.margin,
        params.subgaussian,
        params.middle,
        params.half,
    )
    return arm, 1.0


@register(n_arms=3, dimension=2, horizon=30_000)
class LinearIMED(LinearPolicy):
    """Indexed minimum empirical divergence on a running sum that is released after every answer,
    for a linear model.

    Plays arg min of ``D^2 / (2 w^2) - ln(w^2 / s^2) + ln margin`` with ``w^2 = alpha s^2
    |x|^2_{V^-1}``, ``s`` how far rewards with such a mean may scatter, and ``D`` what the arm lacks
    to the best, the noise included; for the best without margin.  An arm is tried as often as its
    own uncertainty wants, and not as a worst case does.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds.  With a longer one exploration is
            longer, too.  After it nothing more is learned.  None with the hybrid counter.
        counter: as in ``PrivateLinUCB``.
        alpha: optimism; the lower, the more seldom is an arm tried that looks worse, and the
            more probably is the best one lost for good.
        margin: how many times the variance of the best an arm has to have, to be tried although it
            looks worse; 1 is plain IMED.
        models: as in ``LinUCB``.
        **options: see ``ModelOptions``.

    When to choose: contexts are public, rewards private, and there is one model per arm, or no
    bound on the number of rounds, without which exploration never ends; otherwise ``RSLinearIMED``,
    which loses less.  There is no regret theorem; ``PrivateLinUCB`` has one.

    Example:
        >>> from dpbandits import ZCDP
        >>> import numpy as np
        >>> policy = LinearIMED(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.pull(np.eye(3)[:2]).arm
        0
    """

    card = Card(
        title="linear IMED on a continual sum of x * reward",
        source=(
            "after Bian & Tan (2024), Indexed Minimum Empirical Divergence-Based Algorithms for"
            " Linear Bandits; continual sums: dpbandits.privacy.continual"
        ),
        noise=("Laplace", "Gaussian"),
        learns_at_once=True,
    )
    kernels = replace(OPTIMISTIC, choose=choose_divergent)
    _options = MODEL  # there is no radius

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        counter: str | None = None,
        alpha: float = 1.5,
        margin: float = 2.0,
        models: str = "shared",
        **options: Unpack[ModelOptions],
    ) -> None:
        self._optimism = real("alpha", alpha, 1e-3, 1e3)
        self._margin = real("margin", margin, 1.0, 1e6)
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            **self._released(horizon, counter),
            "alpha": self._optimism,
            "margin": self._margin,
            **self._modelled(models),
        }
        super().__init__(own, budget=budget, **options)

    def _params(self) -> LinUCBParams:
        return LinUCBParams(
            **{**self._model(), **self._for_imed()},
            n_models=self.n_models,
            log_odds=self._optimism,
            growth=0.0,
            bias=0.0,
            noise_norm=0.0,
            spread=self._noise_std,
            radius_scale=1.0,
            movement=self.statistic.max_sensitivity,
            margin=math.log(self._margin),
        )
