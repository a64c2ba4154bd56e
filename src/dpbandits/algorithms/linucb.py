"""LinUCB and linear Thompson sampling on a privately released running sum of x * reward (Neel &
Roth 2018; here with better noise).

Contexts are public, and so is V = lambda I + sum of x x^T of what was played: it needs no noise.

What crosses the wall: after every answer, the running sum of x * reward, as a continual sum
(``privacy.continual``).  One person contributes one reward to one increment, so a record moves one
increment by at most (hi - lo) * context_bound, for features no longer than ``context_bound``, which
scaling enforces.  Which features she meets depends on what was released before her only, so that
the guarantee holds for any, even adversarial, public contexts.  All later estimates and choices are
post-processing.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

import numpy as np

from ..kernel import Kernel, entry, kernel
from ..policies import Card, Kernels, register
from ..policies.contextual import within_bound
from ..privacy.budgets import RDP, ZCDP, ApproxDP, Budget, PureDP
from ..privacy.channels import Gaussian, Laplace
from ..validation import choice, real
from .learners.dense import factorise, invert, solve_upper
from .learners.linear import (
    MODEL,
    LinearOptions,
    LinearPolicy,
    ModelOptions,
    accumulate,
    estimate,
    sensitivity,
)
from .learners.ridge import (
    add_observation,
    dot,
    most_optimistic,
    multiply,
    smallest_eigenvalue,
    stretch,
    update_factor,
)
from .learners.totals import summarise

ROUNDS, FRESH, REFRESH = range(3)
LOG_DET, EIGENVALUE, RADIUS, STRETCH = range(4)


class LinUCBParams(NamedTuple):
    n_arms: int
    dimension: int
    context_bound: float
    ridge: float  # lambda
    subgaussian: float  # s: how far rewards scatter around their mean
    log_odds: float  # 2 ln(1/p)
    growth: float  # 1 where the radius grows with ln det V, and 0 where it is fixed
    bias: float  # sqrt(lambda) times the bound on |theta|
    noise_norm: float  # bound on the norm of the noise of every release
    spread: float  # the same in one direction; instead of ``noise_norm``
    radius_scale: float
    movement: float  # the most that a record moves an increment, in the channel's norm
    grid: float  # to which increments are rounded; 0 for none


class LinUCBRaw(NamedTuple):
    total: np.ndarray  # (d,) sum of x * reward since the last release


class LinUCBPublic(NamedTuple):
    precision: np.ndarray  # (d, d) V
    inverse: np.ndarray  # (d, d)
    factor: np.ndarray  # (d, d) of V; kept by Thompson sampling only
    estimate: np.ndarray  # (d,) V^-1 times the released sum
    # (4,) ln(det V / lambda^d), a lower bound on V's smallest eigenvalue, the radius, ``stretch``
    facts: np.ndarray
    # (3,) rounds booked, rounds since the last release, round of the next recomputation
    clock: np.ndarray
    scratch: np.ndarray  # (3, max(d, K))


@kernel
def set_radius(params, public):
    facts = public.facts
    sampling = (
        params.subgaussian * np.sqrt(params.log_odds + params.growth * facts[LOG_DET]) + params.bias
    )
    facts[RADIUS] = params.radius_scale * (
        sampling + params.noise_norm / np.sqrt(facts[EIGENVALUE])
    )


@entry
def init(params):
    d = params.dimension
    public = LinUCBPublic(
        np.eye(d) * params.ridge,
        np.eye(d) / params.ridge,
        np.eye(d) * np.sqrt(params.ridge),
        np.zeros(d),
        np.array([0.0, params.ridge, 0.0, 0.0]),
        np.array([0, 0, 16]),
        np.zeros((3, max(d, params.n_arms))),
    )
    public.facts[STRETCH] = stretch(public.precision, params.ridge)
    set_radius(params, public)
    return LinUCBRaw(np.zeros(d)), public


@kernel
def choose_optimistic(params, public, contexts, rng):
    """The arm of highest <x, estimate> + radius |x|_{V^-1}, plus ``spread`` |V^-1 x| where that
    stands for the noise.
    """
    spread = params.radius_scale * params.spread
    longest, radius = public.facts[STRETCH], public.facts[RADIUS]
    return (
        most_optimistic(
            contexts, public.estimate, public.inverse, longest, radius, spread, public.scratch
        ),
        1.0,
    )


@kernel
def choose_sample(params, public, contexts, rng):
    """The best arm for one draw from N(estimate, radius^2 V^-1 + spread^2 V^-2), the noise of the
    release included.
    """
    sample, noise = public.scratch[0, : params.dimension], public.scratch[1, : params.dimension]
    for i in range(sample.size):
        sample[i] = public.facts[RADIUS] * rng.standard_normal()
        noise[i] = params.radius_scale * params.spread * rng.standard_normal()
    solve_upper(public.factor, sample, params.dimension)
    for i in range(sample.size):
        sample[i] += public.estimate[i] + dot(public.inverse[i], noise)
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        index = dot(contexts[a], sample)
        if index > best:
            best, arm = index, a
    return arm, np.nan


@kernel
def record_pull(params, public, arm, x, n):
    clock, facts = public.clock, public.facts
    facts[LOG_DET] += np.log(
        add_observation(public.precision, public.inverse, x, n, public.scratch[0])
    )
    clock[ROUNDS] += n
    clock[FRESH] += n
    if n < 0:  # bounds on V from below fall with it
        facts[EIGENVALUE], clock[REFRESH] = params.ridge, clock[ROUNDS]
    if clock[ROUNDS] >= clock[REFRESH]:
        # The inverse loses digits with every update, and the smallest eigenvalue grows: an old one
        # is a valid, wider bound.
        facts[EIGENVALUE] = smallest_eigenvalue(public.precision, facts[EIGENVALUE], public.factor)
        facts[STRETCH] = stretch(public.precision, facts[EIGENVALUE])
        factorise(public.precision, 0.0, public.factor, params.dimension)
        invert(public.factor, public.inverse, params.dimension)
        clock[REFRESH] = clock[ROUNDS] + max(16, clock[ROUNDS] // 8)


@kernel
def record_with_factor(params, public, arm, x, n):
    work = public.scratch[1, : params.dimension]
    for i in range(x.size):
        work[i] = x[i]
    update_factor(public.factor, work, n)
    record_pull(params, public, arm, x, n)


@kernel
def release_due(params, public):
    return public.clock[FRESH] > 0


@kernel
def publish(params, public, release):
    multiply(public.inverse, release, public.estimate)
    set_radius(params, public)
    public.clock[FRESH] = 0


def _kernels(choose: Kernel, record_pull: Kernel) -> Kernels:
    return Kernels(
        init,
        choose,
        record_pull,
        accumulate,
        release_due,
        sensitivity,
        summarise,
        publish,
        preprocess_contexts=within_bound,
        estimate=estimate,
    )


class _Optimistic(LinearPolicy):
    """The policies that play the highest upper confidence bound."""

    def _params(self) -> LinUCBParams:
        private = self.budget is not None
        each = self._failure / 2 if private else self._failure  # of sampling, and of noise
        safe = self._radius == "safe"
        return LinUCBParams(
            **self._model(),
            log_odds=2.0 * math.log(1.0 / each),
            growth=1.0,
            bias=self._bias,
            noise_norm=self._noise_norm(each) if safe else 0.0,
            spread=0.0 if safe else self._spread(each),
            radius_scale=self._radius_scale,
            movement=self._movement(),
        )

    _radius: str = "safe"


_OPTIMISTIC = _kernels(choose_optimistic, record_pull)


@register(n_arms=3, dimension=2)
class LinUCB(_Optimistic):
    """LinUCB, also called OFUL, without privacy (Abbasi-Yadkori, Pál & Szepesvári 2011).

    Plays arg max of ``<x, estimate> + radius |x|_{V^-1}`` with the radius of their Theorem 2.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: None; the private relative is ``PrivateLinUCB``.
        **options: see ``LinearOptions``.

    Example:
        >>> policy = LinUCB(2, 3)
        >>> policy.pull(np.eye(3)[:2]).arm
        0
    """

    card = Card(
        title="LinUCB, not private",
        source=(
            "Abbasi-Yadkori, Pál & Szepesvári (2011), Improved Algorithms for Linear Stochastic"
            " Bandits, Theorem 2"
        ),
        channels={},
        trust_model="none",
        learns_at_once=True,
    )
    kernels = _OPTIMISTIC

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: None = None,
        **options: Unpack[LinearOptions],
    ) -> None:
        super().__init__({"n_arms": n_arms, "dimension": dimension}, budget=budget, **options)


@register(n_arms=3, dimension=2, horizon=30_000)
class PrivateLinUCB(_Optimistic):
    """LinUCB on a running sum that is released with the noise of a continual sum after every
    answer.

    Plays arg max of ``<x, estimate> + radius |x|_{V^-1}``, where ``estimate = V^-1 (sum x r +
    noise)``.  Under pure DP with the binary tree this is the mechanism of LinPriv (Neel & Roth
    2018) with one model for all arms; under zCDP and (epsilon, delta)-DP, correlated Gaussian noise
    is some ten times smaller in variance.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: ``PureDP``, ``ZCDP``, ``ApproxDP`` or ``RDP``; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.  After it nothing more is
            learned.  None with the hybrid counter.
        counter: "tree", "honaker", "toeplitz", "buffered", "hybrid" (any number of rounds) or
            "independent"; see ``dpbandits.privacy.continual``.  By default the one with the least
            noise that fits budget, horizon and noise source.
        radius: "safe" (holds for all releases at once, Gaussian or Laplace), or "heuristic": the
            noise as if it were independent of the features, which is tighter and claims no
            coverage.  Privacy is the same.
        **options: see ``LinearOptions``.

    When to choose: contexts are public, rewards private, and every answer should count at once.

    Example:
        >>> policy = PrivateLinUCB(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> decision = policy.pull(np.eye(3)[:2])
        >>> policy.update(1.0)
        True
    """

    card = Card(
        title="LinUCB on a continual sum of x * reward",
        source=(
            "Neel & Roth (2018), Mitigating Bias in Adaptive Data Gathering via Differential"
            " Privacy; continual sums: dpbandits.privacy.continual"
        ),
        channels={PureDP: Laplace, ZCDP: Gaussian, ApproxDP: Gaussian, RDP: Gaussian},
        learns_at_once=True,
    )
    kernels = _OPTIMISTIC

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        counter: str | None = None,
        radius: str = "safe",
        **options: Unpack[LinearOptions],
    ) -> None:
        self._radius = choice("radius", radius, ("safe", "heuristic"))
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            **self._released(horizon, counter),
            "radius": self._radius,
        }
        super().__init__(own, budget=budget, **options)


@register(n_arms=3, dimension=2, horizon=30_000)
class LinearThompson(LinearPolicy):
    """Linear Thompson sampling on a released running sum, with the known law of its noise in the
    posterior.

    Plays the best arm for one draw from ``N(estimate, s^2 V^-1 + v^2 V^-2)``, with ``s`` the
    scatter of rewards, ``v`` the standard deviation of the noise of the release (0 without a
    budget), and ``estimate = V^-1 (sum x r + noise)``.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: ``PureDP``, ``ZCDP``, ``ApproxDP`` or ``RDP``; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.  After it nothing more is
            learned.  None with the hybrid counter.
        counter: as in ``PrivateLinUCB``.
        inflation: multiplies the spread of the draw; regret theorems want it to grow like sqrt(d ln
            t).
        **options: see ``ModelOptions``.

    When to choose: as ``PrivateLinUCB``, when randomised choices are wanted; mostly lower regret,
    without a theorem.

    Example:
        >>> policy = LinearThompson(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.pull(np.eye(3)[:2]).arm in (0, 1)
        True
    """

    card = Card(
        title="linear Thompson sampling on a continual sum",
        source=(
            "Agrawal & Goyal (2013), Thompson Sampling for Contextual Bandits with Linear Payoffs;"
            " continual sums: dpbandits.privacy.continual"
        ),
        channels={PureDP: Laplace, ZCDP: Gaussian, ApproxDP: Gaussian, RDP: Gaussian},
        learns_at_once=True,
        randomised=True,
    )
    kernels = _kernels(choose_sample, record_with_factor)
    _options = MODEL  # there is no radius

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        counter: str | None = None,
        inflation: float = 1.0,
        **options: Unpack[ModelOptions],
    ) -> None:
        self._inflation = real("inflation", inflation, 0.0, 1e12)
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            **self._released(horizon, counter),
            "inflation": self._inflation,
        }
        super().__init__(own, budget=budget, **options)

    def _params(self) -> LinUCBParams:
        return LinUCBParams(
            **self._model(),
            log_odds=1.0,
            growth=0.0,
            bias=0.0,
            noise_norm=0.0,
            spread=self._noise_std,
            radius_scale=self._inflation,
            movement=self._movement(),
        )
