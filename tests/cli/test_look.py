"""``dpbandits inspect`` and ``dpbandits warm``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.cli import app


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_inspect_shows_promise_spending_and_estimates(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5), max_rounds=1, seed=1)
    for visit in range(50):
        if visit == 40:  # from when on every call is written
            path = policy.save(tmp_path / "trial.dpb")
        policy.update(0.123456, policy.pull(user=f"Ms. {visit}"))
    shown = call("inspect", path)
    assert shown.exit_code == 0, shown.output
    for words in (
        "AdaCUCB(n_arms=2",
        "With secure noise, the rewards of one user would be protected with 0.5-zCDP",
        "0.5-zCDP of at most 0.5-zCDP",
        f"{policy.ledger.releases:,}",
        "50 recorded",
        "leader",
    ):
        assert words in shown.output
    for secret in ("0.123456", "Ms.", "seed="):
        assert secret not in shown.output


def test_inspect_of_something_else_is_a_sentence(tmp_path):
    (tmp_path / "x").write_text("x")
    shown = call("inspect", tmp_path / "x")
    assert shown.exit_code == 2
    assert "Error:" in shown.output
    assert "no saved policy" in shown.output
    assert call("inspect", tmp_path / "nothing").exit_code == 2


def test_warm_takes_policies_and_studies_and_nothing_else(tmp_path):
    shown = call("warm", "AdaCUCV")
    assert shown.exit_code == 2
    assert "AdaCUCB" in shown.output
    shown = call("warm", tmp_path / "no.toml")
    assert shown.exit_code == 2
    assert "there is no study file" in shown.output


def test_warm_says_that_nothing_can_be_kept(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DPBANDITS_CACHE_DIR", str(tmp_path / "file" / "cache"))
    shown = call("warm", "AdaCUCB")
    assert shown.exit_code == 2
    assert "cannot be written" in shown.output


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners")
def test_warm_keeps_nothing_where_others_can_change_it(tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("DPBANDITS_CACHE_DIR", str(tmp_path / "shared" / "cache"))
    shown = call("warm", "AdaCUCB")
    assert shown.exit_code == 2
    assert "chmod go-w" in shown.output
    assert not list((tmp_path / "shared").iterdir())


STUDY = """
title = "Two arms"
runs = 4
horizon = 300
budgets.zcdp = [0.5]
environments = [{kind = "Bernoulli", means = [0.9, 0.1]}]
policies = [{kind = "AdaCUCB"}]
"""

# Compiling nothing, it leaves nothing new.
SERVES = """
import dpbandits as dpb
policy = dpb.papers.concentrated.AdaCUCB(5, budget=dpb.ZCDP(0.1), answers_within=2)
for _ in range(100):
    policy.update(1.0, policy.pull())
"""


@pytest.mark.long
def test_what_was_warmed_compiles_no_more(tmp_path):
    source = str(Path(dpb.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "DPBANDITS_CACHE_DIR": str(tmp_path / "c")}

    def run(*command):
        ran = subprocess.run(
            [sys.executable, *command],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout, len(list((tmp_path / "c").rglob("*.kernel")))

    (tmp_path / "study.toml").write_text(STUDY)
    said, kept = run("-m", "dpbandits", "warm", "AdaCUCB", "study.toml")
    assert f"Cache: {tmp_path / 'c'}" in said
    assert "AdaCUCB: " in said
    assert "kernels compiled" in said
    assert kept > 10
    assert run("-c", SERVES)[1] == kept
    assert run("-m", "dpbandits", "run", "study.toml", "--output", "out")[1] == kept
    again, still = run("-m", "dpbandits", "warm", "AdaCUCB", "study.toml")
    assert still == kept
    assert again.count("nothing to compile") == 2


def test_intervals_of_held_out_people(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    holdout = dpb.Holdout(0.5, batch=20, one_sum=True)
    policy = dpb.bandit(["old", "new"], budget=dpb.ZCDP(0.5), holdout=holdout, seed=1)
    for _ in range(200):
        decision = policy.pull()
        policy.update(float(decision.arm == 1), decision)
    path = policy.save(tmp_path / "trial.dpb")
    shown = call("intervals", path, "--holdout", "--difference", "new", "old", "--json")
    assert json.loads(shown.output) == policy.holdout.intervals(difference=("new", "old")).to_dict()
    assert "difference must be given" in call("intervals", path, "--holdout").output
    assert "50 % of people get an arm by chance" in " ".join(call("inspect", path).output.split())
    other = dpb.bandit(2, budget=dpb.ZCDP(0.5), seed=1).save(tmp_path / "other.dpb")
    assert "no holdout" in call("intervals", other, "--holdout").output


def test_intervals_of_targets(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    holdout = dpb.Holdout(0.5, batch=20, targets=["rule", "other"])
    policy = dpb.bandit(["old", "new"], budget=dpb.ZCDP(0.5), holdout=holdout, seed=1)
    for person in range(200):
        decision = policy.pull(targets={"rule": person % 2, "other": "old"})
        policy.update(float(decision.arm == person % 2), decision)
    path = policy.save(tmp_path / "trial.dpb")
    shown = call("intervals", path, "--targets", "--json")
    assert json.loads(shown.output) == policy.holdout.values().to_dict()
    for control in ("old", "other"):
        shown = call("intervals", path, "--targets", "--control", control, "--json")
        assert json.loads(shown.output) == policy.holdout.values(control=control).to_dict()
    refused = call("intervals", path, "--targets", "--method", "closed").output
    assert "not be given with --difference" in refused


def test_decided_answers_for_the_bandit_and_for_held_out_people(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    holdout = dpb.Holdout(min_share=0.2, batch=20)
    policy = dpb.bandit(["old", "new"], budget=dpb.ZCDP(0.5), holdout=holdout, seed=1)
    path = policy.save(tmp_path / "trial.dpb")
    assert "nothing has been released yet" in call("decided", path).output
    for _ in range(600):
        decision = policy.pull()
        policy.update(float(decision.arm == 1), decision)
    policy.close()
    seen = dpb.inspect(path)
    shown = call("decided", path, "--gap", "0.1", "--confidence", "0.9", "--json")
    assert json.loads(shown.output) == seen.decided(0.9, gap=0.1).to_dict()
    shown = call("decided", path, "--holdout", "--control", "new", "--json")
    assert json.loads(shown.output) == seen.holdout.decided(control="new").to_dict()
    said = " ".join(call("decided", path).output.split())
    assert said.startswith("Decided at 95 %: new has the highest mean.")
    assert "new - old" in said
    assert "Intervals assume that an arm's mean stays the same" in said
    assert "control must be" in call("decided", path, "--control", "nobody").output
    other = dpb.bandit(2, budget=dpb.ZCDP(0.5), seed=1).save(tmp_path / "other.dpb")
    assert "no holdout" in call("decided", other, "--holdout").output
