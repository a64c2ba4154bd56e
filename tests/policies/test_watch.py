"""The operator's log: once, when there is reason, and never in simulations."""

import logging
import math
import warnings

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.environments import Gaussian
from dpbandits.session import saved_head


@pytest.fixture(autouse=True)
def log(caplog):
    caplog.set_level(logging.INFO, "dpbandits")
    return caplog


def test_answers_outside_of_the_range_are_told_once(log):
    policy = dpb.algorithms.MergedIMED(
        2, budget=dpb.ZCDP(0.5), reward_range=(0, 5), name="50% of all", seed=1
    )
    for _ in range(49):
        policy.update(7.0, policy.pull())
        policy.update(5.0, policy.pull())
    assert log.records == []
    for _ in range(100):
        policy.update(-1.0, policy.pull())
    (record,) = log.records
    assert (record.name, record.levelname) == ("dpbandits", "WARNING")
    assert "50% of all: 50 answers lay outside of reward_range (0.0, 5.0)" in record.getMessage()


def test_late_answers_are_told_once_they_are_many_and_a_tenth(log):
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5), seed=1)
    for _ in range(520):
        policy.update(1.0, policy.pull())
    first = policy.pull()
    for _ in range(200):
        policy.update(1.0, policy.pull())
    for _ in range(72):
        policy.update(1.0, first)  # it is too late, as often as it comes
    assert (policy.diagnostics.dropped, policy.diagnostics.late) == (72, 72)
    assert log.records == []  # of 721 pulls
    policy.update(1.0, first)
    (record,) = log.records
    assert "73 answers to 721 pulls came too late" in record.getMessage()
    for _ in range(50):
        policy.expire(first)
    assert len(log.records) == 1


def test_answers_to_rounds_that_are_not_recorded_are_counted_and_not_told(log):
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5), max_rounds=1, seed=1)
    learned = [policy.update(1.0, policy.pull(user=i % 10)) for i in range(300)]
    told = policy.diagnostics
    assert (told.dropped, told.late) == (300 - sum(learned), 0)
    assert sum(learned) <= 10
    assert log.records == []


def test_missing_answers_are_told_once_with_their_share(log):
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5), seed=1)
    for _ in range(49):
        policy.update(math.nan, policy.pull())
    assert log.records == []
    for _ in range(50):
        policy.update(1.0, policy.pull())
    for _ in range(99):
        policy.update(None, policy.pull())
    (record,) = log.records
    assert "50 answers to 100 pulls, 50 %, were missing" in record.getMessage()
    assert policy.diagnostics.missing == 148


def test_public_features_beyond_the_bound_are_counted_and_warned_of_once():
    policy = dpb.algorithms.LinearIMED(
        2, 3, budget=dpb.ZCDP(0.5), horizon=100, models="disjoint", seed=1
    )
    with pytest.warns(
        dpb.ClippingWarning, match="feature vectors longer than context_bound=1 .*: 2 so far"
    ) as told:
        policy.pull([1, 63.25, 81])
    assert told[0].filename == __file__
    assert "63.25" not in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.pull([1, 63.25, 81])
        policy.pull([0.6, 0.8, 0.0])
        policy.pull(np.array([3.0, 4.0, 12.0]) / 13.0 * (1 + 1e-12))  # rounding is no length
    assert policy.diagnostics.scaled == 4


def test_only_rows_that_are_longer_count():
    policy = dpb.algorithms.LinUCB(3, 2, context_bound=5.0)
    with pytest.warns(dpb.ClippingWarning, match="1 so far"):
        policy.pull([[3.0, 4.0], [3.0, 4.1], [0.0, 0.0]])
    assert policy.diagnostics.scaled == 1


def test_private_features_beyond_the_bound_are_for_the_operator_alone(log):
    policy = dpb.algorithms.LinUCBJDP(2, 2, budget=dpb.ZCDP(0.5), horizon=1000, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(24):
            policy.pull([[8.0, 0.5], [0.5, 7.0]])
        assert log.records == []
        policy.pull([[8.0, 0.5], [0.5, 7.0]])
        policy.pull([[8.0, 0.5], [0.5, np.nan]])  # blanked, and the other row is too long
        policy.chooser().choose([[8.0, 0.5], [0.5, 7.0]])
    (record,) = log.records
    assert (
        "longer than context_bound=1 are shortened to this length: 50 so far" in record.getMessage()
    )
    assert (policy.diagnostics.scaled, policy.diagnostics.blanked) == (51, 1)


def test_counts_survive_a_save_and_older_saves_have_none(tmp_path, monkeypatch):
    policy = dpb.algorithms.LinUCB(2, 2, seed=1)
    with pytest.warns(dpb.ClippingWarning):
        policy.pull([[3.0, 4.0], [0.0, 1.0]])
    found = dpb.load(policy.save(tmp_path / "a"), simulation=True).session.rounds
    assert (found.scaled, found.late, found.pulls) == (1, 0, 1)
    fewer = tuple(name for name in saved_head.COUNTS if name not in ("scaled", "late"))
    with monkeypatch.context() as patch:  # as a version would write that does not count them
        patch.setattr(saved_head, "COUNTS", fewer)
        policy.save(tmp_path / "b")
    older = dpb.load(tmp_path / "b", simulation=True).session.rounds
    assert (older.scaled, older.late, older.pulls) == (0, 0, 1)


def test_simulations_are_silent(log):
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5))
    with pytest.warns(dpb.ClippingWarning):
        dpb.simulate(policy, Gaussian([5.0, -5.0]), horizon=1000, runs=2)
    assert log.records == []


def test_it_can_be_switched_off(log):
    logging.getLogger("dpbandits").setLevel(logging.ERROR)  # which the fixture takes back
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5), seed=1)
    for _ in range(60):
        policy.update(7.0, policy.pull())
    assert log.records == []
