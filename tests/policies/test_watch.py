"""The operator's log: once, when there is reason, and never in simulations."""

import logging

import pytest

import dpbandits as dpb
from dpbandits.environments import Gaussian


@pytest.fixture(autouse=True)
def log(caplog):
    caplog.set_level(logging.INFO, "dpbandits")
    return caplog


def test_answers_outside_of_the_range_are_told_once(log):
    policy = dpb.MergedIMED(2, budget=dpb.ZCDP(0.5), reward_range=(0, 5), name="50% of all", seed=1)
    for _ in range(49):
        policy.update(7.0, policy.pull())
        policy.update(5.0, policy.pull())
    assert log.records == []
    for _ in range(100):
        policy.update(-1.0, policy.pull())
    (record,) = log.records
    assert (record.name, record.levelname) == ("dpbandits", "WARNING")
    assert "50% of all: 50 answers lay outside of reward_range (0.0, 5.0)" in record.getMessage()


def test_dropped_answers_are_told_once_they_are_many_and_a_tenth(log):
    policy = dpb.MergedIMED(2, budget=dpb.ZCDP(0.5), seed=1)
    for _ in range(520):
        policy.update(1.0, policy.pull())
    first = policy.pull()
    for _ in range(200):
        policy.update(1.0, policy.pull())
    for _ in range(72):
        policy.update(1.0, first)  # it is too late, as often as it comes
    assert policy.diagnostics.dropped == 72
    assert log.records == []  # of 721 pulls
    policy.update(1.0, first)
    (record,) = log.records
    assert "73 answers to 721 pulls were dropped" in record.getMessage()
    for _ in range(50):
        policy.expire(first)
    assert len(log.records) == 1


def test_simulations_are_silent(log):
    policy = dpb.MergedIMED(2, budget=dpb.ZCDP(0.5))
    with pytest.warns(dpb.ClippingWarning):
        dpb.simulate(policy, Gaussian([5.0, -5.0]), horizon=1000, runs=2)
    assert log.records == []


def test_it_can_be_switched_off(log):
    logging.getLogger("dpbandits").setLevel(logging.ERROR)  # which the fixture takes back
    policy = dpb.MergedIMED(2, budget=dpb.ZCDP(0.5), seed=1)
    for _ in range(60):
        policy.update(7.0, policy.pull())
    assert log.records == []
