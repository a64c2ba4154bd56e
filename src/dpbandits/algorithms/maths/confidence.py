"""Confidence radii of linear bandits on noisy statistics.

Let V = lambda I + sum x x^T and b~ = sum x r + N, where N is the noise of the release.  The error
V^-1 b~ - theta has three terms, and in the V-norm (Abbasi-Yadkori, Pal & Szepesvari 2011, Theorem
2)

    |V^-1 b~ - theta|_V  <=  s sqrt(2 ln(1/p) + ln(det V / lambda^d))  +  sqrt(lambda) |theta|  +
    |N|_{V^-1}.

V and later features depend on earlier noise, through the choices.  So N is not independent of V,
and no chi-squared law holds for the last term.  But |N|_{V^-1} <= |N| / sqrt(lambda_min(V)) always
holds, with |N| bounded for all releases at once.

The law of noise is known and does not depend on data.  Its quantiles are exact, or nearly so; only
the failures of several releases are added up.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from ...kernel import kernel

LN2 = math.log(2.0)
_NODES = 64  # of a Gauss rule: digits enough for any quantile
_HALVINGS = 40
_GRID = 4000
_STARTS = 2000  # that are compared, at steps of 0.7 %
_WIDEST_DENSITY = 200  # dimensions; Hermite functions fall below the smallest float beyond


@lru_cache(256)  # a simulation makes the same policy for every run
def gaussian_norm(
    dimension: int, std: float, releases: int, probability: float, axis: float | None = None
) -> float:
    """Bound on the norms of ``releases`` normal vectors, however dependent, with probability 1 -
    ``probability``.  Each vector has an equal share of the failures.  ``std`` is the largest
    standard deviation of a coordinate in any release, ``axis`` a larger one along a single
    direction.

    |z|^2 follows a chi square law of d degrees of freedom, or d - 1 given the axis, integrated out.
    """
    share = probability / releases
    quantile = math.sqrt(2.0 * special.gammainccinv(0.5 * dimension, share))
    axis = std if axis is None else axis
    if axis == std or dimension == 1:
        return axis * quantile
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)

    def tail(norm: float) -> float:
        along = 0.5 * norm * (nodes + 1.0)  # the other half is alike
        density = np.exp(-0.5 * (along / axis) ** 2) / (axis * math.sqrt(2.0 * math.pi))
        rest = special.gammaincc(0.5 * (dimension - 1), 0.5 * (norm**2 - along**2) / std**2)
        # The second term: the axis alone is longer than the norm.
        return norm * float(weights @ (density * rest)) + 2.0 * float(special.ndtr(-norm / axis))

    low, high = std * quantile, axis * quantile
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tail(middle) > share else (low, middle)
    return high


class Walk(NamedTuple):  # a bound on all sums of independent normal vectors, see ``walk_norm``
    along: float  # the variance of each along an axis
    across: float  # the same in all other directions
    start_along: float
    start_across: float
    log_odds: float  # 2 ln(1 / probability)


@kernel
def walk_norm(walk: Walk, dimension: int, steps: float) -> float:
    """Bound on |z|, z a sum of vectors, for all numbers of summands at once.

    Averaging exp(<h, z> - E <h, z>^2 / 2) over normal h gives the positive martingale

        prod_i (1 + steps / start_i)^(-1/2) exp(z_i^2 / (2 variance_i (steps + start_i))) ,

    which starts at 1 and ever exceeds 1 / p with probability at most p (Robbins 1970; Ville).
    """
    growth = walk.log_odds + np.log1p(steps / walk.start_along)
    growth += (dimension - 1) * np.log1p(steps / walk.start_across)
    along, across = steps + walk.start_along, steps + walk.start_across
    return np.sqrt(max(walk.along * along, walk.across * across) * growth)


def planned_walk(
    dimension: int, along: float, across: float, steps: float, probability: float
) -> Walk:
    """The walk whose bound is least at ``steps``, for variances ``along`` of at least ``across``.

    At its best both variances times (steps + start) are equal there.
    """
    ratio = along / across if across > 0.0 else 1.0
    log_odds = -2.0 * math.log(probability)
    starts = steps * np.geomspace(1e-5, 20.0, _STARTS)
    others = ratio * (steps + starts) - steps
    growth = log_odds + np.log1p(steps / starts) + (dimension - 1) * np.log1p(steps / others)
    best = int(np.argmin((steps + starts) * growth))
    return Walk(along, across, float(starts[best]), float(others[best]), log_odds)


@lru_cache(256)
def symmetric_norm(dimension: int, std: float, releases: int, probability: float) -> float:
    """Bound on the operator norms of ``releases`` matrices of the Gaussian orthogonal ensemble,
    however dependent, with probability 1 - ``probability``.  They have ``std`` on the diagonal and
    std / sqrt(2) off it.

    The probability of an eigenvalue above x is at most the mean number of eigenvalues above x, also
    for minus the matrix.  In very many dimensions: the largest one has a mean below std sqrt(2 d)
    (Davidson & Szarek 2001, Theorem II.11).  It moves by at most the Frobenius distance, in which
    the noise is N(0, std^2 I).
    """
    # Half for the largest eigenvalue, half for that of minus the matrix.
    share = 0.5 * probability / releases
    highest = math.sqrt(2.0 * dimension) + math.sqrt(-2.0 * math.log(share))
    if dimension > _WIDEST_DENSITY:
        return std * highest
    x = np.linspace(highest + 3.0, 0.0, _GRID)  # of what is beyond nothing would be seen
    above = _from_the_right(x, _eigenvalue_density(dimension, x))
    return std * float(np.interp(share, above, x))


def _from_the_right(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Integrals from falling ``x`` to the first; too large where ``values`` are convex."""
    steps = 0.5 * (values[1:] + values[:-1]) * (x[:-1] - x[1:])
    return np.concatenate([[0.0], np.cumsum(steps)])


