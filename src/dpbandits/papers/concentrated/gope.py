"""Phased elimination on a G-optimal design, for linear bandits with fixed arms (Azize & Basu 2024,
Algorithm 2 and Appendix E).

The mean reward of arm a is <theta, a>.  Phase l finds a G-optimal design of the remaining arms, and
plays its arms until every <theta, a> is known up to beta = 2^-l.  Then it drops the arms that trail
the best by more than 2 beta.

Releases: the end of a phase releases a linear map of the sums of rewards that each played arm had
in this phase.  With V = sum n_a a a^T over the n_a rounds of arm a, it is one of

* ``SUMS``: the sums themselves; one reward moves one of them by at most w = hi - lo, in the L1 and
  in the L2 norm;
* ``WHITE``: V^-1/2 sum a s_a, the paper's phi; one reward of arm a moves it by at most w |a|_{V^-1}
  in the L2 norm;
* ``OUTPUT``: V^-1 sum a s_a, the estimate of theta; one reward of arm a moves it by at most w |V^-1
  a|_2.

The last two are divided by the largest such norm over the played arms of this phase, with the V of
its played rounds.  So w is the sensitivity of all three.  (The paper puts d / c in place of that
norm's square.  That is too little noise for a design that is only optimal up to rounding and
tolerance.)  Exact secure noise needs multiples of a grid.  Sums of rewards are such multiples, and
the other two are rounded to the grid.  One reward can then cause one more step in every coordinate,
and the sensitivity includes it.

One person contributes one reward to one phase.  Phases are disjoint sets of records, so each
release may spend the whole budget.  The arms of a phase and their rounds follow from the remaining
arms, hence from earlier releases only.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ...algorithms.bases.fixed_features import FixedFeaturesPolicy
from ...algorithms.bases.quotas import choose, hold_rounds, record_pull, release_due
from ...algorithms.bases.sums import accumulate_by_arm
from ...constraints import Choice, Constraints, Real
from ...kernel import Vector, kernel
from ...policies import ArmEstimates, Card, Erratum, Kernels, Options, Statistic, register
from ...privacy.budgets import Budget
from ...tables import features
from . import phases
from .design import dot, g_optimal, support_limit
from .phases import CLOCK, MEASURES, SUMS, PhasedParams, PhasedPublic, begin_phase

_TOLERANCE = 1e-6  # of the designs
_COARSE = 1.0
_ERRATUM = Erratum(
    "AdaC-GOPE",
    (
        "Line 12 adds too little noise for an approximate design.",
        "AdaCGOPE computes the variance from the Gram matrix of the coming rounds.",
        "In the experiments rewards have standard normal noise and are not clipped, although the"
        " proof needs |r| <= 1.",
    ),
)


class PhasedRaw(NamedTuple):
    total: np.ndarray  # (K,) reward sums of the running phase


def init(params: PhasedParams) -> tuple[PhasedRaw, PhasedPublic]:
    return PhasedRaw(np.zeros(params.n_arms)), phases.first_phase(params)


@kernel
def sensitivity(params: PhasedParams, public: PhasedPublic, norm: int) -> float:
    return params.width * public.measures[MEASURES.reach]


@kernel
def summarise(
    params: PhasedParams, raw: PhasedRaw, public: PhasedPublic, memo: Vector, statistic: Vector
) -> None:
    """The sums of the played arms, or their map to z on the grid; the rest is zero."""
    clock, shape = public.clock, public.clock[CLOCK.shape]
    for i in range(statistic.size):
        statistic[i] = 0.0
    for j in range(clock[CLOCK.played]):
        arm = public.support[j]
        if shape == SUMS:
            statistic[j] = raw.total[arm]
        else:
            for i in range(clock[CLOCK.rank]):
                statistic[i] += public.encode[arm, i] * raw.total[arm]
    # After the sum, so that a record moves a coordinate by one more step at most.
    if shape != SUMS and params.grid > 0.0:
        for i in range(clock[CLOCK.rank]):
            statistic[i] = np.rint(statistic[i] / params.grid) * params.grid
    for a in range(params.n_arms):
        raw.total[a] = 0.0


@kernel
def publish(params: PhasedParams, public: PhasedPublic, memo: Vector, release: Vector) -> None:
    """Estimate the means of the arms left, and keep those within 2 beta of the best."""
    clock, z, shape = public.clock, public.space.image, public.clock[CLOCK.shape]
    rank = clock[CLOCK.rank]
    for i in range(rank):
        z[i] = 0.0 if shape == SUMS else release[i]
    if shape == SUMS:
        for j in range(clock[CLOCK.played]):
            for i in range(rank):
                z[i] += public.encode[public.support[j], i] * release[j]
    best = -np.inf
    for a in range(params.n_arms):
        if public.alive[a]:
            public.estimate[a] = dot(public.decode[a], z, rank)
            best = max(best, public.estimate[a])
    for a in range(params.n_arms):
        if best - public.estimate[a] > 2.0 * params.unit * 2.0 ** -clock[CLOCK.phase]:
            public.alive[a] = False
    # Last: it replaces ``decode``, and ``image``, where z is kept.
    begin_phase(params, public)


class _Phased(FixedFeaturesPolicy):
    """The base of the policies of this file."""

    kernels = Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate_by_arm,
        release_due=release_due,
        sensitivity=sensitivity,
        summarise=summarise,
        publish=publish,
    )
    constraints: ClassVar[Constraints] = {
        "failure_probability": Real(0.0, 1.0, strict=True),
        "subgaussian": Real(0.0, 1e100, strict=True) | None,
        "variant": Choice("tight", "published"),
    }
    _own: dict[str, Any] = {}  # noqa: RUF012  arguments that other policies of this file do not take
    _shape = phases.WHITE
    _rule = phases.CHERNOFF
    _tolerance = _TOLERANCE

    def __init__(
        self,
        arms: Any,
        *,
        budget: Budget | None,
        failure_probability: float = 0.001,
        subgaussian: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = {
            **self._own,
            "failure_probability": failure_probability,
            "subgaussian": subgaussian,
        }
        super().__init__(features("arms", arms), own, budget=budget, **options)

    @staticmethod
    def _arm_estimates(params: PhasedParams, public: PhasedPublic) -> ArmEstimates:
        released = public.clock[CLOCK.phase] > 1
        return ArmEstimates(np.where(released, public.estimate, np.nan), alive=public.alive)

    def _params(self) -> PhasedParams:
        (lo, hi), subgaussian = self.reward_range, self.config["subgaussian"]
        return PhasedParams(
            n_arms=self.n_arms,
            arms=self._arms,
            failure_probability=self.config["failure_probability"],
            variance_proxy=((hi - lo) / 2 if subgaussian is None else subgaussian) ** 2,
            width=hi - lo,
            unit=max((hi - lo) / 2, 1.0),
            magnitude=max(-lo, hi),
            grid=0.0 if self.budget is None else self.grid,
            noise_scale=self.noise_scale,
            first=g_optimal(self._arms, self._tolerance).weights,
            shape=self._shape,
            rule=self._rule,
            tolerance=self._tolerance,
        )

    def _statistic(self) -> Statistic:
        k, d = self._arms.shape
        sums, mapped = support_limit(k, d), min(k, d)
        size = {SUMS: sums, phases.SMALLER: max(sums, mapped)}.get(self._shape, mapped)
        return Statistic.of_rewards(self.reward_range, size=size)


_EXAMPLE = ((1.0, 0.0), (0.0, 1.0), (0.9, 0.8))
_CONCENTRATED = "Azize & Basu (2024), Concentrated Differential Privacy for Bandits"


@register(arms=_EXAMPLE)
class GOPE(_Phased):
    """Phased elimination on a G-optimal design, without privacy (Lattimore & Szepesvári 2020,
    Algorithm 12).

    Phase l takes a G-optimal design pi of the remaining arms.  It plays every arm a of it ``ceil(2
    g s^2 ln(2 / delta_l) pi(a) / 4^-l)`` times, with ``delta_l = delta / (K l (l + 1))``.  Here g
    is the largest |a|^2_{V(pi)^-1}, the rank if pi is exactly optimal.  Then it drops the arms that
    trail the best estimate by more than ``2 * 2^-l``.

    Args:
        arms, failure_probability, subgaussian, **options: see ``AdaCGOPE``.
        budget: None; the private relative is ``AdaCGOPE``.

    When to choose: linear bandits with fixed arms, for comparison with ``AdaCGOPE``.

    Example:
        >>> GOPE([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]]).pull().arm
        0
    """

    card = Card(
        title="Phased elimination on a G-optimal design, not private",
        source="Lattimore & Szepesvári (2020), Bandit Algorithms, Algorithm 12",
        trust_model="none",
    )
    _shape = SUMS

    def __init__(
        self,
        arms: ArrayLike,
        *,
        budget: None = None,
        failure_probability: float = 0.001,
        subgaussian: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            arms,
            budget=budget,
            failure_probability=failure_probability,
            subgaussian=subgaussian,
            **options,
        )


@register(arms=_EXAMPLE)
class AdaCGOPE(_Phased):
    """Phased elimination on a G-optimal design with Gaussian noise (Azize & Basu 2024, Algorithm
    2), as published or with shorter phases.

    Phase l plays every arm a of a G-optimal design pi of the remaining arms ``ceil(c pi(a))``
    times. It estimates theta from a noisy release.  Then it drops the arms that trail the best
    estimate by more than ``2 beta``, beta = 2^-l.

    With ``variant="published"`` the release is V^-1/2 sum a r and c that of the paper's eq. (4),
    which adds up a bound on the sampling error and one on the norm of the noise vector.

    With ``variant="tight"`` c follows from the error of one estimated mean, to which the noise adds
    a scalar.  Let n be the standard deviation of the noise on a sum of rewards: ``(hi - lo) /
    sqrt(2 rho)`` under rho-zCDP.  The error is s-subgaussian sampling plus normal noise, together
    subgaussian with variance ``s^2 g / c + n^2 q / c^2``.  Here g = max |a|^2_{V(pi)^-1}, including
    the tolerance of the design, and q is the noise variance for n = c = 1.  With noise on V^-1/2
    sum a r, q is ``g max_b |b|^2_{V(pi)^-1}`` over the played arms b.  With noise on the sums, q is
    ``max_a sum_b (a^T V(pi)^-1 b)^2``.  The shape with the smaller q is taken, which is public.
    Let L = ln(2 / delta_l).  Both tails hold for all arms in all phases if ``2 L (s^2 g / c + n^2 q
    / c^2) = beta^2``.  Hence ``c = (L s^2 g + sqrt(L^2 s^4 g^2 + 2 L n^2 q beta^2)) / beta^2``.  At
    an optimal design every played b has |b|^2 = g, so the second q is no smaller than the first.
    Noise on sums is taken where they are equal, as for independent arms, or where the design is not
    quite optimal.

    Under ``noise="secure"`` a release other than sums is rounded to the grid.  That increases the
    sensitivity slightly, and c includes it.

    Args:
        arms: features, shape (K, d); the mean reward of arm a is <theta, arms[a]> for some theta.
            They need not span R^d.
        budget: of any notion but ``PureDP``; None for the non-private counterpart, which with
            ``variant="tight"`` is ``GOPE``.
        variant: "tight" (default) or "published".
        failure_probability: delta, of dropping a best arm ever.
        subgaussian: s, such that every reward is s-subgaussian around its mean; by default (hi -
            lo) / 2, which holds for bounded rewards.
        **options: see ``Options``.  ``calibration="paper"`` concerns (epsilon, delta) budgets only:
            noise is always in proportion to the sensitivity of the rounds played, never to the
            paper's d / c.

    When to choose: for fixed arms that are far more than their features, and very few releases.
    ``MergedLinearIMED`` has far less regret with a few dozen.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = AdaCGOPE([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]], budget=ZCDP(0.5), seed=1)
        >>> decision = policy.pull()
        >>> policy.update(1.0)
        True
    """

    card = Card(
        title="Phased elimination on a G-optimal design",
        source=f"{_CONCENTRATED}, Theorem 3, with noise for the rounds that are played",
        noise=("Gaussian",),
        errata=(_ERRATUM,),
    )

    def __init__(
        self,
        arms: ArrayLike,
        *,
        budget: Budget | None,
        variant: str = "tight",
        failure_probability: float = 0.001,
        subgaussian: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        published = variant == "published"
        self._own = {"variant": variant}
        self._shape = phases.WHITE if published else phases.SMALLER
        self._rule = phases.PUBLISHED if published else phases.CHERNOFF
        super().__init__(
            arms,
            budget=budget,
            failure_probability=failure_probability,
            subgaussian=subgaussian,
            **options,
        )


@register(arms=_EXAMPLE)
class AdaRGOPEVar(_Phased):
    """AdaC-GOPE with noise on the sum of every arm, and the phases of eq. (4) (Azize & Basu 2024,
    Appendix H).

    This is the paper's comparison.  The lengths suffice for noise on V^-1/2 sum a r.  They have no
    theorem for this noise, whose effect grows with the number of played arms.

    Args:
        arms, budget, failure_probability, subgaussian, **options: see ``AdaCGOPE``.

    When to choose: to reproduce the paper's Figure 5; otherwise ``AdaCGOPE``.

    Example:
        >>> from dpbandits import ZCDP
        >>> AdaRGOPEVar([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]], budget=ZCDP(0.5), seed=1).pull().arm
        0
    """

    card = Card(
        title="Phased elimination with Gaussian noise on every arm's sum",
        source=f"{_CONCENTRATED}, Appendices E-C and H",
        noise=("Gaussian",),
        errata=(_ERRATUM,),
    )
    _shape = SUMS
    _rule = phases.PUBLISHED


@register(arms=_EXAMPLE)
class OutputGOPE(_Phased):
    """Phased elimination with Gaussian noise on the estimate of theta (Azize & Basu 2024).

    The release is V^-1 sum a r, in an orthonormal basis of the span of the arms left (Appendix E-C,
    first way).  One reward of arm a moves it by at most ``(hi - lo) |V^-1 a|_2``; the paper gives
    no phase lengths, because a G-optimal design does not control that norm.  Here they follow as in
    ``AdaCGOPE`` from the error of one estimated mean: ``q = max_a |a|^2 max_b |V(pi)^-1 b|^2``.

    Args:
        arms, budget, failure_probability, subgaussian, **options: see ``AdaCGOPE``.

    When to choose: to measure the cost of noise in the wrong place; otherwise ``AdaCGOPE``, whose q
    is no larger for an optimal design.

    Example:
        >>> from dpbandits import ZCDP
        >>> OutputGOPE([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]], budget=ZCDP(0.5), seed=1).pull().arm
        0
    """

    card = Card(
        title="Phased elimination with noise on the estimated parameter",
        source=f"{_CONCENTRATED}, Appendix E-C; the phase lengths are ours",
        noise=("Gaussian",),
        errata=(_ERRATUM,),
    )
    _shape = phases.OUTPUT


@register(arms=_EXAMPLE)
class HannaGOPE(_Phased):
    """Phased elimination that plays few arms in a phase, with Laplace noise on the sum of every
    arm (after Hanna, Yang & Fragouli 2022).

    The design has widths up to twice the least possible.  In return it plays few arms, because each
    played arm adds noise to every estimate.  The algorithm is that of the paper as Azize & Basu
    (2024, Appendix E-C) describe it.  The constants of the phase lengths are ours, from Chernoff's
    bound on the sum of sampling error and weighted Laplace variables.

    Args:
        arms, failure_probability, subgaussian, **options: see ``AdaCGOPE``.
        budget: ``PureDP``; None for the non-private counterpart.

    When to choose: pure differential privacy in linear bandits with fixed arms.

    Example:
        >>> from dpbandits import PureDP
        >>> HannaGOPE([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]], budget=PureDP(1.0), seed=1).pull().arm
        0
    """

    card = Card(
        title="Phased elimination with noise on every arm's sum (pure DP)",
        source=(
            "Hanna, Yang & Fragouli (2022), Differentially Private Stochastic Linear Bandits; the"
            " phase lengths are ours"
        ),
        noise=("Laplace",),
    )
    _shape = SUMS
    _rule = phases.HEAVY
    _tolerance = _COARSE


@register(arms=_EXAMPLE)
class DPDPE(_Phased):
    """Phased elimination that plays few arms in a phase, with Gaussian noise on the sum of every
    arm (after Li, Zhou & Ji 2022, DP-DPE).

    The design has widths up to twice the least possible, and in return plays few arms.  The
    algorithm is that of the paper as Azize & Basu (2024, Appendix E-C) describe it.  The phase
    lengths are ours, with ``q = max_a sum_b (a^T V(pi)^-1 b)^2`` as in ``AdaCGOPE``.

    Args:
        arms, budget, failure_probability, subgaussian, **options: see ``AdaCGOPE``.

    When to choose: for comparison with ``AdaCGOPE``, which has shorter phases.

    Example:
        >>> from dpbandits import ZCDP
        >>> DPDPE([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]], budget=ZCDP(0.5), seed=1).pull().arm
        0
    """

    card = Card(
        title="Phased elimination that plays few arms in a phase",
        source=(
            "Li, Zhou & Ji (2022), Differentially Private Linear Bandits with Partial Distributed"
            " Feedback; the phase lengths are ours"
        ),
        noise=("Gaussian",),
    )
    _shape = SUMS
    _tolerance = _COARSE
