"""Adversarial bandits: any learner that stands unbounded and negative losses, behind a wall that
opens once per batch.

Nothing is assumed of the losses but that they do not react to what is played.  What crosses the
wall, and why a budget covers it, stands in ``conversion``; the learners are in
``learners``.
"""

from __future__ import annotations

from typing import Unpack

from ...policies import Card, Options, register
from ...privacy.budgets import Budget
from ..bases.errata import ADVERSARIAL, ADVERSARIAL_THEOREMS
from .conversion import BatchedPolicy, conversion
from .learners import (
    EXP3_IX_LEARNER,
    EXP3_LEARNER,
    FTPL_LEARNER,
    HTINF_LEARNER,
    TSALLIS_INF_LEARNER,
)


@register(n_arms=3)
class EXP3(BatchedPolicy):
    """EXP3 with mixing, on noisy batch losses (Corollary 1; Auer, Cesa-Bianchi, Freund & Schapire
    2002).

    Draws from ``(1 - gamma) softmax(-eta L) + gamma / K`` with ``L`` the importance-weighted
    cumulative losses.

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published) or another notion (Gaussian noise);
            None for EXP3 without privacy.
        horizon: rounds to tune for, which are no limit; None doubles the horizon of the tuning
            whenever it is reached.
        batch: rounds of one arm; by default the noise multiplier rounded up, which is ceil(1 /
            epsilon) for ``PureDP``.
        rate: eta; by default tuned to horizon and noise, with ``calibration="paper"`` as published.
        mixing: gamma in [0, 1]; by default what ``rate`` and the noise need.
        **options: see ``Options``.

    When to choose: rewards that follow no law, and propensities of at least gamma / K, in closed
    form, for later evaluation.  ``HTINF`` has lower regret.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = EXP3(3, budget=PureDP(0.1), seed=1)
        >>> policy.batch, round(policy.pull().propensity, 3)
        (10, 0.333)
    """

    card = Card(
        title="EXP3 on noisy batch losses",
        source=(
            "Auer et al. (2002), EXP3; Faster Rates for Private Adversarial Bandits, Theorem 1 and"
            " Corollary 1"
        ),
        noise=("Laplace", "Gaussian"),
        randomised=True,
        errata=(ADVERSARIAL,),
    )
    _learner = EXP3_LEARNER
    kernels = conversion(_learner)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = self._tuned(horizon, batch, rate=rate, mixing=mixing)
        super().__init__({"n_arms": n_arms, **own}, budget=budget, **options)


@register(n_arms=3)
class HTINF(BatchedPolicy):
    """Follow the regularised leader with 1/2-Tsallis entropy and skipping, on noisy batch losses
    (Corollary 2).

    HTINF of Huang, Dai & Huang (2022) for heavy tails: draws from the minimiser of ``eta <L, x> -
    alpha sum x^(1/alpha)`` with ``eta = 1 / (sigma t^(1/alpha))``, and skips a loss above ``Theta
    x^(1/alpha) / eta``, where Theta is 0.2063 for alpha = 2.  It needs no horizon.

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published) or another notion (Gaussian noise);
            None for HTINF without privacy.
        horizon: rounds of which ``regret_bound`` speaks; the policy itself needs none.
        batch: rounds of one arm; by default the noise multiplier rounded up, which is ceil(1 /
            epsilon) for ``PureDP``.
        sigma: a bound on E[|noisy loss|^alpha]^(1/alpha); by default the root mean square, sqrt(1 +
            2 / (epsilon tau)^2), sqrt(1 + its variance) for Gaussian noise, and sqrt(6) with
            ``calibration="paper"``.
        alpha: the moment that is bounded, in [1.01, 2]; 2 by default.
        **options: see ``Options``.

    When to choose: the default for rewards that follow no law.  Regret at most ``30 sigma tau
    sqrt(K (T / tau + 1)) + tau``.  An alpha below 2 is for losses whose squares have no mean; here
    they have one, and 2 is best for many rounds.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = HTINF(3, budget=PureDP(0.1), seed=1)
        >>> policy.batch, round(policy.pull().propensity, 3)
        (10, 0.333)
    """

    card = Card(
        title="Tsallis-entropy leader with skipping on noisy batch losses",
        source=(
            "Huang, Dai & Huang (2022), HTINF; Faster Rates for Private Adversarial Bandits,"
            " Theorem 1 and Corollary 2"
        ),
        noise=("Laplace", "Gaussian"),
        randomised=True,
        errata=(ADVERSARIAL,),
    )
    _learner = HTINF_LEARNER
    kernels = conversion(_learner)
    _added = ("horizon", "alpha")

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        batch: int | None = None,
        sigma: float | None = None,
        alpha: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = self._tuned(horizon, batch, sigma=sigma, alpha=alpha)
        super().__init__({"n_arms": n_arms, **own}, budget=budget, **options)


