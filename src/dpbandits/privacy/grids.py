"""Grids: the multiples of a power of two on which secure noise keeps sums exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .channels import GAUSSIAN
from .discrete import raised

UP = 1.0 + 2.0**-48  # outweighs a dozen roundings
# Grid units: wider noise would end at 2**63, where it hides nothing, and sums overflow.
WIDEST = 2.0**50
LARGEST = 2**32  # reward in grid units: at least 2**21 rewards always fit into one exact sum
_FINEST, _COARSEST = 2.0**-400, 2.0**400  # grids with which no sum or square of floats overflows
_STEPS = 20  # binary digits of the width of the rewards, in steps of the default grid


def default_grid(reward_range: tuple[float, float]) -> float:
    """The grid of rewards in that range, with 2^20 to 2^21 steps from end to end.  There are fewer
    where sums of rewards far from zero would leave the exact floats, at least 2^11 within 10^6
    widths of zero.

    Rounding to it moves a reward by half a step at most.  So it moves a mean by less than one part
    in two million of the width; far from zero, one in four thousand.  At an end of the range that
    is no multiple of the grid it moves a reward by less than one step.

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
    known = isinstance(grid, int | float | np.floating | np.integer) and not isinstance(grid, bool)
    if not (known and _FINEST <= grid <= _COARSEST and math.frexp(grid)[0] == 0.5):
        raise ArgumentError(
            f"grid must be a power of two between 2**-400 and 2**400, got {grid!r}", "grid"
        )
    return float(grid)


def in_steps(family: int, scale: float, grid: float) -> float:
    """The parameter with which noise of that scale is drawn on the grid, in its steps; rounded up.

    >>> from dpbandits.privacy.channels import LAPLACE
    >>> round(in_steps(GAUSSIAN, 1.0, 0.25), 4), round(in_steps(LAPLACE, 1.0, 0.25), 4)
    (4.0125, 4.0)
    """
    return drawn_scale(family, scale / grid, 1.0) * UP


def drawn_scale(family: int, scale: float, grid: float) -> float:
    """The scale of noise on the grid that hides as much as noise of that scale."""
    return grid * raised(scale / grid) if family == GAUSSIAN and scale > 0.0 else scale


def refuse_wide_noise(scale: float, grid: float, widest: float = WIDEST) -> None:
    """Raise ArgumentError where noise of that scale is too wide on the grid."""
    if scale / grid > widest:
        found = f"the noise would be {scale / grid:g} grid units wide"
        what = f"coarser: {found}, and only {widest:g} units fit into 64 bits"
        raise ArgumentError(f"grid must be {what}", "grid")
