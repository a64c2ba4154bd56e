"""Phases of elimination on a G-optimal design: which arms a phase plays, how often, and how sums of
rewards become estimated means.

``begin_phase`` finds a design of the arms left and plays it so often that every estimated mean is
known up to beta = 2^-l.  What is released in the end, and why ``REACH`` is its sensitivity, is told
in ``algorithms/phased.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...kernel import kernel
from .dense import dot, solve_lower, solve_upper
from .design import DesignSpace, find_span, optimise, refresh
from .quotas import FOREVER, LEFT, PHASE

# what is released; SMALLER of the variances of SUMS and WHITE
SUMS, WHITE, OUTPUT, SMALLER = range(4)
# how long a phase is: one Gaussian tail bound; eq. (4); a tail bound with Laplace noise
CHERNOFF, PUBLISHED, HEAVY = range(3)

ARMS, RANK, SHAPE, PLAYED = range(LEFT + 1, 6)
REACH, WIDTH, VARIANCE, LARGEST, HALF = range(5)

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
    # (6,) phase from 1; rounds left; arms alive, their rank, the release's shape, and arms played
    clock: np.ndarray
    # (5,) see ``_measure``; and the half-width of the phase's confidence intervals
    measures: np.ndarray
    # (K, d) what a unit of reward of an arm adds to the statistic, or with SUMS to z of ``publish``
    encode: np.ndarray
    decode: np.ndarray  # (K, d) an arm's estimated mean is the inner product with z
    rows: np.ndarray  # from here on the fields of ``DesignSpace``
    order: np.ndarray
    pivots: np.ndarray
    residuals: np.ndarray
    frame: np.ndarray
    points: np.ndarray
    weights: np.ndarray
    widths: np.ndarray
    scratch: np.ndarray
    factor: np.ndarray
    inverse: np.ndarray
    image: np.ndarray
    basis: np.ndarray


_SPACE = PhasedPublic._fields.index("rows")


@kernel
def _space_of(public):
    """The part of the public side that designs are found in."""
    return DesignSpace(*public[_SPACE:])


@kernel
def _encode(public, n, rank, shape):
    """Fill ``encode`` and ``decode`` of the arms left, for the V that was factorised last."""
    for k in range(n):
        arm = public.rows[k]
        into, out = public.encode[arm], public.decode[arm]
        for i in range(rank):
            into[i] = public.points[k, i]
        solve_lower(public.factor, into, rank)
        if shape != OUTPUT:
            for i in range(rank):
                out[i] = into[i]
            continue
        solve_upper(public.factor, into, rank)
        for i in range(rank):  # from coordinates with respect to the pivots to orthonormal ones
            for j in range(i):
                into[i] -= public.frame[public.pivots[i], j] * into[j]
            into[i] /= public.frame[public.pivots[i], i]
            out[i] = public.frame[k, i]


@kernel
def _normalise(params, public, n, rank):
    """Divide ``encode`` by its largest norm over the played arms; the sensitivity that is left, per
    unit of hi - lo.

    That is 1, and on a grid one step in each coordinate more.  To this come the rounding errors of
    a coordinate before it is rounded to the grid: it is a sum of products whose sizes add up to
    less than the rounds of the phase times the largest reward.
    """
    largest, rounds, terms = 0.0, 0.0, 2.0
    for k in range(n):
        if public.weights[k] > 0.0:
            row = public.encode[public.rows[k]]
            largest = max(largest, dot(row, row, rank))
            rounds += public.weights[k]
            terms += 1.0
    largest = np.sqrt(largest)
    for k in range(n):
        for i in range(rank):
            public.encode[public.rows[k], i] /= largest
            public.decode[public.rows[k], i] *= largest
    if params.grid == 0.0:
        return 1.0
    step = params.grid + 2.0 * terms * _ULP * rounds * params.magnitude
    return 1.0 + terms * rank * _ULP + np.sqrt(float(rank)) * step / params.width


@kernel
def _measure(params, public, n, rank, shape):
    """Fill ``encode``, ``decode`` and ``measures`` for the V at hand: what one unit of reward, and
    of noise on a sum, can do.

    REACH: the sensitivity, per unit of hi - lo.  WIDTH: the largest |a|^2_{V^-1} of an arm left.
    VARIANCE: the largest variance of an
    estimated mean, per unit of noise variance on a sum.  LARGEST: the largest coefficient of a
    single noise variable in SUMS.
    """
    _encode(public, n, rank, shape)
    reach = 1.0 if shape == SUMS else _normalise(params, public, n, rank)
    width = variance = largest = 0.0
    for k in range(n):
        width = max(width, public.widths[k])
        out, total = public.decode[public.rows[k]], 0.0
        if shape == SUMS:
            for j in range(n):
                if public.weights[j] > 0.0:
                    part = dot(out, public.encode[public.rows[j]], rank)
                    total += part * part
                    largest = max(largest, abs(part))
        else:
            total = dot(out, out, rank) * reach * reach
        variance = max(variance, total)
    measures = public.measures
    measures[REACH], measures[WIDTH], measures[VARIANCE], measures[LARGEST] = (
        reach,
        width,
        variance,
        largest,
    )


@kernel
def _log_failures(params, phase, numerator):
    """ln(numerator / delta_{K,l}) with delta_{K,l} = delta / (K l (l + 1))."""
    return np.log(numerator * params.n_arms * phase * (phase + 1.0) / params.failure_probability)


@kernel
def _half_width(params, public):
    """The half-width of the confidence interval for a mean, each of whose ends fails with
    probability delta_{K,l} / 2.

    With Gaussian noise the error of an estimated mean is subgaussian with variance v = s^2 g + n^2
    q, where g is the largest |a|^2_{V^-1}, q the noise variance per unit and n the noise scale:
    sqrt(2 L v) with L = ln(2 / delta_{K,l}).

    With Laplace noise of coefficients w_b, ln E e^{tX} <= t^2 s^2 g / 2 - sum ln(1 - (t n w_b)^2),
    and -ln(1 - u) <= 2 u ln 2 for u <= 1/2: a bound t^2 v / 2 with v = s^2 g + 4 ln 2 n^2 q for t
    <= 1 / (sqrt 2 n max |w_b|).  The best such t gives the width min_t L / t + t v / 2 (Chernoff).
    """
    log, measures = _log_failures(params, public.clock[PHASE], 2.0), public.measures
    sampling, noise = (
        params.variance_proxy * measures[WIDTH],
        params.noise_scale * np.sqrt(measures[VARIANCE]),
    )
    if params.rule != HEAVY:
        return np.sqrt(2.0 * log) * np.hypot(np.sqrt(sampling), noise)
    deviation = np.hypot(np.sqrt(sampling), np.sqrt(4.0 * np.log(2.0)) * noise)
    steepness = np.sqrt(2.0) * params.noise_scale * measures[LARGEST]  # one over the largest t
    if deviation >= steepness * np.sqrt(2.0 * log):
        return np.sqrt(2.0 * log) * deviation
    return log * steepness + 0.5 * deviation * (deviation / steepness)


@kernel
def _length(params, public, rank):
    """c such that playing every arm c pi(a) times, were it an integer, makes the half-width beta =
    2^-l; measures are those of pi.

    All measures scale with c: g / c, q / c^2, w / c.  For Gaussian noise 2 L (s^2 g / c + n^2 q /
    c^2) = beta^2 is quadratic in 1 / c: c = (L s^2 g + sqrt(L^2 s^4 g^2 + 2 L n^2 q beta^2)) /
    beta^2.  In the other regime of Laplace noise ``_half_width`` is linear in 1 / c.

    Eq. (4) of the paper, in the same terms: c = (8 g s^2 / beta^2) ln(4 / delta_{K,l}) + (2 g /
    beta) n sqrt(f), with f = r + 2 sqrt(r ln(2 / delta_{K,l})) + 2 ln(2 / delta_{K,l}); for rewards
    in [-1, 1], n^2 = 2 / rho.
    """
    phase, measures = public.clock[PHASE], public.measures
    beta, log = params.unit * 2.0**-phase, _log_failures(params, phase, 2.0)
    sampling, noise = (
        params.variance_proxy * measures[WIDTH],
        params.noise_scale * np.sqrt(measures[VARIANCE]),
    )
    if params.rule == PUBLISHED:
        f = rank + 2.0 * np.sqrt(rank * log) + 2.0 * log
        privacy = params.noise_scale * measures[WIDTH] * np.sqrt(f)
        return (
            8.0 * sampling * _log_failures(params, phase, 4.0) / beta / beta + 2.0 * privacy / beta
        )
    if params.rule == HEAVY:
        noise *= np.sqrt(4.0 * np.log(2.0))
    c = (log * sampling / beta + np.hypot(log * sampling / beta, np.sqrt(2.0 * log) * noise)) / beta
    if params.rule == HEAVY:
        steepness = np.sqrt(2.0) * params.noise_scale * measures[LARGEST]
        if np.hypot(np.sqrt(sampling * c), noise) < steepness * np.sqrt(2.0 * log):
            return (log * steepness + 0.5 * noise * (noise / steepness)) / (
                beta - 0.5 * sampling / steepness
            )
    return c


@kernel
def _lay_out(params, public, n, rank):
    """Set the rounds of every arm in the phase.

    Rounding up enlarges V.  That shortens |a|_{V^-1}, but not always the other norms: the
    half-width is computed again for whole rounds, and the phase made longer until it is at most
    beta.  Lengths of eq. (4) stay as published.
    """
    clock, beta, shape = public.clock, params.unit * 2.0 ** -public.clock[PHASE], params.shape
    for k in range(n):
        public.weights[k] = public.share[public.rows[k]]
    refresh(_space_of(public), n, rank)
    if shape == SMALLER:
        _measure(params, public, n, rank, np.int64(WHITE))
        variance = public.measures[VARIANCE]
        _measure(params, public, n, rank, np.int64(SUMS))
        shape = np.int64(SUMS if public.measures[VARIANCE] <= variance * _ENOUGH else WHITE)
    _measure(params, public, n, rank, shape)
    clock[SHAPE] = shape
    c, most = _length(params, public, rank), float(FOREVER // params.n_arms)
    for _ in range(_LENGTHENINGS):
        longest = 0.0
        for k in range(n):
            wanted = np.ceil(c * public.share[public.rows[k]])
            public.weights[k] = (
                min(max(wanted, 1.0), most) if public.share[public.rows[k]] > 0.0 else 0.0
            )
            longest = max(longest, public.weights[k])
        refresh(_space_of(public), n, rank)
        _measure(params, public, n, rank, shape)
        public.measures[HALF] = _half_width(params, public)
        if params.rule == PUBLISHED or longest >= most or public.measures[HALF] <= beta * _ENOUGH:
            break
        c *= min(max(public.measures[HALF] / beta, 1.001), 2.0)
    clock[LEFT] = clock[PLAYED] = 0
    for k in range(n):
        arm = public.rows[k]
        if public.weights[k] > 0.0:
            public.goal[arm] = np.int64(public.weights[k])
            clock[LEFT] += public.goal[arm]
            public.support[clock[PLAYED]] = arm
            clock[PLAYED] += 1


@kernel
def begin_phase(params, public):
    """Begin the next phase.  An arm that is alone is played for ever; so is the first one, if all
    are zero.
    """
    # (a plain 0 would compile all that takes n once more)
    clock, n, space = (
        public.clock,
        np.int64(0),
        _space_of(public),
    )
    clock[PHASE] += 1
    for a in range(params.n_arms):
        public.goal[a] = public.played[a] = 0
        if public.alive[a]:
            public.rows[n] = a
            n += 1
    if n != clock[ARMS]:  # the same arms have the same design
        clock[ARMS] = n
        clock[RANK] = find_span(params.arms, space, n) if n > 1 else 0
        if clock[RANK] > 0 and n < params.n_arms:
            optimise(space, n, clock[RANK], params.tolerance)
            for k in range(n):
                public.share[public.rows[k]] = public.weights[k]
    if clock[RANK] == 0:
        public.measures[REACH] = 1.0
        public.goal[public.rows[0]] = clock[LEFT] = FOREVER
        return
    _lay_out(params, public, n, clock[RANK])
