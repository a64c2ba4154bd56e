"""Dense linear algebra on leading blocks, against NumPy."""

import numpy as np
import pytest

from dpbandits.algorithms.maths.dense import (
    diagonalise,
    factorise,
    invert,
    solve_lower,
    solve_upper,
    tridiagonalise,
)
from dpbandits.papers.concentrated.design import add_outer, dot, multiply

RNG = np.random.default_rng(1)


def padded(a):
    """The matrix or vector as the leading block of a larger one full of rubbish."""
    whole = np.full(tuple(n + 2 for n in a.shape), np.nan)
    whole[tuple(slice(n) for n in a.shape)] = a
    return whole


def textbook(a, shift):
    """Cholesky's factor and the inverse, entry by entry (Golub & Van Loan, Sections 3.1, 4.2)."""
    n, lower, columns = len(a), np.zeros_like(a), []
    for j in range(n):
        for i in range(j, n):
            total = a[i, j] - shift if i == j else a[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(total) if i == j else total / lower[j, j]
    for unit in np.eye(n):
        for i in range(n):
            for k in range(i):
                unit[i] -= lower[i, k] * unit[k]
            unit[i] /= lower[i, i]
        for i in reversed(range(n)):
            for k in range(i + 1, n):
                unit[i] -= lower[k, i] * unit[k]
            unit[i] /= lower[i, i]
        columns.append(unit)
    inverse = np.array(columns)
    return lower, 0.5 * (inverse + inverse.T)


@pytest.mark.parametrize("n", [1, 2, 4, 9, 14])
@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_it_is_rounded_as_the_textbook(n, shift):
    root = RNG.normal(size=(n, n))
    a = root @ root.T + 0.1 * np.eye(n)
    lower, inverse = textbook(a, shift)
    apart, within, found = np.full((n, n), np.nan), padded(a), np.full((n, n), np.nan)
    assert factorise(a, shift, apart, n)
    assert factorise(within, shift, within, n)
    invert(apart, found, n)
    assert (apart == lower).all()
    assert (within[:n, :n] == lower).all()
    assert (found == inverse).all()
    assert not factorise(a, np.linalg.eigvalsh(a)[0] * (1 + 1e-9), within, n)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.long
def test_it_agrees_with_numpy_on_the_leading_block(n):
    root, x, y = RNG.normal(size=(n, n)), RNG.normal(size=n), RNG.normal(size=n)
    a = root @ root.T + 0.1 * np.eye(n)
    lower = np.linalg.cholesky(a)
    factor, inverse, out = padded(a), padded(a), padded(x)
    assert factorise(factor, 0.0, factor, n)
    assert np.tril(factor[:n, :n]) == pytest.approx(lower, rel=1e-9)
    invert(factor, inverse, n)
    assert inverse[:n, :n] @ a == pytest.approx(np.eye(n), abs=1e-9)
    assert dot(padded(x), padded(y), n) == pytest.approx(x @ y)
    multiply(padded(a), padded(x), out, n)
    assert out[:n] == pytest.approx(a @ x)
    for solve, matrix in ((solve_lower, lower), (solve_upper, lower.T)):
        right = padded(x)
        solve(factor, right, n)
        assert matrix @ right[:n] == pytest.approx(x, abs=1e-9)
    total = padded(a)
    add_outer(total, padded(x), -0.5, n)
    assert total[:n, :n] == pytest.approx(a - 0.5 * np.outer(x, x))


@pytest.mark.parametrize(
    "a", [[[0.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[np.nan]]]
)
def test_what_is_not_positive_definite_is_told(a):
    assert not factorise(np.array(a), 0.0, np.array(a), len(a))


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("rank", [1, 12])
def test_eigenvalues_and_eigenvectors_agree_with_numpy(n, rank):
    root = RNG.normal(size=(n, min(n, rank)))
    a = root @ root.T - 0.3 * np.eye(n)
    turned, vectors = padded(a), padded(a)
    diagonalise(turned, vectors, n)
    found, columns = np.diag(turned[:n, :n]), vectors[:n, :n]
    assert np.sort(found) == pytest.approx(np.linalg.eigvalsh(a), abs=1e-12 * n)
    assert columns.T @ columns == pytest.approx(np.eye(n), abs=1e-12)
    assert columns * found @ columns.T == pytest.approx(a, abs=1e-12 * n)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("rank", [0, 1, 12])
def test_the_tridiagonal_form_has_the_same_eigenvalues(n, rank):
    root = RNG.normal(size=(n, min(n, rank)))
    a = root @ root.T - 0.3 * np.eye(n)
    turned, work = padded(a), np.full(n, np.nan)
    tridiagonalise(turned, work, n)
    below = np.diag(turned[:n, :n], -1)
    found = np.diag(np.diag(turned[:n, :n])) + np.diag(below, -1) + np.diag(below, 1)
    assert np.linalg.eigvalsh(found) == pytest.approx(np.linalg.eigvalsh(a), abs=1e-13 * n)
