"""Sensitivity of a generalised linear model to the replacement of one record by another.

A record (x, y) with |x| <= l is evaluated at a public point p with |p| <= S, t = <x, p>:

    f = [w (nu(t) - y) x ;  svec(h x x^T)] ,    y in [lo, hi] ,

with h = nu'(t), h = 1, or without the second block.  Its residual u = w (nu(t) - y) lies in
[u_lo(t), u_hi(t)], the values at y = hi and y = lo, which rise with t as nu does.  With s = <x, x'>
another record of the same person moves f by

    D^2 = u^2 |x|^2 + u'^2 |x'|^2 - 2 u u' s + h^2 |x|^4 + h'^2 |x'|^4 - 2 h h' s^2 .

**Possible pairs of records.**  Let e = p / |p|, x = tau e + xi and x' = tau' e + xi' with xi and
xi' orthogonal to e, tau = t / |p|.  Then s - tau tau' = <xi, xi'>, hence

    |s - tau tau'| <= sqrt(|x|^2 - tau^2) sqrt(|x'|^2 - tau'^2) .

*Lengths.*  For given t, t', u, u', h, h' and s, D^2 grows with |x| and with |x'|, and so does the
interval in which s may lie.  So both are l at worst.

*The bound on p.*  With v = 1 / |p|^2 that interval is v t t' -+ sqrt((l^2 - v t^2) (l^2 - v t'^2)).
The root falls with v at least as fast as |t t'|, by the inequality of the two means.  So the
interval grows with |p|, which is S at worst.  With cos(a) = t / (l S) and cos(b) = t' / (l S) it is
then

    s / l^2 = c in [cos(a + b), cos(a - b)] .

*Ends.*  For given t and t', D^2 is convex in u and in u'.  Hence both are at the ends of their
intervals.  h and h' follow from t and t'.  In c D^2 is concave, with its largest value at a known
point.

There remains a maximum over a and b in [0, pi].  ``replacement_sensitivity`` bounds it from above.
On a cell of a x b the residuals lie between their values at its corners.  Slopes lie between bounds
that follow from their shape: they rise up to t = 0 and fall from there on.  D^2 is convex in each
of u, u', h and h', hence all lie at the ends of these intervals.  c lies in the union of the
intervals above.  Cells with a bound below a nearly attained value are dropped, the others are
divided.

The bound holds in every dimension, and is attained from two on.  A point in the plane of x and x'
that is shorter than S has the products of a longer one outside the plane.

Without the bound on p, t may be large for any x, and D reaches the bound for residuals of both
signs: 2 l max |u| for the first block.  So the kernels that read records scale p to S themselves.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..kernel import Vector, kernel
from .links import EXACT, Link

_CELLS = 2**10
_NEAR = 1e-3  # part of D^2 within which cells are not divided further
_UP = 1.0 + 1e-9  # outweighs all rounding, and points that are longer than S by less than _OVER
_OVER = 1.0 + 1e-12


@kernel
def point_scale(point: Vector, bound: float) -> float:
    """Factor that scales a point to the bound; 1 if it is longer only by rounding."""
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
    square: str = "none",
) -> float | None:
    """D for features of at most ``length`` l and points of at most ``parameter`` S; None for links
    that users have registered, because nothing proves that their means rise.

    ``weight`` is w; ``square`` is h in the second block: "slope", "one", or "none" for no block.

    >>> from dpbandits.glm.links import link_of
    >>> link = link_of("logistic")
    >>> round(replacement_sensitivity(link, (0.0, 1.0), length=1.0, parameter=1.0), 2)
    1.1
    """
    if link.name not in EXACT:
        return None
    lo, hi = outcome_range
    angles = np.linspace(0.0, math.pi, _CELLS + 1)
    t = length * parameter * np.cos(angles)
    # The cosine of pi / 2 is not quite 0 in floats, and slopes turn exactly there.
    t[_CELLS // 2] = 0.0
    means = np.array([link.mean(one) for one in t.tolist()])
    least = largest = np.zeros(_CELLS)
    if square != "none":
        h = np.ones_like(t) if square == "one" else np.array([link.slope(x) for x in t.tolist()])
        h *= length * length
        # 0, where slopes turn, is a point: between two neighbours a slope lies between theirs.
        least, largest = np.minimum(h[:-1], h[1:]), np.maximum(h[:-1], h[1:])
    residuals = weight * length * np.array([means - hi, means - lo])
    scale = max(float(np.abs(residuals).max()), float(largest.max()))
    if scale == 0.0:
        return 0.0
    slopes = _levels(least / scale, np.minimum), _levels(largest / scale, np.maximum)
    return scale * math.sqrt(_largest(_Path(angles, residuals / scale, *slopes))) * _UP


class _Path(NamedTuple):
    """What records may be along the angles between features and point."""

    angles: np.ndarray  # (n + 1,) points, from 0 to pi
    residuals: np.ndarray  # (2, n + 1) u_lo and u_hi there, which fall, times l
    least: list[np.ndarray]  # h l^2 on each cell, for 1, 2, 4, ..., n cells
    largest: list[np.ndarray]


_Range = tuple[np.ndarray, np.ndarray]  # least and largest values, in each of some cells


class _Side(NamedTuple):
    """What one of two records may be, in some cells."""

    angles: _Range
    residuals: _Range
    slopes: _Range


def _levels(cells: np.ndarray, merge: np.ufunc) -> list[np.ndarray]:
    """Values of cells that are twice, four times, ... as long; the longest first."""
    found = [cells]
    while found[-1].size > 1:
        found.append(merge(found[-1][::2], found[-1][1::2]))
    return found[::-1]


def _largest(path: _Path) -> float:
    """An upper bound on D^2, at most ``_NEAR`` of it above where the cells are fine enough."""
    cells, attained = np.zeros((1, 2), np.int64), 0.0
    for level in range(len(path.least)):
        points = [_first(path, level, side) for side in cells.T]
        attained = max(attained, float(_bounds(*points).max()))
        bounds = _bounds(*(_side(path, level, side) for side in cells.T))
        divided = cells[bounds > attained * (1.0 + _NEAR)]
        if not divided.size:
            break
        cells = np.concatenate([2 * divided + half for half in itertools.product((0, 1), repeat=2)])
    return max(float(bounds.max()), attained * (1.0 + _NEAR))


def _side(path: _Path, level: int, cells: np.ndarray) -> _Side:
    """All that lies in these cells."""
    width = _CELLS >> level
    first, last = cells * width, (cells + 1) * width
    low, high = path.residuals
    slopes = path.least[level][cells], path.largest[level][cells]
    return _Side((path.angles[first], path.angles[last]), (low[last], high[first]), slopes)


def _first(path: _Path, level: int, cells: np.ndarray) -> _Side:
    """Their first points, slopes not above those there: where D^2 looks larger, so do bounds."""
    first = cells * (_CELLS >> level)
    angle, (low, high), slope = path.angles[first], path.residuals[:, first], path.least[-1][first]
    return _Side((angle, angle), (low, high), (slope, slope))


def _bounds(one: _Side, other: _Side) -> np.ndarray:
    """Upper bounds on D^2 in each pair of cells."""
    low, high = _cosines(*one.angles, *other.angles)
    found = np.zeros(low.size)
    for u, v, h, k in itertools.product(one.residuals, other.residuals, one.slopes, other.slopes):
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(h * k > 0.0, -u * v / (2.0 * h * k), np.where(u * v > 0.0, -1.0, 1.0))
        cosine = np.clip(best, low, high)  # of the largest D^2
        moved = u * u + v * v + h * h + k * k - 2.0 * cosine * (u * v + h * k * cosine)
        found = np.maximum(found, moved)
    return found


def _cosines(a0: np.ndarray, a1: np.ndarray, b0: np.ndarray, b1: np.ndarray) -> _Range:
    """Of the angles between two vectors whose angles with a third are in [a0, a1] and [b0, b1]."""
    apart = np.maximum(0.0, np.maximum(a0 - b1, b0 - a1))
    least, most = a0 + b0, a1 + b1
    low = np.minimum(np.cos(least), np.cos(most))
    return np.where((least <= math.pi) & (math.pi <= most), -1.0, low), np.cos(apart)
