"""Intervals from the holdouts of several workers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import dpbandits as dpb
from dpbandits.algorithms import MergedIMED
from dpbandits.policies.holdout import HeldOut

MEANS = np.array([0.3, 0.6])


def worker(seed: int, people: int = 300, **options: Any) -> dpb.Policy:
    """A policy that has met people of its own."""
    own = dpb.Holdout(0.9, batch=20, targets=["rule"])
    given = {"budget": dpb.ZCDP(0.5), "holdout": own, "seed": seed} | options
    policy = MergedIMED(2, **given)
    targets = {"rule": 1} if policy.holdout.targets else None
    rng = np.random.default_rng([seed, 7])
    for _ in range(people):
        decision = policy.pull(targets=targets)
        policy.update(float(rng.random() < MEANS[decision.arm]), decision)
    policy.finish()
    return policy


def test_without_noise_they_are_those_of_one_policy_with_all_sums():
    own = dpb.Holdout(0.9, batch=20)
    one, *others = (worker(seed, budget=None, holdout=own) for seed in range(3))
    held = [other.holdout for other in others]
    table = pd.concat([one.holdout.released_sums, *(each.released_sums for each in held)])
    for given in ({}, {"difference": (1, 0)}):
        found = one.holdout.intervals(others=held, **given)
        wanted = dpb.intervals(table.assign(known=0), n_arms=2, **given)
        assert found.rounds.sum() == wanted.rounds.sum() > 500
        assert found.low == pytest.approx(wanted.low, abs=1e-9)
        assert found.high == pytest.approx(wanted.high, abs=1e-9)
        assert found.means == pytest.approx(wanted.means, abs=1e-12)
    assert found.releases == sum(each.ledger.releases for each in (one.holdout, *held))


def test_each_worker_chooses_its_tilts_by_its_own_releases():
    """In whatever order the workers are given, the intervals are the same."""
    one, other, third = (worker(seed) for seed in range(3))
    found = one.holdout.values(others=[other.holdout, third.holdout])
    turned = third.holdout.values(others=[one.holdout, other.holdout])
    assert (found.low, found.high) == (pytest.approx(turned.low), pytest.approx(turned.high))
    alone = one.holdout.values()
    assert found.high[0] - found.low[0] < 0.75 * (alone.high[0] - alone.low[0])


def test_joined_intervals_cover_the_means():
    """At the end of each of three workers in turn, as somebody would look who waits for a miss."""
    runs, missed = 60, 0
    for run in range(runs):
        held = [worker(3 * run + i, people=120).holdout for i in range(3)]
        looks = [held[0].intervals(0.8, others=held[1:n]) for n in (1, 2, 3)]
        missed += any(((one.low > MEANS) | (one.high < MEANS)).any() for one in looks)
    assert missed <= binom.ppf(1.0 - 1e-4, runs, 0.2)


def test_saved_workers_are_joined(tmp_path: Path):
    one, other = worker(1), worker(2)
    wanted = one.holdout.intervals(others=[other.holdout])
    other.save(tmp_path / "other.dpb")
    read = dpb.inspect(tmp_path / "other.dpb").holdout
    found = one.holdout.intervals(others=[read])
    assert found.to_dict() == wanted.to_dict()
    assert any("several workers" in told for told in found.breaks)


def test_two_threads_may_join_the_same_workers(monkeypatch: pytest.MonkeyPatch):
    """Each has begun to read its own worker before any reads the other's."""
    one, other = worker(1, people=60), worker(2, people=60)
    wanted = one.holdout.ledger.releases + other.holdout.ledger.releases
    right, both = HeldOut._read, threading.Barrier(2)
    begun, found = set[str](), dict[str, Any]()

    def read(self: HeldOut, numbers: Any) -> Any:
        if (name := threading.current_thread().name) not in begun:
            begun.add(name)
            both.wait(60.0)
        return right(self, numbers)

    def join(name: str, mine: dpb.Policy, theirs: dpb.Policy) -> None:
        found[name] = mine.holdout.intervals(others=[theirs.holdout]).releases

    monkeypatch.setattr(HeldOut, "_read", read)
    given = [("a", one, other), ("b", other, one)]
    threads = [threading.Thread(target=join, name=a[0], args=a, daemon=True) for a in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert found == {"a": wanted, "b": wanted}


@pytest.mark.parametrize(
    ("others", "why"),
    [
        (lambda one: [one.holdout], "not repeat a release"),
        (lambda one: 2 * [worker(2).holdout], "in two of the holdouts"),
        (lambda one: [worker(2, budget=dpb.ZCDP(0.1)).holdout], "same class"),
        (lambda one: [worker(2, holdout=dpb.Holdout(0.9, batch=20)).holdout], "same class"),
        (lambda one: [worker(2, arm_names=["a", "b"]).holdout], "names of arms"),
        (lambda one: [worker(2)], "others"),
    ],
)
def test_what_cannot_be_joined_is_refused(others: Callable[[dpb.Policy], list[Any]], why: str):
    one = worker(1)
    with pytest.raises(dpb.ArgumentError, match=why):
        one.holdout.intervals(others=others(one))
