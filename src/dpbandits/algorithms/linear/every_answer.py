"""The running sum of x * reward, after every answer (Neel & Roth 2018; here with better noise).

Contexts are public, and so is V = lambda I + sum of x x^T over played arms: it needs no noise.

Guarantee:

* Protected: one person's reward, from all who see or override decisions, but for the operator.
  Contexts are public, and may be adversarial.
* Adjacency: one record is another.  One person contributes one reward to one increment.
* Sensitivity: after every answer, the running sum of x * reward crosses the wall, as a continual
  sum (``privacy.continual``).  Scaling keeps features no longer than ``context_bound``, so a record
  moves one increment by at most (hi - lo) * context_bound.

The features of a person depend only on earlier releases.  Hence the guarantee holds for any, even
adversarial, public contexts.  All later estimates and choices are post-processing, with any
exploration.

With ``models="disjoint"`` every arm has a parameter of its own (Li, Chu, Langford & Schapire 2010,
Algorithm 1).  So it has a V and a block of the running sum, over its own rounds.  The arm of a
round is public, and a record moves one block, by as much as it moves the one sum of a shared model.
All blocks cross together, in one release with noise on each.  The radius of an arm is that of its
own model: the past determines its rounds, as the proof requires.  The failure probability is
divided equally among models, for rewards and for noise.

**Divergence.**  Noise needs no exploration of its own here.  It changes with every release, so an
arm hidden by noise comes back, as in Thompson sampling, and is tried too often rather than too
seldom.  So D is the arm's gap plus one standard deviation of the noise, v |V^-1 x|, but 0 for the
leader.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernel import Generator, Kernel, Matrix, Vector, kernel, unbound
from ...policies import Kernels
from ..bases.contextual import within_bound
from ..bases.linear import accumulate, block_of, estimate, model_of, sensitivity
from ..bases.sums import Sums, summarise
from ..exploration import Divergence, Optimism, Sampling
from ..maths.dense import factorise, invert
from ..maths.ridge import (
    add_observation,
    dot,
    inverse_norm_bound,
    least_divergent_at_once,
    most_optimistic_at_once,
    multiply,
    prepare_draw,
    smallest_eigenvalue,
    update_factor,
)


class LinearParams(NamedTuple):
    n_arms: int
    n_models: int  # M: K with one for each arm, else 1
    dimension: int
    context_bound: float
    ridge: float  # lambda
    subgaussian: float  # s: how far rewards scatter around their mean
    grid: float  # to which increments are rounded; 0 for none
    movement: float  # the most that a record moves an increment, in the channel's norm
    growth: float  # 1 + C, of ``Switching``
    # Of the radius, which is fixed but for optimism.
    log_odds: float = 1.0  # 2 ln(1 / p); alpha of IMED
    widens: float = 0.0  # 1 where the radius grows with ln det V
    bias: float = 0.0  # sqrt(lambda) times the bound on |theta|
    noise_norm: float = 0.0  # bound on the norm of the noise of every release
    spread: float = 0.0  # the same in one direction; instead of ``noise_norm``
    radius_scale: float = 1.0
    adds_up: bool = False  # whether ``noise_norm`` is that of the first release, and noise adds up
    # lambda_0, the least eigenvalue of E[x x^T], where a bound on V stands for V; nan otherwise
    eigenvalue: float = math.nan
    log_rounds: float = 0.0  # ln(d / p), of that bound
    # Of IMED; see ``least_divergent_at_once``.
    noise: float = 0.0  # the variance of a release over s^2, where noise stands for long
    share: float = 0.0  # of that variance which explores
    margin: float = 0.0  # its logarithm
    middle: float = 0.0  # of the range of rewards
    half: float = 0.0  # half its width
    horizon: float = math.inf  # rounds in which learning may pay


class LinUCBPublic(NamedTuple):
    precision: np.ndarray  # (M, d, d) V
    inverse: np.ndarray  # (M, d, d)
    factor: np.ndarray  # (M, d, d) of V; kept by Thompson sampling only
    estimate: np.ndarray  # (M d,) V^-1 times the released sum
    facts: np.ndarray  # (6, M)
    clock: np.ndarray  # (3, M)
    scratch: np.ndarray  # (3, max(d, K))


class Facts(NamedTuple):  # slots of ``LinUCBPublic.facts``
    log_det: int = 0  # ln(det V / lambda^d)
    eigenvalue: int = 1  # a lower bound on V's smallest
    radius: int = 2
    longest: int = 3  # see ``inverse_norm_bound``
    spread: int = 4  # times |V^-1 x|
    gap: int = 5  # 0: V is exact


class Clock(NamedTuple):  # slots of ``LinUCBPublic.clock``
    rounds: int = 0  # booked
    fresh: int = 1  # since the last release
    refresh: int = 2  # round of the next recomputation


FACTS, CLOCK = Facts(), Clock()

most_optimistic = unbound  # of few or of many features


@kernel
def radius_of(params: LinearParams, log_det: float, eigenvalue: float, noise_norm: float) -> float:
    """The confidence radius for ln(det V / lambda^d), and a bound on V's smallest eigenvalue."""
    sampling = params.subgaussian * np.sqrt(params.log_odds + params.widens * log_det) + params.bias
    return params.radius_scale * (sampling + noise_norm / np.sqrt(eigenvalue))


