"""LinUCB and linear Thompson sampling on a privately released running sum of x * reward (Neel &
Roth 2018; here with better noise).

Contexts are public, and so is V = lambda I + sum of x x^T of what was played: it needs no noise.

What crosses the wall: after every answer, the running sum of x * reward, as a continual sum
(``privacy.continual``).  One person contributes one reward to one increment, so a record moves one
increment by at most (hi - lo) * context_bound, for features no longer than ``context_bound``, which
scaling enforces.  Which features she meets depends on what was released before her only, so that
the guarantee holds for any, even adversarial, public contexts.  All later estimates and choices are
post-processing.

With ``models="disjoint"`` every arm has a parameter of its own (Li, Chu, Langford & Schapire 2010,
Algorithm 1), hence a V and a block of the running sum: those of the rounds in which it was played.
Which arm that is, is public, and a record moves one block, by as much as it moves the one sum of a
shared model.  All blocks cross together, in one release with noise on each.  The radius of an arm
is that of its own model: which rounds are its own, follows from the past, as the proof of the
radius wants it.  The failure probability is shared out equally among models, for rewards and for
noise.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple, Unpack

import numpy as np

from ...kernel import Generator, Kernel, Matrix, Vector, kernel, unbound
from ...policies import Card, Kernels, register
from ...privacy.budgets import Budget
from ...validation import choice, real
from ..bases.contextual import within_bound
from ..bases.errata import LINPRIV
from ..bases.linear import (
    MODEL,
    LinearOptions,
    LinearPolicy,
    ModelOptions,
    accumulate,
    block_of,
    estimate,
    model_of,
    sensitivity,
)
from ..bases.sums import summarise
from ..maths.dense import factorise, invert
from ..maths.ridge import (
    add_observation,
    dot,
    inverse_norm_bound,
    most_optimistic_at_once,
    multiply,
    smallest_eigenvalue,
    turn_draw,
    update_factor,
)


class LinUCBParams(NamedTuple):
    n_arms: int
    n_models: int  # M: K with one for each arm, else 1
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
    margin: float = 0.0  # ln of IMED's
    middle: float = 0.0  # of the range of rewards
    half: float = 0.0  # half its width
    horizon: float = math.inf  # of IMED: rounds in which learning may pay


class LinUCBRaw(NamedTuple):
    total: np.ndarray  # (M d,) sums of x * reward since the last release


class LinUCBPublic(NamedTuple):
    precision: np.ndarray  # (M, d, d) V
    inverse: np.ndarray  # (M, d, d)
    factor: np.ndarray  # (M, d, d) of V; kept by Thompson sampling only
    estimate: np.ndarray  # (M d,) V^-1 times the released sum
    facts: np.ndarray  # (6, M)
    clock: np.ndarray  # (3, M)
    scratch: np.ndarray  # (3, max(d, K))


class Facts(NamedTuple):
    """Slots of ``LinUCBPublic.facts``."""

    log_det: int = 0  # ln(det V / lambda^d)
    eigenvalue: int = 1  # a lower bound on V's smallest
    radius: int = 2
    longest: int = 3  # see ``inverse_norm_bound``
    spread: int = 4  # times |V^-1 x|
    gap: int = 5  # 0: V is exact


class Clock(NamedTuple):
    """Slots of ``LinUCBPublic.clock``."""

    rounds: int = 0  # booked
    fresh: int = 1  # since the last release
    refresh: int = 2  # round of the next recomputation


FACTS, CLOCK = Facts(), Clock()

most_optimistic = unbound  # of few or of many features


@kernel
def set_radius(params: LinUCBParams, public: LinUCBPublic, m: int) -> None:
    facts = public.facts
    sampling = (
        params.subgaussian * np.sqrt(params.log_odds + params.growth * facts[FACTS.log_det, m])
        + params.bias
    )
    facts[FACTS.radius, m] = params.radius_scale * (
        sampling + params.noise_norm / np.sqrt(facts[FACTS.eigenvalue, m])
    )
    facts[FACTS.spread, m] = params.radius_scale * params.spread


def init(params: LinUCBParams) -> tuple[LinUCBRaw, LinUCBPublic]:
    models, d, ridge = params.n_models, params.dimension, params.ridge
    identities = np.tile(np.eye(d), (models, 1, 1))
    public = LinUCBPublic(
        precision=identities * ridge,
        inverse=identities / ridge,
        factor=identities * np.sqrt(ridge),
        estimate=np.zeros(models * d),
        facts=np.zeros((len(FACTS), models)),
        clock=np.zeros((len(CLOCK), models), np.int64),
        scratch=np.zeros((3, max(d, params.n_arms))),
    )
    public.facts[FACTS.eigenvalue], public.clock[CLOCK.refresh] = ridge, 16
    for m in range(models):
        public.facts[FACTS.longest, m] = inverse_norm_bound(public.precision[m], ridge)
        set_radius(params, public, m)
    return LinUCBRaw(np.zeros(models * d)), public


@kernel
def choose_optimistic(
    params: LinUCBParams, public: LinUCBPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of highest <x, estimate> + radius |x|_{V^-1}, plus ``spread`` |V^-1 x| where that
    stands for the noise.
    """
    spread = params.radius_scale * params.spread
    longest, radius = public.facts[FACTS.longest, 0], public.facts[FACTS.radius, 0]
    return (
        most_optimistic(
            contexts, public.estimate, public.inverse[0], longest, radius, spread, public.scratch
        ),
        1.0,
    )


