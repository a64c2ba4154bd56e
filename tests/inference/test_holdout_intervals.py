"""Intervals of held-out people: how often they miss, and what drift does to those of the bandit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.inference import Batches, Noise
from dpbandits.testing import drift


def brute_force(rows: np.ndarray, noise: Noise, confidence: float) -> tuple[float, float]:
    """The interval of the mean of batches in [0, 1] on a fine grid of q, by the formulas."""
    level, grid = math.log(2.0 / (1.0 - confidence)), np.linspace(1e-6, 1.0 - 1e-6, 4001)
    each = Batches(*rows.T).single(1, noise)
    tilts = noise.tilts(each.rounds, each.variance)
    kept = []
    for q in grid:
        found = []
        for total, p in ((each.total, q), (each.rounds - each.total, 1.0 - q)):
            terms = -tilts * total - each.rounds * np.log1p(p * np.expm1(-tilts))
            sums = (terms - noise.cost(tilts, each.rounds)).sum(axis=1)
            found.append(np.logaddexp.reduce(sums) - math.log(len(sums)))
        if max(found) < level:
            kept.append(q)
    return kept[0], kept[-1]


def test_the_interval_of_one_sum_is_that_of_a_mean_of_half_plus_half_the_effect():
    holdout = dpb.Holdout(0.9, batch=20, one_sum=True)
    policy = dpb.bandit(["a", "b"], budget=dpb.PureDP(1.0), holdout=holdout, seed=2)
    rng = np.random.default_rng(1)
    for _ in range(400):
        decision = policy.pull()
        policy.update(float(rng.random() < (0.3, 0.8)[decision.arm]), decision)
    low, high = brute_force(
        policy.holdout.released_sums.to_numpy(float), Noise(1.0, is_laplace=True), 0.95
    )
    found = policy.holdout.intervals(difference=("b", "a"))
    assert found.low[0] == pytest.approx(2.0 * low - 1.0, abs=2e-3)
    assert found.high[0] == pytest.approx(2.0 * high - 1.0, abs=2e-3)
    assert found.low[0] < 0.5 < found.high[0]


@pytest.mark.parametrize("one_sum", [False, True])
def test_rounding_to_the_grid_is_covered(one_sum: bool):
    """Rewards, and ends of the range, that are no multiples of a coarse grid; hardly any noise."""
    policy = dpb.bandit(
        ["a", "b"],
        budget=dpb.ZCDP(1e8),
        holdout=dpb.Holdout(0.9, batch=50, one_sum=one_sum),
        noise="secure",
        reward_range=(0.1, 1.2),
        grid=0.25,
    )
    for _ in range(3000):
        decision = policy.pull()
        policy.update((0.35, 0.9)[decision.arm], decision)  # which enter as 0.25 and 1
    found = policy.holdout.intervals(difference=("b", "a"))
    assert found.means[0] == pytest.approx(0.75 - 0.05 * one_sum, abs=0.01)
    assert found.low[0] < 0.55 < found.high[0]
    rounding = 0.25 + 0.025 * one_sum  # of a mean: a step, and half of 0.25 + 1 - (0.1 + 1.2)
    assert found.low[0] + 2.0 * rounding > 0.55  # without this it would miss


@pytest.mark.compiled
def test_drift_misleads_the_bandit_and_not_the_holdout():
    """The difference of two means that rise together: the trap, on whole policies."""
    bandit, held = zip(*(drift.play("1-DP", seed) for seed in range(12)), strict=True)
    biased, missed, _ = np.array(bandit).T
    assert biased.mean() - drift.EFFECT > 0.05
    assert missed.sum() >= 5
    estimate, missed, _ = np.array(held).T
    spread = estimate.std(ddof=1) / math.sqrt(len(held))
    assert abs(estimate.mean() - drift.EFFECT) < 5.9 * spread  # p = 1e-4 of 11 degrees
    assert missed.sum() <= 4  # of 5 % each, p < 1e-4 of conservative intervals


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.parametrize("cell", drift.CELLS)
def test_no_more_holdouts_miss_than_promised(cell: str):
    found = np.array([drift.play(cell, seed).holdout[1] for seed in range(100, 140)])
    assert found.sum() <= 9  # of 5 % each, with a probability above 0.9999
