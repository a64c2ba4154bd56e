"""Distributions from losses: against brute force, and at the ends of what numbers can hold."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import chisquare

from dpbandits.algorithms.maths import simplex
from dpbandits.algorithms.maths.simplex import draw, exponential_weights, recentre

ALPHA = 1e-4


def tsallis(losses, rate=1.0, start=0.0, power=2.0):
    x = np.full(len(losses), np.nan)
    return simplex.tsallis(np.asarray(losses, float), rate, power, start, x), x


@pytest.mark.parametrize("alpha", [2.0, 1.5, 1.2])
@pytest.mark.parametrize("seed", range(5))
def test_the_leader_minimises_what_it_should(seed, alpha):
    losses = np.random.default_rng(seed).exponential(3.0, size=4)
    losses -= losses.min()
    best = minimize(
        lambda x: 0.7 * losses @ x - alpha * (x ** (1 / alpha)).sum(),
        np.full(4, 0.25),
        jac=lambda x: 0.7 * losses - x ** (1 / alpha - 1),
        bounds=[(1e-9, 1.0)] * 4,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(4)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert best.success
    power = alpha / (alpha - 1)
    assert tsallis(losses, 0.7, power=power)[1] == pytest.approx(best.x, abs=1e-5)


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-3, 1.0, 1e3, 1e12, 1e300])
@pytest.mark.parametrize("tail", ["uniform", "cauchy", "one stands out"])
def test_the_normaliser_is_found_for_losses_of_any_size(n, size, tail):
    rng = np.random.default_rng(n)
    losses = {
        "uniform": rng.random(n),
        "cauchy": np.abs(rng.standard_cauchy(n)),
        "one stands out": np.ones(n),
    }[tail] * size
    losses[rng.integers(n)] = 0.0
    exact = brentq(
        lambda nu: np.sum((losses + nu) ** -2.0) - 1.0, 1.0 - 1e-12, np.sqrt(n) + 1e-12, xtol=1e-15
    )
    for start in (0.0, exact, np.sqrt(n), np.inf):
        nu, x = tsallis(losses, start=start)
        assert nu == pytest.approx(exact, rel=1e-11)
        assert abs(x.sum() - 1.0) < 1e-12
        # Before the final division the sum is as near to one: the root was found, not hidden by it.
        assert abs(np.sum((losses + nu) ** -2.0) - 1.0) < 1e-11


@pytest.mark.parametrize("size", [0.0, 1.0, 1e12, 1e300])
def test_exponential_weights_sum_to_one_and_decrease(size):
    losses = np.sort(np.random.default_rng(3).random(1000)) * size
    losses[0] = 0.0
    p = np.full(1000, np.nan)
    exponential_weights(losses, 0.3, p)
    assert abs(p.sum() - 1.0) < 1e-12
    assert np.all(np.diff(p) <= 0.0)
    if size == 1.0:
        assert p == pytest.approx(np.exp(-0.3 * losses) / np.exp(-0.3 * losses).sum())


def test_recentring_keeps_differences():
    losses = np.array([3.0, -1e9, 7.5])
    recentre(losses)
    assert losses.tolist() == [1e9 + 3.0, 0.0, 1e9 + 7.5]


def test_draws_follow_the_distribution():
    p = np.array([0.5, 0.0, 0.2, 0.3])
    uniforms = np.random.default_rng(1).random(20_000)
    counts = np.bincount([draw(p, u) for u in uniforms], minlength=4)
    assert counts[1] == 0
    # Power: with shares that are off by 0.02 in two arms the statistic would exceed the quantile
    # with probability over 0.999.
    assert chisquare(counts[[0, 2, 3]], 20_000 * p[[0, 2, 3]]).pvalue > ALPHA


def test_the_ends_of_the_unit_interval_belong_to_arms_that_can_be_drawn():
    p = np.array([0.0, 0.3, 0.7 - 1e-15, 0.0])
    assert draw(p, 0.0) == 1
    assert draw(p, 0.3) == 2
    assert draw(p, np.nextafter(1.0, 0.0)) == 2  # the shares sum to a little less than one


@pytest.mark.parametrize("n", [1, 7, 5000])
def test_exponentials_are_those_of_numpy_but_for_the_last_digits(n):
    logs = -np.sort(np.random.default_rng(n).exponential(120.0, n))
    logs[0] = 0.0
    found = np.full(n, np.nan)
    simplex.exponentials(2.0 * logs, 0.5, found)
    near = logs > -700.0
    assert found[0] == 1.0
    assert np.all(np.abs(found[near] / np.exp(logs[near]) - 1.0) < 1e-15)
    assert np.all(found[~near] == 0.0)
    assert n < 5000 or not near.all()
