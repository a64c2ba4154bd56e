"""Bounds on noise: against exact laws and by sampling."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbandits.algorithms.maths import confidence
from dpbandits.privacy.continual import BinaryTree, Independent


@pytest.mark.parametrize("d", [1, 5, 50])
@pytest.mark.parametrize("probability", [0.3, 1e-3])
def test_the_gaussian_norm_is_the_quantile_of_the_chi_law(d, probability):
    exact = 2.0 * stats.chi(d).isf(probability)
    assert confidence.gaussian_norm(d, 2.0, 1, probability) == pytest.approx(exact)
    assert confidence.gaussian_norm(d, 2.0, 100, 100 * probability) == pytest.approx(exact)


@pytest.mark.parametrize("d", [1, 2, 5, 50])
@pytest.mark.parametrize("probability", [0.1, 1e-3])
def test_the_norm_of_a_vector_that_is_larger_along_an_axis_is_exact(d, probability):
    rng, runs = np.random.default_rng(d), 200_000
    squares = 4.0 * rng.chisquare(1, runs) + (2.0 * rng.chisquare(d - 1, runs) if d > 1 else 0.0)
    bound = confidence.gaussian_norm(d, math.sqrt(2.0), 7, 7 * probability, axis=2.0)
    beyond = int((squares > bound**2).sum())
    assert stats.binomtest(beyond, runs, probability).pvalue > 1e-4


@pytest.mark.long
@pytest.mark.parametrize("d", [1, 2, 3, 6, 15])
@pytest.mark.parametrize("probability", [0.01, 1e-3])
def test_the_symmetric_norm_is_exceeded_as_often_as_it_says(d, probability):
    """One eigenvalue at a time is beyond it, so that the union over them loses nothing there."""
    rng, runs = np.random.default_rng(d), 40_000
    z = 2.0 * rng.standard_normal((runs, d, d))
    norms = np.abs(np.linalg.eigvalsh((z + z.transpose(0, 2, 1)) / 2)).max(axis=1)
    beyond = int((norms > confidence.symmetric_norm(d, 2.0, 3, 3 * probability)).sum())
    assert stats.binomtest(beyond, runs, probability).pvalue > 1e-4


def test_the_symmetric_norm_in_many_dimensions():
    """The exact one ends below the bound by concentration, and both near the semicircle's edge."""
    exact, bound = (confidence.symmetric_norm(d, 1.0, 1, 1e-3) / math.sqrt(d) for d in (200, 201))
    assert math.sqrt(2.0) < exact < bound < 1.2 * exact


@pytest.mark.parametrize("d", [1, 5])
def test_the_walk_norm_holds_for_all_numbers_of_steps_at_once(d):
    rng, runs, n = np.random.default_rng(d), 4000, 300
    walk = confidence.planned_walk(d, 4.0, 3.0, 100.0, 0.05)
    scales = np.sqrt([4.0, *[3.0] * (d - 1)])
    z, ever, planned = np.zeros((runs, d)), np.zeros(runs, bool), []
    for step in range(1, n + 1):
        z += scales * rng.standard_normal((runs, d))
        bound = confidence.walk_norm(walk, d, float(step))
        ever |= np.linalg.norm(z, axis=1) > bound
        planned.append(bound / math.sqrt(step))
    assert stats.binomtest(int(ever.sum()), runs, 0.05, "greater").pvalue > 1e-4
    assert ever.mean() > 0.002
    assert 80 < np.argmin(planned) < 200
    # One step's exact norm, if failures were shared among all, is no better where it matters.
    union = confidence.gaussian_norm(d, math.sqrt(3.0), n, 0.05, axis=2.0)
    assert min(planned) < union


@pytest.mark.parametrize("probability", [1e-300, 0.999])
def test_extreme_probabilities_give_finite_norms(probability):
    for norm in (
        confidence.gaussian_norm(5, 1.0, 10, probability, axis=1.3),
        confidence.symmetric_norm(5, 1.0, 10, probability),
    ):
        assert 1.0 < norm < 60.0


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
