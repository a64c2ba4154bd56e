"""Optimism on doubling episodes: walks from the papers' pseudo-code."""

import math

import numpy as np
import pytest
from walks import arms_played, doubling, kl_upper, table

from dpbandits import ZCDP, ApproxDP, PureDP
from dpbandits.papers.concentrated import AdaCUCB, AdaPKLUCB, AdaPUCB
from dpbandits.privacy.noise import SimulationNoise

REWARDS = table(3000, [0.7, 0.5, 0.3])
SEED = 11


def gaussian_index(beta, scale, width=1.0):
    """Eq. (14) with the true length of the last episode."""

    def index(episodes, t):
        n, total = episodes[-1]
        return total / n + math.sqrt(
            (width**2 / (2 * n) + 2 * scale**2 / n**2) * beta * math.log(t)
        )

    return index


@pytest.mark.parametrize("budget", [ZCDP(0.01), ZCDP(5.0), ApproxDP(1.0, 1e-5), None])
@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0])
@pytest.mark.long
def test_adac_ucb_walks_as_the_paper_says(budget, beta):
    policy = AdaCUCB(3, budget=budget, beta=beta, seed=SEED)
    rng = SimulationNoise(SEED).generator("privacy")
    scale = (
        0.0
        if budget is None
        else math.sqrt(0.5 / budget.rho)
        if isinstance(budget, ZCDP)
        else 1 / budget.mu
    )
    noise = (lambda: scale * rng.standard_normal()) if budget else lambda: 0.0
    assert arms_played(policy, REWARDS) == doubling(REWARDS, gaussian_index(beta, scale), noise)


def test_adac_ucb_in_another_reward_range():
    policy = AdaCUCB(3, budget=ZCDP(0.5), reward_range=(-2.0, 4.0), seed=SEED)
    rng = SimulationNoise(SEED).generator("privacy")
    expected = doubling(
        REWARDS,
        gaussian_index(1.0, 6.0, 6.0),
        lambda: 6.0 * rng.standard_normal(),
        width=6.0,
        low=-2.0,
    )
    assert arms_played(policy, -2.0 + 6.0 * REWARDS) == expected


def test_without_forgetting_all_episodes_count_by_inverse_variance():
    scale = math.sqrt(0.5 / 0.2)
    policy = AdaCUCB(3, budget=ZCDP(0.2), forget=False, seed=SEED)
    rng = SimulationNoise(SEED).generator("privacy")

    def index(episodes, t):
        weights = [1 / (0.25 / n + (scale / n) ** 2) for n, _ in episodes]
        mean = sum(w * total / n for w, (n, total) in zip(weights, episodes, strict=True)) / sum(
            weights
        )
        return mean + math.sqrt(2 * math.log(t) / sum(weights))

    assert arms_played(policy, REWARDS) == doubling(
        REWARDS, index, lambda: scale * rng.standard_normal()
    )


@pytest.mark.parametrize("epsilon", [0.2, 2.0, None])
def test_adap_ucb_walks_as_the_paper_says(epsilon):
    policy = AdaPUCB(3, budget=PureDP(epsilon) if epsilon else None, alpha=3.1, seed=SEED)
    rng, scale = SimulationNoise(SEED).generator("privacy"), 1 / epsilon if epsilon else 0.0

    def index(episodes, t):
        n, total = episodes[-1]
        return total / n + math.sqrt(3.1 * math.log(t) / (2 * n)) + 3.1 * math.log(t) * scale / n

    noise = (lambda: scale * rng.laplace(0.0, 1.0)) if epsilon else lambda: 0.0
    assert arms_played(policy, REWARDS) == doubling(REWARDS, index, noise)


@pytest.mark.parametrize("epsilon", [0.2, 2.0, None])
def test_adap_klucb_walks_as_the_paper_says(epsilon):
    policy = AdaPKLUCB(3, budget=PureDP(epsilon) if epsilon else None, alpha=3.1, seed=SEED)
    rng, scale = SimulationNoise(SEED).generator("privacy"), 1 / epsilon if epsilon else 0.0

    def index(episodes, t):
        n, total = episodes[-1]
        level = 3.1 * math.log(t) / n
        return kl_upper(min(max(total / n + scale * level, 0.0), 1.0), level)

    noise = (lambda: scale * rng.laplace(0.0, 1.0)) if epsilon else lambda: 0.0
    assert arms_played(policy, REWARDS) == doubling(REWARDS, index, noise)


@pytest.mark.long
def test_without_forgetting_regret_is_lower_under_strong_privacy():
    """30 % less would pass with 400 runs by 10 standard errors; equal regret would not."""
    import dpbandits as dpb

    environment = dpb.environments.Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25])
    means = []
    for forget in (True, False):
        result = dpb.simulate(
            AdaCUCB(5, budget=ZCDP(0.01), forget=forget),
            environment,
            horizon=10**6,
            runs=400,
            seed=3,
        )
        regret = result.runs["regret"]
        means.append((regret.mean(), regret.std() / math.sqrt(len(regret))))
    (published, error_1), (better, error_2) = means
    assert better < published - 4 * np.hypot(error_1, error_2)
