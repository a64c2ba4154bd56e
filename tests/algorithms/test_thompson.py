"""Lazy Thompson sampling: a walk from the paper's pseudo-code, and what it spends."""

import math

import numpy as np
import pytest
from walks import arms_played, table

from dpbandits import PureDP
from dpbandits.papers.others import LazyDPTS
from dpbandits.privacy.noise import SimulationNoise

REWARDS = table(4000, [0.7, 0.5, 0.3])


def lazy_thompson(rewards, scale, noise, choices):
    """Hu & Hegde's Lazy-DP-TS, batches 1, 2, 4, ... per arm."""
    horizon, k = rewards.shape
    mean, size, fresh, arms = np.zeros(k), np.zeros(k, int), [[] for _ in range(k)], []
    for t in range(horizon):
        if (size == 0).any():
            arm = int(np.argmin(size > 0))
        else:
            centre = np.clip(mean + 3 * scale * math.log(t) / size, 0, 1)
            arm = int(
                np.argmax(
                    [
                        choices.beta(centre[a] * size[a] + 1, (1 - centre[a]) * size[a] + 1)
                        for a in range(k)
                    ]
                )
            )
        arms.append(arm)
        fresh[arm].append(rewards[t, arm])
        if len(fresh[arm]) == max(2 * size[arm], 1):
            size[arm] = len(fresh[arm])
            mean[arm] = (sum(fresh[arm]) + noise()) / size[arm]
            fresh[arm] = []
    return arms


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.2, 2.0, None])
def test_lazy_dp_ts_walks_as_the_paper_says(epsilon):
    policy = LazyDPTS(3, budget=PureDP(epsilon) if epsilon else None, seed=4)
    source, scale = SimulationNoise(4), 1 / epsilon if epsilon else 0.0
    rng = source.generator("privacy")
    noise = (lambda: scale * rng.laplace(0.0, 1.0)) if epsilon else lambda: 0.0
    assert arms_played(policy, REWARDS) == lazy_thompson(
        REWARDS, scale, noise, source.exploration()
    )


@pytest.mark.long
def test_each_line_covers_one_arm_and_nobody_pays_twice():
    policy = LazyDPTS(3, budget=PureDP(1.0), seed=4)
    arms_played(policy, REWARDS)
    lines = policy.ledger.frame
    assert set(lines["part"]) == {0, 1, 2}
    for _, own in lines.groupby("part"):
        assert (own["first"].to_numpy()[1:] > own["last"].to_numpy()[:-1]).all()
    assert policy.ledger.spent() == PureDP(1.0)


@pytest.mark.long
def test_an_unanswered_pull_is_closed_with_its_own_arm_only():
    policy = LazyDPTS(2, budget=PureDP(1.0), seed=1)
    first, second = policy.pull(), policy.pull()
    # arm 0's batch of one closed at the second pull, unanswered
    assert (first.arm, second.arm) == (
        0,
        1,
    )
    assert policy.update(1.0, first) is False
    assert policy.update(1.0, second) is True
