"""The compiled side of continual sums: one structure and one step for every mechanism, so that one compiled loop serves all.

The noise of a node or row is drawn once, with the scale of the release that draws it, and kept; what leaves is the exact sum plus
a public combination of the noise that was kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...kernel import entry, kernel
from ..channels import GAUSSIAN, LAPLACE, OPEN, pass_through, perturb
from .buffers import BUFFERS

SINGLE, TREE, HONAKER, TOEPLITZ, BUFFERED, HYBRID, INDEPENDENT = range(7)

_DECAY, _WEIGHT = 0, 1  # rows of the table of a buffered sum


class Running(NamedTuple):
    """A running sum at the wall; of the same types for every mechanism, and of none (``SINGLE``)."""

    kind: int
    limit: int  # releases planned; 0 for any number
    column: float  # the column norm of C, in the channel's norm
    clock: np.ndarray  # (1,) int64: releases so far
    table: np.ndarray  # (r, c) float64 public coefficients; what they are depends on the kind
    memory: np.ndarray  # (m, n) float64 noise that was drawn
    total: np.ndarray  # (n,) float64, private: the exact sum so far


def single() -> Running:
    """No running sum: every release is a statistic of its own, with noise of its own.

    >>> single().kind == SINGLE
    True
    """
    return Running(SINGLE, 0, 1.0, np.zeros(1, np.int64), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0))


@kernel
def is_spent(running):
    """Whether all planned releases have been made."""
    return running.limit > 0 and running.clock[0] >= running.limit


@kernel
def lowest_bit(t):
    """The place of the lowest one of a positive integer, from 0."""
    place = 0
    while (t >> place) & 1 == 0:
        place += 1
    return place


@kernel
def highest_bit(t):
    """The place of the highest one of a positive integer, from 0."""
    place = 0
    while t >> (place + 1):
        place += 1
    return place


@kernel
def draws_of(running):
    """How many noise variables the coming release draws for each coordinate."""
    return lowest_bit(running.clock[0] + 1) + 1 if running.kind == HONAKER else 1


@kernel
def _one(family, rng):
    if family == GAUSSIAN:
        return rng.standard_normal()
    if family == LAPLACE:
        return rng.laplace(0.0, 1.0)
    return np.nan  # never the sum itself, for want of noise


@kernel
def _fresh(family, width, row, memory, rng):
    for i in range(memory.shape[1]):
        memory[row, i] = width * _one(family, rng)


@kernel
def _gather(places, above, memory, noise):
    """Add up the rows of ``memory`` that follow row ``above``, one for each place of a one in ``places``."""
    row = above
    while places:
        if places & 1:
            for i in range(noise.size):
                noise[i] += memory[row, i]
        places >>= 1
        row += 1


@kernel
def _tree(t, first, family, width, memory, noise, rng):
    """The node that ends at t in a row of its level, counted from ``first``, and the nodes that make up 1..t."""
    _fresh(family, width, first + lowest_bit(t), memory, rng)
    _gather(t, first, memory, noise)


@kernel
def _honaker(t, family, width, table, memory, noise, rng):
    """All nodes that end at t, from the leaf up: each is averaged with what its halves say, weighted by their precision."""
    top = lowest_bit(t)
    for i in range(noise.size):
        noise[i] = width * _one(family, rng)
    for level in range(1, top + 1):
        own = table[0, level]
        for i in range(noise.size):
            noise[i] = own * width * _one(family, rng) + (1.0 - own) * (memory[level - 1, i] + noise[i])
    for i in range(noise.size):
        memory[top, i] = noise[i]
    _gather(t >> (top + 1), top + 1, memory, noise)


@kernel
def _hybrid(t, family, width, table, memory, noise, rng):
    """A noisy block at every power of two, which adds to row 0; between them the nodes of a tree, in the rows after it."""
    depth = highest_bit(t)
    inside = t - (1 << depth)
    if inside:
        _tree(inside, 1, family, width * table[0, depth], memory, noise, rng)
    else:
        for i in range(noise.size):
            memory[0, i] += width * table[0, 0] * _one(family, rng)
    for i in range(noise.size):
        noise[i] += memory[0, i]


@kernel
def _toeplitz(t, family, width, table, memory, noise, rng):
    _fresh(family, width, t - 1, memory, rng)
    for s in range(t):
        weight = table[0, t - 1 - s]
        for i in range(noise.size):
            noise[i] += weight * memory[s, i]


@kernel
def _buffered(family, width, table, memory, noise, rng):
    for i in range(noise.size):
        noise[i] = width * _one(family, rng)
    for i in range(noise.size):
        fresh, sum_of_buffers = noise[i], 0.0
        for row in range(BUFFERS + 1):
            kept = table[_DECAY, row] * memory[row, i] + fresh
            memory[row, i] = kept
            sum_of_buffers += table[_WEIGHT, row] * kept
        noise[i] = sum_of_buffers


@kernel
def _independent(family, width, memory, noise, rng):
    for i in range(noise.size):
        memory[0, i] += width * _one(family, rng)
        noise[i] = memory[0, i]


@kernel
def pass_on(running, family, scale, statistic, release, rng):
    """``disclose`` through the open channel alone, which needs no generator."""
    if running.kind == SINGLE:
        pass_through(family, scale, statistic, release, rng)
        return
    over = is_spent(running)
    running.clock[0] += 1
    for i in range(statistic.size):
        running.total[i] += statistic[i]
        release[i] = np.nan if over else running.total[i]


@kernel
def disclose(running, family, scale, statistic, release, rng):
    """Add the statistic to the running sum and write the noisy sum into ``release``; without a running sum, ``perturb``.

    Args:
        running: changed in place.
        family: of the channel.
        scale: noise multiplier times the sensitivity of this statistic; the mechanism's column norm is applied here.
        statistic: (n,) what is added.
        release: (n,) receives the noisy sum; NaN after the planned number of releases.
        rng: a generator.  Simulation only: it can be predicted.
    """
    if running.kind == SINGLE:
        perturb(family, scale, statistic, release, rng)
        return
    over = is_spent(running)
    if family == OPEN or over:
        pass_on(running, family, scale, statistic, release, rng)
        return
    kind, table, memory = running.kind, running.table, running.memory
    width = scale * running.column
    running.clock[0] += 1
    t = running.clock[0]
    for i in range(release.size):
        release[i] = 0.0
    if kind == BUFFERED:
        _buffered(family, width, table, memory, release, rng)
    elif kind == TREE:
        _tree(t, 0, family, width, memory, release, rng)
    elif kind == HONAKER:
        _honaker(t, family, width, table, memory, release, rng)
    elif kind == TOEPLITZ:
        _toeplitz(t, family, width, table, memory, release, rng)
    elif kind == HYBRID:
        _hybrid(t, family, width, table, memory, release, rng)
    else:
        _independent(family, width, memory, release, rng)
    for i in range(statistic.size):
        running.total[i] += statistic[i]
        release[i] += running.total[i]


@entry
def disclose_from_python(running, family, scale, statistic, release, rng):
    """``disclose`` for callers that hand over a Python generator."""
    disclose(running, family, scale, statistic, release, rng)
