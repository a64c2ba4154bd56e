"""The command ``dpbandits plan``: what it asks for, prints and refuses."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from dpbandits import ZCDP, Holdout, PureDP, plan
from dpbandits.cli import app
from dpbandits.environments import Bernoulli
from dpbandits.planning import Setting
from dpbandits.policies import registry

pytestmark = pytest.mark.compiled

PRIVATE = ["--features", "3", "--protects", "contexts and rewards"]
MEASURED = ["--means", "0.3,0.7", "--budget", "pure=1", "--trust", "local", "--horizon", "1000"]
STUDY = """
title = "Two arms"
horizon = 400
budgets.pure = [2.0]

[[environments]]
kind = "Bernoulli"
means = [0.9, 0.1]

[[policies]]
kind = "LDPUCB"
"""


def run(*options):
    return CliRunner().invoke(app, ["plan", *options])


@pytest.mark.parametrize(
    ("options", "call", "name"),
    [
        (["--budget", "zcdp=1"], "Arms(", "MergedIMED"),
        (["--budget", "pure=1", "--trust", "shuffle"], "ArmsShuffled(", "MergedIMEDSDP"),
        (["--budget", "rdp=4,1", "--trust", "local"], "ArmsLocal(", "LDPIMED"),
        (["--budget", "pure=1", "--drift", "any"], "Adversarial(", "HTINF"),
        (["--budget", "zcdp=1", "--drift", "500"], "Discount(rounds_per_change=500", "DiscountedIMED"),
        (["--budget", "zcdp=1", "--goal", "best arm"], "failure_probability=0.05", "MergedTopTwo"),
        (["--budget", "pure=1", "--goal", "best arm", "--trust", "shuffle"], "TopTwo()", "MergedTopTwoSDP"),
        (["--features", "3"], "updates=Switching(", "RSLinearIMED"),
        (["--person", "3"], "updates=EveryAnswer(", "LinearIMED"),
        (["--features", "3", "--link", "probit", "--budget", "zcdp=1"], "link='probit'", "GLMThompson"),
        ([*PRIVATE, "--budget", "zcdp=1"], "HiddenLinear(", "LinearIMEDJDP"),
        ([*PRIVATE, "--budget", "zcdp=1"], "batch=50", "LinearIMEDJDP"),
        (
            [*PRIVATE, "--budget", "approx=1,1e-5", "--trust", "shuffle"],
            "HiddenLinearShuffled(",
            "LinearIMEDSDP",
        ),
    ],
)  # fmt: skip
def test_without_means_the_command_names_the_default_and_who_else_fits(options, call, name):
    said = run("--arms", "4", "--horizon", "1000", *options)
    assert said.exit_code == 0, said.output
    first = said.stdout.partition("\n")[0]
    assert "n_arms=4, " in first
    assert call in first
    assert re.search(rf"^{name}.* \*", said.stdout, re.MULTILINE)
    assert "Nothing was measured" in said.stdout
    assert said.stdout.endswith(f"Its promise in full: dpbandits explain {name}\n")


@pytest.mark.long
def test_features_come_from_a_file(tmp_path):
    (tmp_path / "arms.csv").write_text("1,0\n0,1\n0.6,0.6\n")
    options = ["--features", str(tmp_path / "arms.csv"), "--horizon", "1000", "--budget", "zcdp=1"]
    said = run(*options)
    assert said.exit_code == 0
    assert said.stdout.startswith("FixedLinear(arms=")
    assert run(*options, "--arms", "4").exit_code == 2
    (tmp_path / "arms.csv").write_text("1,x\n")
    assert "--features must hold numbers, got no number on line 1" in run(*options).output


def test_a_plan_is_printed_as_json():
    said = run("--arms", "2", "--horizon", "1000", "--budget", "zcdp=1", "--json")
    assert said.exit_code == 0, said.output
    made = plan(Setting(2), 1000, ZCDP(1.0), rounds=0)
    assert json.loads(said.stdout) == json.loads(json.dumps(made.to_dict()))


@pytest.mark.long
def test_what_is_measured_is_what_python_measures():
    said = run(*MEASURED, "--runs", "5", "--seed", "2", "--target-regret", "60", "--left-out")
    setting = Setting.of(Bernoulli([0.3, 0.7]), trust="local")
    made = plan(setting, 1000, PureDP(1.0), runs=5, seed=2)
    assert said.exit_code == 0, said.output
    for row in made.rows()[1]:
        assert re.search(r" +".join(map(re.escape, filter(None, row))), said.stdout)
    for sentence in [*made.findings, str(made.budget_for(60.0))]:
        assert sentence in said.stdout
    assert "  MergedIMED: the party that runs it sees raw rewards\n" in said.stdout


@pytest.mark.long
def test_a_holdout_has_a_price_and_a_use():
    shown = run(*MEASURED[:4], "--horizon", "1000", "--runs", "2", "--holdout", "0.2")
    assert "A holdout of 20 % has 200 people, and loses 40 in 1,000 rounds" in shown.output


def test_a_minimum_share_is_planned_as_a_holdout():
    asked = ["--arms", "3", "--budget", "zcdp=0.5", "--horizon", "10000", "--min-share", "0.05"]
    held = json.loads(run(*asked, "--json").output)["holdout"]
    made = plan(Setting(3), 10_000, ZCDP(0.5), holdout=Holdout(min_share=0.05))
    assert held == vars(made.holdout)
    assert (held["people"], held["regret"]) == (1500, None)
    assert "Every arm gets at least 5 % of all people" in " ".join(run(*asked).output.split())


@pytest.mark.long
def test_gaps_stand_for_coins():
    by_gaps = run(*["--gaps" if one == "--means" else one for one in MEASURED], "--runs", "2")
    assert by_gaps.exit_code == 2  # the least gap is 0
    good = [*MEASURED[2:], "--runs", "2", "--gaps", "0.4,0", "--rounds", "100"]
    assert "Measured: regret, in 2 runs of 100 rounds." in run(*good).stdout


def test_a_study_gives_its_first_environment_its_budget_and_its_horizon(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    said = run(str(tmp_path / "study.toml"), "--trust", "local", "--runs", "2")
    assert said.exit_code == 0, said.output
    assert "finite arms, local trust: 2-DP, 400 rounds" in said.stdout
    other = run(
        str(tmp_path / "study.toml"), "--trust", "local", "--runs", "2", "--budget", "pure=1"
    )
    assert "1-DP, 400 rounds" in other.stdout
    assert run(str(tmp_path / "study.toml"), "--arms", "3").exit_code == 2


def test_experts_are_ranked_and_it_is_said_when_no_bound_says_anything():
    options = ["--arms", "10", "--experts", "50", "--budget", "pure=0.01"]
    long = run(*options, "--horizon", "10000000", "--standing-advice")
    assert long.exit_code == 0
    assert long.stdout.startswith(
        "Experts(n_arms=10, n_experts=50, learner=FrozenEXP4(), horizon=10000000"
    )
    short = run(*options, "--horizon", "100")
    assert short.exit_code == 0
    assert "All bounds are at least the horizon" in short.stdout
    assert "FrozenEXP4" not in short.stdout
    wrong = run("--arms", "3", "--trust", "shuffle", "--budget", "gdp=1", "--horizon", "100")
    assert wrong.exit_code == 2
    assert "budget must be" in wrong.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--arms", "3"], "--horizon must be given"),
        (["--horizon", "10"], "must agree on the number of arms, got none"),
        (["--arms", "3", "--means", "0.1,0.2", "--horizon", "10"], "got 2 and 3"),
        (["--means", "a,b", "--horizon", "10"], "must be numbers"),
        (
            ["--arms", "3", "--horizon", "10", "--protects", "contexts and rewards"],
            "features or person must",
        ),
        (["--arms", "3", "--horizon", "10", "--features", "2", "--person", "2"], "person must not"),
        (
            ["--arms", "3", "--horizon", "10", "--link", "probit"],
            "link must be given with features",
        ),
        (["--arms", "3", "--horizon", "10", "--drift", "often"], "drift must be"),
        (
            ["--arms", "3", "--horizon", "10", "--standing-advice"],
            "standing_advice must be False without experts",
        ),
        (
            ["--arms", "3", "--horizon", "10", "--experts", "2", "--drift", "any"],
            "cannot be combined with experts",
        ),
        (
            [
                "--arms",
                "3",
                "--horizon",
                "9",
                "--drift",
                "any",
                "--trust",
                "local",
                "--budget",
                "pure=1",
            ],
            "one for which there is a policy",
        ),
        (
            ["--arms", "3", "--horizon", "10", "--target-regret", "5"],
            "rounds must equal the horizon, 10, to find a budget",
        ),
        (["--holdout", "0.1", "--min-share", "0.1", *MEASURED], "not be given with --holdout"),
        ([*MEASURED, "--runs", "2", "--target-regret", "0.001"], "without privacy, got 0.001"),
    ],
)
def test_what_is_wrong_is_said(options, words):
    said = run(*options)
    assert said.exit_code == 2
    assert words in " ".join(said.output.split())


OWN = """
from dpbandits.algorithms import Arms
from dpbandits.parts import UCB, Growing, Merge
from dpbandits.policies import preset

preset("OwnUCB", Arms, "n_arms", "Of one's own.", index=UCB(2.0), memory=Merge(), batches=Growing(3.0))
"""


def test_policies_of_a_module_are_candidates(tmp_path, monkeypatch):
    (tmp_path / "own_ucb.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    asked = ["--arms", "3", "--budget", "zcdp=1", "--horizon", "500"]
    assert "OwnUCB" not in run(*asked).stdout
    assert re.search("^OwnUCB$", run(*asked, "--imports", "own_ucb").stdout, re.MULTILINE)
    told = run(*asked, "--imports", "nowhere").stderr
    assert told == "Error: nowhere cannot be imported: No module named 'nowhere'\n"
