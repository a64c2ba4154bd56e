"""The compiled side of continual sums: one structure for every mechanism, and one step for each.

The noise of a node or row is drawn once, with the scale of the release that draws it, and kept.  A
release is the exact sum plus a public combination of the kept noise.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ...kernel import Generator, Kernel, Matrix, Vector, bind, entry, kernel, outlined, unbound
from ..channels import OPEN, add_independent, draw_from_hemisphere, draw_noise

SINGLE, TREE, HONAKER, TOEPLITZ, BUFFERED, HYBRID, INDEPENDENT, INTEGERS = range(8)


class RunningSum(NamedTuple):
    """A running sum at the wall; of the same types for every mechanism and for ``SINGLE``."""

    kind: int
    limit: int  # releases planned; 0 for any number
    column_norm: float  # of C, in the channel's norm
    clock: np.ndarray  # (1,) int64: releases so far
    table: np.ndarray  # (r, c) float64 public coefficients; what they are depends on the kind
    memory: np.ndarray  # (m, n) float64 noise that was drawn
    total: np.ndarray  # (n,) float64, private: the exact sum so far
    grid: float = 0.0  # of which simulated noise is drawn in multiples; 0 for any numbers

    def __repr__(self) -> str:
        # Sums end up in logs by way of tracebacks and debuggers.
        size, count = self.total.size, self.clock[0]
        return f"<Running sum of {size} coordinates after {count} releases, contents not shown>"


def no_running_sum() -> RunningSum:
    """No running sum: every release is a statistic of its own, with noise of its own."""
    none = np.zeros((0, 0))
    return RunningSum(SINGLE, 0, 1.0, np.zeros(1, np.int64), none, none.copy(), np.zeros(0))


@kernel
def is_spent(running: RunningSum) -> bool:
    """Whether all planned releases have been made."""
    return running.limit > 0 and running.clock[0] >= running.limit


@kernel
def lowest_bit(t: int) -> int:
    """The place of the lowest one of a positive integer, from 0."""
    place = 0
    while (t >> place) & 1 == 0:
        place += 1
    return place


@kernel
def highest_bit(t: int) -> int:
    """The place of the highest one of a positive integer, from 0."""
    place = 0
    while t >> (place + 1):
        place += 1
    return place


@kernel
def draws_of(running: RunningSum) -> int:
    """The number of noise variables that the coming release draws for each coordinate."""
    return lowest_bit(running.clock[0] + 1) + 1 if running.kind == HONAKER else 1


# Steps: fill ``noise`` with that of release t, which the clock has counted, from noise of scale
# ``width`` that is drawn now and what the memory has kept.


@kernel
def _add_rows(places: int, row: int, memory: Matrix, noise: Vector) -> None:
    """Add those rows of ``memory``, from ``row`` on, whose binary digits of ``places`` are ones."""
    while places:
        if places & 1:
            for i in range(noise.size):
                noise[i] += memory[row, i]
        places >>= 1
        row += 1


@kernel
def _keep(row: int, memory: Matrix, noise: Vector) -> None:
    for i in range(noise.size):
        memory[row, i] = noise[i]


@kernel
def add_node(t: int, first: int, memory: Matrix, noise: Vector) -> None:
    """Keep the node that ends at t in row ``first`` + level; add the others that make up 1..t."""
    level = lowest_bit(t)
    _keep(first + level, memory, noise)
    _add_rows(t >> (level + 1), first + level + 1, memory, noise)


@kernel
def _tree(running: RunningSum, family: int, width: float, noise: Vector, rng: Generator) -> None:
    draw_noise(family, width, running.grid, noise, rng)
    add_node(running.clock[0], 0, running.memory, noise)


@kernel
def _honaker(running: RunningSum, family: int, width: float, noise: Vector, rng: Generator) -> None:
    """All nodes that end at t, from the leaf up, each averaged by precision with its halves."""
    t, memory = running.clock[0], running.memory
    draw_noise(family, width, running.grid, noise, rng)
    top = lowest_bit(t)
    _keep(top, memory, noise)
    for level in range(1, top + 1):
        own = running.table[0, level]
        draw_noise(family, width, running.grid, noise, rng)
        for i in range(noise.size):
            # Row ``level - 1`` has the left half since it ended, row ``top`` the right one.
            halves = memory[level - 1, i] + memory[top, i]
            memory[top, i] = own * noise[i] + (1.0 - own) * halves
    for i in range(noise.size):
        noise[i] = memory[top, i]
    _add_rows(t >> (top + 1), top + 1, memory, noise)


@kernel
def _toeplitz(
    running: RunningSum, family: int, width: float, noise: Vector, rng: Generator
) -> None:
    t, table, memory = running.clock[0], running.table, running.memory
    draw_noise(family, width, running.grid, noise, rng)
    # Kept before the loop adds the other rows to it.
    _keep(t - 1, memory, noise)
    fours = (t - 1) // 4 * 4
    for s in range(0, fours, 4):  # rows that do not wait for each other's additions
        a, b = table[0, t - 1 - s], table[0, t - 2 - s]
        c, d = table[0, t - 3 - s], table[0, t - 4 - s]
        for i in range(noise.size):
            first = a * memory[s, i] + b * memory[s + 1, i]
            noise[i] += first + (c * memory[s + 2, i] + d * memory[s + 3, i])
    for s in range(fours, t - 1):
        weight = table[0, t - 1 - s]
        for i in range(noise.size):
            noise[i] += weight * memory[s, i]


@kernel
def _buffered(
    running: RunningSum, family: int, width: float, noise: Vector, rng: Generator
) -> None:
    table, memory = running.table, running.memory
    draw_noise(family, width, running.grid, noise, rng)
    # Written out, because only so is it compiled to vector instructions.
    d0, d1, d2, d3, d4 = table[0, 0], table[0, 1], table[0, 2], table[0, 3], table[0, 4]
    w0, w1, w2, w3, w4 = table[1, 0], table[1, 1], table[1, 2], table[1, 3], table[1, 4]
    for i in range(noise.size):
        z = noise[i]
        m0, m1, m2 = d0 * memory[0, i] + z, d1 * memory[1, i] + z, d2 * memory[2, i] + z
        m3, m4 = d3 * memory[3, i] + z, d4 * memory[4, i] + z
        memory[0, i], memory[1, i], memory[2, i], memory[3, i], memory[4, i] = m0, m1, m2, m3, m4
        noise[i] = w0 * m0 + w1 * m1 + w2 * m2 + w3 * m3 + w4 * m4


@kernel
def _independent(
    running: RunningSum, family: int, width: float, noise: Vector, rng: Generator
) -> None:
    draw_noise(family, width, running.grid, noise, rng)
    for i in range(noise.size):
        running.memory[0, i] += noise[i]
        noise[i] = running.memory[0, i]


@kernel
def _hybrid(running: RunningSum, family: int, width: float, noise: Vector, rng: Generator) -> None:
    """A noisy block at every power of two adds to row 0; trees between them are in other rows."""
    t, table, memory = running.clock[0], running.table, running.memory
    depth = highest_bit(t)
    inside = t - (1 << depth)
    # Rows of an earlier epoch's tree are overwritten before they are read.
    if inside:
        draw_noise(family, width * table[0, depth], running.grid, noise, rng)
        add_node(inside, 1, memory, noise)
        _add_rows(1, 0, memory, noise)
    else:
        _independent(running, family, width * table[0, 0], noise, rng)


@kernel
def _integers(
    running: RunningSum, family: int, width: float, noise: Vector, rng: Generator
) -> None:
    """Draw people's noise in steps of a grid; ``family`` and ``width`` serve accounting alone."""
    table, memory = running.table, running.memory
    amount, heads, step, rounding = table[0, 0], table[0, 1], table[0, 2], table[0, 3]
    for i in range(noise.size):
        drawn = rounding * rng.standard_normal()
        if heads > 0.0:
            drawn += rng.binomial(int(amount), heads) - amount * heads
        else:
            drawn += np.rint(amount * rng.standard_normal())
        memory[0, i] += step * drawn
        noise[i] = memory[0, i]


