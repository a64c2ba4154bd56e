"""Regret that was measured, between the bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpbandits import ZCDP, PureDP, simulate
from dpbandits.algorithms import AdaCOFUL, MergedIMED
from dpbandits.environments import Bernoulli, HardArms, HardContexts, HardLinear, LinearArms
from dpbandits.papers.concentrated import GOPE, AdaCGOPE, AdaCUCB, AdaPKLUCB, AdaPUCB
from dpbandits.papers.others import DPSE, DPSEBAI
from dpbandits.theory import promises
from dpbandits.theory.lower import hidden_signs, two_coins

COINS = Bernoulli([0.8, 0.6, 0.4])
SPHERE = LinearArms.on_sphere(8, 3, seed=2, rewards="bounded")


def regrets(policy, world, horizon, runs):
    return simulate(policy, world, horizon=horizon, runs=runs, seed=1).runs["regret"].to_numpy()


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "world", "name", "most"),
    [
        (lambda: AdaCUCB(3, budget=ZCDP(0.05), beta=3.2), COINS, "adac_ucb", 40),
        (lambda: AdaPUCB(3, budget=PureDP(0.2), alpha=3.2), COINS, "adap_ucb", 40),
        (lambda: AdaPKLUCB(3, budget=PureDP(0.2), alpha=3.2), COINS, "adap_ucb", 60),
        (lambda: DPSE(3, horizon=200_000, budget=PureDP(0.2)), COINS, "dpse", 40),
        (lambda: GOPE(SPHERE.features, budget=None, reward_range=(-1, 1)), SPHERE, "gope", 100),
        *(
            (
                lambda variant=variant: AdaCGOPE(
                    SPHERE.features, budget=ZCDP(0.05), variant=variant, reward_range=(-1, 1)
                ),
                SPHERE,
                "gope",
                100,
            )
            for variant in ("tight", "published")
        ),
    ],
)
def test_regret_stays_below_its_bound(make, world, name, most):
    """The bounds are for the worst case; ``most`` keeps them from being far beyond it."""
    horizon, policy = 200_000, make()
    promised = next(p for p in promises(policy, world, [horizon]) if p.bound.name == name)
    measured = regrets(policy, world, horizon, 50)
    assert measured.mean() < promised.values[0] < most * measured.mean()


@pytest.mark.long
def test_a_search_is_over_when_it_was_promised():
    search = DPSEBAI(3, failure_probability=0.1, budget=PureDP(0.2))
    rounds = next(p for p in promises(search, COINS, [1]) if p.bound.name == "dpse_search")
    result = simulate(search, COINS, horizon=int(rounds.values[0]) + 1, runs=200, seed=1)
    # each with probability 0.9; 160 of 200 has a probability below 1e-5
    assert (result.runs["stopped"] <= rounds.values[0]).sum() >= 160
    assert rounds.values[0] < 25 * result.runs["stopped"].median()


@pytest.mark.parametrize("budget", [ZCDP(2e-5), PureDP(0.01)], ids=str)
@pytest.mark.parametrize("cls", [MergedIMED, AdaCUCB, AdaPUCB])
def test_nobody_beats_the_lower_bound_in_both_of_two_worlds(cls, budget):
    if not cls.card.takes(budget):
        pytest.skip("another notion")
    horizon, given = 5000, dict(vars(budget))
    worlds = [HardArms(2, horizon, raised=raised, **given) for raised in (None, 1)]
    least = float(two_coins(horizon, 2, worlds[0].gap, **given))
    # privacy hides a gap that chance would not
    assert worlds[0].gap > 2 * HardArms(2, horizon).gap
    worst = max(regrets(cls(2, budget=budget), world, horizon, 200).mean() for world in worlds)
    assert worst > least > 0.03 * worst


@pytest.mark.long
def test_nobody_knows_hidden_signs():
    d, horizon, rho = 2, 20_000, 1e-4
    every = list(itertools.product([-1, 1], repeat=d))
    corners = [HardLinear(d, horizon, rho=rho, signs=signs) for signs in every]
    size = abs(corners[0].parameter[0])
    least = float(hidden_signs(horizon, d, size, rho, largest=d * size))
    policy = AdaCGOPE(corners[0].features, budget=ZCDP(rho), reward_range=(-1.0, 1.0))
    measured = np.mean([regrets(policy, world, horizon, 50).mean() for world in corners])
    assert measured > least > 0.02 * measured


@pytest.mark.long
def test_nobody_knows_hidden_signs_of_contexts():
    d, horizon, rho = 2, 4000, 1e-3
    every = list(itertools.product([-1, 1], repeat=d))
    worlds = [HardContexts(d, horizon, rho=rho, signs=signs) for signs in every]
    least = float(hidden_signs(horizon / d, d, abs(worlds[0].parameter[0]), rho))
    policy = AdaCOFUL(2, d, horizon=horizon, budget=ZCDP(rho), reward_range=(-1.0, 1.0))
    measured = np.mean([regrets(policy, world, horizon, 50).mean() for world in worlds])
    assert measured > least > 0.02 * measured
