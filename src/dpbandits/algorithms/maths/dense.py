"""Small dense linear algebra for kernels: in place, on the leading n x n block, not allocating.

The matrices here are a few dozen rows wide, where calls of a library cost more than the arithmetic.
Inner loops run along a row, on neighbours, which vector instructions need.  Each entry sees the
textbook's operations in the textbook's order, hence it is rounded in the same way.
"""

from __future__ import annotations

import numpy as np

from ...kernel import Matrix, Vector, inlined, kernel, outlined

_SWEEPS = 12  # over all pairs; a few are enough, since errors are squared in each


@inlined
def _subtract(
    row: Vector, weights: Vector, rows: Matrix, first: int, last: int, start: int, stop: int
) -> None:
    """Subtract weights[k] rows[k], k from ``first`` to ``last``, from columns ``start`` to ``stop``
    of a row, one k after the other.
    """
    whole = last - (last - first) % 4
    for k in range(first, whole, 4):
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for j in range(start, stop):
            left = row[j] - w0 * rows[k, j] - w1 * rows[k + 1, j]
            row[j] = left - w2 * rows[k + 2, j] - w3 * rows[k + 3, j]
    for k in range(whole, last):
        for j in range(start, stop):
            row[j] -= weights[k] * rows[k, j]


@outlined
def factorise(matrix: Matrix, shift: float, factor: Matrix, n: int) -> bool:
    """The Cholesky factor of matrix - shift I, 0 above it, perhaps in place; False: none."""
    # Its transpose fills the upper triangle, because the lower one may hold the matrix.
    for j in range(n):
        row = factor[j]
        for i in range(j, n):
            row[i] = matrix[i, j]
        row[j] -= shift
        _subtract(row, factor[:, j], factor, 0, j, j, n)
        if not row[j] > 0.0:  # also for NaN
            return False
        row[j] = np.sqrt(row[j])
        for i in range(j + 1, n):
            row[i] /= row[j]
    for j in range(n):
        for i in range(j + 1, n):
            factor[i, j] = factor[j, i]
            factor[j, i] = 0.0
    return True


@kernel
def solve_lower(factor: Matrix, x: Vector, n: int) -> None:
    """Overwrite x with L^-1 x."""
    for i in range(n):
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] /= factor[i, i]


@kernel
def solve_upper(factor: Matrix, x: Vector, n: int) -> None:
    """Overwrite x with L^-T x."""
    # From the last row up, the only one of L^T with a single entry.
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= factor[k, i] * x[k]
        x[i] /= factor[i, i]


@outlined
def invert(factor: Matrix, inverse: Matrix, n: int) -> None:
    """Fill ``inverse`` with (L L^T)^-1, exactly symmetric."""
    for i in range(n):
        row = inverse[i]
        for j in range(n):
            row[j] = 1.0 if i == j else 0.0
        _subtract(row, factor[i], inverse, 0, i, 0, i)
        for j in range(i + 1):
            row[j] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        row = inverse[i]
        _subtract(row, factor[:, i], inverse, i + 1, n, 0, n)
        for j in range(n):
            row[j] /= factor[i, i]
    for i in range(n):
        for j in range(i):
            # Rounding makes the two differ, and callers read rows as columns.
            inverse[i, j] = inverse[j, i] = 0.5 * (inverse[i, j] + inverse[j, i])


@outlined
def tridiagonalise(matrix: Matrix, work: Vector, n: int) -> None:
    """Turn a symmetric matrix into a tridiagonal one with the same eigenvalues: the diagonal and
    the entries below it; by Householder's reflections (Golub & Van Loan, Section 8.3).
    """
    for k in range(n - 2):
        m, squares = n - k - 1, 0.0
        v, w = matrix[k, k + 1 : n], work[:m]
        for i in range(m):
            squares += v[i] * v[i]
            w[i] = 0.0
        below = -np.sqrt(squares) if v[0] > 0.0 else np.sqrt(squares)
        half = squares - v[0] * below  # of |v|^2, by what follows
        v[0] -= below
        matrix[k + 1, k] = below
        if half == 0.0:
            continue
        for i in range(m):
            row, a = matrix[k + 1 + i, k + 1 : n], v[i]
            for j in range(m):
                w[j] -= a * row[j]
        along = 0.0
        for i in range(m):
            along += w[i] * v[i]
        for i in range(m):
            w[i] = (0.5 * (along / half) * v[i] - w[i]) / half
        for i in range(m):
            row, a, b = matrix[k + 1 + i, k + 1 : n], v[i], w[i]
            for j in range(m):
                row[j] -= a * w[j] + b * v[j]


@kernel
def _rotate(matrix: Matrix, vectors: Matrix, p: int, q: int, n: int) -> None:
    """Rotate two coordinates such that matrix[p, q] becomes 0."""
    ratio = (matrix[q, q] - matrix[p, p]) / (2.0 * matrix[p, q])
    sign = 1.0 if ratio >= 0.0 else -1.0
    # The smaller root of t^2 + 2 ratio t = 1; ``hypot`` does not overflow where ratio^2 does.
    tangent = sign / (abs(ratio) + np.hypot(1.0, ratio))
    cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
    sine = cosine * tangent
    for k in range(n):
        x, y = matrix[k, p], matrix[k, q]
        matrix[k, p], matrix[k, q] = cosine * x - sine * y, sine * x + cosine * y
        x, y = vectors[k, p], vectors[k, q]
        vectors[k, p], vectors[k, q] = cosine * x - sine * y, sine * x + cosine * y
    for k in range(n):
        x, y = matrix[p, k], matrix[q, k]
        matrix[p, k], matrix[q, k] = cosine * x - sine * y, sine * x + cosine * y


@outlined
def diagonalise(matrix: Matrix, vectors: Matrix, n: int) -> None:
    """Turn a symmetric matrix into its eigenvalues, on the diagonal, with the eigenvectors in the
    columns of ``vectors``: Jacobi's rotations (Golub & Van Loan, Section 8.5).
    """
    for i in range(n):
        for j in range(n):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(_SWEEPS):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if matrix[p, q] != 0.0:
                    _rotate(matrix, vectors, p, q, n)
