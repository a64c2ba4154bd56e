"""Successive elimination: a walk from the paper's pseudo-code, and its noise."""

import numpy as np
import pytest
from sides import crossed, in_the_loop, stream_of_the_loop
from walks import elimination, table

import dpbandits as dpb
from dpbandits import PureDP
from dpbandits.environments import RewardTable
from dpbandits.papers.others import DPSE

REWARDS = table(120_000, [0.8, 0.7, 0.3, 0.1])


@pytest.mark.parametrize("epsilon", [0.02, 1.0, None])
@pytest.mark.long
def test_dpse_walks_as_the_paper_says(epsilon):
    policy = DPSE(4, horizon=len(REWARDS), budget=PureDP(epsilon) if epsilon else None)
    rng, scale = stream_of_the_loop(policy, "privacy"), 1 / epsilon if epsilon else 0.0
    expected = elimination(
        REWARDS,
        1 / len(REWARDS),
        scale,
        lambda k: scale * rng.laplace(0, 1, k) if epsilon else np.zeros(k),
    )
    arms = in_the_loop(policy, RewardTable(REWARDS))
    assert arms == expected
    assert len(set(arms[-1000:])) < 4, "the walk is long enough to eliminate arms"


def test_one_arm_needs_no_release():
    policy = DPSE(1, horizon=100, budget=PureDP(1.0))
    for _ in range(500):
        policy.pull()
        policy.update(0.5)
    assert policy.ledger.releases == 0


@pytest.mark.long
def test_noise_is_independent_between_arms():
    """One scalar for all arms cancels in every comparison; the released sums of equal arms must
    differ by Laplace differences, of standard deviation 4 for a scale of 2.

    2,000 epochs know it to 3 %: noise that is shared by half would be off by 30 %.
    """
    policy, rng, gaps = DPSE(2, horizon=2000, budget=PureDP(0.5)), np.random.default_rng(1), []
    for _ in range(2000):
        state = policy.new_state()
        state.raw.total[:] = state.public.goal
        release = crossed(policy, state, int(state.public.goal.sum()), rng)
        gaps.append(release[0] - release[1])
    assert np.std(gaps) == pytest.approx(4.0, rel=0.12)
    assert abs(np.mean(gaps)) < 4 * 4.0 / np.sqrt(2000)


@pytest.mark.long
def test_epochs_are_whole_and_each_may_spend_the_budget():
    result = dpb.simulate(
        DPSE(4, horizon=10**6, budget=PureDP(0.5)),
        dpb.environments.Bernoulli([0.8, 0.6, 0.4, 0.2]),
        horizon=10**6,
        runs=5,
    )
    assert (result.runs["spent"] == 0.5).all()
    assert (result.runs["draws"] == 4 * result.runs["releases"]).all()
