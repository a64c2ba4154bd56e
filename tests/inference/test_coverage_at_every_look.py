"""Intervals hold at every release: over whole runs, and where an adversary chooses batches."""

import numpy as np
import pytest

from dpbandits.inference import Batches, Noise
from dpbandits.testing import coverage

# Half widths of the first arm's interval after 5,000 rounds, of an independent simulator.
WIDTHS = {
    "two arms, no budget": 0.0276,
    "two arms, 0.1-DP": 0.0440,
    "five arms, 0.005-zCDP": 0.0406,
    "rare rewards, 1-DP": 0.0110,
    "five equal arms, 0.5-zCDP": 0.0552,
    "five equal arms, 0.1-DP": 0.151,
}


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.parametrize("case", coverage.CASES)
def test_no_more_runs_miss_than_promised(case: str) -> None:
    found = coverage.measured(case, 200)
    # Of 200 runs with 5 % each, more than 20 miss with a probability below 1 %.
    assert (found[:, :3].sum(axis=0) <= 20).all()
    assert np.median(found[:, 4]) == pytest.approx(WIDTHS[case], rel=0.05)


def attacked(noise: Noise, believed: Noise, runs: int, seed: int) -> int:
    """How many runs miss a mean, if length and end depend on how close the evidence is.

    The adversary plays batches that are as short as they may be while the evidence against the true
    mean is large, and long ones else; and looks at every release.
    """
    rng, missed, q, level = np.random.default_rng(seed), 0, 0.3, np.log(2.0 / 0.05)
    for _ in range(runs):
        rows: list[tuple[int, int, float, int]] = []
        highest = 0.0
        for i in range(40):
            n = 5 if highest > 0.5 * level else int(rng.integers(5, 60))
            drawn = rng.laplace if noise.is_laplace else rng.normal
            total = rng.binomial(n, q) + (drawn(0.0, noise.scale) if noise.scale else 0.0)
            rows.append((0, n, float(total), i))
            batches = Batches(*np.array(rows, float).T)
            paths = np.array(coverage.paths(batches, 0, believed, q))
            highest = float(paths[:, -1].max())
            if paths.max() >= level:
                missed += 1
                break
    return missed


@pytest.mark.parametrize("noise", [Noise(0.0, False), Noise(3.0, True), Noise(3.0, False)])
def test_an_adversary_does_not_break_them(noise: Noise) -> None:
    assert attacked(noise, noise, 60, seed=1) <= 8  # of 5 %, with a probability below 1 %


def test_forgotten_noise_breaks_them() -> None:
    assert attacked(Noise(3.0, True), Noise(0.0, False), 60, seed=1) > 8


def test_paths_end_at_the_evidence() -> None:
    policy = coverage.play(
        coverage.MergedIMED(3, budget=coverage.PureDP(1.0)), (0.2, 0.5, 0.6), 400, 1
    )
    arm, rounds, total, known = policy.released_sums.to_numpy(float).T
    sums = policy.estimates.sums
    assert sums is not None
    for a in range(3):
        up, down = coverage.paths(Batches(arm, rounds, total, known), a, sums.noise, 0.4)
        assert up[-1] == pytest.approx(sums.evidence[a].up.at(0.6)[0])
        assert down[-1] == pytest.approx(sums.evidence[a].down.at(0.4)[0])