@register(n_arms=3)
class FTPL(BatchedPolicy):
    """Follow the perturbed leader with geometric resampling, on noisy batch losses (Corollary 3;
    Neu & Bartók 2016).

    Plays the arm of least ``L + Z`` with Laplace perturbations ``Z`` of scale ``1 / eta``.  A loss
    enters ``L`` times the number of fresh perturbations, at most M, that it took to have the same
    arm lead again.

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published) or another notion (Gaussian noise);
            None for FTPL without privacy.
        horizon: rounds to tune for, which are no limit; None doubles the horizon of the tuning
            whenever it is reached.
        batch: rounds of one arm; by default the noise multiplier rounded up, which is ceil(1 /
            epsilon) for ``PureDP``.
        rate: eta; by default tuned to horizon and noise, with ``calibration="paper"`` as published.
        tries: M, how often to resample at most; by default as ``rate`` and the noise allow.
        **options: see ``Options``.

    When to choose: many arms.  Its propensities have no closed form.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = FTPL(3, budget=PureDP(0.1), seed=1)
        >>> policy.batch, policy.pull().propensity is None
        (10, True)
    """

    card = Card(
        title="perturbed leader on noisy batch losses",
        source=(
            "Neu & Bartók (2016), FTPL; Faster Rates for Private Adversarial Bandits, Theorem 1 and"
            " Corollary 3"
        ),
        noise=("Laplace", "Gaussian"),
        randomised=True,
        errata=(ADVERSARIAL, ADVERSARIAL_THEOREMS),
    )
    _learner = FTPL_LEARNER
    kernels = conversion(_learner)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        tries: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = self._tuned(horizon, batch, rate=rate, tries=tries)
        super().__init__({"n_arms": n_arms, **own}, budget=budget, **options)


@register(n_arms=3)
class EXP3IX(BatchedPolicy):
    """EXP3-IX, without privacy (Neu 2015): exponential weights on losses divided by ``p + eta /
    2``, eta = sqrt(ln K / (K t)).

    Args:
        n_arms: number of arms.
        budget: None; implicit exploration is not made for negative losses.  The private relative is
            ``EXP3``.
        **options: see ``Options``.

    When to choose: no privacy, and rewards that follow no law; to measure the price of it in
    ``EXP3``.

    Example:
        >>> EXP3IX(3, seed=1).guarantee.holds is None
        True
    """

    card = Card(
        title="EXP3-IX, not private",
        source=(
            "Neu (2015), Explore no more: improved high-probability regret bounds for"
            " non-stochastic bandits"
        ),
        trust_model="none",
        randomised=True,
    )
    _learner = EXP3_IX_LEARNER
    kernels = conversion(_learner)

    def __init__(self, n_arms: int, *, budget: None = None, **options: Unpack[Options]) -> None:
        super().__init__({"n_arms": n_arms}, budget=budget, **options)


@register(n_arms=3)
class TsallisINF(BatchedPolicy):
    """1/2-Tsallis-INF, without privacy (Zimmert & Seldin 2021): optimal for adversarial and for
    stochastic rewards.

    Draws from the minimiser of ``<L, x> - 2 sqrt(t) sum sqrt(x)``.

    Args:
        n_arms: number of arms.
        budget: None; the private relative is ``HTINF``, which skips losses that are too large.
        **options: see ``Options``.

    When to choose: no privacy, and rewards that may or may not follow a law; to measure the price
    of it in ``HTINF``.

    Example:
        >>> TsallisINF(3, seed=1).guarantee.holds is None
        True
    """

    card = Card(
        title="Tsallis-INF, not private",
        source=(
            "Zimmert & Seldin (2021), Tsallis-INF: an optimal algorithm for stochastic and"
            " adversarial bandits"
        ),
        trust_model="none",
        randomised=True,
    )
    _learner = TSALLIS_INF_LEARNER
    kernels = conversion(_learner)
    _published_sigma = 1.0

    def __init__(self, n_arms: int, *, budget: None = None, **options: Unpack[Options]) -> None:
        super().__init__({"n_arms": n_arms}, budget=budget, **options)
