"""Ridge regression under rank-one updates, against NumPy."""

from itertools import product

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.algorithms.maths import dense, ridge


def spd(d, seed, condition=1e3):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    matrix = basis @ np.diag(np.geomspace(1.0, condition, d)) @ basis.T
    return (matrix + matrix.T) / 2


SIZES = pytest.mark.parametrize("d", [1, 2, 5, 25])


@SIZES
@pytest.mark.parametrize("n", [1, -1, 3])
def test_adding_and_taking_back_an_observation_is_numpys(d, n):
    rng, precision = np.random.default_rng(d), spd(d, d)
    x = 0.1 * rng.standard_normal(d)
    inverse, before = np.linalg.inv(precision), precision.copy()
    factor = ridge.add_observation(precision, inverse, x, n, np.full(d, np.nan))
    assert precision == pytest.approx(before + n * np.outer(x, x), rel=1e-12)
    assert inverse == pytest.approx(np.linalg.inv(before + n * np.outer(x, x)), rel=1e-9)
    assert np.log(factor) == pytest.approx(
        np.linalg.slogdet(precision)[1] - np.linalg.slogdet(before)[1], rel=1e-8
    )


@SIZES
@pytest.mark.parametrize("n", [1, -1])
def test_an_updated_factor_is_the_factor_of_the_sum(d, n):
    rng, precision = np.random.default_rng(d), spd(d, d)
    factor = np.linalg.cholesky(precision)
    for _ in range(20):
        x = 0.1 * rng.standard_normal(d)
        precision += n * np.outer(x, x)
        ridge.update_factor(factor, x.copy(), n)
    assert factor == pytest.approx(np.linalg.cholesky(precision), rel=1e-9, abs=1e-12)


@SIZES
def test_taking_back_what_was_added_restores_the_factor(d):
    factor, x = np.linalg.cholesky(spd(d, d)), np.linspace(-1.0, 1.0, d)
    before = factor.copy()
    ridge.update_factor(factor, x.copy(), 1)
    assert factor != pytest.approx(before)
    ridge.update_factor(factor, x.copy(), -1)
    assert factor == pytest.approx(before, rel=1e-10, abs=1e-12)


@SIZES
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e8])
def test_factor_solve_and_inverse_are_numpys(d, condition):
    matrix, x = spd(d, d, condition), np.random.default_rng(d).standard_normal(d)
    factor, inverse, product = np.full((d, d), np.nan), np.full((d, d), np.nan), np.full(d, np.nan)
    assert dense.factorise(matrix, 0.0, factor, d)
    assert factor == pytest.approx(np.linalg.cholesky(matrix), rel=1e-8, abs=1e-8)
    lower, upper = x.copy(), x.copy()
    dense.solve_lower(factor, lower, d)
    dense.solve_upper(factor, upper, d)
    assert factor @ lower == pytest.approx(x, rel=1e-8, abs=1e-8)
    assert factor.T @ upper == pytest.approx(x, rel=1e-8, abs=1e-8)
    dense.invert(factor, inverse, d)
    assert inverse @ matrix == pytest.approx(np.eye(d), abs=1e-14 * condition * d + 1e-12)
    assert np.array_equal(inverse, inverse.T)
    ridge.multiply(matrix, x, product)
    assert product == pytest.approx(matrix @ x, rel=1e-12, abs=1e-9)
    assert ridge.dot(x, x) == pytest.approx(x @ x)


def test_what_is_not_positive_definite_has_no_factor():
    factor = np.zeros((2, 2))
    for matrix in (
        [[1.0, 2.0], [2.0, 1.0]],
        [[0.0, 0.0], [0.0, 1.0]],
        [[np.nan, 0.0], [0.0, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
    ):
        assert not dense.factorise(np.array(matrix), 0.0, factor, 2)
    assert not dense.factorise(np.eye(2), 1.0, factor, 2)
    assert dense.factorise(np.eye(2), 0.999, factor, 2)


@SIZES
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6, 1e12])
@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_eigenvalue_is_bounded_from_below_and_tightly(d, condition, seed):
    matrix = 3.0 * spd(d, seed, condition)
    true = np.linalg.eigvalsh(matrix)[0]
    for floor, tightness in product((1e-3, 0.5, 2.9), (1e-6, 0.1)):
        factor, work = np.full((d, d), np.nan), np.full((3, d + 1), np.nan)
        found = ridge.smallest_eigenvalue(matrix, floor, tightness, factor, work)
        assert found <= true * (1 + 1e-14 * condition + 1e-12)
        assert found >= true * (1 - 1e-5 - tightness) - np.diag(matrix).min() * 2.0**-39
        assert found == halved(matrix, floor, tightness)  # to the bit


