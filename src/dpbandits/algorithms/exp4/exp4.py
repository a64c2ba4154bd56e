"""EXP4 behind a wall: exponential weights on experts, from one loss per round.

Experts advise with a probability for every arm.  The arm is drawn from the mixture Q of their
advice; its loss, divided by Q, estimates what every expert would have lost.  A reward r in (lo, hi)
is a loss (hi - r) / (hi - lo) in [0, 1].  Advice is public, and so are the arms and Q, which come
from earlier releases, advice and exploration.  What crosses the wall differs:

* ``LocalEXP4``: every reward by itself, before it is weighed.  A record moves it by at most ``hi -
  lo``.
* ``EXP4`` and ``BatchedEXP4``: when a batch of tau rounds ends, the sum of x loss / Q(a) over the
  batch, one number per expert, with x the probabilities that the experts gave the arm a that was
  played.  A record contributes to one batch; it moves that sum by at most (hi - lo) |x|_2 / Q(a),
  which is public, since x, a and Q are.  The largest of these in the batch, once it is over, is the
  sensitivity; it is at most sqrt(N) K / gamma.  The improved variant first divides every expert's
  number by (hi - lo) times the largest x / Q(a) that she had in the batch, public too, so that a
  record moves each by at most 1, and all by at most sqrt(N).
* ``FrozenEXP4``: the same, but every expert's first advice in a batch stands for all of it.  Then
  the sums of loss / Q(a) over the rounds of each arm say as much, and there are only K: a record
  moves one of them, by at most (hi - lo) / Q(a) <= (hi - lo) K / gamma.

Batches are disjoint sets of records, cut by counting rounds, so that each release may spend the
whole budget (parallel composition). A batch that the horizon cuts short is played and never
released.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Unpack

from ...errors import ArgumentError
from ...policies import Card, Options, Statistic, register
from ...privacy.budgets import ApproxDP, Budget
from ...validation import choice, real
from ..bases.errata import ADVERSARIAL_THEOREMS, EXPERTS
from ..bases.local import LocalPolicy
from .policies import LEAST_MIXING, BatchPolicy, MixturePolicy
from .tuning import (
    COMPOSED,
    Tuning,
    least_horizon,
    local_exp4_regret,
    published,
    theorem_5,
)
from .weighing import (
    PER_ARM,
    PER_EXPERT,
    PER_EXPERT_AT_WORST,
    PER_EXPERT_BY_REACH,
    PER_ROUND,
    ROUNDED_UP,
)


@register(n_arms=3, n_experts=4, horizon=2000, batch=16)
class EXP4(BatchPolicy):
    """EXP4 on noisy sums of batches, one Gaussian release with the public sensitivity of the batch
    that was played.

    Draws from ``(1 - gamma) sum_j P_j advice_j + gamma / K`` with ``P = softmax(-eta L)``.
    ``pull`` takes the advice of every expert, shape (N, K): a probability for each arm.

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: of any notion but ``PureDP``; None for EXP4 without privacy (Auer, Cesa-Bianchi,
            Freund & Schapire 2002).
        horizon: rounds to tune for, which are no limit.
        batch: rounds of a batch, tau; by default of the least regret bound.
        rate: eta; likewise.
        mixing: gamma in [0, 1]; likewise.
        **options: see ``Options``.

    When to choose: many experts whose advice changes from round to round.  Privacy costs a third of
    the power of the horizon in regret: see ``regret_bound``, which says nothing where it is above
    the horizon.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = EXP4(2, 3, budget=ZCDP(0.5), horizon=10_000, seed=1)
        >>> round(policy.pull([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).propensity, 12)
        0.5
    """

    card = Card(
        title="EXP4 on noisy sums of batches, with the sensitivity of the batch",
        source=(
            "Faster Rates for Private Adversarial Bandits, Theorem 6, with Gaussian noise of the"
            " sensitivity of the batch"
        ),
        noise=("Gaussian",),
        randomised=True,
        errata=(EXPERTS,),
    )
    kernels = PER_EXPERT


@register(n_arms=3, n_experts=4, horizon=2000, batch=16)
class BatchedEXP4(BatchPolicy):
    """EXP4 on noisy sums of batches as published, with Laplace noise on every expert's sum
    (Algorithms 2 and 7).

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: ``ZCDP`` or ``ApproxDP``; None for no noise.
        horizon: rounds to tune for, which are no limit.
        variant: ``"published"``, noise for the worst case, sqrt(N) K / gamma (Algorithm 2); or
            ``"improved"``, noise of its own for every expert, in proportion to the most that a
            record of the batch moves that expert's sum (Algorithm 7).
        batch: rounds of a batch, tau; by default of the least regret bound, with
            ``calibration="paper"`` of Theorem 6, and for ``"improved"`` of Theorem 8: whichever of
            its two bounds is less.
        rate: eta; likewise.
        mixing: gamma in [1e-12, 1]; likewise.
        **options: see ``Options``.  With ``calibration="paper"`` the noise is that of advanced
            composition, 3 sqrt(ln(1 / delta)) / epsilon; the default is the exact zCDP of
            independent Laplace noise, and less noise for the same guarantee.

    Raises:
        ArgumentError: with ``calibration="paper"``, outside the range where these are proved:
            epsilon > 1.10 ln(1 / delta), or gamma > 1/2 because the horizon is too short.

    When to choose: to reproduce the paper.  ``EXP4`` has less noise for the same guarantee.

    Example:
        >>> BatchedEXP4(2, 3, budget=ApproxDP(1.0, 1e-5), horizon=10_000, seed=1).guarantee.holds
        ApproxDP(epsilon=1.0, delta=1e-05)
    """

    card = Card(
        title="EXP4 on noisy sums of batches, as published",
        source="Faster Rates for Private Adversarial Bandits, Theorems 6 and 8",
        noise=("Laplace vector",),
        randomised=True,
        errata=(EXPERTS, ADVERSARIAL_THEOREMS),
    )
    kernels = PER_EXPERT_AT_WORST

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        horizon: int,
        variant: str = "published",
        batch: int | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._variant = choice("variant", variant, ("published", "improved"))
        if self._variant == "improved":
            self.kernels = PER_EXPERT_BY_REACH
            if options.get("noise") == "secure":
                raise ArgumentError(
                    "noise must be 'simulation' for variant='improved', whose statistic is on no"
                    " grid",
                    "noise",
                )
        if mixing is not None:
            real("mixing", mixing, LEAST_MIXING, 1.0)
        super().__init__(
            n_arms,
            n_experts,
            budget=budget,
            horizon=horizon,
            batch=batch,
            rate=rate,
            mixing=mixing,
            **options,
        )

    def _own(self) -> dict[str, Any]:
        return {"variant": self._variant}

    def _found(self) -> Tuning:
        if self.calibration != "paper" or not isinstance(self.budget, ApproxDP):
            return super()._found()
        epsilon, log = self.budget.epsilon, -math.log(self.budget.delta)
        if epsilon > COMPOSED * log:
            raise ArgumentError(
                f"budget must have epsilon <= {COMPOSED:.4g} ln(1 / delta) = {COMPOSED * log:.4g}"
                f" with calibration='paper', got {self.budget!r}",
                "budget",
            )
        improved = self._variant == "improved"
        sizes = self.n_arms, self.n_experts
        found = published(*sizes, self._horizon, epsilon, log, improved=improved)
        if found.mixing > 0.5 and self._mixing is None:
            least = least_horizon(*sizes, epsilon, log, improved=improved)
            raise ArgumentError(
                f"horizon must be at least {least} for gamma <= 1/2 with calibration='paper', got"
                f" {self._horizon}",
                "horizon",
            )
        return found

    def _statistic(self) -> Statistic:
        worst = super()._statistic()
        if self._variant == "published":
            return worst
        by_reach = math.sqrt(self.n_experts) * ROUNDED_UP
        return replace(worst, max_sensitivity=by_reach, memo=self.n_experts)


@register(n_arms=3, n_experts=4, horizon=2000, batch=16)
class FrozenEXP4(BatchPolicy):
    """EXP4 that hears its experts once per batch, on one noisy sum per arm: no price for the number
    of experts in the noise.

    The advice of the first round of a batch stands for the whole batch, and later advice in it is
    not looked at.  Regret is bounded against experts who would do the same; where advice hardly
    changes within a batch, or not at all, that is no loss.

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: ``PureDP`` (Laplace noise) or another notion (Gaussian noise); None for no
            noise.
        horizon: rounds to tune for, which are no limit.
        batch: rounds of a batch, tau; by default of the least regret bound.
        rate: eta; likewise.
        mixing: gamma in [0, 1]; likewise.
        **options: see ``Options``.

    When to choose: many experts whose advice changes slowly, or pure differential privacy.  Rounds
    that are not recorded, because a batch waits for answers, follow the advice of their own.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = FrozenEXP4(2, 3, budget=PureDP(1.0), horizon=10_000, seed=1)
        >>> round(policy.pull([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).propensity, 12)
        0.5
    """

    card = Card(
        title="EXP4 on one noisy sum per arm, with advice that stands for a batch",
        source=(
            "Auer et al. (2002), EXP4, with a Laplace or Gaussian release per arm of the"
            " sensitivity that the batch realised"
        ),
        noise=("Laplace", "Gaussian"),
        randomised=True,
    )
    kernels = PER_ARM

    @property
    def regret_bound(self) -> float:
        """What the policy loses at most over its horizon, in expectation, in units of the reward
        range, against the best expert among such as keep to their advice for a batch.  Against
        experts who change it within a batch nothing is proved.
        """
        return super().regret_bound

    def _reach(self) -> float:
        return float(self.n_arms)

    @property
    def _size(self) -> int:
        """Of the statistic: a number for every arm."""
        return self.n_arms

    def _statistic(self) -> Statistic:
        return replace(super()._statistic(), memo=self.n_arms * self.n_experts)


@register(n_arms=3, n_experts=4, horizon=2000)
class LocalEXP4(MixturePolicy, LocalPolicy):
    """EXP4 on rewards that were randomised before anyone saw them (Theorem 5, Algorithm 6).

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: ``PureDP`` (Laplace noise, as published) or another notion (Gaussian noise);
            None for EXP4 without privacy.
        horizon: rounds to tune for, which are no limit.
        reports: whether ``update`` is given reports, which ``randomiser()`` makes on the person's
            device, instead of rewards.
        rate: eta; by default tuned to horizon and noise, with ``calibration="paper"`` as published.
        mixing: gamma in [0, 1]; likewise.
        **options: see ``Options``.

    When to choose: nobody may be trusted with raw rewards; or epsilon is near one and experts are
    many.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = LocalEXP4(2, 2, budget=PureDP(1.0), horizon=10_000, reports=True, seed=1)
        >>> decision = policy.pull([[1.0, 0.0], [0.0, 1.0]])
        >>> policy.update(policy.randomiser()(1.0))
        True
    """

    card = Card(
        title="EXP4 on locally randomised rewards",
        source="Faster Rates for Private Adversarial Bandits, Theorem 5",
        noise=("Laplace", "Gaussian"),
        trust_model="local",
        randomised=True,
        errata=(EXPERTS,),
    )
    kernels = PER_ROUND

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        horizon: int,
        reports: bool = False,
        rate: float | None = None,
        mixing: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = {
            "n_arms": n_arms,
            "n_experts": n_experts,
            **self._tuned(horizon, rate, mixing),
            **self._reported(reports),
        }
        super().__init__(own, budget=budget, **options)

    def _found(self) -> Tuning:
        """eta and gamma as for EXP3 with as many arms, with ln N in the place of ln K; or those of
        Theorem 5.
        """
        k, t, s = float(self.n_arms), float(self._horizon), self._noise_on_losses
        if self.calibration == "paper":
            return theorem_5(self.n_arms, self.n_experts, self._horizon, s)
        log, few = math.log(k * t), math.log(max(self.n_experts, 2))
        rate = math.sqrt(few / (2.0 * k * t * (1.0 + 2.0 * s * s + s * log)))
        mixing = min(2.0 * rate * s * k * log, 0.5)
        return Tuning(
            1,
            rate,
            mixing,
            few / rate + 2.0 * rate * k * t * (1.0 + 2.0 * s * s) + mixing * t + 1.0,
        )

    def _bound(self, batch: int, rate: float, mixing: float) -> float:
        sizes, noise = (self.n_arms, self.n_experts), self._noise_on_losses
        return float(local_exp4_regret(self._horizon, *sizes, noise, rate, mixing))

    @property
    def bound_arguments(self) -> dict[str, Any]:
        return {**super().bound_arguments, "noise": self._noise_on_losses}

    @property
    def _noise_on_losses(self) -> float:
        """Its scale, on a loss in [0, 1]."""
        lo, hi = self.reward_range
        return self.channel.scale(hi - lo) / (hi - lo)

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(self.reward_range, memo=self.n_experts)
