"""Decisions of a service as files: what is in them, when, and what a reader makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from services import NOISY, Served

import dpbandits as dpb
from dpbandits.errors import StoreError
from dpbandits.logs import read_logs
from dpbandits.service import export
from dpbandits.stores.sqlite import SQLiteStore

WORDS = {
    **NOISY,
    "name": "trial",
    "kind": "HTINF",
    "n_arms": 3,
    "budget": {"pure": 1.0},
    "answers_within": "1h",
}


@pytest.fixture
def exporting(store, clock, tmp_path):
    with Served(store, clock, exports=tmp_path / "log") as one:
        yield one


def files(folder, name="trial"):
    return sorted((folder / "log" / f"default.{name}").glob("decisions-*.parquet"))


def play(trial, rounds):
    """Rewards of arms are 0, .5 and 1; the replies, in their order."""
    seen = [trial.decide(decision_id=f"d{i}") for i in range(rounds)]
    for made in seen:
        trial.reward(made["arm"] / 2.0, decision_id=made["decision_id"])
    return seen


def test_the_files_are_what_replies_and_rewards_said(exporting, tmp_path):
    trial = exporting.declare(**WORDS)
    seen = play(trial, 40)
    trial.decide(decision_id="d0")  # a repeated request, and a reward that came before
    trial.reward(0.25, decision_id="d0")
    unanswered = trial.decide(decision_id="late")
    assert files(tmp_path) == []
    exporting.pass_time(11.0)
    log = read_logs(tmp_path / "log" / "default.trial")
    assert log["arm"].tolist() == [one["arm"] for one in [*seen, unanswered]]
    assert log["propensity"].tolist() == [one["propensity"] for one in [*seen, unanswered]]
    assert log["reward"].tolist()[:-1] == [one["arm"] / 2.0 for one in seen]
    assert np.isnan(log["reward"].iloc[-1])
    folder = tmp_path / "log" / "default.trial"
    assert not any(one.stat().st_mode & 0o77 for one in (folder, *folder.iterdir()))


def test_a_log_is_evaluated_as_a_log_of_python(exporting, tmp_path):
    """The value of arm 2 is 1, and the inverse propensity estimate is computed here by hand."""
    trial = exporting.declare(**WORDS)
    seen = play(trial, 200)
    exporting.pass_time(11.0)
    found = dpb.evaluate(tmp_path / "log" / "default.trial", 2, estimator="IPS")
    by_hand = np.mean([(one["arm"] == 2) / one["propensity"] for one in seen if one["recorded"]])
    assert found.value == pytest.approx(by_hand, rel=1e-12)


def test_rewards_of_another_arm_and_of_the_baseline_are_left_out(exporting, tmp_path):
    words = {**WORDS, "name": "two", "baseline": 0}
    trial = exporting.declare(**words)
    first, second = (trial.decide(decision_id=f"d{i}") for i in range(2))
    trial.reward(1.0, decision_id="d0", arm=(first["arm"] + 1) % 3)
    trial.reward(1.0, decision_id="d1", arm=second["arm"])
    trial.because("/pause")
    trial.decide(decision_id="baseline")
    exporting.pass_time(11.0)
    log = read_logs(tmp_path / "log" / "default.two")
    assert len(log) == 2
    assert np.isnan(log["reward"][0])
    assert log["reward"][1] == 1.0


def test_public_contexts_are_written_and_private_ones_leave_no_log(exporting, tmp_path):
    words = {"arms": 2, "features": 2, "horizon": 1000, **NOISY}
    seen = exporting.declare(**words, name="seen")
    seen.decide(contexts=[[1.0, 0.0], [0.0, 0.5]])
    hidden = exporting.declare(
        **{**words, "protects": "contexts and rewards", "budget": {"approx": [1.0, 1e-6]}},
        name="hidden",
    )
    hidden.decide(contexts=[[1.0, 0.0], [0.0, 0.5]])
    exporting.pass_time(11.0)
    told = read_logs(tmp_path / "log" / "default.seen")["features"][0]
    assert np.array_equal([*map(list, told)], [[1.0, 0.0], [0.0, 0.5]])
    assert not (tmp_path / "log" / "default.hidden").exists()


def test_the_clock_alone_says_when_rows_are_written(exporting, tmp_path):
    """One service gets rewards, the other gets none: files appear at equal times."""
    appeared = []
    for name, answers in (("with", True), ("without", False)):
        trial = exporting.declare(**{**WORDS, "name": name})
        exporting.pass_time(10.0)
        times = []
        for i in range(30):
            trial.decide(decision_id=f"d{i}")
            if answers:
                trial.reward(1.0, decision_id=f"d{i}")
            exporting.pass_time(1.0)
            times.append(len(files(tmp_path, name)))
        appeared.append(times)
    assert appeared[0] == appeared[1]
    assert appeared[0][-1] >= 3


def test_rows_wait_while_files_cannot_be_written(exporting, tmp_path, monkeypatch):
    trial = exporting.declare(**WORDS)
    monkeypatch.setattr(export, "MOST", 30)
    monkeypatch.setattr(export.Rows, "flush", _full)
    play(trial, 10)
    exporting.pass_time(11.0)
    assert files(tmp_path) == []
    monkeypatch.undo()
    exporting.pass_time(11.0)
    assert len(read_logs(tmp_path / "log" / "default.trial")) == 10


def test_rewards_shortly_before_the_end_of_an_archived_experiment_are_written(exporting, tmp_path):
    """At its end the experiment destroys the key of its tokens."""
    trial = exporting.declare(**WORDS)
    seen = [trial.decide(decision_id=f"d{i}") for i in range(5)]
    trial.because("/archive")
    exporting.pass_time(3595.0)
    for made in seen:
        trial.reward(made["arm"] / 2.0, decision_id=made["decision_id"])
    exporting.pass_time(5.0)
    assert exporting.experiment().finished is not None
    exporting.pass_time(11.0)
    log = read_logs(tmp_path / "log" / "default.trial")
    assert log["reward"].tolist() == [one["arm"] / 2.0 for one in seen]


def test_a_cancelled_decision_has_no_missing_reward(exporting, tmp_path):
    """Cancelled before its row was in a file, and afterwards."""
    trial = exporting.declare(**WORDS)
    for name in "abcd":
        trial.decide(decision_id=name, deferred=True)
    trial.post("/cancel", 200, decision_id="a")
    exporting.pass_time(11.0)
    trial.post("/cancel", 200, decision_id="b")
    trial.post("/cancel", 200, decision_id="b")
    trial.post("/activate", 200, decision_id="c")
    trial.reward(1.0, decision_id="c")
    exporting.pass_time(11.0)
    folder = tmp_path / "log" / "default.trial"
    assert read_logs(folder)["recorded"].tolist() == [False, False, True, True]
    play(trial, 150)
    exporting.pass_time(11.0)
    told = dpb.evaluate(folder, 1).diagnostics.left_out
    assert told == (("not recorded", 2), ("without a reward", 1))


def _full(self):
    raise OSError("the disk is full")


def test_decisions_that_were_never_kept_are_not_written(exporting, tmp_path, monkeypatch):
    """A commit fails until the process ends: the number of its decision may be used again."""
    trial = exporting.declare(**WORDS)
    play(trial, 3)
    exporting.pass_time(11.0)
    monkeypatch.setattr(SQLiteStore, "commit_all", _lost)
    trial.post("/decisions", 503)
    exporting.pass_time(11.0)
    assert len(read_logs(tmp_path / "log" / "default.trial")) == 3
    monkeypatch.undo()
    exporting.pass_time(11.0)  # a later commit has kept the decision
    assert len(read_logs(tmp_path / "log" / "default.trial")) == 4


def _lost(store, batches):
    return [StoreError("the disk is full")] * len(batches)
