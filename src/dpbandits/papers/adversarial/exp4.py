"""EXP4 as published: ``BatchedEXP4`` with its releases, and the tunings of Theorems 5, 6 and 8.

The end of a batch releases a sum for every expert (see ``algorithms.exp4.values``).  A record moves
these sums by at most (hi - lo) sqrt(N) K / gamma.  The improved variant first divides every
expert's number by (hi - lo) times that expert's largest x / Q(a) in the batch, which is public.  A
record then moves each by at most 1, and all by at most sqrt(N).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...algorithms.adversarial.adversarial import PAPER
from ...algorithms.bases.errata import ADVERSARIAL_THEOREMS, EXPERTS
from ...algorithms.exp4 import weighing
from ...algorithms.exp4.values import LARGEST_MIXING, Mixture, Tuning
from ...algorithms.exp4.weighing import PER_EXPERT, ROUNDED_UP, EXP4Params, EXP4Public, learn
from ...constraints import Choice, Constraints, Real
from ...errors import ArgumentError
from ...kernel import Vector, kernel
from ...policies import Card, Statistic
from ...privacy.budgets import ApproxDP
from ...protocol import Kernels

if TYPE_CHECKING:
    from ...algorithms.exp4.experts import Experts, ExpertsLocal

# Theorem 6 composes with the constant 3, which needs epsilon <= this times ln(1 / delta)
COMPOSED = 6.0 * (1.0 - math.sqrt(2.0 / 3.0))
_LEAST_MIXING = 1e-12  # noise is in proportion to 1 / gamma


@kernel
def summarise_by_reach(
    params: EXP4Params, raw: weighing.EXP4Raw, public: EXP4Public, memo: Vector, statistic: Vector
) -> None:
    """Every coordinate in units of the most that a record of the batch can move it."""
    for j in range(statistic.size):
        # Where no record reaches the sum it is 0, and so is its divisor.
        statistic[j] = raw.total[j] / (params.width * memo[j]) if memo[j] > 0.0 else 0.0
        raw.total[j] = 0.0


@kernel
def sensitivity_by_reach(params: EXP4Params, public: EXP4Public, norm: int) -> float:
    """The sensitivity where a record moves each of N coordinates by at most 1."""
    # Rounding may make a quotient slightly larger than 1.
    return np.sqrt(float(params.n_experts)) * ROUNDED_UP


@kernel
def publish_by_reach(params: EXP4Params, public: EXP4Public, memo: Vector, release: Vector) -> None:
    """Every expert's sum, back in units of losses."""
    for j in range(release.size):
        public.losses[j] += release[j] * memo[j] / params.batch
    learn(params, public)


AT_WORST = replace(PER_EXPERT, sensitivity=weighing.sensitivity_worst)
BY_REACH = replace(
    PER_EXPERT,
    sensitivity=sensitivity_by_reach,
    close=weighing.close_with_reach,
    summarise=summarise_by_reach,
    publish=publish_by_reach,
)


def theorem_5(n_arms: int, n_experts: int, horizon: int, noise: float) -> Tuning:
    """The published eta and gamma of EXP4 on locally randomised losses, and their bound.  ``noise``
    is the scale of the noise on a loss, 1 / epsilon; the bound uses at least 1 for it.
    """
    k, t, log = float(n_arms), float(horizon), math.log(n_arms * horizon)
    few = math.log(max(n_experts, 2))
    rate = math.sqrt(few / (3.0 * t * k * (1.0 + 10.0 * noise * noise * log * log)))
    bound = 16.0 * math.sqrt(t * k * few) * log * max(noise, 1.0) + 1.0
    return Tuning(1, rate, min(4.0 * rate * k * noise * log, 1.0), bound)


