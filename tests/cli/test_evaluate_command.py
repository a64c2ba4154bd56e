"""``dpbandits evaluate``: what ``dpb.evaluate`` tells, and that it is not private."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.cli import app

RNG = np.random.default_rng(1)
ARMS = RNG.integers(0, 2, 300)
LOG = {
    "arm": ARMS,
    "reward": (RNG.random(300) < 0.3 + 0.4 * ARMS).astype(float),
    "propensity": np.full(300, 0.5),
    "age": RNG.uniform(-1, 1, 300),
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(LOG).to_csv("log.csv", index=False)
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, ["evaluate", "log.csv", *map(str, arguments)])


def told(*arguments):
    shown = call(*arguments, "--json")
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def test_json_is_what_python_tells(place):
    given = {"interval": "betting", "confidence": 0.9, "clip": 1.5, "largest_weight": 3.0}
    expected = dpb.evaluate(LOG, 1, estimator="IPS", **given).to_dict()
    options = [f"--{name.replace('_', '-')}={one}" for name, one in given.items()]
    assert told("--target", 1, "--estimator=IPS", *options) == expected


def test_text_says_that_the_result_is_not_private(place):
    shown = call("--target", 1)
    assert shown.exit_code == 0, shown.output
    for words in ("This result is not private.", "effective sample size", "mean weight"):
        assert words in shown.output


def test_targets_of_every_kind_agree(place):
    policy = dpb.bandit(2, budget=None, seed=1)
    for _ in range(100):
        decision = policy.pull()
        policy.update(float(decision.arm == 1), decision)
    (place / "chooser.json").write_text(policy.chooser().to_json())
    policy.save("policy.dpb")
    (place / "table.csv").write_text("0,1\n")
    (place / "rules.py").write_text("def older(context):\n    return int(context[0] > -2)\n")
    expected = dpb.evaluate(LOG, 1).value
    for target in ("1", "chooser.json", "policy.dpb", "table.csv"):
        assert told("--target", target)["value"] == expected
    for features in ("age,age", "age"):
        assert told("--target", "rules:older", "--features", features)["value"] == expected


def test_one_column_is_one_feature(place):
    (place / "ages.py").write_text("def older(context):\n    return int(context[0] > 0)\n")
    expected = dpb.evaluate(LOG, lambda one: int(one[0] > 0), features=["age"])
    assert told("--target=ages:older", "--features=age") == expected.to_dict()
    frame = pd.DataFrame({**LOG, "lists": [[one] for one in LOG["age"]]})
    frame.to_parquet("log.parquet")
    given = ["log.parquet", "--target=ages:older", "--features=lists", "--json"]
    assert json.loads(CliRunner().invoke(app, ["evaluate", *given]).stdout) == expected.to_dict()


@pytest.mark.parametrize("arm", ["10", "2", "old"])
def test_names_of_digits_win_over_numbers(place, arm):
    names = np.array(["2", "old"])[ARMS]
    names[:100] = "10"
    log = {**LOG, "arm": names}
    pd.DataFrame(log).to_csv("log.csv", index=False)
    assert told("--target", arm)["value"] == LOG["reward"][names == arm].mean()
    (at,) = np.flatnonzero(np.unique(names) == "2")
    assert told("--target", "1")["value"] == dpb.evaluate(log, int(at)).value


def test_models_of_every_kind_are_taken(place):
    (place / "model.py").write_text("def q(contexts, arm):\n    return [0.1 * arm] * 300\n")
    (place / "q.csv").write_text("0,0.1\n")
    (place / "p.csv").write_text("0.5,0.5\n")
    more = ("--target=1", "--estimator=CAB", "--clip=1.5", "--propensities=p.csv")
    expected = dpb.evaluate(
        LOG, 1, estimator="CAB", clip=1.5, q=[0.0, 0.1], propensities=[0.5, 0.5]
    ).value
    assert told(*more, "--q=q.csv")["value"] == told(*more, "--q=model:q")["value"] == expected
    assert told(*more)["value"] != expected


def test_mistakes_are_sentences(place):
    for arguments, words in (
        (("--target=7",), "in at least one row, got none"),
        (("--target=no_such_module:none",), "cannot be imported"),
        (("--target=json:none",), "json has no 'none'"),
        (("--target=1", "--propensity=p"), "must have a column 'p'"),
        (("--target=1", "--estimator=DR", "--interval=betting"), "later rewards"),
    ):
        shown = call(*arguments)
        assert shown.exit_code == 2
        assert "Error:" in shown.output
        assert words in shown.output