@kernel
def choose_optimistic_of_models(
    params: LinUCBParams, public: LinUCBPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The same by one model per arm."""
    facts = public.facts
    arm = most_optimistic_at_once(
        contexts,
        public.estimate,
        public.inverse,
        facts[FACTS.longest],
        facts[FACTS.radius],
        facts[FACTS.gap],
        facts[FACTS.spread],
    )
    return arm, 1.0


@kernel
def choose_sample(
    params: LinUCBParams, public: LinUCBPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The best arm for one draw from N(estimate, radius^2 V^-1 + spread^2 V^-2) of each model, the
    noise of the release included.
    """
    sample, noise = public.scratch[0, : params.dimension], public.scratch[1, : params.dimension]
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if a < params.n_models:
            for i in range(sample.size):
                sample[i] = public.facts[FACTS.radius, a] * rng.standard_normal()
                noise[i] = params.radius_scale * params.spread * rng.standard_normal()
            believed = public.estimate[block_of(a, params.dimension)]
            turn_draw(believed, public.factor[a], public.inverse[a], sample, noise)
        index = dot(contexts[a], sample)
        if index > best:
            best, arm = index, a
    return arm, np.nan


@kernel
def record_pull(params: LinUCBParams, public: LinUCBPublic, arm: int, x: Vector, n: int) -> None:
    m = model_of(params, arm)
    clock, facts = public.clock, public.facts
    precision, inverse = public.precision[m], public.inverse[m]
    facts[FACTS.log_det, m] += np.log(add_observation(precision, inverse, x, n, public.scratch[0]))
    clock[CLOCK.rounds, m] += n
    clock[CLOCK.fresh, m] += n
    rounds = clock[CLOCK.rounds, m]
    if n < 0:  # bounds on V from below fall with it
        facts[FACTS.eigenvalue, m], clock[CLOCK.refresh, m] = params.ridge, rounds
    if rounds >= clock[CLOCK.refresh, m]:
        # The inverse loses digits with every update, and the smallest eigenvalue grows: an old one
        # is a valid, wider bound.
        factor, known = public.factor[m], facts[FACTS.eigenvalue, m]
        facts[FACTS.eigenvalue, m] = smallest_eigenvalue(precision, known, factor)
        facts[FACTS.longest, m] = inverse_norm_bound(precision, facts[FACTS.eigenvalue, m])
        factorise(precision, 0.0, factor, params.dimension)
        invert(factor, inverse, params.dimension)
        clock[CLOCK.refresh, m] = rounds + max(16, rounds // 8)


@kernel
def record_with_factor(
    params: LinUCBParams, public: LinUCBPublic, arm: int, x: Vector, n: int
) -> None:
    work = public.scratch[1, : params.dimension]
    for i in range(x.size):
        work[i] = x[i]
    update_factor(public.factor[model_of(params, arm)], work, n)
    record_pull(params, public, arm, x, n)


@kernel
def release_due(params: LinUCBParams, public: LinUCBPublic) -> bool:
    fresh = 0
    for m in range(params.n_models):
        fresh += public.clock[CLOCK.fresh, m]
    return fresh > 0


@kernel
def publish(params: LinUCBParams, public: LinUCBPublic, memo: Vector, release: Vector) -> None:
    for m in range(params.n_models):
        block = block_of(m, params.dimension)
        multiply(public.inverse[m], release[block], public.estimate[block])
        set_radius(params, public, m)
        public.clock[CLOCK.fresh, m] = 0


def _kernels(choose: Kernel, record_pull: Kernel) -> Kernels:
    return Kernels(
        init=init,
        preprocess_contexts=within_bound,
        choose=choose,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        summarise=summarise,
        publish=publish,
        estimate=estimate,
    )


OPTIMISTIC = _kernels(choose_optimistic, record_pull)
_OF_MODELS = replace(OPTIMISTIC, choose=choose_optimistic_of_models)


class _Optimistic(LinearPolicy):
    """The policies that play the highest upper confidence bound."""

    _searches = True
    _covers = True
    _radius: str = "safe"

    @property
    def _holds(self) -> bool:
        return super()._holds and self._radius == "safe"

    @property
    def driven(self) -> Kernels:
        return super().driven if self.n_models == 1 else _OF_MODELS

    def _params(self) -> LinUCBParams:
        private = self.budget is not None
        each = self._each_failure / (2 if private else 1)  # of sampling, and of noise
        safe = self._radius == "safe"
        return LinUCBParams(
            **self._model(),
            n_models=self.n_models,
            log_odds=2.0 * math.log(1.0 / each),
            growth=1.0,
            bias=self._bias,
            noise_norm=self._noise_norm(each) if safe else 0.0,
            spread=0.0 if safe else self._spread(each),
            radius_scale=self._radius_scale,
            movement=self.statistic.max_sensitivity,
        )


@register(n_arms=3, dimension=2)
class LinUCB(_Optimistic):
    """LinUCB, also called OFUL, without privacy (Abbasi-Yadkori, Pál & Szepesvári 2011).

    Plays arg max of ``<x, estimate> + radius |x|_{V^-1}`` with the radius of their Theorem 2.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: None; the private relative is ``PrivateLinUCB``.
        models: "shared", one parameter for all arms, or "disjoint", one for each, and ``pull`` may
            take one vector of features, shape (d,), for all of them.
        **options: see ``LinearOptions``.

    When to choose: linear rewards in contexts, no privacy; to measure the price of it in
    ``PrivateLinUCB``.

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
        trust_model="none",
        learns_at_once=True,
    )
    kernels = OPTIMISTIC

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: None = None,
        models: str = "shared",
        **options: Unpack[LinearOptions],
    ) -> None:
        own = {"n_arms": n_arms, "dimension": dimension, **self._modelled(models)}
        super().__init__(own, budget=budget, **options)


@register(n_arms=3, dimension=2, horizon=30_000)
class PrivateLinUCB(_Optimistic):
    """LinUCB on a running sum that is released with the noise of a continual sum after every
    answer.

    Plays arg max of ``<x, estimate> + radius |x|_{V^-1}``, where ``estimate = V^-1 (sum x r +
    noise)``.  Under pure DP with the binary tree this is the mechanism of LinPriv (Neel & Roth
    2018), which has ``models="disjoint"``; under zCDP and (epsilon, delta)-DP, correlated Gaussian
    noise is some ten times smaller in variance.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.  After it nothing more is
            learned.  None with the hybrid counter.
        counter: "tree", "honaker", "toeplitz", "buffered", "hybrid" (any number of rounds) or
            "independent"; see ``dpbandits.privacy.continual``.  By default the one with the least
            noise that fits budget, horizon and noise source.
        radius: "safe" (holds for all releases at once, Gaussian or Laplace), or "heuristic": the
            noise as if it were independent of the features, which is tighter and claims no
            coverage.  Privacy is the same.
        models: as in ``LinUCB``.
        **options: see ``LinearOptions``.

    When to choose: contexts are public, rewards private, and the radius is to be one that is proved
    to hold; ``LinearIMED`` mostly loses a fraction of it.

    Example:
        >>> from dpbandits import ZCDP
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
        noise=("Laplace", "Gaussian"),
        learns_at_once=True,
        errata=(LINPRIV,),
    )
    kernels = OPTIMISTIC

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        counter: str | None = None,
        radius: str = "safe",
        models: str = "shared",
        **options: Unpack[LinearOptions],
    ) -> None:
        self._radius = choice("radius", radius, ("safe", "heuristic"))
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            **self._released(horizon, counter),
            "radius": self._radius,
            **self._modelled(models),
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
        budget: of any notion; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.  After it nothing more is
            learned.  None with the hybrid counter.
        counter: as in ``PrivateLinUCB``.
        inflation: multiplies the spread of the draw; regret theorems want it to grow like sqrt(d ln
            t).
        models: as in ``LinUCB``.
        **options: see ``ModelOptions``.

    When to choose: as ``PrivateLinUCB``, when randomised choices are wanted; mostly lower regret,
    without a theorem.

    Example:
        >>> from dpbandits import ZCDP
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
        noise=("Laplace", "Gaussian"),
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
        models: str = "shared",
        **options: Unpack[ModelOptions],
    ) -> None:
        self._inflation = real("inflation", inflation, 0.0, 1e12)
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            **self._released(horizon, counter),
            "inflation": self._inflation,
            **self._modelled(models),
        }
        super().__init__(own, budget=budget, **options)

    def _params(self) -> LinUCBParams:
        return LinUCBParams(
            **self._model(),
            n_models=self.n_models,
            log_odds=1.0,
            growth=0.0,
            bias=0.0,
            noise_norm=0.0,
            spread=self._noise_std,
            radius_scale=self._inflation,
            movement=self.statistic.max_sensitivity,
        )