@kernel
def set_radius(params: LinearParams, public: LinUCBPublic, m: int) -> None:
    facts = public.facts
    log_det, eigenvalue = facts[FACTS.log_det, m], facts[FACTS.eigenvalue, m]
    facts[FACTS.radius, m] = radius_of(params, log_det, eigenvalue, params.noise_norm)
    facts[FACTS.spread, m] = params.radius_scale * params.spread


def init(params: LinearParams) -> tuple[Sums, LinUCBPublic]:
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
    return Sums(np.zeros(models * d)), public


@kernel
def tightness_of(params: LinearParams) -> float:
    """Of the bound on V's smallest eigenvalue.  Without noise in the radius, it only tells which
    arms need no index, and for the same choices any bound will do.
    """
    return 1e-6 if params.noise_norm > 0.0 and np.isnan(params.eigenvalue) else 0.1


@kernel
def choose_optimistic(
    params: LinearParams, public: LinUCBPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """Arg max of <x, estimate> + radius |x|_{V^-1}, and spread |V^-1 x| for the noise."""
    believed, inverse, work = public.estimate, public.inverse[0], public.scratch
    longest, radius = public.facts[FACTS.longest, 0], public.facts[FACTS.radius, 0]
    spread = params.radius_scale * params.spread
    return most_optimistic(contexts, believed, inverse, longest, radius, spread, work), 1.0


@kernel
def choose_optimistic_of_models(
    params: LinearParams, public: LinUCBPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of highest confidence bound, where each arm has a model of its own."""
    facts, believed, inverse = public.facts, public.estimate, public.inverse
    longest, radius, gap = facts[FACTS.longest], facts[FACTS.radius], facts[FACTS.gap]
    spread = facts[FACTS.spread]
    return most_optimistic_at_once(contexts, believed, inverse, longest, radius, gap, spread), 1.0


@kernel
def choose_sampled(
    params: LinearParams, public: LinUCBPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The best arm for one draw from N(estimate, radius^2 V^-1 + spread^2 V^-2) a model."""
    facts = public.facts
    sample, noise = public.scratch[0, : params.dimension], public.scratch[1, : params.dimension]
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if a < params.n_models:
            believed = public.estimate[block_of(a, params.dimension)]
            factor, inverse = public.factor[a], public.inverse[a]
            scatter, spread = facts[FACTS.radius, a], facts[FACTS.spread, a]
            prepare_draw(believed, factor, inverse, scatter, spread, sample, noise, rng)
        index = dot(contexts[a], sample)
        if index > best:
            best, arm = index, a
    return arm, np.nan


@kernel
def choose_divergent(
    params: LinearParams, public: LinUCBPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of least index, see ``exploration``."""
    facts, believed, inverse = public.facts, public.estimate, public.inverse
    longest, scatter, noise = facts[FACTS.longest], facts[FACTS.radius], facts[FACTS.gap]
    spread, rounds = facts[FACTS.spread], float(public.clock[CLOCK.rounds].sum())
    arm = least_divergent_at_once(
        params, contexts, believed, inverse, longest, scatter, noise, spread, rounds
    )
    return arm, 1.0


@kernel
def record_pull(params: LinearParams, public: LinUCBPublic, arm: int, x: Vector, n: int) -> None:
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
        # The inverse loses digits; an old eigenvalue stays a lower bound, with a wider radius.
        factor, known = public.factor[m], facts[FACTS.eigenvalue, m]
        known = smallest_eigenvalue(precision, known, tightness_of(params), factor, public.scratch)
        facts[FACTS.eigenvalue, m] = known
        facts[FACTS.longest, m] = inverse_norm_bound(precision, facts[FACTS.eigenvalue, m])
        factorise(precision, 0.0, factor, params.dimension)
        invert(factor, inverse, params.dimension)
        clock[CLOCK.refresh, m] = rounds + max(16, rounds // 8)


@kernel
def record_with_factor(
    params: LinearParams, public: LinUCBPublic, arm: int, x: Vector, n: int
) -> None:
    # A copy, since the update destroys it.
    work = public.scratch[1, : params.dimension]
    for i in range(x.size):
        work[i] = x[i]
    # First, because the next line may compute the factor anew, from a V that has x.
    update_factor(public.factor[model_of(params, arm)], work, n)
    record_pull(params, public, arm, x, n)


@kernel
def release_due(params: LinearParams, public: LinUCBPublic) -> bool:
    return public.clock[CLOCK.fresh].sum() > 0


@kernel
def publish(params: LinearParams, public: LinUCBPublic, memo: Vector, release: Vector) -> None:
    for m in range(params.n_models):
        block = block_of(m, params.dimension)
        multiply(public.inverse[m], release[block], public.estimate[block])
        set_radius(params, public, m)
        public.clock[CLOCK.fresh, m] = 0


def _kernels(choose: Kernel, record_pull: Kernel = record_pull) -> Kernels:
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


KERNELS = {
    Optimism: _kernels(choose_optimistic),
    Sampling: _kernels(choose_sampled, record_with_factor),
    Divergence: _kernels(choose_divergent),
}
OF_MODELS = KERNELS | {Optimism: _kernels(choose_optimistic_of_models)}
