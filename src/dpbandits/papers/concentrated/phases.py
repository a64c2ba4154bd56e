"""Phases of elimination on a G-optimal design: choose arms and rounds, and turn sums of rewards
into estimated means.

``begin_phase`` finds a design of the remaining arms, and plays it until every estimated mean is
known up to beta = 2^-l.  ``gope.py`` describes the release at the end, and proves that ``reach`` is
its sensitivity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...algorithms.bases.quotas import FOREVER
from ...algorithms.maths.dense import solve_lower, solve_upper
from ...kernel import kernel, outlined
from .design import DesignSpace, dot, find_span, new_space, optimise, refresh, support_limit

# what is released; SMALLER of the variances of SUMS and WHITE
SUMS, WHITE, OUTPUT, SMALLER = range(4)
# how long a phase is: one Gaussian tail bound; eq. (4); a tail bound with Laplace noise
CHERNOFF, PUBLISHED, HEAVY = range(3)

_ENOUGH = 1.0 + 1e-9  # rounding
_ULP = 2.0**-52
_LENGTHENINGS = 64


class PhasedParams(NamedTuple):
    n_arms: int
    arms: np.ndarray  # (K, d)
    failure_probability: float
    variance_proxy: float  # s^2, of one reward
    width: float  # hi - lo
    # of half-widths beta = unit 2^-l: 1, or half the width of rewards that differ by more than 2
    unit: float
    magnitude: float  # max(|lo|, |hi|)
    grid: float  # of which releases are multiples; 0 for any
    noise_scale: float  # of the noise on a sum: standard deviation (Gaussian) or scale (Laplace)
    first: np.ndarray  # (K,) the design of all arms
    shape: int
    rule: int
    tolerance: float  # of the designs


class PhasedPublic(NamedTuple):
    alive: np.ndarray  # (K,) bool
    estimate: np.ndarray  # (K,) released mean, of the last phase in which the arm was alive
    share: np.ndarray  # (K,) the phase's design
    goal: np.ndarray  # (K,) rounds of each arm in the phase
    played: np.ndarray  # (K,) how many of them are over
    support: np.ndarray  # (S,) the arms that the phase plays
    clock: np.ndarray  # (6,)
    measures: np.ndarray  # (5,)
    # (K, d) what a unit of reward of an arm adds to the statistic, or with SUMS to z of ``publish``
    encode: np.ndarray
    decode: np.ndarray  # (K, d) an arm's estimated mean is the inner product with z
    space: DesignSpace


class Clock(NamedTuple):
    """Slots of ``PhasedPublic.clock``: those of ``quotas``, and more."""

    phase: int = 0  # from 1
    left: int = 1  # rounds of the phase
    arms: int = 2  # alive
    rank: int = 3  # of those
    shape: int = 4  # of the release
    played: int = 5  # arms that the phase plays


class Measures(NamedTuple):
    """Slots of ``PhasedPublic.measures``: effects of a unit of reward, and of noise on a sum."""

    reach: int = 0  # the sensitivity, per unit of hi - lo
    width: int = 1  # the largest |a|^2_{V^-1} of an arm left
    variance: int = 2  # the largest of an estimated mean, per unit of noise variance on a sum
    largest: int = 3  # the largest coefficient of a single noise variable in SUMS
    half: int = 4  # the half-width of the phase's confidence intervals


CLOCK, MEASURES = Clock(), Measures()


def first_phase(params: PhasedParams) -> PhasedPublic:
    """The public side of a fresh policy."""
    k, d = params.arms.shape
    public = PhasedPublic(
        alive=np.ones(k, np.bool_),
        estimate=np.zeros(k),
        share=params.first.copy(),
        goal=np.zeros(k, np.int64),
        played=np.zeros(k, np.int64),
        support=np.zeros(support_limit(k, d), np.int64),
        clock=np.zeros(6, np.int64),
        measures=np.zeros(5),
        encode=np.zeros((k, d)),
        decode=np.zeros((k, d)),
        space=new_space(k, d),
    )
    begin_phase(params, public)
    return public


@kernel
def _encode(public: PhasedPublic, n: int, rank: int, shape: int) -> None:
    """Fill ``encode`` and ``decode`` of the arms left, for the V that was factorised last."""
    space = public.space
    for k in range(n):
        arm = space.rows[k]
        into, out = public.encode[arm], public.decode[arm]
        for i in range(rank):
            into[i] = space.points[k, i]
        solve_lower(space.factor, into, rank)
        if shape != OUTPUT:
            for i in range(rank):
                out[i] = into[i]
            continue
        solve_upper(space.factor, into, rank)
        for i in range(rank):  # from coordinates with respect to the pivots to orthonormal ones
            for j in range(i):
                into[i] -= space.frame[space.pivots[i], j] * into[j]
            into[i] /= space.frame[space.pivots[i], i]
            out[i] = space.frame[k, i]


@kernel
def _normalise(params: PhasedParams, public: PhasedPublic, n: int, rank: int) -> float:
    """Divide ``encode`` by its largest norm over played arms; the sensitivity per unit of hi - lo.

    That is 1, and on a grid one step in each coordinate more.  It also includes the rounding errors
    of a coordinate before it is rounded to the grid.  A coordinate is a sum of products whose sizes
    add up to less than the rounds of the phase times the largest reward.
    """
    space, largest, rounds, terms = public.space, 0.0, 0.0, 2.0
    for k in range(n):
        if space.weights[k] > 0.0:
            row = public.encode[space.rows[k]]
            largest = max(largest, dot(row, row, rank))
            rounds += space.weights[k]
            terms += 1.0
    largest = np.sqrt(largest)
    for k in range(n):
        for i in range(rank):
            public.encode[space.rows[k], i] /= largest
            public.decode[space.rows[k], i] *= largest
    if params.grid == 0.0:
        return 1.0
    step = params.grid + 2.0 * terms * _ULP * rounds * params.magnitude
    return 1.0 + terms * rank * _ULP + np.sqrt(float(rank)) * step / params.width


@kernel
def _measure(params: PhasedParams, public: PhasedPublic, n: int, rank: int, shape: int) -> None:
    """Fill ``encode``, ``decode`` and ``measures``, except the half-width, for the current V."""
    space = public.space
    _encode(public, n, rank, shape)
    reach = 1.0 if shape == SUMS else _normalise(params, public, n, rank)
    width = variance = largest = 0.0
    for k in range(n):
        width = max(width, space.widths[k])
        out, total = public.decode[space.rows[k]], 0.0
        if shape == SUMS:
            for j in range(n):
                if space.weights[j] > 0.0:
                    part = dot(out, public.encode[space.rows[j]], rank)
                    total += part * part
                    largest = max(largest, abs(part))
        else:
            total = dot(out, out, rank) * reach * reach
        variance = max(variance, total)
    measures = public.measures
    measures[MEASURES.reach], measures[MEASURES.width] = reach, width
    measures[MEASURES.variance], measures[MEASURES.largest] = variance, largest


@kernel
def _log_failures(params: PhasedParams, phase: int, numerator: float) -> float:
    """ln(numerator / delta_{K,l}) with delta_{K,l} = delta / (K l (l + 1))."""
    return np.log(numerator * params.n_arms * phase * (phase + 1.0) / params.failure_probability)


@kernel
def _half_width(params: PhasedParams, public: PhasedPublic) -> float:
    """The half-width of the confidence interval for a mean; each end fails with probability
    delta_{K,l} / 2.

    With Gaussian noise the error of an estimated mean is subgaussian with variance v = s^2 g + n^2
    q. Here g is the largest |a|^2_{V^-1}, q the noise variance per unit, and n the noise scale.
    The half-width is sqrt(2 L v) with L = ln(2 / delta_{K,l}).

    With Laplace noise of coefficients w_b, ln E e^{tX} <= t^2 s^2 g / 2 - sum ln(1 - (t n w_b)^2).
    Also -ln(1 - u) <= 2 u ln 2 for u <= 1/2.  This gives a bound t^2 v / 2 with v = s^2 g + 4 ln 2
    n^2 q, for t <= 1 / (sqrt 2 n max |w_b|).  The best such t gives the width min_t L / t + t v / 2
    (Chernoff).
    """
    log, measures = _log_failures(params, public.clock[CLOCK.phase], 2.0), public.measures
    sampling = params.variance_proxy * measures[MEASURES.width]
    noise = params.noise_scale * np.sqrt(measures[MEASURES.variance])
    if params.rule != HEAVY:
        return np.sqrt(2.0 * log) * np.hypot(np.sqrt(sampling), noise)
    deviation = np.hypot(np.sqrt(sampling), np.sqrt(4.0 * np.log(2.0)) * noise)
    steepness = (
        np.sqrt(2.0) * params.noise_scale * measures[MEASURES.largest]
    )  # one over the largest t
    if deviation >= steepness * np.sqrt(2.0 * log):
        return np.sqrt(2.0 * log) * deviation
    return log * steepness + 0.5 * deviation * (deviation / steepness)


@kernel
def _length(params: PhasedParams, public: PhasedPublic, rank: int) -> float:
    """c such that playing every arm c pi(a) times, were it an integer, makes the half-width beta =
    2^-l; measures are those of pi.

    All measures scale with c: g / c, q / c^2, w / c.  For Gaussian noise c is that of ``AdaCGOPE``.
    In the other regime of Laplace noise ``_half_width`` is linear in 1 / c.

    Eq. (4) of the paper, in these terms: c = (8 g s^2 / beta^2) ln(4 / delta_{K,l}) + (2 g / beta)
    n sqrt(f). Here f = r + 2 sqrt(r ln(2 / delta_{K,l})) + 2 ln(2 / delta_{K,l}).  For rewards in
    [-1, 1], n^2 = 2 / rho.
    """
    phase, measures = public.clock[CLOCK.phase], public.measures
    beta, log = params.unit * 2.0**-phase, _log_failures(params, phase, 2.0)
    sampling = params.variance_proxy * measures[MEASURES.width]
    noise = params.noise_scale * np.sqrt(measures[MEASURES.variance])
    if params.rule == PUBLISHED:
        f = rank + 2.0 * np.sqrt(rank * log) + 2.0 * log
        privacy = params.noise_scale * measures[MEASURES.width] * np.sqrt(f)
        sure = 8.0 * sampling * _log_failures(params, phase, 4.0)
        return sure / beta / beta + 2.0 * privacy / beta
    if params.rule == HEAVY:
        noise *= np.sqrt(4.0 * np.log(2.0))
    c = (log * sampling / beta + np.hypot(log * sampling / beta, np.sqrt(2.0 * log) * noise)) / beta
    if params.rule == HEAVY:
        steepness = np.sqrt(2.0) * params.noise_scale * measures[MEASURES.largest]
        if np.hypot(np.sqrt(sampling * c), noise) < steepness * np.sqrt(2.0 * log):
            return (log * steepness + 0.5 * noise * (noise / steepness)) / (
                beta - 0.5 * sampling / steepness
            )
    return c


@kernel
def _lay_out(params: PhasedParams, public: PhasedPublic, n: int, rank: int) -> None:
    """Set the rounds of every arm in the phase.

    Rounding up enlarges V.  That shortens |a|_{V^-1}, but not always the other norms: the
    half-width is computed again for whole rounds, and the phase made longer until it is at most
    beta.  Lengths of eq. (4) stay as published.
    """
    clock, space, shape = public.clock, public.space, params.shape
    beta = params.unit * 2.0 ** -clock[CLOCK.phase]
    for k in range(n):
        space.weights[k] = public.share[space.rows[k]]
    refresh(space, n, rank)
    if shape == SMALLER:
        _measure(params, public, n, rank, np.int64(WHITE))
        variance = public.measures[MEASURES.variance]
        _measure(params, public, n, rank, np.int64(SUMS))
        fewer = public.measures[MEASURES.variance] <= variance * _ENOUGH
        # Both variances follow from the design, which is public.
        shape = int(SUMS if fewer else WHITE)
    _measure(params, public, n, rank, shape)
    clock[CLOCK.shape] = shape
    c, most = _length(params, public, rank), float(FOREVER // params.n_arms)
    for _ in range(_LENGTHENINGS):
        longest = 0.0
        for k in range(n):
            share = public.share[space.rows[k]]
            space.weights[k] = min(max(np.ceil(c * share), 1.0), most) if share > 0.0 else 0.0
            longest = max(longest, space.weights[k])
        refresh(space, n, rank)
        _measure(params, public, n, rank, shape)
        public.measures[MEASURES.half] = _half_width(params, public)
        if (
            params.rule == PUBLISHED
            or longest >= most
            or public.measures[MEASURES.half] <= beta * _ENOUGH
        ):
            break
        # By a thousandth at least, or the search might stand still next to beta.
        c *= min(max(public.measures[MEASURES.half] / beta, 1.001), 2.0)
    clock[CLOCK.left] = clock[CLOCK.played] = 0
    for k in range(n):
        arm = space.rows[k]
        if space.weights[k] > 0.0:
            public.goal[arm] = np.int64(space.weights[k])
            clock[CLOCK.left] += public.goal[arm]
            public.support[clock[CLOCK.played]] = arm
            clock[CLOCK.played] += 1


@outlined
def begin_phase(params: PhasedParams, public: PhasedPublic) -> None:
    """Begin the next phase.  An arm alone is played for ever; the first one, if all are zero."""
    # An int64: with the type of a plain 0 all kernels that take n would be compiled once more.
    clock, space, n = public.clock, public.space, np.int64(0)
    clock[CLOCK.phase] += 1
    for a in range(params.n_arms):
        public.goal[a] = public.played[a] = 0
        if public.alive[a]:
            space.rows[n] = a
            n += 1
    if n != clock[CLOCK.arms]:  # the same arms have the same design
        clock[CLOCK.arms] = n
        clock[CLOCK.rank] = find_span(params.arms, space, n) if n > 1 else 0
        if clock[CLOCK.rank] > 0 and n < params.n_arms:
            optimise(space, n, clock[CLOCK.rank], params.tolerance)
            for k in range(n):
                public.share[space.rows[k]] = space.weights[k]
    if clock[CLOCK.rank] == 0:
        public.measures[MEASURES.reach] = 1.0
        public.goal[space.rows[0]] = clock[CLOCK.left] = FOREVER
        return
    _lay_out(params, public, n, clock[CLOCK.rank])
