"""The binary tree whose nodes have Wishart noise, and how that is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...kernel import Generator, Vector, kernel
from .running_sums import STEPS, RunningSum, add_node
from .trees import BinaryTree

_WISHART = 8  # the kinds before it are those of ``running_sums``
_ROOT = math.sqrt(2.0)


@kernel
def _place(d: int, j: int, i: int) -> int:
    """The index of the entry (j, i), j < i, after the vector and the diagonal."""
    return 2 * d + j * d - j * (j + 1) // 2 + i - j - 1


@kernel
def _draw_factor(freedom: float, d: int, noise: Vector, rng: Generator) -> None:
    """The lower triangular factor T of W = T T^T (Bartlett).  It has roots of chi2(k), chi2(k - 1),
    ... on the diagonal, and normal variables below it.  Its last row comes first, without its end.
    """
    for i in range(d):
        noise[i] = rng.standard_normal()
        noise[d + i] = np.sqrt(2.0 * rng.standard_gamma(0.5 * (freedom - i)))
        for j in range(i):
            noise[_place(d, j, i)] = rng.standard_normal()


@kernel
def _multiply_factor(d: int, noise: Vector) -> None:
    """T T^T in T's place, from the last row on: entries serve only below and to the right."""
    for i in range(d - 1, -1, -1):
        last, square = noise[d + i] * noise[i], noise[d + i] * noise[d + i]
        for j in range(i):
            t = noise[_place(d, j, i)]
            last += t * noise[j]
            square += t * t
        noise[i], noise[d + i] = last, square
        for j in range(i - 1, -1, -1):
            entry = noise[_place(d, j, i)] * noise[d + j]
            for h in range(j):
                entry += noise[_place(d, h, i)] * noise[_place(d, h, j)]
            noise[_place(d, j, i)] = entry


@kernel
def draw_wishart(freedom: float, scale: float, d: int, noise: Vector, rng: Generator) -> None:
    """Fill ``noise`` with the entries of a centred Wishart matrix of side d + 1.  These are its
    last column without its end, and ``svec`` of the rest, d + d (d + 1) / 2 in all.  The law is
    W(scale I, freedom), less its mean.  Simulation only: ``rng`` can be predicted.
    """
    _draw_factor(freedom, d, noise, rng)
    _multiply_factor(d, noise)
    for i in range(d):
        noise[i] *= scale
        # Less the mean, which is scale times freedom on the diagonal; ``svec`` has the root below.
        noise[d + i] = scale * (noise[d + i] - freedom)
    for i in range(2 * d, noise.size):
        noise[i] *= _ROOT * scale


@kernel
def _wishart(running: RunningSum, family: int, width: float, noise: Vector, rng: Generator) -> None:
    """A Wishart matrix in each block of a node; ``family`` and ``width`` serve accounting alone."""
    freedom, scale, d = running.table[0, 0], running.table[0, 1], int(running.table[0, 2])
    size = d + d * (d + 1) // 2
    for first in range(0, noise.size, size):
        draw_wishart(freedom, scale, d, noise[first : first + size], rng)
    add_node(running.clock[0], 0, running.memory, noise)


STEPS[_WISHART] = _wishart


@dataclass(frozen=True)
class WishartTree(BinaryTree):
    """A binary tree with a centred Wishart matrix in every node.  It sums outer products of records
    (x, r), without r^2, as blocks of [sum of x r ; svec(sum of x x^T)].

    ``dpbandits.papers.shuffle.wishart_noise`` proves its cost; no channel's multiplier gives it.

    Args:
        horizon: the number of releases planned.
        freedom: k of W(scale I, k).
        scale: the squared length of the longest (x, r).
        dimension: of x.
    """

    freedom: float = 1.0
    scale: float = 1.0
    dimension: int = 1
    kind: ClassVar[int] = _WISHART

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        table = np.array([[self.freedom, self.scale, float(self.dimension)]])
        return table, self.horizon.bit_length()
