"""Ridge regression on public features, kept under rank-one updates: what linear bandits share.

``precision`` is V = lambda I + sum of x x^T, ``inverse`` its inverse, ``factor`` a lower triangle F with V = F F^T.  Nothing here
allocates, and ``work`` arrays hold nothing between calls.
"""

from __future__ import annotations

import numpy as np

from ...kernel import kernel

_HALVINGS = 40  # of the search for the smallest eigenvalue


@kernel
def multiply(matrix, x, out):
    """``out`` = matrix x, for a symmetric matrix."""
    for i in range(x.size):
        out[i] = 0.0
    for j in range(x.size):
        for i in range(x.size):  # along rows, so that the loop runs on neighbours
            out[i] += matrix[j, i] * x[j]


@kernel
def dot(x, y):
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel
def add_observation(precision, inverse, x, n, work):
    """Add n x x^T (n may be -1, to take one back) to V; returns by how much log det V grows."""
    multiply(inverse, x, work)
    growth = n * dot(x, work)
    gain = n / (1.0 + growth)
    for i in range(x.size):
        for j in range(x.size):
            precision[i, j] += n * x[i] * x[j]
            inverse[i, j] -= gain * work[i] * work[j]
    return np.log1p(growth)


@kernel
def factorise(matrix, shift, factor):
    """Cholesky factor of matrix - shift I; False where that is not positive definite."""
    for j in range(matrix.shape[0]):
        pivot = matrix[j, j] - shift
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        if not pivot > 0.0:
            return False
        factor[j, j] = np.sqrt(pivot)
        for i in range(j + 1, matrix.shape[0]):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / factor[j, j]
            factor[j, i] = 0.0
    return True


@kernel
def solve_lower(factor, x):
    """Solve F y = x in place."""
    for i in range(x.size):
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] /= factor[i, i]


@kernel
def solve_upper(factor, x):
    """Solve F^T y = x in place."""
    for i in range(x.size - 1, -1, -1):
        for k in range(i + 1, x.size):
            x[i] -= factor[k, i] * x[k]
        x[i] /= factor[i, i]


@kernel
def invert(factor, inverse):
    """``inverse`` = (F F^T)^-1, exactly symmetric."""
    d = factor.shape[0]
    for j in range(d):
        column = inverse[j]
        for i in range(d):
            column[i] = 0.0
        column[j] = 1.0
        solve_lower(factor, column)
        solve_upper(factor, column)
    for i in range(d):
        for j in range(i):
            inverse[i, j] = inverse[j, i] = 0.5 * (inverse[i, j] + inverse[j, i])


@kernel
def smallest_eigenvalue(matrix, floor, factor):
    """A lower bound on the smallest eigenvalue of a symmetric matrix, tight to one part in 1e6; ``floor`` is a known one."""
    high = matrix[0, 0]
    for i in range(1, matrix.shape[0]):
        high = min(high, matrix[i, i])
    low = min(floor, high)
    for _ in range(_HALVINGS):
        if high - low <= 1e-6 * low:
            break
        middle = 0.5 * (low + high)
        if factorise(matrix, middle, factor):
            low = middle
        else:
            high = middle
    return low


@kernel
def update_factor(factor, x, n):
    """The factor of V + n x x^T, for n = 1 or -1; destroys x."""
    for k in range(x.size):
        squared = factor[k, k] ** 2 + n * x[k] ** 2
        radius = np.sqrt(max(squared, 1e-300))
        cosine, sine = radius / factor[k, k], x[k] / factor[k, k]
        factor[k, k] = radius
        for i in range(k + 1, x.size):
            factor[i, k] = (factor[i, k] + n * sine * x[i]) / cosine
            x[i] = cosine * x[i] - sine * factor[i, k]


@kernel
def most_optimistic(view, estimate, inverse, radius, spread, work):
    """arg max over arms of <x, estimate> + radius |x|_{V^-1} + spread |V^-1 x|; the first of equals.

    ``radius`` multiplies the uncertainty of sampled rewards, ``spread`` that of noise of equal size in all directions.
    """
    best, arm = -np.inf, 0
    for a in range(view.shape[0]):
        x = view[a]
        multiply(inverse, x, work)
        index = dot(x, estimate) + radius * np.sqrt(max(dot(x, work), 0.0))
        if spread > 0.0:
            index += spread * np.sqrt(dot(work, work))
        if index > best:
            best, arm = index, a
    return arm
