"""Policies that learn from every answer: walks from the papers' pseudo-code."""

import math

import numpy as np
import pytest
from scipy import stats
from sides import public_of
from walks import arms_played, kl_upper, stepwise, table

from dpbandits import ZCDP, PureDP
from dpbandits.algorithms import KLUCB, UCB1, ThompsonSampling
from dpbandits.algorithms.maths.bernoulli import kl_upper_bound
from dpbandits.papers.others import LDPUCB
from dpbandits.privacy.noise import SimulationNoise

REWARDS = table(2000, [0.7, 0.5, 0.3])


def test_ucb1_walks_as_the_paper_says():
    def index(mean, n, t):
        return mean + math.sqrt(2 * math.log(t) / n)

    assert arms_played(UCB1(3), REWARDS) == stepwise(REWARDS, index, lambda: 0.0)


@pytest.mark.parametrize("c", [0.0, 3.0])
def test_klucb_walks_as_the_paper_says(c):
    def index(mean, n, t):
        return kl_upper(mean, (math.log(t) + c * math.log(max(math.log(t), 1.0))) / n)

    assert arms_played(KLUCB(3, c=c), REWARDS) == stepwise(REWARDS, index, lambda: 0.0)


def test_klucb_compares_arms_with_the_last_one_as_it_compares_their_indices():
    """Means and plays of which many are equal, so that ties come often: the first arm wins them."""
    policy = KLUCB(6, seed=1)
    public, rng = public_of(policy), np.random.default_rng(1)
    ties = 0
    for _ in range(500):
        public.plays[:] = rng.integers(1, 4, 6) * 10.0
        public.mean[:] = rng.integers(0, 5, 6) / 4
        public.clock[:2] = public.plays.sum(), rng.integers(6)
        pressure = math.log(public.plays.sum())
        found = [
            kl_upper_bound(*one) for one in zip(public.mean, pressure / public.plays, strict=True)
        ]
        assert policy.pull().arm == int(np.argmax(found))
        ties += found.count(max(found)) > 1
    assert ties > 100


def test_klucb_sees_ties_of_indices_that_are_almost_one():
    """Arms of high rewards, most of them played once: doubles below 1 are few, so many indices are
    the same one.
    """
    ties = 0
    for seed in range(6):
        policy, rng = KLUCB(40, seed=seed), np.random.default_rng(seed)
        means = rng.uniform(0.7, 1.0, 40)
        public = public_of(policy)
        for t in range(200):
            found = []
            if public.plays.all():
                levels = math.log(t) / public.plays
                found = [kl_upper_bound(*one) for one in zip(public.mean, levels, strict=True)]
                ties += found.count(max(found)) > 1
            arm = policy.pull().arm
            assert not found or arm == int(np.argmax(found))
            policy.update(rng.beta(20 * means[arm], 20 * (1 - means[arm])))
    assert ties > 100


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_locally_private_ucb_walks_as_the_paper_says(epsilon):
    rng = SimulationNoise(7).generator("privacy")

    def index(mean, n, t):
        return (
            mean + math.sqrt(2 * math.log(t) / n) + math.sqrt(32 * math.log(t) / (epsilon**2 * n))
        )

    def forced(n, t):
        return n == 0 or n <= 4 * math.log(t + 1)

    expected = stepwise(REWARDS, index, lambda: rng.laplace(0.0, 1.0) / epsilon, forced)
    assert arms_played(LDPUCB(3, budget=PureDP(epsilon), seed=7), REWARDS) == expected


def test_locally_private_ucb_with_gaussian_noise():
    rng = SimulationNoise(7).generator("privacy")

    def index(mean, n, t):
        return mean + math.sqrt((2 + 8 * 1.0) * math.log(t) / n)

    expected = stepwise(REWARDS, index, rng.standard_normal)
    assert arms_played(LDPUCB(3, budget=ZCDP(0.5), seed=7), REWARDS) == expected


def test_locally_private_ucb_without_noise_is_ucb1():
    assert arms_played(LDPUCB(3, budget=None), REWARDS) == arms_played(UCB1(3), REWARDS)


def test_thompson_sampling_draws_from_the_posterior():
    """After 40 successes and 10 failures of arm 0 and none of arm 1, the share of arm 0 is
    P(Beta(41, 11) > Beta(1, 1)) = 41 / 52.

    A Beta(40, 10) posterior without the prior would give .8 instead of .788: 4 standard errors away
    with 20,000 pulls.
    """
    policy = ThompsonSampling(2, seed=3)
    public = public_of(policy)
    public.mean[0], public.plays[0] = 0.8, 50.0
    share = np.mean([policy.pull().arm == 0 for _ in range(20_000)])
    assert stats.binomtest(int(share * 20_000), 20_000, 41 / 52).pvalue > 1e-4
    assert stats.binomtest(round(0.8 * 20_000), 20_000, 41 / 52).pvalue < 1e-4