def theorem_6(n_arms: int, n_experts: int, horizon: int, epsilon: float, log: float) -> Tuning:
    """The published tau, eta and gamma of batched EXP4, and its bound; ``log`` is ln(1 / delta).

    gamma has ln(1 / delta)^(1/3), as the proof uses and the theorem leaves out.  Outside of the
    range in ``_is_proved`` there is no bound.
    """
    n, k, t = float(max(n_experts, 2)), float(n_arms), float(horizon)
    nt, few = math.log(n * t), math.log(n)
    rate = (
        (n * log) ** (1 / 6) * (nt * few) ** (1 / 3) / (t ** (1 / 3) * k**0.5 * epsilon ** (1 / 3))
    )
    batch = math.ceil(
        (n * log) ** (1 / 3) * nt ** (2 / 3) * t ** (1 / 3) / (epsilon ** (2 / 3) * few ** (1 / 3))
    )
    first = (rate * n * log) ** (1 / 3) * (k * nt) ** (2 / 3) / (epsilon * batch) ** (2 / 3)
    second = 12.0 * rate * k * math.sqrt(n * log) * nt / (epsilon * batch)
    free = 100.0 * n ** (1 / 6) * k**0.5 * t ** (2 / 3)
    bound = free * log ** (1 / 6) * (nt * few) ** (1 / 3) / epsilon ** (1 / 3)
    bound += math.sqrt(n * log) * nt * few / epsilon
    proved = _is_proved(n_arms, epsilon, log)
    return Tuning(batch, rate, max(first, second), bound if proved else math.inf)


def theorem_8(n_arms: int, n_experts: int, horizon: int, epsilon: float, log: float) -> Tuning:
    """The published tau, eta and gamma of improved batched EXP4, and their bound.  Theorem 8 takes
    the lesser of two bounds; this is the second.  The first is that of Theorem 6, with its tuning.

    The proof drops a factor 9 of the noise's variance, (3 sqrt(N ln(1 / delta)) / epsilon)^2.  With
    it 14 becomes 27, and the constant 18 becomes 31, as used here.  The statement is for every
    epsilon and delta.  But its bounds fall to 0 as epsilon grows, which no algorithm's regret does.
    Outside of the range in ``_is_proved`` there is no bound.  Within it tau is at least 1/9, so
    rounding it up costs nothing: of 3 + 27 the rounding multiplies the 3 and divides the 27.
    """
    n, k, t = float(max(n_experts, 2)), float(n_arms), float(horizon)
    nt, few = math.log(n * t), math.log(n)
    size = n * log * nt * few
    rate = (size / (epsilon * t * k)) ** 0.4
    batch = max(1, math.ceil(rate**0.75 * math.sqrt(k * nt * n * log * t / (epsilon * few))))
    # gamma T and what the noise costs, 180 eta K (N ln(NT) / (epsilon tau))^2 ln(1 / delta) T /
    # gamma, then make 27 in place of the 12.
    mixing = 12.0 * math.sqrt(rate) * k * n * log * nt / (epsilon * batch)
    bound = 31.0 * size**0.4 * (k * t) ** 0.6 / epsilon**0.4
    proved = _is_proved(n_arms, epsilon, log)
    return Tuning(batch, rate, mixing, bound if proved else math.inf)


def _is_proved(n_arms: int, epsilon: float, log: float) -> bool:
    """Whether the constants of Theorems 6 and 8 follow.  This needs K ln(1 / delta) >= 1, to
    compare terms, and an epsilon small enough for the constant 3 of advanced composition.  Their
    proofs need gamma <= 1/2 besides, see ``published``.
    """
    return n_arms * log >= 1.0 and epsilon <= COMPOSED * log


def published(
    n_arms: int, n_experts: int, horizon: int, epsilon: float, log: float, *, improved: bool
) -> Tuning:
    """The published tuning of least bound among those with gamma <= 1/2, as their proofs need: that
    of Theorem 6, and for the improved variant of Theorem 8.  Where none is proved, that of least
    gamma.
    """
    theorems = (theorem_6, theorem_8) if improved else (theorem_6,)
    found = [theorem(n_arms, n_experts, horizon, epsilon, log) for theorem in theorems]
    proved = [one for one in found if one.mixing <= LARGEST_MIXING]
    if proved:
        return min(proved, key=lambda one: one.bound)
    return min(found, key=lambda one: one.mixing)


