"""Optimistic choices: the pruned search finds the arm of the plain one."""

import numpy as np
import pytest

from dpbandits.algorithms.maths.dense import factorise, invert
from dpbandits.algorithms.maths.ridge import (
    WIDE,
    add_observation,
    combine,
    inverse_norm_bound,
    most_optimistic_of_few,
    most_optimistic_of_many,
    multiply,
    smallest_eigenvalue,
)

SIZES = [1, 2, 3, 7, 8, 9, 16, 25]


@pytest.mark.parametrize("d", SIZES)
def test_products(d):
    rng = np.random.default_rng(d)
    matrix, x, out = rng.standard_normal((d, d)), rng.standard_normal(d), np.full(d + 2, np.nan)
    matrix += matrix.T
    multiply(matrix, x, out)
    assert out[:d] == pytest.approx(matrix @ x, rel=1e-12, abs=1e-12)
    for length in (1, 5, 40):
        rows, out = rng.standard_normal((d, length)), np.full(length, np.nan)
        combine(rows, x, out)
        assert out == pytest.approx(x @ rows, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("d", SIZES)
def test_an_observation_added_and_taken_back(d):
    rng = np.random.default_rng(d)
    precision, inverse, work = 2.0 * np.eye(d), 0.5 * np.eye(d), np.zeros(d + 1)
    x, y = rng.standard_normal((2, d))
    add_observation(precision, inverse, x, 1, work)
    factor = add_observation(precision, inverse, y, 1, work)
    expected = 2.0 * np.eye(d) + np.outer(x, x) + np.outer(y, y)
    assert precision == pytest.approx(expected)
    assert inverse == pytest.approx(np.linalg.inv(expected))
    assert factor == pytest.approx(
        np.linalg.det(expected) / np.linalg.det(expected - np.outer(y, y))
    )
    add_observation(precision, inverse, y, -1, work)
    assert inverse == pytest.approx(np.linalg.inv(expected - np.outer(y, y)))


def ridge_after(rounds, d, ridge, rng):
    """V, the eigenvalue bound and the inverse when they were last computed anew, and the inverse
    after as many updates again.
    """
    points = rng.standard_normal((rounds, d)) * np.geomspace(1.0, 1e-3, d)
    precision = ridge * np.eye(d) + points.T @ points
    factor, inverse, work = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    eigenvalue = smallest_eigenvalue(precision, ridge, 1e-6, factor, np.empty((3, d)))
    longest = inverse_norm_bound(precision, eigenvalue)
    factorise(precision, 0.0, factor, d)
    invert(factor, inverse, d)
    before = inverse.copy()
    for x in points:
        add_observation(precision, inverse, x, 1, work)
    return before, inverse, longest


@pytest.mark.parametrize("ridge", [1e-6, 1.0])
@pytest.mark.parametrize("d", [1, 3, 10])
def test_the_norm_bound_holds_for_the_inverse_until_it_is_computed_anew(d, ridge):
    before, after, longest = ridge_after(2000, d, ridge, np.random.default_rng(d))
    top = np.linalg.eigvalsh(before)[-1]
    assert top <= longest**2 <= top * 1.01
    assert np.linalg.eigvalsh(after)[-1] <= longest**2


@pytest.mark.parametrize("spread", [0.0, 0.4])
@pytest.mark.parametrize(("n_arms", "d"), [(1, 1), (5, 3), (10, 3), (30, 9), (25, 25)])
@pytest.mark.long
def test_pruning_never_changes_the_arm(n_arms, d, spread):
    """Against no pruning at all (``longest`` infinite), ties and zero features included; and
    against NumPy up to rounding.
    """
    rng = np.random.default_rng(n_arms)
    most_optimistic = most_optimistic_of_few if d < WIDE else most_optimistic_of_many
    _, inverse, longest = ridge_after(300, d, 1.0, rng)
    work, pruned = np.full((3, max(n_arms, d)), np.nan), 0
    for k in range(300):
        contexts = (
            rng.integers(-1, 2, (n_arms, d)) * 0.5 if k % 2 else rng.standard_normal((n_arms, d))
        )
        estimate, radius = rng.standard_normal(d), 10.0 ** rng.uniform(-3, 2)
        arm = most_optimistic(contexts, estimate, inverse, longest, radius, spread, work)
        assert arm == most_optimistic(contexts, estimate, inverse, np.inf, radius, spread, work)
        images = contexts @ inverse
        index = (
            contexts @ estimate
            + radius * np.sqrt(np.einsum("ai,ai->a", images, contexts))
            + spread * np.linalg.norm(images, axis=1)
        )
        assert index[arm] == pytest.approx(index.max(), rel=1e-9, abs=1e-9)
        pruned += (
            contexts @ estimate
            + (radius + spread * longest) * longest * np.linalg.norm(contexts, axis=1)
            < index.max()
        ).sum()
    assert pruned > 30 or n_arms == 1  # there was something to prune
