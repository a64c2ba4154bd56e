"""The largest divergence between neighbouring worlds, over all adversaries of a ``Game``.

Sums over decisions and maxima over the adversary's choices alternate, from the last axis to the
first (``views``: backward induction).  Below, (p, q) are the probabilities of a sequence of
decisions in the two worlds.

* ``delta(epsilon)``: the largest sum of (p - e^epsilon q)+, the hockey-stick divergence.
* ``epsilon(delta)``: its inverse.  For one pair of worlds and one adversary the sum is convex,
  falling and piecewise linear in s = e^epsilon, and so is the largest of finitely many.  Newton's
  method, from s = 1 on, follows tangents.  They lie below the curve and reach delta no later than
  it does, so s never passes the root.  There are finitely many lines, so it gets there. Where a
  line is level and above delta, no epsilon is enough: sequences with q = 0 have more than delta of
  p.
* ``renyi(order)``: ln(sum of p^a q^(1 - a)) / (a - 1); for a = 1 the sum of p ln(p / q), and at
  infinity ``epsilon(0)``.
* ``rho()``: the least rho with D_a <= rho a for all a > 1.  K(a) = (a - 1) D_a is convex for one
  pair and one adversary, hence for the largest, and K(1) = 0.  Between two orders K lies below its
  chord l.  So D_a / a lies below l(a) / (a (a - 1)) = A / a - B / (a - 1).  A = -l(0) and B = -l(1)
  are not negative, because the continued chord lies below K.  That is largest where (a - 1) / a =
  sqrt(B / A), or at an end.  The interval with the largest bound is halved until the bound is close
  to the largest value seen.  Beyond the last order D_a / a is at most epsilon(0) / a.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from .views import Game

_CLOSE = 1e-6  # relative: by how much ``rho`` may exceed the least one
_NARROW = 1e-9  # relative: intervals between orders that are not halved
_LARGEST = 709.0  # an epsilon of which there is a float e^epsilon; more is not looked at
_FAINT = 1e-9  # an epsilon that is hardly more than rounding


def delta(games: Sequence[Game], epsilon: float) -> float:
    """The least delta for an epsilon, which may be infinite."""
    if math.isinf(epsilon):
        leaves = [np.where(game.after == 0, game.before, 0) for game in games]
    else:
        s = _number(games, math.exp(min(epsilon, _LARGEST)))
        leaves = [np.maximum(game.before - s * game.after, 0) for game in games]
    return float(max((_worst(one) for one in leaves), default=0.0))


def epsilon(games: Sequence[Game], delta: float) -> float:
    """The least epsilon for a delta, infinite where there is none."""
    limit, s = _number(games, delta), _number(games, 1.0)
    # s is kept from game to game, because the largest one counts.
    for game in games:
        while True:
            excess = game.before - s * game.after
            height, fall = _worst_line(np.maximum(excess, 0), np.where(excess > 0, game.after, 0))
            if height <= limit:
                break
            if fall == 0:
                return math.inf
            farther = s + (height - limit) / fall
            if farther <= s:  # as near as floats come
                break
            s = farther
    return math.log(s)


def renyi(games: Sequence[Game], order: float) -> float:
    """The largest Rényi divergence of an order of at least 1, which may be infinite."""
    if math.isinf(order):
        return epsilon(games, 0.0)
    return max((_renyi(game, order) for game in games), default=0.0)


def _renyi(game: Game, order: float) -> float:
    p, q = (np.asarray(side, np.float64) for side in game)  # of which logarithms are taken
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = np.log(p)
        loss = np.where(p > 0.0, log_p - np.log(q), 0.0)
        if order == 1.0:
            return max(float(_worst(p * loss)), 0.0)
        power = order - 1.0
        if power * loss.max() < 1.0:  # so that small divergences keep their digits
            moment = math.log1p(float(_worst(p * np.expm1(power * loss))))
        else:
            moment = float(_worst(log_p + power * loss, np.logaddexp))
    return max(moment / power, 0.0)


def rho(games: Sequence[Game]) -> float:
    """The least rho of zCDP, or a millionth more; infinite where there is none."""
    largest = epsilon(games, 0.0)
    if largest < _FAINT:
        return 0.5 * largest**2  # what pure privacy implies, and no float tells from less
    if largest == math.inf:
        return math.inf
    games = [Game(*(np.asarray(side, np.float64) for side in game)) for game in games]
    moments = {1.0: 0.0}  # K at the orders that were looked at
    seen, last = renyi(games, 1.0), 1.0
    while largest / last > seen:
        last *= 2.0
        moments[last] = (last - 1.0) * renyi(games, last)
        seen = max(seen, moments[last] / (last * (last - 1.0)))

    def interval(a: float, b: float) -> tuple[float, float, float]:
        return -_below_chord(a, moments[a], b, moments[b]), a, b

    heap = [interval(a, b) for a, b in pairwise(sorted(moments))]
    heapq.heapify(heap)
    while True:
        bound, a, b = heap[0]
        if -bound <= seen * (1.0 + _CLOSE) or b - a < _NARROW * b:
            return max(-bound, seen)
        middle = 0.5 * (a + b)
        moments[middle] = (middle - 1.0) * renyi(games, middle)
        seen = max(seen, moments[middle] / (middle * (middle - 1.0)))
        heapq.heapreplace(heap, interval(a, middle))
        heapq.heappush(heap, interval(middle, b))


def _below_chord(a: float, at_a: float, b: float, at_b: float) -> float:
    """The most that K(order) / (order (order - 1)) can be between two orders."""
    slope = (at_b - at_a) / (b - a)
    if a == 1.0:
        return slope  # B = 0: falling from the left end
    rise, drop = slope * a - at_a, max(slope * (a - 1.0) - at_a, 0.0)  # A and B
    if rise <= drop:
        return 0.0  # K is 0
    peak = min(max(1.0 / (1.0 - math.sqrt(drop / rise)), a), b)
    return rise / peak - drop / (peak - 1.0)


def _worst(leaves: np.ndarray, add: np.ufunc = np.add) -> Any:
    """The largest sum, over adversaries, of the values at each sequence of decisions."""
    while leaves.ndim > 2:
        leaves = add.reduce(leaves, axis=-1).max(axis=-1)
    return add.reduce(leaves, axis=-1).max()


def _worst_line(height: np.ndarray, fall: np.ndarray) -> tuple[Any, Any]:
    """The largest sum of ``height``, with the sum of ``fall`` under the same adversary."""
    while height.ndim > 0:
        height, fall = (side.sum(axis=-1) for side in (height, fall))
        best = np.expand_dims(height.argmax(axis=-1), -1)
        height, fall = (np.take_along_axis(side, best, -1)[..., 0] for side in (height, fall))
    return height[()], fall[()]


def _number(games: Sequence[Game], value: float) -> Any:
    """A number of the kind that the games are computed in."""
    exact = any(game.before.dtype == object for game in games)
    return Fraction(value) if exact else value
