"""Both sides of LinUCB with dynamic global sensitivity, and its kernels; see ``dgs``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...algorithms.bases.contextual import within_bound
from ...algorithms.bases.linear import accumulate, estimate
from ...algorithms.linear.every_answer import CLOCK
from ...algorithms.maths.dense import factorise, invert
from ...algorithms.maths.ridge import (
    add_observation,
    inverse_norm_bound,
    multiply,
    smallest_eigenvalue,
)
from ...kernel import Generator, Matrix, Vector, kernel, unbound
from ...policies import Kernels

PUBLISHED, LEMMA, TIGHT, AS_CODED = range(4)
SENSITIVITIES = {"published": PUBLISHED, "lemma": LEMMA, "tight": TIGHT, "as_coded": AS_CODED}

DEGENERATE = 1e-12  # of eigenvalues: what is less, relative to others, is rounding


class LinUCBDGSParams(NamedTuple):
    n_arms: int
    dimension: int
    context_bound: float
    ridge: float  # lambda
    calibration: int  # of the sensitivity
    movement: float  # (hi - lo) L, with L the bound on features
    eigenvalue: float  # lambda_0, the least eigenvalue of E[x x^T]; nan where it is not used
    log_odds: float  # ln(1/delta') of Lemma 1
    # standard deviation of the noise on every coordinate of every feature vector
    perturbation: float
    subgaussian: float  # s: how far rewards scatter around their mean
    growth: float  # L^2 lambda
    log_failure: float  # ln(1/zeta)
    bias: float  # sqrt(lambda) times the bound on |theta|
    noise: float  # (hi - lo) / 2 times L / epsilon times ln(1/zeta)
    log_horizon: float  # ln T; nan where T is not known
    radius_scale: float  # 0 for greedy choices
    grid: float  # 0: sums are not rounded


class LinUCBDGSRaw(NamedTuple):
    total: np.ndarray  # (d,) sum of x * reward
    estimate: np.ndarray  # (d,) A^-1 moment at the last release


class LinUCBDGSPublic(NamedTuple):
    precision: np.ndarray  # (d, d) A
    inverse: np.ndarray  # (d, d)
    factor: np.ndarray  # (d, d) scratch
    estimate: np.ndarray  # (d,) the released estimate
    facts: np.ndarray  # (2,)
    clock: np.ndarray  # (3,) as that of ``LinUCBPublic``
    scratch: np.ndarray  # (3, max(d, K))


class Facts(NamedTuple):
    """Slots of ``LinUCBDGSPublic.facts``."""

    eigenvalue: int = 0  # a lower bound on A's smallest
    radius: int = 1


FACTS = Facts()

most_optimistic = unbound  # of few or of many features


@kernel
def lemma_eigenvalue(t: float, eigenvalue: float, log_odds: float) -> float:
    """lambda' of Lemma 1, claimed to be below A_t's least eigenvalue, except with probability
    e^-log_odds.
    """
    log = np.log(t + 3.0) + log_odds
    return 0.25 * eigenvalue * t - 8.0 * log - 2.0 * np.sqrt(t * log)


@kernel
def published_sensitivity(params: LinUCBDGSParams, t: float, smallest: float) -> float:
    """Delta_t; ``smallest`` is the least eigenvalue of A_t, which only the tight form looks at."""
    if params.calibration == AS_CODED:
        return 1.0 / t
    if params.calibration == PUBLISHED:
        smallest = params.eigenvalue * t / 16.0
    elif params.calibration == LEMMA:
        smallest = lemma_eigenvalue(t, params.eigenvalue, params.log_odds)
    return params.movement / smallest


@kernel
def set_radius(params: LinUCBDGSParams, public: LinUCBDGSPublic) -> None:
    """Eq. (4) for rewards in [-1, 1], others in proportion; for T unknown, ln T is ln t."""
    t = public.clock[CLOCK.rounds] + 1.0
    log = np.log(t) if np.isnan(params.log_horizon) else params.log_horizon
    noise = params.noise * log * np.sqrt(np.log(t)) / np.sqrt(t)
    sampling = params.subgaussian * np.sqrt(
        params.dimension * (np.log(1.0 + t * params.growth) + params.log_failure)
    )
    public.facts[FACTS.radius] = params.radius_scale * (noise + sampling + params.bias)


def init(params: LinUCBDGSParams) -> tuple[LinUCBDGSRaw, LinUCBDGSPublic]:
    d = params.dimension
    public = LinUCBDGSPublic(
        precision=np.eye(d) * params.ridge,
        inverse=np.eye(d) / params.ridge,
        factor=np.zeros((d, d)),
        estimate=np.zeros(d),
        facts=np.array([params.ridge, 0.0]),
        clock=np.array([0, 0, 16]),
        scratch=np.zeros((3, max(d, params.n_arms))),
    )
    set_radius(params, public)
    return LinUCBDGSRaw(np.zeros(d), np.zeros(d)), public


@kernel
def restart(params: LinUCBDGSParams, raw: LinUCBDGSRaw, public: LinUCBDGSPublic) -> None:
    """The sums from which the released estimate would follow: increments go on from there."""
    multiply(public.precision, public.estimate, raw.total)
    for i in range(raw.estimate.size):
        raw.estimate[i] = public.estimate[i]


@kernel
def preprocess_contexts(
    params: LinUCBDGSParams, contexts: Matrix, seen: Matrix, rng: Generator
) -> None:
    """Corollary 1: normal noise on coordinates; then within the bound, which the paper lacks."""
    for a in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            seen[a, i] = contexts[a, i]
            if params.perturbation > 0.0:
                seen[a, i] += params.perturbation * rng.standard_normal()
    # After the noise, because the sensitivity is that of the features that are used.
    within_bound(params, seen, seen, rng)


@kernel
def choose(
    params: LinUCBDGSParams, public: LinUCBDGSPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of highest <x, estimate> + radius |x|_{A^-1}."""
    believed, inverse, work = public.estimate, public.inverse, public.scratch
    longest = inverse_norm_bound(public.precision, params.ridge)
    radius = public.facts[FACTS.radius]
    return most_optimistic(contexts, believed, inverse, longest, radius, 0.0, work), 1.0