STEPS = {  # and those that rooms of papers enter
    TREE: _tree,
    HONAKER: _honaker,
    TOEPLITZ: _toeplitz,
    BUFFERED: _buffered,
    HYBRID: _hybrid,
    INDEPENDENT: _independent,
    INTEGERS: _integers,
}
step = unbound


# Releases --------------------------------------------------------------------------------------


@kernel
def release_exactly(
    running: RunningSum, family: int, scale: float, exact: Vector, release: Vector, rng: Generator
) -> None:
    """The statistic, or the sum with it, through the open channel, which needs no generator."""
    if running.kind == SINGLE:
        for i in range(exact.size):
            release[i] = exact[i]
        return
    over = is_spent(running)
    running.clock[0] += 1
    for i in range(exact.size):
        running.total[i] += exact[i]
        release[i] = np.nan if over else running.total[i]


@kernel
def _release_alone(
    running: RunningSum, family: int, scale: float, exact: Vector, release: Vector, rng: Generator
) -> None:
    add_independent(family, scale, running.grid, exact, release, rng)


@kernel
def release_replaced(
    running: RunningSum, family: int, scale: float, exact: Vector, release: Vector, rng: Generator
) -> None:
    """``mechanism`` of ``Hemisphere`` noise, which few policies have to compile."""
    draw_from_hemisphere(scale, exact, release, rng)


@outlined
def _release_prefix_sum(
    running: RunningSum, family: int, scale: float, exact: Vector, release: Vector, rng: Generator
) -> None:
    # A spent sum writes NaN there, so nothing crosses without noise.
    if family == OPEN or is_spent(running):
        release_exactly(running, family, scale, exact, release, rng)
        return
    # ``release`` holds the noise alone until the step is over, and then the sum is added.
    running.clock[0] += 1
    step(running, family, scale * running.column_norm, release, rng)
    for i in range(exact.size):
        running.total[i] += exact[i]
        release[i] += running.total[i]


@cache
def mechanism_of(kind: int) -> Kernel:
    """Returns ``mechanism(running, family, scale, exact, release, rng)``.  It adds a statistic to a
    running sum of that kind, and writes the noisy sum into ``release``.  Without a running sum it
    writes the noisy statistic; after the planned number of releases it writes NaN.

    ``scale`` is the noise multiplier times the sensitivity of this statistic; the column norm is
    applied here.  Simulation only: ``rng`` can be predicted.  For the noise
    of ``Hemisphere`` see ``release_replaced``.
    """
    return _release_alone if kind == SINGLE else bind(_release_prefix_sum, step=STEPS[kind])


@entry
def _from_python(
    running: RunningSum, family: int, scale: float, exact: Vector, release: Vector, rng: Generator
) -> None:
    step(running, family, scale, exact, release, rng)


@cache
def mechanism_from_python(kind: int) -> Kernel:
    """``mechanism_of`` for callers that hand over a Python generator."""
    return bind(_from_python, step=mechanism_of(kind))
