"""Policies that learn from every reward, without privacy: UCB1, KL-UCB, Thompson sampling.

They promise nothing: they are the honest references.  ``papers.others`` has LDP-UCB of them.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Unpack

import numpy as np

from ..calls import is_open
from ..constraints import Constraints, Real
from ..kernel import Generator, Kernel, Vector, bind, kernel, unbound
from ..policies import ArmEstimates, Card, Kernels, Options, Policy, register
from ..privacy.channels import Laplace
from ..protocol import Contexts
from ..session.estimates import standard_error
from .bases.sums import CLOCK, EVERY_ROUND, Sums
from .maths.bernoulli import bernoulli_kl, kl_upper_bound

# Bounds on errors of computed values.
_INDEX_ERROR = 2e-12  # Newton's method stops at 1e-12
_DIVERGENCE_ERROR = 1e-15
_LEVEL_ERROR = 1e-9  # relative


class StepwiseParams(NamedTuple):
    n_arms: int
    optimism: float
    width: float  # hi - lo
    low: float
    noise_scale: float  # of the noise on a reward: standard deviation (Gaussian) or scale (Laplace)
    heavy: bool  # whether that noise is Laplace


class StepwisePublic(NamedTuple):
    mean: np.ndarray  # (K,) of the released rewards
    plays: np.ndarray  # (K,) float64: rewards learned from
    # (3,) rounds learned from; arm of the last; whether its reward is to be released
    clock: np.ndarray


def init(params: StepwiseParams) -> tuple[Sums, StepwisePublic]:
    k = params.n_arms
    return Sums(np.zeros(1)), StepwisePublic(np.zeros(k), np.zeros(k), np.zeros(3, np.int64))


terms = index = is_below = unbound


@kernel
def choose_highest(
    params: StepwiseParams, public: StepwisePublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm with the highest index, or the first of several.  Arms with at most ``least`` known
    rewards come first.  The last arm played often leads, so others are compared with its index.
    """
    pressure, least = terms(params, float(public.clock[CLOCK.rounds]))
    for a in range(params.n_arms):
        if is_open(contexts, a) and public.plays[a] <= least:
            return a, 1.0
    best, arm = -np.inf, 0
    last = public.clock[CLOCK.arm]
    if is_open(contexts, last):
        value = index(params, public.mean[last], public.plays[last], pressure)
        if value > best:  # not NaN
            best, arm = value, last
    for a in range(params.n_arms):
        mean, n = public.mean[a], public.plays[a]
        if a == last or not is_open(contexts, a) or is_below(params, mean, n, pressure, best):
            continue
        value = index(params, mean, n, pressure)
        if value > best or (value == best and a < arm):
            best, arm = value, a
    return arm, 1.0


@kernel
def never_below(
    params: StepwiseParams, mean: float, n: float, pressure: float, best: float
) -> bool:
    """For indices that cost no more than a comparison."""
    return False


@kernel
def ucb_terms(params: StepwiseParams, t: float) -> tuple[float, float]:
    # No logarithm of 0 before the first reward.
    return params.width * params.width * params.optimism * np.log(max(t, 1.0)), 0.0


@kernel
def ucb_index(params: StepwiseParams, mean: float, n: float, pressure: float) -> float:
    """mean + w sqrt(alpha ln t / N), N of t rounds of the arm."""
    return mean + np.sqrt(pressure / n)


@kernel
def kl_terms(params: StepwiseParams, t: float) -> tuple[float, float]:
    """ln t + c ln ln t."""
    pressure = np.log(max(t, 1.0))
    return pressure + params.optimism * np.log(max(pressure, 1.0)), 0.0


@kernel
def scaled(params: StepwiseParams, mean: float) -> float:
    """To [0, 1]."""
    return min(max((mean - params.low) / params.width, 0.0), 1.0)


@kernel
def kl_index(params: StepwiseParams, mean: float, n: float, pressure: float) -> float:
    """The largest q with N kl(mean, q) <= ln t + c ln ln t, the mean scaled to [0, 1]."""
    return kl_upper_bound(scaled(params, mean), pressure / n)


@kernel
def kl_is_below(
    params: StepwiseParams, mean: float, n: float, pressure: float, best: float
) -> bool:
    """Whether ``kl_index`` is certainly less, as the divergence at a slightly smaller q exceeds the
    level.  Margins are above the errors of the index and of the divergence.  So indices that are
    equal after rounding stay equal.
    """
    p, q = scaled(params, mean), best - _INDEX_ERROR
    return p < q and n * (bernoulli_kl(p, q) - _DIVERGENCE_ERROR) > (1.0 + _LEVEL_ERROR) * pressure