def least_horizon(
    n_arms: int, n_experts: int, epsilon: float, log: float, *, improved: bool
) -> int:
    """The shortest horizon at which a published tuning is proved: gamma falls with the horizon."""

    def proved(horizon: int) -> bool:
        tuning = published(n_arms, n_experts, horizon, epsilon, log, improved=improved)
        return tuning.mixing <= LARGEST_MIXING

    high = 2
    while not proved(high):
        high *= 2
    return 2 + bisect_left(range(2, high), True, key=proved)


@dataclass(frozen=True, repr=False)
class BatchedEXP4(Mixture):
    """EXP4 as published, with Laplace noise on every expert's sum of a batch (Algorithms 2 and 7).

    Args:
        rate: eta; by default that of the least regret bound.  With ``calibration="paper"`` it is
            that of Theorem 6, and for ``"improved"`` that of the lesser bound of Theorem 8.  So is
            tau.
        mixing: gamma in [1e-12, 1]; likewise.
        variant: ``"published"``, noise for the worst case, sqrt(N) K / gamma (Algorithm 2); or
            ``"improved"``, separate noise for every expert, in proportion to the largest effect of
            a record of the batch on that expert's sum (Algorithm 7).

    With ``calibration="paper"`` the noise is that of advanced composition, 3 sqrt(ln(1 / delta)) /
    epsilon.  The default uses the exact zCDP of independent Laplace noise, and needs less noise for
    the same guarantee.  It is refused outside the range where it is proved: epsilon > 1.10 ln(1 /
    delta), or gamma > 1/2 because the horizon is too short.

    When to choose: to reproduce the paper.  ``EXP4`` has less noise for the same guarantee.

    >>> BatchedEXP4(variant="improved")
    BatchedEXP4(variant='improved')
    """

    card: ClassVar[Card] = Card(
        title="EXP4 on noisy sums of batches, as published",
        source=f"{PAPER}, Theorems 6 and 8",
        noise=("Laplace vector",),
        randomised=True,
        errata=(EXPERTS, ADVERSARIAL_THEOREMS),
    )

    variant: str = "published"

    constraints: ClassVar[Constraints] = {
        "mixing": Real(_LEAST_MIXING, 1.0) | None,
        "variant": Choice("published", "improved"),
    }

    @property
    def kernels(self) -> Kernels:
        return BY_REACH if self.variant == "improved" else AT_WORST

    @property
    def secure_needs(self) -> tuple[str, str]:
        if self.variant == "published":
            return super().secure_needs
        return "variant='published'", "secure noise is added only to multiples of a grid"

    def statistic(self, policy: Experts | ExpertsLocal) -> Statistic:
        worst = super().statistic(policy)
        if self.variant == "published":
            return worst
        n = policy.n_experts
        return replace(worst, max_sensitivity=math.sqrt(n) * ROUNDED_UP, memo=n)

    def _found(self, policy: Any) -> Tuning:
        if policy.calibration != "paper" or not isinstance(policy.budget, ApproxDP):
            return super()._found(policy)
        epsilon, log = policy.budget.epsilon, -math.log(policy.budget.delta)
        if epsilon > COMPOSED * log:
            raise ArgumentError(
                f"budget must have epsilon <= {COMPOSED:.4g} ln(1 / delta) = {COMPOSED * log:.4g}"
                f" with calibration='paper', got {policy.budget!r}",
                "budget",
            )
        improved, horizon = self.variant == "improved", policy.tuned_for
        sizes = policy.n_arms, policy.n_experts
        found = published(*sizes, horizon, epsilon, log, improved=improved)
        if found.mixing > LARGEST_MIXING and self.mixing is None:
            least = least_horizon(*sizes, epsilon, log, improved=improved)
            raise ArgumentError(
                f"horizon must be at least {least} for gamma <= 1/2 with calibration='paper', got"
                f" {horizon}",
                "horizon",
            )
        return found
