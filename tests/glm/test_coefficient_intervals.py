"""Coverage of confidence intervals, measured; and steps that they follow from."""

import numpy as np
import pytest
from scipy import stats
from worlds import logistic

from dpbandits import ZCDP, ApproxDP
from dpbandits.glm import LocalGLM, PrivateGLM
from dpbandits.glm.steps import minimise_in_ball

ALPHA = 1e-4


def covered(model, n: int, d: int, runs: int, level: float, length: float = 1.0):
    """How many of the runs cover each coefficient, and the mean half width."""
    hits, widths = 0, []
    for run in range(runs):
        features, outcomes, theta = logistic(n, d, length, seed=run)
        low, high = model.set_params(seed=run).fit(features, outcomes).confidence_intervals(level).T
        hits += int(low[0] <= theta[0] <= high[0])  # others are not independent of it
        widths.append(float(np.mean(high - low)) / 2)
    return hits, float(np.mean(widths))


@pytest.mark.parametrize("rho", [0.002, pytest.param(0.3, marks=pytest.mark.long)])
@pytest.mark.long
def test_intervals_of_95_per_cent_cover_as_often(rho: float):
    """600 runs tell 95 from 90 per cent.  At the smaller rho noise is a good part of the width."""
    model, runs = PrivateGLM(budget=ZCDP(rho), parameter_bound=2.0), 600
    hits, width = covered(model, 2000, 2, runs, 0.95)
    assert stats.binom.cdf(hits, runs, 0.95) > ALPHA
    assert stats.binom.cdf(hits, runs, 0.90) > 1 - ALPHA
    ordinary = PrivateGLM(budget=None, parameter_bound=2.0)
    _, narrow = covered(ordinary, 2000, 2, 20, 0.95)
    assert (width > 1.3 * narrow) == (rho == 0.002)


def test_intervals_are_not_much_too_long():
    """Where features tell little, outcomes vary as the bound has it: 75 per cent are not 90."""
    model, runs = PrivateGLM(budget=ZCDP(0.05)), 300
    hits, _ = covered(model, 2000, 2, runs, 0.75, length=0.5)
    assert stats.binom.cdf(hits, runs, 0.75) > ALPHA
    assert stats.binom.cdf(hits, runs, 0.9) < ALPHA


@pytest.mark.parametrize("link", ["logistic", "identity"])
def test_local_intervals_cover_as_often(link: str):
    """And not 85 per cent."""
    ends = (-1.0, 1.0) if link == "identity" else (0.0, 1.0)
    model = LocalGLM(link, budget=ZCDP(3.0), parameter_bound=2.0, outcome_range=ends)
    hits, runs = 0, 300
    for run in range(runs):
        features, outcomes, theta = logistic(5000, 2, 1.0, seed=run)
        if link == "identity":
            theta = 0.5 * theta
            rng = np.random.default_rng(1000 + run)
            outcomes = np.where(rng.random(5000) < (1 + features @ theta) / 2, 1.0, -1.0)
        model.set_params(seed=run).fit(features, outcomes)
        low, high = model.confidence_intervals(0.95).T
        hits += int(low[0] <= theta[0] <= high[0])
    assert np.all(high - low < 3.0)
    assert stats.binom.cdf(hits, runs, 0.95) > ALPHA
    assert stats.binom.cdf(hits, runs, 0.85) > 1 - ALPHA


def test_intervals_say_nothing_where_noise_is_all():
    features, outcomes, _ = logistic(20, 3, 1.0)
    model = PrivateGLM(budget=ApproxDP(0.1, 1e-6), seed=1).fit(features, outcomes)
    assert model.confidence_intervals().tolist() == [[-1.0, 1.0]] * 3


@pytest.mark.parametrize("seed", range(20))
def test_a_quadratic_is_least_where_no_other_point_of_the_ball_is_lower(seed: int):
    rng = np.random.default_rng(seed)
    d, radius = int(rng.integers(1, 6)), float(rng.uniform(0.1, 3.0))
    matrix = rng.normal(size=(d, d))
    matrix, vector = matrix + matrix.T + seed % 3 * np.eye(d), rng.normal(size=d)
    found = minimise_in_ball(matrix, vector, radius)
    others = rng.normal(size=(20_000, d))
    others *= radius * rng.random((20_000, 1)) ** (1 / d) / np.linalg.norm(others, axis=1)[:, None]

    def value(x):
        return 0.5 * np.sum(x @ matrix * x, axis=-1) - x @ vector

    assert np.linalg.norm(found) <= radius * (1 + 1e-9)
    assert value(found) <= value(others).min() + 1e-9
