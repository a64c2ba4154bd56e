"""Choosing by regret bounds: the order is that of the bounds, and the choice can play."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dpbandits import RDP, ZCDP, ApproxDP, ArgumentError, PureDP, simulate
from dpbandits.cli import app
from dpbandits.environments import Advised, Bernoulli
from dpbandits.studies import choose_for_experts

PRIVATE = ["--contexts", "private", "--dimension", "3", "--horizon", "1000"]
BUDGETS = [None, PureDP(1.0), PureDP(0.01), ZCDP(0.1), ApproxDP(1.0, 1e-6)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("n_experts", [1, 2, 100])
def test_the_choice_has_the_smallest_bound_of_all_that_take_the_budget(budget, n_experts):
    choice = choose_for_experts(4, n_experts, budget=budget, horizon=10**6, seed=1)
    bounds = choice.bounds["bound"].to_numpy()
    assert list(bounds) == sorted(bounds)
    assert np.isfinite(bounds[0])
    assert choice.policy.regret_bound == bounds[0]
    assert choice.policy.budget == budget
    assert (choice.policy.n_arms, choice.policy.n_experts) == (4, n_experts)
    assert len(choice.bounds) == {PureDP: 4}.get(type(budget), 7)
    assert choice.says_something == bool(bounds[0] < 10**6)


def test_of_equal_bounds_the_simpler_policy_is_first():
    names = choose_for_experts(4, 10, budget=None, horizon=10**5).bounds["policy"].tolist()
    assert names.index("EXP4") < names.index("BatchedEXP4, improved")


def test_what_cannot_have_the_other_arguments_is_left_out_with_its_reason():
    secure = choose_for_experts(4, 10, budget=ZCDP(0.5), horizon=10**5, noise="secure")
    assert "'improved'" in secure.left_out["BatchedEXP4, improved"]
    assert "BatchedEXP4, published" in secure.bounds["policy"].tolist()
    paper = choose_for_experts(4, 10, budget=ApproxDP(1.0, 1e-6), horizon=1000, calibration="paper")
    assert paper.left_out["BatchedEXP4, published"].startswith("horizon must be at least")
    with pytest.raises(ArgumentError, match=r"^n_arms"):
        choose_for_experts(0, 10, budget=None, horizon=10**5)


def test_few_experts_and_many_and_small_budgets_have_their_own_best_policies():
    def best(n_experts, epsilon, **options):
        return (
            choose_for_experts(10, n_experts, budget=PureDP(epsilon), horizon=10**7, **options)
            .bounds["policy"]
            .iloc[0]
        )

    assert best(2, 1.0).startswith("ExpertConversion")
    assert best(1000, 1.0) == "LocalEXP4"
    assert best(1000, 0.01, advice_changes=False) == "FrozenEXP4"
    assert best(1000, 0.01) == "LocalEXP4"


@pytest.mark.long
@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 1e-6)], ids=str)
def test_regret_is_below_the_bound_of_the_choice(budget):
    horizon = 20_000
    policy = choose_for_experts(3, 5, budget=budget, horizon=horizon).policy
    world = Advised.constant(Bernoulli([0.6, 0.5, 0.5]), 5, horizon=horizon)
    assert (
        simulate(policy, world, horizon=horizon, runs=5, seed=1).runs["regret"].mean()
        < policy.regret_bound
    )


def test_a_budget_that_no_policy_takes_is_refused():
    with pytest.raises(ArgumentError, match=r"^budget must be PureDP, ZCDP or ApproxDP"):
        choose_for_experts(3, 5, budget=RDP(4.0, 1.0), horizon=100)
    with pytest.raises(ArgumentError, match=r"^horizon"):
        choose_for_experts(3, 5, budget=None, horizon=0)


def test_the_command_ranks_and_says_when_no_bound_says_anything():
    options = ["choose", "--arms", "10", "--experts", "50", "--budget", "pure=0.01"]
    long = CliRunner().invoke(app, [*options, "--horizon", "10000000", "--standing-advice"])
    assert long.exit_code == 0
    assert long.stdout.splitlines()[1].startswith("FrozenEXP4")
    assert "The first of them: FrozenEXP4(n_arms=10, n_experts=50, horizon=10000000" in long.stdout
    short = CliRunner().invoke(app, [*options, "--horizon", "100"])
    assert short.exit_code == 0
    assert "No bound is below the horizon" in short.stdout
    assert "FrozenEXP4" not in short.stdout
    wrong = CliRunner().invoke(app, [*options[:-1], "rdp=4,1", "--horizon", "100"])
    assert wrong.exit_code == 2
    assert "budget must be" in wrong.output


@pytest.mark.parametrize(
    ("options", "default"),
    [
        (["--budget", "zcdp=1"], "MergedIMED(n_arms=4, "),
        (["--budget", "pure=1", "--trust", "shuffle"], "MergedIMEDSDP(n_arms=4, "),
        (["--budget", "rdp=4,1", "--trust", "local"], "LDPIMED(n_arms=4, "),
        (["--budget", "pure=1", "--any-rewards", "--horizon", "1000"], "HTINF(n_arms=4, "),
        (["--budget", "zcdp=1", "--rounds-per-change", "500"], "DiscountedIMED(n_arms=4, "),
        (["--budget", "zcdp=1", "--contexts", "fixed"], "MergedLinearIMED(arms=features, "),
        (
            ["--contexts", "public", "--dimension", "3", "--horizon", "1000"],
            "RSLinearIMED(n_arms=4, dimension=3, ",
        ),
        (
            [*PRIVATE, "--budget", "zcdp=1"],
            "LinearIMEDJDP(n_arms=4, dimension=3, batch=100, ",
        ),
        (
            [*PRIVATE, "--budget", "approx=1,1e-5", "--trust", "shuffle"],
            "LinearIMEDSDP(n_arms=4, dimension=3, ",
        ),
    ],
)
def test_without_experts_the_command_names_the_default(options, default):
    named = CliRunner().invoke(app, ["choose", "--arms", "4", *options])
    assert named.exit_code == 0
    assert named.stdout.startswith(default)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--budget", "zcdp=1", "--trust", "shuffle"], "budget must be None or PureDP"),
        (["--trust", "local", "--any-rewards"], "trust_model must be 'central'"),
        (["--experts", "3"], "--horizon must be given with experts"),
        (["--any-rewards", "--experts", "3", "--horizon", "10"], "--any-rewards"),
        (["--rounds-per-change", "9", "--any-rewards"], "drifting must be False"),
        (["--rounds-per-change", "9", "--experts", "3", "--horizon", "10"], "--rounds-per-change"),
        (["--standing-advice"], "--standing-advice"),
        (["--contexts", "public"], "--dimension"),
        (["--contexts", "fixed", "--dimension", "3"], "--dimension"),
        (["--dimension", "3"], "--dimension"),
        (["--contexts", "fixed", "--experts", "3", "--horizon", "10"], "--contexts"),
        (["--contexts", "fixed", "--any-rewards"], "random must be True"),
        (["--contexts", "fixed", "--trust", "local"], "trust_model must be 'central'"),
        (["--contexts", "public", "--dimension", "3", "--budget", "zcdp=1"], "horizon must be"),
    ],
)
def test_what_no_policy_serves_is_said(options, told):
    refused = CliRunner().invoke(app, ["choose", "--arms", "4", *options])
    assert refused.exit_code == 2
    assert told in refused.output


def test_bounds_are_plain_data():
    table = choose_for_experts(3, 5, budget=PureDP(1.0), horizon=1000).bounds
    assert json.loads(table.to_json(orient="records"))[0].keys() == {
        "policy",
        "bound",
        "share",
        "batch",
    }
