"""Held-out people in places: saved, loaded, inspected, sealed, and restored from backups."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.stores.addresses import place_at

LOUD = dpb.ZCDP(1e26)  # whose noise is below 1e-10
KINDS: dict[str, dict[str, Any]] = {
    "at once": {},
    "late": {"answers_within": 5},
    "clock": {"answers_within": "1h"},
    "users": {"max_rounds": 3},
    "one sum": {"holdout": dpb.Holdout(0.4, batch=5, one_sum=True)},
    "targets": {"holdout": dpb.Holdout(0.4, batch=5, targets=["rule"]), "answers_within": 4},
}


def make(**options: Any) -> dpb.Policy:
    holdout = dpb.Holdout(0.4, batch=5)
    given = {"budget": dpb.ZCDP(0.5), "holdout": holdout, "seed": 1} | options
    return dpb.bandit(["old", "new"], **given)


def where(kind: str, folder: Path) -> str:
    path = folder / "policy"
    return str(path) if kind == "file" else f"sqlite:///{path}#one"


def step(policy: dpb.Policy, t: int) -> tuple[Any, ...]:
    """One person, who may answer; all that the policy said."""
    rng = np.random.default_rng(t)
    at = {"at": 900.0 * t} if policy.settings.uses_clock else {}
    user = {"user": int(rng.integers(60))} if policy.max_rounds else {}
    targets = {"rule": t % 2} if policy.holdout and policy.holdout.targets else None
    decision = policy.pull(**user, **at, targets=targets)
    learned = None
    if rng.random() < 0.9:
        given = decision.token if rng.random() < 0.5 else None
        learned = policy.update(float(rng.random() < 0.3 + 0.4 * decision.arm), given, **at)
    made = (decision.number, decision.arm, decision.propensity, decision.recorded)
    return (*made, decision.held_out, learned)


@pytest.mark.parametrize(
    ("kind", "place"), [*((kind, "file") for kind in KINDS), ("late", "sqlite")]
)
def test_a_loaded_policy_goes_on_with_its_holdout(kind: str, place: str, tmp_path: Path):
    kept, memory = make(**KINDS[kind]), make(**KINDS[kind])
    kept.save(where(place, tmp_path))
    for t in range(120):
        assert step(kept, t) == step(memory, t)
        if t % 30 == 17:
            kept.close()
            kept = dpb.load(where(place, tmp_path))
            assert kept.session.coin == memory.session.coin
    for one, other in zip(kept.session.streams, memory.session.streams, strict=True):
        assert one.exchange.made[-1].values == other.exchange.made[-1].values
    assert kept.holdout.ledger.frame.equals(memory.holdout.ledger.frame)
    assert kept.holdout.released_sums.equals(memory.holdout.released_sums)
    assert len(kept.holdout.released_sums) > 3
    found = dpb.inspect(where(place, tmp_path))
    pair = ("new", "old")
    assert (
        found.holdout.intervals(difference=pair).to_dict()
        == memory.holdout.intervals(difference=pair).to_dict()
    )
    assert "40 % of people" in found.facts["holdout"]
    if memory.holdout.targets:
        assert found.holdout.values().to_dict() == memory.holdout.values().to_dict()
    assert found.spent == memory.spent


def test_the_last_decision_of_a_held_out_person_survives(tmp_path: Path):
    policy = make(budget=LOUD, holdout=dpb.Holdout(0.5, batch=1))
    policy.save(where("file", tmp_path))
    while not policy.pull().held_out:
        policy.update(0.0)
    policy.close()
    again = dpb.load(where("file", tmp_path))
    assert again.update(1.0)
    again.finish()
    assert again.holdout.released_sums["sum"].sum() == pytest.approx(1.0, abs=1e-6)


def test_a_backup_gives_up_what_held_out_people_answered(tmp_path: Path):
    policy = make(budget=LOUD, holdout=dpb.Holdout(0.5, batch=10), answers_within=3)
    folder, backup = tmp_path / "own", tmp_path / "backup"
    folder.mkdir()
    policy.save(where("file", folder))
    while policy.session.holdout.rounds.recorded < 45:
        policy.update(1.0, policy.pull())
    shutil.copytree(folder, backup)
    token = next(one.token for one in iter(policy.pull, None) if one.held_out)
    coin, told = policy.session.coin, policy.holdout.released_sums
    restored = dpb.restore(where("file", backup))
    assert restored.session.coin == coin
    assert not restored.update(1.0, token)
    assert restored.holdout.ledger.total() == LOUD.rho
    # All that waited is charged, in lines that no other meets.
    for _, lines in restored.holdout.ledger.frame.groupby("part"):
        assert (lines["first"].to_numpy()[1:] > lines["last"].to_numpy()[:-1]).all()
    for _ in range(200):
        restored.update(0.0, restored.pull())
    restored.finish()
    later = restored.holdout.released_sums.iloc[len(told) :]
    assert len(later) > 5
    assert later["sum"].to_numpy() == pytest.approx(0.0, abs=1e-6)
    assert restored.holdout.ledger.total() == LOUD.rho


def test_a_backup_gives_up_the_batch_of_targets(tmp_path: Path):
    """The people whose answers were lost count for no value."""
    holdout = dpb.Holdout(0.5, batch=10, targets=["rule"])
    policy = make(budget=LOUD, holdout=holdout, answers_within=3)
    folder, backup = tmp_path / "own", tmp_path / "backup"
    folder.mkdir()
    policy.save(where("file", folder))
    # One batch is in flight, and one is running.
    held = policy.session.holdout.rounds
    while not (held.flights and held.unreleased):
        policy.update(1.0, policy.pull(targets={"rule": 0}))
    shutil.copytree(folder, backup)
    told = policy.holdout.ledger.releases
    policy.pull(targets={"rule": 0})  # which the copy lacks
    restored = dpb.restore(where("file", backup))
    assert restored.session.restored
    before, entered = len(restored.holdout.released_sums), list[tuple[int, float]]()
    rng = np.random.default_rng(1)
    while restored.holdout.ledger.releases < told + 6:
        decision, reward = restored.pull(targets={"rule": 1}), round(rng.random(), 3)
        restored.update(reward, decision)
        if decision.held_out:
            entered.append((decision.arm, reward))
    later = restored.holdout.released_sums.iloc[before:].groupby("arm")[["rounds", "sum"]].sum()
    people = int(later["rounds"][[0, 1]].sum())
    assert people >= 30
    first = entered[:people]
    rewards = [reward for arm, reward in first if arm == 1]
    assert later["rounds"][2] == later["rounds"][1] == len(rewards)
    assert later["sum"][2] == pytest.approx(sum(rewards), abs=1e-6)


def test_answers_and_exact_sums_of_held_out_people_are_sealed(tmp_path: Path):
    policy = make(answers_within=5)
    place, t = place_at(where("sqlite", tmp_path)), 0
    policy.save(place)
    while t < 60 or not policy.session.holdout.rounds.flights:
        step(policy, t)
        t += 1
    kinds = {row.kind for row in place.read().rows}
    assert {"holdout line", "holdout release", "holdout pull", "holdout sum"} <= kinds
    sums = [row.content for row in place.read().rows if row.kind == "holdout sum"]
    flights = policy.session.holdout.rounds.flights.values()
    exact = {flight.ended.statistic.tobytes() for flight in flights}
    assert exact
    assert not any(one in row for one in exact for row in sums if row)


def test_states_without_a_holdout_have_no_trace_of_it(tmp_path: Path):
    place = place_at(where("sqlite", tmp_path))
    policy = make(holdout=None)
    policy.save(place)
    for t in range(60):
        step(policy, t)
    assert not any(row.kind.startswith("holdout") for row in place.read().rows)


def test_a_user_stays_held_out_in_later_lives(tmp_path: Path):
    """Without a seed each life would toss coins of its own."""
    folder, backup = tmp_path / "own", tmp_path / "backup"
    folder.mkdir()
    policy = make(seed=None, max_rounds=9)
    policy.save(where("file", folder))
    seen = {user: policy.pull(user=user).held_out for user in range(40)}
    shutil.copytree(folder, backup)
    policy.close()
    again = dpb.load(where("file", folder))
    assert {user: again.pull(user=user).held_out for user in seen} == seen
    again.close()
    restored = dpb.restore(where("file", backup))
    assert {user: restored.pull(user=user).held_out for user in seen} == seen
