"""The grid of rewards under secure noise: a power of two, in proportion to their range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError

_FINEST, _COARSEST = 2.0**-400, 2.0**400  # with which no sum or square of floats overflows
LARGEST = 2**32  # reward in grid units: at least 2**21 rewards always fit into one exact sum
_STEPS = 20  # binary digits of the width of the rewards, in steps of the default grid


def default_grid(reward_range: tuple[float, float]) -> float:
    """The grid of rewards in that range: between 2^20 and 2^21 steps from end to end; fewer where
    the range lies so far from zero that sums of rewards would leave the exact floats, at least 2^11
    within 10^6 widths of zero.

    Rounding to it moves a reward by half a step at most, hence a mean by less than one part in two
    million of the width; far from zero, one in four thousand.  At an end of the range that is no
    multiple of the grid it moves a reward by less than one step.

    >>> [math.log2(default_grid(ends)) for ends in [(0.0, 1.0), (0.0, 5000.0), (1e6, 1e6 + 1.0)]]
    [-20.0, -8.0, -12.0]
    """
    lo, hi = reward_range
    finest = math.frexp(hi - lo)[1] - 1 - _STEPS
    return max(math.ldexp(1.0, finest), finest_grid(max(abs(lo), abs(hi))))


def finest_grid(largest: float) -> float:
    """A grid on which at least 2^21 numbers of that size add up exactly.

    >>> math.log2(finest_grid(1.0))
    -31.0
    """
    return math.ldexp(1.0, math.frexp(largest / LARGEST)[1])


def checked_grid(grid: Any) -> float:
    """A power of two, as a float; raises ArgumentError where it is none in that range."""
    good = isinstance(grid, int | float | np.floating | np.integer) and not isinstance(grid, bool)
    good = good and _FINEST <= grid <= _COARSEST and math.frexp(grid)[0] == 0.5
    if not good:
        raise ArgumentError(
            f"grid must be a power of two between 2**-400 and 2**400, got {grid!r}", "grid"
        )
    return float(grid)
