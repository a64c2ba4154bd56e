import numpy as np
import pytest
from walks import elimination, table

import dpbandits as dpb
from dpbandits import DPSE, PureDP
from dpbandits.privacy.noise import SimulationNoise

REWARDS = table(120_000, [0.8, 0.7, 0.3, 0.1])


@pytest.mark.parametrize("epsilon", [0.02, 1.0, None])
def test_dpse_walks_as_the_paper_says(epsilon):
    policy = DPSE(4, horizon=len(REWARDS), budget=PureDP(epsilon) if epsilon else None, seed=2)
    rng, scale = SimulationNoise(2).stream("privacy"), 1 / epsilon if epsilon else 0.0
    expected = elimination(
        REWARDS,
        1 / len(REWARDS),
        scale,
        lambda k: scale * rng.laplace(0, 1, k) if epsilon else np.zeros(k),
    )
    arms = []
    for row in REWARDS:
        decision = policy.pull()
        arms.append(decision.arm)
        policy.update(row[decision])
    assert arms == expected
    assert len(set(arms[-1000:])) < 4, "the walk is long enough to eliminate arms"


def test_one_arm_needs_no_release():
    policy = DPSE(1, horizon=100, budget=PureDP(1.0))
    for _ in range(500):
        policy.pull()
        policy.update(0.5)
    assert policy.ledger.releases == 0


def test_noise_is_independent_between_arms():
    """One scalar for all arms cancels in every comparison; the released means of equal arms must
    differ by Laplace differences.
    """
    rewards = np.ones((3000, 2))
    gaps = []
    for seed in range(200):
        policy = DPSE(2, horizon=2000, budget=PureDP(0.5), seed=seed)
        while policy.ledger.releases == 0:
            decision = policy.pull()
            policy.update(rewards[decision.number, decision])
        n = int(policy.ledger.frame["last"].iloc[0] + 1) // 2
        gaps.append((policy._public.mean[0] - policy._public.mean[1]) * n)
    # The difference of two Laplace variables of scale 2 has standard deviation 4.
    assert 3.0 < np.std(gaps) < 5.2


def test_epochs_are_whole_and_each_may_spend_the_budget():
    result = dpb.simulate(
        DPSE(4, horizon=10**6, budget=PureDP(0.5)),
        dpb.environments.Bernoulli([0.8, 0.6, 0.4, 0.2]),
        horizon=10**6,
        runs=5,
    )
    assert (result.runs["spent"] == 0.5).all()
    assert (result.runs["draws"] == 4 * result.runs["releases"]).all()
