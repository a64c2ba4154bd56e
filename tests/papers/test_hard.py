"""The hard instances of lower bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbandits import ArgumentError, simulate
from dpbandits.algorithms import LinUCB
from dpbandits.environments import HardArms, HardContexts, HardLinear
from dpbandits.papers.concentrated.hard import gap_of_coins
from dpbandits.theory.lower import coins_minimax, hidden_signs, two_coins

BUDGETS = [{}, {"rho": 1e-5}, {"rho": 1.0}, {"epsilon": 0.01}, {"epsilon": 2.0}]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("n_arms", [2, 5])
def test_the_gap_is_about_the_best_there_is(n_arms, budget):
    horizon = 10**5
    gap = HardArms(n_arms, horizon, **budget).gap
    reached = float(two_coins(horizon, n_arms, gap, **budget))
    best = float(coins_minimax(horizon, n_arms, **budget))
    assert 0.9 * best < reached <= best * (1 + 1e-3)


def test_arms_by_hand():
    world = HardArms(3, 10_000, raised=2)
    gap = 0.25 / math.sqrt(10_000 / 2)
    assert world.means().tolist() == pytest.approx([0.5 + gap, 0.5, 0.5 + 2 * gap])
    assert gap_of_coins(3, 10_000, epsilon=1e-6) == 0.2  # and no more
    # privacy hides n D: 2 epsilon n D = 1
    assert gap_of_coins(3, 10_000, epsilon=0.001) == pytest.approx(1 / (2 * 0.001 * 5000))
    for wrong in ({"raised": 0}, {"raised": 3}, {"rho": 0.0}, {"epsilon": -1.0}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            HardArms(3, 1000, **wrong)


def test_corners_by_hand():
    world = HardLinear(2, 10_000, rho=1e-6, signs=[1, -1])
    assert world.parameter.tolist() == pytest.approx([0.1, -0.1])  # 1 / (T sqrt(rho))
    assert world.features.shape == (4, 2)
    assert world.means().max() == pytest.approx(0.2)
    assert HardLinear(2, 10_000, rho=1.0).parameter.tolist() == pytest.approx([0.01] * 2)
    with pytest.raises(ArgumentError, match="horizon"):
        HardLinear(2, 100, rho=1e-6)
    with pytest.raises(ArgumentError, match="signs"):
        HardLinear(2, 100, signs=[1, 2])


def test_contexts_by_hand():
    world = HardContexts(2, 20_000, rho=1e-6, signs=[1, -1])
    assert world.parameter.tolist() == pytest.approx([0.1, -0.1])
    assert HardContexts(2, 20_000).parameter.tolist() == pytest.approx([0.005] * 2)
    contexts = np.zeros((2, 2))
    for t, axis in ((0, 0), (1, 1), (2, 0)):
        world.kernels.show(world.state, t, contexts, np.random.default_rng(0))
        expected = np.zeros((2, 2))
        expected[:, axis] = [1.0, -1.0]
        assert contexts.tolist() == expected.tolist()


def test_regret_in_contexts_is_that_of_wrong_signs():
    world = HardContexts(3, 3000, signs=[1, -1, 1])
    result = simulate(
        LinUCB(2, 3, budget=None, reward_range=(-1.0, 1.0)), world, horizon=3000, runs=20, seed=1
    )
    wrong = result.runs["regret"] / (2 * abs(world.parameter[0]))
    assert wrong.to_numpy() == pytest.approx(wrong.round().to_numpy())  # so many wrong rounds
    assert wrong.between(1, 2999).all()
    assert result.runs["regret"].mean() > hidden_signs(1000, 3, abs(world.parameter[0]))


def test_environments_tell_their_signs():
    assert repr(HardContexts(2, 100)) != repr(HardContexts(2, 100, signs=[1, -1]))
    assert HardArms(2, 100).title == "HardArms, 2 arms"
