"""What theory does not promise: each case was measured above a bound, or below one from below."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from dpbandits import ZCDP, ApproxDP, PureDP, simulate
from dpbandits.algorithms import EXP3, FTPL, AdaCOFUL, FrozenEXP4, LinUCBSDP
from dpbandits.cli import app
from dpbandits.environments import (
    Advised,
    AnchoredContexts,
    Bernoulli,
    GaussianContexts,
    GLMContexts,
    HardLinear,
    LinearArms,
    Piecewise,
)
from dpbandits.errors import ArgumentError
from dpbandits.papers.concentrated import GOPE, AdaCGOPE, AdaCUCB, AdaPUCB
from dpbandits.papers.concentrated.theory import adac_gope
from dpbandits.theory import World, promises
from dpbandits.theory.lower import hidden_signs

COINS = Bernoulli([0.9, 0.4])
LINE = np.array([[1.0], [0.5]])


def above(policy, world):
    return [one.bound.name for one in promises(policy, world, [1000]) if one.bound.kind == "upper"]


def regret(policy, world, horizon):
    return simulate(policy, world, horizon=horizon, runs=2, seed=1).runs["regret"].mean()


@pytest.mark.parametrize("cls", [GOPE, AdaCGOPE])
def test_means_that_are_not_linear_are_promised_nothing(cls):
    policy = cls(LINE, budget=None if cls is GOPE else ZCDP(1.0))
    bent = Bernoulli([0.1, 0.9])
    (bound,) = [one for one in promises(policy, None, [20_000]) if one.bound.name == "gope"]
    assert regret(policy, bent, 20_000) > 3 * bound.values[0]
    assert above(policy, bent) == []
    assert "gope" in above(policy, Bernoulli([0.8, 0.4]))


def test_rewards_that_scatter_more_than_a_policy_is_told_are_promised_nothing():
    sure = GOPE(np.eye(2), budget=None, subgaussian=0.001)
    assert above(sure, Bernoulli([0.51, 0.49])) == []
    assert above(sure, None) == ["gope"]  # its word is all there is
    ranged = GOPE(np.eye(2), budget=None, reward_range=(-1, 1))
    assert above(ranged, LinearArms(np.eye(2), [0.5, 0.1], rewards="bounded")) == ["gope"]


def test_regret_against_the_best_arm_of_every_round_is_promised_nothing():
    def world(kind):
        means, starts = [[1.0, 0.0], [0.0, 1.0]] * 10, [100 * i for i in range(20)]
        return Piecewise(means, starts, horizon=2000, regret=kind)

    policy = EXP3(2, budget=PureDP(1.0), horizon=2000)
    (bound,) = promises(policy, world("static"), [2000])
    assert regret(policy, world("dynamic"), 2000) > bound.values[0]
    assert above(policy, world("dynamic")) == []


def test_frozen_advice_is_promised_nothing_where_it_changes_within_a_batch():
    advice = [np.eye(2), np.eye(2)[::-1]]

    def world(period):
        return Advised(COINS, advice, horizon=1000, period=period)

    def policy(batch):
        return FrozenEXP4(2, 2, budget=ZCDP(1.0), horizon=1000, batch=batch)

    assert above(policy(50), world(25)) == []
    assert above(policy(50), world(75)) == []
    for one, own in [(policy(50), world(100)), (policy(1), world(1)), (policy(50), None)]:
        assert above(one, own) == ["exp4_regret"]
    assert above(policy(50), Advised(COINS, advice[:1], horizon=1000)) == ["exp4_regret"]


def test_patience_and_retired_arms_are_promised_nothing():
    assert above(AdaPUCB(2, budget=PureDP(1.0), answers_within=50), COINS) == []
    assert above(AdaPUCB(2, budget=PureDP(1.0), answers_within=None), COINS) == ["adap_ucb"]
    policy = AdaPUCB(2, budget=PureDP(1.0))
    policy.retire(0)
    assert promises(policy, COINS, [1000]) == []


def test_theorem_5_is_for_normal_noise():
    world = GaussianContexts(3, [0.6, 0.8], rewards="bounded")
    for budget, expected in [(PureDP(1.0), []), (ZCDP(0.5), ["adac_oful"]), (None, ["adac_oful"])]:
        policy = AdaCOFUL(3, 2, horizon=100, budget=budget, reward_range=(-1, 1))
        assert above(policy, world) == expected


def test_the_template_is_for_linear_rewards_and_features_as_they_are():
    policy = LinUCBSDP(3, 2, budget=ApproxDP(40.0, 0.1), horizon=1000, bounds="published")
    assert above(policy, AnchoredContexts.random(3, 2)) == ["perturbed_linucb"]
    logistic = GLMContexts(3, [0.6, 0.8], link="logistic")
    wide = GaussianContexts(3, [0.6, 0.8], rewards="bounded")
    assert above(policy, logistic) == above(policy, wide) == []


def test_lower_bounds_are_in_units_of_the_environment():
    values = [
        one.values.tolist()
        for reward_range in [(0.0, 1.0), (0.0, 3.0), (-5.0, 5.0)]
        for one in promises(AdaCUCB(2, budget=ZCDP(1.0), reward_range=reward_range), COINS, [1000])
        if one.bound.kind == "lower"
    ]
    assert len(values) == 3
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize(
    "gaps",
    [
        [0.1, 0.2],
        [-0.1, 0.0],
        [0.0, np.nan],
        [0.0, np.inf],
        [[0.0, 0.1]],
        [],
        "ab",
        [0.0, 0.1, 0.2],
    ],
)
def test_gaps_are_those_of_the_arms(gaps):
    with pytest.raises(ArgumentError, match="world"):
        promises(AdaCUCB(2, budget=ZCDP(1.0), beta=4.0), gaps, [1000])


def test_gaps_wider_than_the_range_are_promised_nothing():
    policy = AdaCUCB(2, budget=ZCDP(1.0), beta=4.0)
    assert above(policy, [0.0, 5.0]) == []
    assert above(policy, [0.0, 1.0]) == ["adac_ucb", "adac_ucb_minimax"]
    assert World.of([0.0, 1.0]).is_linear(LINE, 1.0)


def test_one_arm_and_one_round_have_values():
    policy = FTPL(1, budget=PureDP(1.0), horizon=1, calibration="paper")
    values = {one.bound.name: one.values[0] for one in promises(policy, None, [1])}
    assert values["ftpl_conversion"] == np.inf  # Corollary 3 has two arms
    assert adac_gope(1, dimension=1, n_arms=1, rho=1.0, delta=0.1) > 0.0


@pytest.mark.parametrize("horizons", [[0], [-5], [np.nan], 1000, ["ab"]])
def test_horizons_are_numbers_of_rounds(horizons):
    with pytest.raises(ArgumentError, match="horizons"):
        promises(AdaCUCB(2, budget=ZCDP(1.0), beta=4.0), None, horizons)


def test_signs_that_no_reward_can_have_are_promised_nothing():
    assert hidden_signs(10, dimension=2, size=2.0) == 0.0
    assert hidden_signs(10, dimension=2, size=1.0) == 0.0
    assert hidden_signs(10, dimension=2, size=0.1, largest=1.0) == 0.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report_noise", "batch=20", "epsilon=1", "delta=0.1"], "5.46"),
        (["divided_epsilon", "epsilon=0.5", "delta=1e-6", "batches=50"], "0.00656"),
        (["arms_zcdp", "horizon=1e4", "n_arms=5", "rho=0"], "no value at these arguments"),
        (
            ["exp3_conversion", "horizon=0", "n_arms=2", "epsilon=0.1"],
            "no value at these arguments",
        ),
        (
            ["batch_conversion", "horizon=10", "learner_regret=3", "batch=1"],
            "no value at these arguments",
        ),
    ],
)
def test_the_command_computes_with_whole_numbers_and_shows_no_traceback(arguments, said):
    found = CliRunner().invoke(app, ["theory", *arguments])
    assert said in found.output
    assert found.exception is None or isinstance(found.exception, SystemExit)


def test_signs_are_numbers():
    with pytest.raises(ArgumentError, match="signs"):
        HardLinear(2, 100, signs="ab")