@SIZES
def test_shifts_are_decided_as_by_the_factor(d):
    rng, factor, work = np.random.default_rng(d), np.zeros((d, d)), np.zeros((3, d))
    for matrix in (spd(d, 1, 1e9), spd(d, 2) - 30.0 * np.eye(d)):  # the last is indefinite
        slack = ridge.prepare_shifts(matrix, factor, work)
        true = np.linalg.eigvalsh(matrix)[0]
        distances = np.append(rng.normal(size=40) * 10.0 ** -np.arange(40.0), 0.0)
        told = [
            [ridge.exceeds(matrix, true + x, some, np.zeros((d, d)), work) for x in distances]
            for some in (slack, np.inf)
        ]
        assert told[0] == told[1]  # an infinite slack leaves all to the factor
        assert slack < 1e-12 * d * np.linalg.norm(matrix)


def halved(matrix, low, tightness):
    """The bound by halving the interval, with a Cholesky factor for each half."""
    high = np.diag(matrix).min()
    low = min(low, high)
    for _ in range(40):
        if high - low <= tightness * low:
            return low
        middle, factor = 0.5 * (low + high), np.zeros_like(matrix)
        if dense.factorise(matrix, middle, factor, len(matrix)):
            low = middle
        else:
            high = middle
    return low


@pytest.mark.parametrize("search", [ridge.most_optimistic_of_few, ridge.most_optimistic_of_many])
@pytest.mark.long
def test_the_most_optimistic_arm_is_that_of_the_formula(search):
    rng = np.random.default_rng(3)
    for longest in np.repeat([np.inf, 1e3], 100):
        inverse, contexts, estimate = (
            np.linalg.inv(spd(3, 1)),
            rng.standard_normal((6, 3)),
            rng.standard_normal(3),
        )
        radius, spread = rng.exponential(2, 2)
        widths = np.sqrt(np.einsum("ki,ij,kj->k", contexts, inverse, contexts))
        for side in (0.0, spread):
            index = (
                contexts @ estimate
                + radius * widths
                + side * np.linalg.norm(contexts @ inverse, axis=1)
            )
            assert (
                search(contexts, estimate, inverse, longest, radius, side, np.full((3, 6), np.nan))
                == index.argmax()
            )
    assert search(np.ones((4, 3)), np.ones(3), np.eye(3), 1.0, 1.0, 0.0, np.zeros((3, 4))) == 0


@pytest.mark.long
@pytest.mark.parametrize("make", ["LinUCB", "RSOFUL", "LinearThompson"])
def test_inverse_and_factor_stay_accurate_over_many_rounds(make):
    """Nearly collinear features, the worst case for rank-one updates: the precision's condition
    number passes 1e4.
    """
    options = {"budget": None, "horizon": 10**6} if make == "LinearThompson" else {}
    policy = getattr(dpb.algorithms, make)(1, 5, **options)
    rng, kernels, state = np.random.default_rng(1), policy.kernels, policy.new_state()
    public = state.public
    features = np.array([1.0, 0.0, 0.0, 0.0, 0.0]) + 0.005 * rng.standard_normal((1000, 5))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    exact = np.eye(5)
    for t in range(20_000):
        kernels.record_pull(policy.params, public, 0, features[t % 1000], 1)
        if t % 100 == 99:
            kernels.close(policy.params, public, state.memo)
            kernels.publish(policy.params, public, state.memo, np.zeros(5))
    exact += 20 * features.T @ features
    assert np.linalg.cond(exact) > 1e4
    assert public.precision.reshape(5, 5) == pytest.approx(exact, rel=1e-9)
    assert public.inverse.reshape(5, 5) @ exact == pytest.approx(np.eye(5), abs=1e-6)
    assert public.facts[0] == pytest.approx(np.linalg.slogdet(exact)[1], rel=1e-9)
    if make == "LinearThompson":
        assert public.factor[0] @ public.factor[0].T == pytest.approx(exact, rel=1e-9)
