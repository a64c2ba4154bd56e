"""Matrices that weight features with small or rare directions.

Features z are at most 1 long.  A symmetric positive matrix A and a damping g > 0 turn them into

    u = w A z ,   w = 1 / (1 + g |A z|)     (central; with g = infinity w = 1 / |A z|: local) ,

and A is the *information weighting* of the people, of the ridge b > 0, where

    E[w A z z^T A] + b A = I .

Then E[u z^T] = A^-1 - b.  So u is an instrument for z whose cross-moments are as large as a bounded
u allows.  Noise n on the mean of u y moves the estimate by A n.  Its size E|<z, A n>| <= E|A z| |n|
does not contain the least eigenvalue of E[z z^T].  In the local model E|A z| <= d, by the trace.

**How it is found.**  With B = E[w z z^T] held fixed, A = f(B) solves A B A + b A = I, with f(x) = 1
/ (sqrt(x + b^2 / 4) + b / 2) on the eigenvalues.  Each step estimates B at the last A, as A^-1/2 P
A^-1/2 from P = E[p p^T], p = sqrt(w) A^1/2 z, and goes to f(B).  Where all people look the same
direction by direction, this halves the distance of log A from its limit.

**The effect of replacing one person.** Let a be the largest eigenvalue of A, which is public, and c
= a / (1 + g a) (local: c = 1).  Then

    |u| <= c    and    |p|^2 <= c ,

both reached by the eigenvector of a.  *Proof.*  |u| = h(|A z|) with h(s) = s / (1 + g s) increasing
and |A z| <= a.  |p|^2 = w <z, A z> <= w |A z| = |u|.  QED

So with residuals in [-1, 1], r u / c has length at most 1, and svec(p p^T) / c too.  Replacing a
person moves the sum of the first by at most 2 (the same z, residuals -1 and 1). It moves that of
the second by at most sqrt(2), because |p p^T - q q^T|^2 = |p|^4 + |q|^4 - 2 <p, q>^2 <= 2 c^2.
Equality holds where A has the eigenvalue a twice, or in the local model, for two orthogonal
eigenvectors.  With one feature p p^T is a number in [0, c], and sqrt(2) becomes 1.  The code cuts
lengths to these bounds, so they hold for any A.

With secure noise coordinates are rounded to the grid, which adds grid sqrt(size), as in
``dpbandits.glm.scores``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

_UP = 1.0 + 1e-12  # outweighs the rounding of lengths
_ROOT = math.sqrt(2.0)
_TINY = 1e-300


def weighting_of(moments: np.ndarray, ridge: float) -> np.ndarray:
    """f(B), the solution of A B A + ridge A = I, for a symmetric B without negative eigenvalues.

    >>> weighting_of(np.diag([0.0, 0.75]), 1.0).tolist()  # 0.75 / 1.5^2 + 1 / 1.5 = 1
    [[1.0, 0.0], [0.0, 0.6666666666666666]]
    """
    values, vectors = np.linalg.eigh(moments)
    solved = 1.0 / (np.sqrt(np.maximum(values, 0.0) + 0.25 * ridge**2) + 0.5 * ridge)
    return _symmetric((vectors * solved) @ vectors.T)


@dataclass(frozen=True)
class Weighting:
    """A, the damping, and the weighted features for features that are at most 1 long."""

    matrix: np.ndarray  # (d, d) A
    damping: float  # g > 0; infinity for the local model

    @cached_property
    def _roots(self) -> tuple[np.ndarray, np.ndarray]:
        """A^1/2 and A^-1/2."""
        values, vectors = np.linalg.eigh(self.matrix)
        roots = np.sqrt(np.maximum(values, _TINY))
        return _symmetric((vectors * roots) @ vectors.T), _symmetric((vectors / roots) @ vectors.T)

    @cached_property
    def largest(self) -> float:
        """a."""
        return float(np.linalg.eigvalsh(self.matrix)[-1])

    @property
    def bound(self) -> float:
        """c."""
        if math.isinf(self.damping):
            return 1.0
        return self.largest / (1.0 + self.damping * self.largest)

    def _weights(self, features: np.ndarray) -> np.ndarray:
        """w / c for each row."""
        lengths = np.linalg.norm(features @ self.matrix, axis=1)
        if math.isinf(self.damping):
            return 1.0 / np.maximum(lengths, _TINY)
        return 1.0 / (1.0 + self.damping * lengths) / self.bound

    def instruments(self, features: np.ndarray) -> np.ndarray:
        """u / c for each row, shape (n, d), of length at most 1."""
        return at_most_1((features @ self.matrix) * self._weights(features)[:, None])

    def squares(self, features: np.ndarray) -> np.ndarray:
        """svec(p p^T) / c for each row, shape (n, d (d + 1) / 2), of length at most 1."""
        turned = features @ self._roots[0]
        rows = at_most_1(turned * np.sqrt(self._weights(features))[:, None])
        above = np.triu_indices(rows.shape[1], 1)
        return np.hstack((rows**2, _ROOT * rows[:, above[0]] * rows[:, above[1]]))

    def moments(self, mean_square: np.ndarray) -> np.ndarray:
        """B = E[w z z^T] from a noisy mean of p p^T / c, whose true eigenvalues are in [0, 1]."""
        values, vectors = np.linalg.eigh(mean_square)
        clipped = (vectors * np.clip(values, 0.0, 1.0)) @ vectors.T
        return _symmetric(self.bound * self._roots[1] @ clipped @ self._roots[1])


def square_sensitivity(dimension: int, grid: float = 0.0) -> float:
    """The most that a replacement moves the sum of ``Weighting.squares``.

    >>> round(square_sensitivity(3) ** 2, 6), round(square_sensitivity(1), 6)
    (2.0, 1.0)
    """
    size = dimension * (dimension + 1) // 2
    return math.sqrt(min(2, dimension)) * _UP + grid * math.sqrt(size)


def score_sensitivity(dimension: int, grid: float = 0.0) -> float:
    """The most that a replacement moves the sum of residuals in [-1, 1] times instruments."""
    return 2.0 * _UP + grid * math.sqrt(dimension)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * (matrix + matrix.T))


def at_most_1(rows: np.ndarray) -> np.ndarray:
    """Rows, those scaled to length 1 that are longer."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0))