def _eigenvalue_density(dimension: int, x: np.ndarray) -> np.ndarray:
    """Mean density of eigenvalues of the ensemble, 1 on the diagonal, near each x (Mehta 2004,
    Random Matrices, Section 7.2).  x falls from a point above almost all eigenvalues.
    """
    # Orthonormal Hermite functions by their recurrence, which keeps them from overflowing.
    before, last = np.zeros_like(x), math.pi**-0.25 * np.exp(-0.5 * x * x)
    squares, areas = last * last, [0.0, math.pi**0.25 * math.sqrt(2.0)]  # of the last two
    for j in range(dimension):  # Hermite functions 1, ..., dimension
        root = math.sqrt(j / (j + 1))
        before, last = last, math.sqrt(2.0 / (j + 1)) * x * last - root * before
        areas = [areas[1], root * areas[0]]
        if j + 1 < dimension:
            squares = squares + last * last
    signed = 0.5 * areas[1] - _from_the_right(x, last)
    density: np.ndarray = squares + math.sqrt(0.5 * dimension) * before * signed
    return density + before / areas[0] if dimension % 2 else density


def laplace_sum(squares: float, scale: float, log_odds: float) -> float:
    """Bound on the absolute value of a weighted sum of Laplace variables, but for 2 exp(-log_odds).

    Weights are at most 1, their squares add up to ``squares``.  Chernoff: -ln(1 - u) <= 2 ln(2) u
    for u <= 1/2, hence ln E exp(h X) <= 2 ln(2) squares (h scale)^2 while (h scale)^2 <= 1/2.
    """
    # The h of the least bound, or the largest one for which the bound on the logarithm holds.
    h = min(math.sqrt(log_odds / (2.0 * LN2 * squares)), math.sqrt(0.5))
    return scale * (log_odds + 2.0 * LN2 * squares * h * h) / h


def noise_norm(
    norm: int, dimension: int, std: float, scale: float, releases: int, probability: float
) -> float:
    """Bound on the noise vectors of ``releases`` running sums, with probability 1 -
    ``probability``.  ``norm`` is 2 for Gaussian noise, and 1 for Laplace noise.  A coordinate of
    Laplace noise is a sum of variables of that ``scale`` with weights of at most 1.
    """
    if norm == 2:
        return gaussian_norm(dimension, std, releases, probability)
    # A union bound over both signs, all coordinates and all releases.
    log_odds = math.log(2.0 * dimension * releases / probability)
    return math.sqrt(dimension) * laplace_sum(std * std / (2.0 * scale * scale), scale, log_odds)


def coordinate_quantile(std: float, directions: int, probability: float) -> float:
    """Bound on projections of N(0, std^2 I) on fixed vectors, but for ``probability``."""
    return std * math.sqrt(2.0 * math.log(2.0 * directions / probability))
