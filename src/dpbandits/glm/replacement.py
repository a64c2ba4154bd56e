"""How far one record of a generalised linear model moves when it is replaced by another.

A record (x, y) with |x| <= l is looked at from a public point p with |p| <= S, t = <x, p>:

    f = [w (nu(t) - y) x ;  svec(h x x^T)] ,    y in [lo, hi] ,   m <= h <= W .

Its residual u = w (nu(t) - y) lies in [u_lo(t), u_hi(t)], the values at y = hi and y = lo, which
rise with t as nu does.  With s = <x, x'> another record of the same person moves f by

    D^2 = u^2 |x|^2 + u'^2 |x'|^2 - 2 u u' s + h^2 |x|^4 + h'^2 |x'|^4 - 2 h h' s^2 .

**What the two records may be.**  Let e = p / |p|, x = tau e + xi and x' = tau' e + xi' with xi and
xi' orthogonal to e, tau = t / |p|.  Then s - tau tau' = <xi, xi'>, hence

    |s - tau tau'| <= sqrt(|x|^2 - tau^2) sqrt(|x'|^2 - tau'^2) .

*Lengths.*  For given t, t', u, u', h, h' and s, D^2 grows with |x| and with |x'|, and so does the
interval in which s may lie.  So both are l at worst.

*The bound on p.*  With v = 1 / |p|^2 that interval is v t t' -+ sqrt((l^2 - v t^2) (l^2 - v t'^2)).
The root falls with v at least as fast as |t t'|, by the inequality of the two means.  So the
interval grows with |p|, which is S at worst.  With cos(a) = t / (l S) and cos(b) = t' / (l S) it is
then

    s / l^2 = c in [cos(a + b), cos(a - b)] .

*Ends.*  D^2 is convex in u and in u', and in (h, h') as a square.  So u and u' are at the ends of
their intervals, and (h, h') at (W, W), (W, m), (m, W) or (m, m), the last of which is never worse
than the first.  In c it is concave, with its largest value at a known point.

What is left is a maximum over t and t' in [-l S, l S].  ``replacement_sensitivity`` bounds it from
above: on a cell of t x t' the residuals lie between their values at its corners, and c in the union
of the intervals.  Cells in which the bound stays below a value that is attained are left out, the
others are divided.  The bound holds in every dimension, and is attained from three on (without the
second block from two on).

Without the bound on p, t may be large for any x, and D reaches what residuals of both signs allow:
2 l max |u| for the first block.  So the kernels that look at records scale p to S themselves.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np

from ..kernel import Vector, kernel
from .links import EXACT, Link

_CELLS = 2**10
_NEAR = 1e-3  # part of D^2 within which cells are not divided further
_UP = 1.0 + 1e-9  # outweighs all rounding, and points that are longer than S by less than _OVER
_OVER = 1.0 + 1e-12


@kernel
def point_scale(point: Vector, bound: float) -> float:
    """By what a point is multiplied, to be no longer than the bound; 1 where only rounding says
    that it is.
    """
    squares = 0.0
    for i in range(point.size):
        squares += point[i] * point[i]
    length = math.sqrt(squares)
    return bound / length if length > bound * _OVER else 1.0


@lru_cache(maxsize=256)
def replacement_sensitivity(
    link: Link,
    outcome_range: tuple[float, float],
    *,
    length: float,
    parameter: float,
    weight: float = 1.0,
    square: float = 0.0,
    least: float = 1.0,
) -> float | None:
    """D for records that are looked at from points within a bound.

    Args:
        link: nu.
        outcome_range: (lo, hi), to which outcomes are clipped.
        length: l, a bound on features.
        parameter: S, a bound on points.
        weight: w.
        square: W l^2, the largest Frobenius norm of the second block; 0 without one.
        least: m / W.

    Returns:
        None for links that users have registered: nothing proves that their means rise.

    >>> from dpbandits.glm.links import link_of
    >>> logistic = link_of("logistic")
    >>> round(replacement_sensitivity(logistic, (0.0, 1.0), length=1.0, parameter=1.0), 2)
    1.1
    """
    if link.name not in EXACT:
        return None
    lo, hi = outcome_range
    t = np.linspace(-1.0, 1.0, _CELLS + 1)
    means = np.array([link.mean(length * parameter * one) for one in t.tolist()])
    ends = weight * (means - hi), weight * (means - lo)
    angles = np.arccos(t)
    scale = max(float(np.abs(ends).max()) * length, square)
    if scale == 0.0:
        return 0.0
    rows = tuple(end * length / scale for end in ends)
    return scale * math.sqrt(_largest(rows, angles, square / scale, least)) * _UP


def _largest(
    residuals: tuple[np.ndarray, ...], angles: np.ndarray, square: float, least: float
) -> float:
    """An upper bound on D^2 in the units of l = 1."""
    cells, attained = np.array([[0, _CELLS, 0, _CELLS]]), 0.0
    while True:
        corners = cells[:, [0, 0, 2, 2]]  # each a cell without extent: its values are attained
        attained = max(attained, float(_bounds(corners, residuals, angles, square, least).max()))
        bounds = _bounds(cells, residuals, angles, square, least)
        open_ = bounds > attained * (1.0 + _NEAR)
        if not open_.any() or cells[0, 1] - cells[0, 0] == 1:
            return max(float(bounds.max()), attained * (1.0 + _NEAR))
        cells = _divided(cells[open_])


def _divided(cells: np.ndarray) -> np.ndarray:
    """Four cells for each."""
    i0, i1, j0, j1 = cells.T
    i, j = (i0 + i1) // 2, (j0 + j1) // 2
    halves = itertools.product(((i0, i), (i, i1)), ((j0, j), (j, j1)))
    return np.concatenate([np.column_stack((*first, *second)) for first, second in halves])


def _bounds(
    cells: np.ndarray,
    residuals: tuple[np.ndarray, ...],
    angles: np.ndarray,
    square: float,
    least: float,
) -> np.ndarray:
    """Upper bounds on D^2 in each cell."""
    i0, i1, j0, j1 = cells.T
    low, high = _cosines(angles[i1], angles[i0], angles[j1], angles[j0])
    found = np.zeros(len(cells))
    for mine, other in itertools.product(residuals, repeat=2):
        for u, v in itertools.product((mine[i0], mine[i1]), (other[j0], other[j1])):
            for share in {1.0, least} if square > 0.0 else {1.0}:
                found = np.maximum(found, _moved(u, v, low, high, square, share))
    return found


def _moved(
    u: np.ndarray,
    v: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    square: float,
    share: float,
) -> np.ndarray:
    """The largest D^2 over cosines in an interval, with second blocks W and ``share`` times it."""
    bent = 2.0 * share * square * square
    straight = np.where(u * v < 0.0, high, low)
    cosine = np.clip(-u * v / bent, low, high) if bent > 0.0 else straight
    first = u * u + v * v - 2.0 * u * v * cosine
    return np.asarray(first + square * square * (1.0 + share * share) - bent * cosine * cosine)


def _cosines(
    a0: np.ndarray, a1: np.ndarray, b0: np.ndarray, b1: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Between which cosines of the angle between two vectors lie, whose angles with a third are in
    [a0, a1] and [b0, b1].
    """
    apart = np.maximum(0.0, np.maximum(a0 - b1, b0 - a1))
    least, most = a0 + b0, a1 + b1
    low = np.minimum(np.cos(least), np.cos(most))
    return np.where((least <= math.pi) & (math.pi <= most), -1.0, low), np.cos(apart)
