"""Small dense linear algebra for kernels: in place, on the leading n x n block, not allocating.

The matrices here are a few dozen rows wide, where calls of a library cost more than the arithmetic.
"""

from __future__ import annotations

import numpy as np

from ...kernel import Matrix, Vector, kernel, outlined

_SWEEPS = 12  # over all pairs; a few are enough, since errors are squared in each


@outlined
def factorise(matrix: Matrix, shift: float, factor: Matrix, n: int) -> bool:
    """The Cholesky factor of matrix - shift I, 0 above it, perhaps in place; False: none."""
    for j in range(n):
        pivot = matrix[j, j] - shift
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        if not pivot > 0.0:  # also for NaN
            return False
        factor[j, j] = np.sqrt(pivot)
        for i in range(j + 1, n):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / factor[j, j]
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
    for j in range(n):
        row = inverse[j]
        for i in range(n):
            row[i] = 1.0 if i == j else 0.0
        solve_lower(factor, row, n)
        solve_upper(factor, row, n)
    for i in range(n):
        for j in range(i):
            # Rounding makes the two differ, and callers read rows as columns.
            inverse[i, j] = inverse[j, i] = 0.5 * (inverse[i, j] + inverse[j, i])


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
