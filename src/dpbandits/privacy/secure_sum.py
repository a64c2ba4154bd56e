"""Continual sums in integers, under secure noise: see ``secure`` for the guarantee, and
``continual`` for the mechanism.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..errors import ArgumentError, BudgetExhausted, DPBanditsError
from ..kernel import Matrix, Vector
from .channels import OPEN, Channel
from .continual import BinaryTree, Counter, HybridTree, Independent, SqrtToeplitz
from .grids import WIDEST, checked_grid, in_steps, refuse_wide_noise
from .secure import Sampler

_MOST_RELEASES = 2**30  # of a continual sum
_BITS = 10  # of the rounded square root: one part in a thousand more variance than without rounding


class SecureState(NamedTuple):
    """All that a ``SecureSum`` knows, to be saved; private, because it holds exact sums."""

    clock: np.ndarray  # (1,) int64: releases so far
    exact: np.ndarray  # (rows, size) int64, private: what later rows still need, in grid units
    noisy: np.ndarray  # (rows, size) int64: what is released, in units of the grid over 2^bits

    def __repr__(self) -> str:
        # Sums end up in logs by way of tracebacks and debuggers.
        shape, count = self.exact.shape, self.clock[0]
        return f"<SecureState of shape {shape} after {count} releases, contents not shown>"


class SecureSum:
    """A continual sum of vectors on a grid, in integers (see ``continual`` for why it is private).

    Counters are ``BinaryTree``, ``HybridTree`` and ``Independent``, whose encoders are zeros and
    ones, and ``SqrtToeplitz``, which is rounded to ten bits where it does not say otherwise; others
    are refused.  Increments are multiples of the grid, a power of two.

    Two that continue from one ``SecureState`` release the same data twice.
    """

    def __init__(self, counter: Counter, size: int, grid: float, source: Sampler) -> None:
        self.counter, self.grid = integer_counter(counter), checked_grid(grid)
        self._shape = self.counter.start(size, 2).memory.shape
        self._source = source

    def start(self) -> SecureState:
        """An empty sum."""
        rows = np.zeros(self._shape, np.int64)
        return SecureState(np.zeros(1, np.int64), rows, rows.copy())

    def add(
        self, state: SecureState, increments: np.ndarray, channel: Channel, scale: float
    ) -> np.ndarray:
        """Add a vector of multiples of the grid, at most ``largest`` of its units each, to the sum
        in ``state``, and release the noisy sum, shape (size,).

        ``scale``: multiplier times sensitivity; the counter's column norm is applied here.

        Raises:
            BudgetExhausted: all planned releases were made.
            DPBanditsError: an increment is not on the grid, or that too fine; nothing has changed.
        """
        t = int(state.clock[0]) + 1
        if t > (self.counter.horizon or _MOST_RELEASES):
            raise BudgetExhausted(
                f"the running sum was planned for {t - 1} releases, and all of them were made"
            )
        units, largest = np.asarray(increments, np.float64) / self.grid, self.largest
        if not (np.abs(units) <= largest).all() or (units % 1.0).any():
            raise DPBanditsError(
                "each increment must be a multiple of the grid step, and between"
                f" -{largest} and {largest} steps"
            )
        width = scale * self.counter.column_norm(channel.norm) * self._row_scale(t, channel.norm)
        noise = self._noise(channel.family, width)
        state.clock[0] = t
        return self._advance(state, t, units.astype(np.int64), noise) * self.grid

    @property
    def largest(self) -> int:
        """The largest increment in grid units: rows of all of them stay within 64 bits."""
        return int(2**61 / ((self.counter.horizon or _MOST_RELEASES) * self._row_scale(1, 2)))

    def refuse_wide_noise(self, channel: Channel, scale: float) -> None:
        """Refuse noise that is too wide in some planned release; ``scale`` as for ``add``."""
        # and no power of two, which ends an epoch of the hybrid
        late = max(1, (self.counter.horizon or _MOST_RELEASES) - 1)
        width = scale * self.counter.column_norm(channel.norm) * self._row_scale(late, channel.norm)
        refuse_wide_noise(width, self.grid, self.widest)

    @property
    def widest(self) -> float:
        """The widest noise in grid units for which sums stay within 64 bits."""
        if not isinstance(self.counter, Independent):  # whose sums grow with every release
            return WIDEST
        return WIDEST / math.sqrt(self.counter.horizon or _MOST_RELEASES)

    def _row_scale(self, t: int, norm: int) -> float:
        """The ratio of the length of the integer row that ends at release t to that of the row of
        C.
        """
        if isinstance(self.counter, HybridTree):
            return float(self.counter.scales(norm)[t.bit_length() - 1 if t & (t - 1) else 0])
        return row_scale(self.counter)

    def _noise(self, family: int, width: float) -> np.ndarray:
        size = self._shape[1]
        if family == OPEN:
            return np.zeros(size, np.int64)
        refuse_wide_noise(width, self.grid, self.widest)
        steps = in_steps(family, width, self.grid)
        return np.array(self._source._draw(family, steps, size), np.int64)

    def _advance(
        self, state: SecureState, t: int, units: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Make the noisy row that ends at release t, and decode the noisy rows."""
        _, exact, noisy = state
        if isinstance(self.counter, SqrtToeplitz):
            c, b = self.counter.coefficients()
            unit = self._row_scale(t, 2)
            exact[t - 1] = units
            noisy[t - 1] = (c[:t] * unit).astype(np.int64)[::-1] @ exact[:t] + noise
            return b[:t][::-1] @ noisy[:t] / unit
        if isinstance(self.counter, BinaryTree):
            return _node(t, exact, noisy, units, noise)
        inside = t & ~(1 << (t.bit_length() - 1))
        if isinstance(self.counter, HybridTree) and inside:
            return noisy[0] + _node(inside, exact[1:], noisy[1:], units, noise)
        # A block that ends an epoch, or an increment of its own: only the noisy total is kept.
        noisy[0] += exact.sum(axis=0) + units + noise
        exact[:] = 0
        return noisy[0].astype(np.float64)


def _node(t: int, exact: Matrix, noisy: Matrix, units: Vector, noise: Vector) -> np.ndarray:
    """End the node at t, which takes in those below it; the sum of the noisy nodes of 1..t."""
    level = (t & -t).bit_length() - 1
    exact[level] = exact[:level].sum(axis=0) + units
    exact[:level] = 0
    noisy[level] = exact[level] + noise
    ones = [place for place in range(t.bit_length()) if t >> place & 1]
    return noisy[ones].sum(axis=0).astype(np.float64)


def row_scale(counter: Counter | None) -> float:
    """The ratio of the lengths of the integer rows to those of C."""
    return 2.0 ** (counter.bits or 0) if isinstance(counter, SqrtToeplitz) else 1.0


def integer_counter(counter: Counter) -> Counter:
    """The counter, with factors in integers; raises ArgumentError where it has none."""
    if isinstance(counter, SqrtToeplitz):
        return counter if counter.bits is not None else SqrtToeplitz(counter.horizon, _BITS)
    if not isinstance(counter, BinaryTree | HybridTree | Independent):
        raise ArgumentError(
            "counter must be BinaryTree, HybridTree, Independent or SqrtToeplitz for secure noise,"
            f" got {counter!r}: sums are made in integers",
            "counter",
        )
    if (counter.horizon or 1) > _MOST_RELEASES:
        raise ArgumentError(
            "counter must have a horizon of at most 2**30 releases for secure noise, got"
            f" {counter!r}: sums are made in integers",
            "counter",
        )
    return counter