@kernel
def choose_thompson(
    params: StepwiseParams, public: StepwisePublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """Arg max of a draw from every arm's Beta posterior under a uniform prior."""
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        mean, n = scaled(params, public.mean[a]), public.plays[a]
        draw = rng.beta(1.0 + mean * n, 1.0 + (1.0 - mean) * n)
        if draw > best:
            best, arm = draw, a
    return arm, np.nan


@kernel
def publish(params: StepwiseParams, public: StepwisePublic, memo: Vector, release: Vector) -> None:
    arm = public.clock[CLOCK.arm]
    public.plays[arm] += 1.0
    public.mean[arm] += (release[0] - public.mean[arm]) / public.plays[arm]
    public.clock[CLOCK.fresh] = 0


def stepwise_kernels(choose: Kernel) -> Kernels:
    return Kernels(init=init, choose=choose, publish=publish, **EVERY_ROUND)


class Stepwise(Policy):
    """An index of every arm's mean, from every reward."""

    learns_off_policy = True
    learns_means = True

    @staticmethod
    def _arm_estimates(params: StepwiseParams, public: StepwisePublic) -> ArmEstimates:
        known = public.plays > 0.0
        noise = params.noise_scale**2 * (2.0 if params.heavy else 1.0)  # on each reward
        errors = standard_error(public.plays, params.width, noise * public.plays)
        return ArmEstimates(np.where(known, public.mean, np.nan), errors, public.plays)

    def _params(self) -> StepwiseParams:
        lo, hi = self.reward_range
        return StepwiseParams(
            n_arms=self.n_arms,
            optimism=self.config.get("alpha", self.config.get("c", 0.0)),
            width=hi - lo,
            low=lo,
            noise_scale=self.noise_scale,
            heavy=isinstance(self.channel, Laplace),
        )


@register(n_arms=3)
class UCB1(Stepwise):
    """UCB1, without privacy (Auer, Cesa-Bianchi & Fischer 2002): arg max of mean + w sqrt(alpha ln
    t / N).

    Args:
        n_arms: number of arms.
        alpha: optimism; 2 as published.
        budget: None; private relatives are ``AdaCUCB`` and ``LDPUCB``.
        **options: see ``Options``.

    When to choose: as the simplest reference without privacy; ``KLUCB`` has less regret.

    Example:
        >>> UCB1(3).guarantee.holds is None
        True
    """

    card = Card(
        title="UCB1, not private",
        source="Auer, Cesa-Bianchi & Fischer (2002), Finite-time Analysis of the Multiarmed Bandit"
        " Problem",
        trust_model="none",
        learns_at_once=True,
    )
    kernels = stepwise_kernels(
        bind(choose_highest, terms=ucb_terms, index=ucb_index, is_below=never_below)
    )
    constraints: ClassVar[Constraints] = {"alpha": Real(0.0, strict=True)}

    def __init__(
        self, n_arms: int, *, alpha: float = 2.0, budget: None = None, **options: Unpack[Options]
    ) -> None:
        own = {"n_arms": n_arms, "alpha": alpha}
        super().__init__(own, budget=budget, **options)


@register(n_arms=3)
class KLUCB(Stepwise):
    """KL-UCB, without privacy (Garivier & Cappé 2011): arg max of the largest q with N kl(mean, q)
    <= ln t + c ln ln t.

    Args:
        n_arms: number of arms.
        c: weight of ln ln t; 0 as recommended in practice, the regret theorem uses 3.
        budget: None; the private relative is ``AdaPKLUCB``.
        **options: see ``Options``.

    When to choose: no privacy, and rewards that are mostly 0 or 1; to measure the price of it in
    ``AdaPKLUCB``.

    Example:
        >>> KLUCB(3).pull().arm
        0
    """

    card = Card(
        title="KL-UCB, not private",
        source="Garivier & Cappé (2011), The KL-UCB Algorithm for Bounded Stochastic Bandits and"
        " Beyond",
        trust_model="none",
        learns_at_once=True,
    )
    kernels = stepwise_kernels(
        bind(choose_highest, terms=kl_terms, index=kl_index, is_below=kl_is_below)
    )
    constraints: ClassVar[Constraints] = {"c": Real(0.0)}

    def __init__(
        self, n_arms: int, *, c: float = 0.0, budget: None = None, **options: Unpack[Options]
    ) -> None:
        super().__init__({"n_arms": n_arms, "c": c}, budget=budget, **options)


@register(n_arms=3)
class ThompsonSampling(Stepwise):
    """Thompson sampling with Beta posteriors and a uniform prior, without privacy (Agrawal & Goyal
    2012).

    A reward between the ends of the range counts as a fraction of a success.

    Args:
        n_arms: number of arms.
        budget: None; the private relative is ``LazyDPTS``.
        **options: see ``Options``.

    When to choose: no privacy, and batches of late answers, which it spreads over arms; to measure
    the price of it in ``LazyDPTS``.

    Example:
        >>> ThompsonSampling(3, seed=1).pull().propensity is None
        True
    """

    card = Card(
        title="Thompson sampling, not private",
        source="Agrawal & Goyal (2012), Analysis of Thompson Sampling for the Multi-armed Bandit"
        " Problem",
        trust_model="none",
        learns_at_once=True,
        randomised=True,
    )
    kernels = stepwise_kernels(choose_thompson)

    def __init__(self, n_arms: int, *, budget: None = None, **options: Unpack[Options]) -> None:
        super().__init__({"n_arms": n_arms}, budget=budget, **options)
