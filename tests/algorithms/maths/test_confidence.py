"""Bounds on noise: against exact laws and by sampling."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbandits.algorithms.maths import confidence
from dpbandits.privacy.continual import BinaryTree, Independent


@pytest.mark.parametrize("d", [1, 5, 50])
@pytest.mark.parametrize("probability", [0.3, 1e-3])
def test_the_gaussian_norm_bounds_the_chi_law_and_not_by_much(d, probability):
    exact = 2.0 * stats.chi(d).isf(probability)
    assert exact <= confidence.gaussian_norm(d, 2.0, 1, probability) <= 2.5 * exact
    # A union over releases.
    assert confidence.gaussian_norm(d, 2.0, 100, 100 * probability) == confidence.gaussian_norm(
        d, 2.0, 1, probability
    )


@pytest.mark.parametrize("terms", [1, 3, 30])
@pytest.mark.parametrize("probability", [0.1, 1e-3])
def test_the_sum_of_laplace_variables_is_bounded_and_not_by_much(terms, probability):
    # 200,000 sums; a bound without the factor 2 ln 2 would be exceeded more than twice as often at
    # 30 terms.
    sums = np.abs(
        np.random.default_rng(terms).laplace(scale=3.0, size=(200_000, terms)).sum(axis=1)
    )
    bound = confidence.laplace_sum(terms, 3.0, math.log(2 / probability))
    assert stats.binomtest(int((sums > bound).sum()), 200_000, probability, "greater").pvalue > 1e-4
    assert bound <= 2.5 * np.quantile(sums, 1 - probability)


@pytest.mark.parametrize("weights", [[1.0, 0.5, 0.1], [0.2] * 20])
def test_weights_below_one_count_with_their_squares(weights):
    sums = np.abs(np.random.default_rng(2).laplace(size=(200_000, len(weights))) @ weights)
    bound = confidence.laplace_sum(float(np.square(weights).sum()), 1.0, math.log(2 / 0.01))
    assert stats.binomtest(int((sums > bound).sum()), 200_000, 0.01, "greater").pvalue > 1e-4


@pytest.mark.parametrize("counter", [BinaryTree(100), Independent(100)])
@pytest.mark.parametrize("norm", [1, 2])
def test_the_noise_norm_holds_for_all_releases_at_once(counter, norm):
    rng, d, runs = np.random.default_rng(3), 5, 1000
    scale = counter.column_norm(norm)
    b = counter.decoder(100, norm)
    noise = scale * (
        rng.laplace(size=(runs, b.shape[1], d))
        if norm == 1
        else rng.standard_normal((runs, b.shape[1], d))
    )
    worst = np.linalg.norm(b @ noise, axis=2).max(axis=1)
    std = counter.max_variance(100, norm) ** 0.5
    bound = confidence.noise_norm(norm, d, std, scale, 100, 0.05)
    assert stats.binomtest(int((worst > bound).sum()), runs, 0.05, "greater").pvalue > 1e-4
    # The Laplace bound is one on every coordinate.
    assert bound < (4 if norm == 1 else 2) * np.quantile(worst, 0.95)


def test_the_coordinate_quantile_bounds_projections():
    bound = confidence.coordinate_quantile(2.0, 10, 0.01)
    assert 20 * stats.norm.sf(bound / 2.0) <= 0.01
    assert bound < 1.3 * 2.0 * stats.norm.isf(0.0005)