@kernel
def record_pull(
    params: LinUCBDGSParams, public: LinUCBDGSPublic, arm: int, x: Vector, n: int
) -> None:
    clock = public.clock
    add_observation(public.precision, public.inverse, x, n, public.scratch[0])
    clock[CLOCK.rounds] += n
    clock[CLOCK.fresh] += n
    if clock[CLOCK.rounds] >= clock[CLOCK.refresh]:
        # The inverse loses digits with every update.
        factorise(public.precision, 0.0, public.factor, params.dimension)
        invert(public.factor, public.inverse, params.dimension)
        clock[CLOCK.refresh] = clock[CLOCK.rounds] + max(16, clock[CLOCK.rounds] // 8)
    if params.calibration == TIGHT:
        public.facts[FACTS.eigenvalue] = smallest_eigenvalue(
            public.precision, params.ridge, 1e-6, public.factor, public.scratch
        )


@kernel
def release_due(params: LinUCBDGSParams, public: LinUCBDGSPublic) -> bool:
    return public.clock[CLOCK.fresh] > 0


@kernel
def sensitivity(params: LinUCBDGSParams, public: LinUCBDGSPublic, norm: int) -> float:
    """Delta_t as published: an L2 bound on the estimate, for Laplace noise on an increment."""
    rounds = float(public.clock[CLOCK.rounds])
    return published_sensitivity(params, rounds, public.facts[FACTS.eigenvalue])


@kernel
def summarise(
    params: LinUCBDGSParams,
    raw: LinUCBDGSRaw,
    public: LinUCBDGSPublic,
    memo: Vector,
    statistic: Vector,
) -> None:
    """The increment of the estimate; all that it is made of is kept, for later increments."""
    multiply(public.inverse, raw.total, statistic)
    for i in range(statistic.size):
        fresh = statistic[i]
        statistic[i] -= raw.estimate[i]
        raw.estimate[i] = fresh


@kernel
def publish(
    params: LinUCBDGSParams, public: LinUCBDGSPublic, memo: Vector, release: Vector
) -> None:
    for i in range(release.size):
        public.estimate[i] = release[i]
    public.clock[CLOCK.fresh] = 0
    set_radius(params, public)


KERNELS = Kernels(
    init=init,
    preprocess_contexts=preprocess_contexts,
    choose=choose,
    record_pull=record_pull,
    accumulate=accumulate,
    release_due=release_due,
    sensitivity=sensitivity,
    summarise=summarise,
    publish=publish,
    estimate=estimate,
    restart=restart,
)
