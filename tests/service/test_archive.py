"""An archived experiment takes rewards until the last deadline, and then has nothing private."""

from contextlib import suppress

import pytest
from operators import Page
from services import KINDS, NOISY, Served, asked_of
from test_coupled import SCHEDULED, send_first, send_repeated_or_none

from dpbandits.errors import StoreError, UpdateError
from dpbandits.policies.loading import read
from dpbandits.service.declaration import Declaration
from dpbandits.service.warming import _contexts
from dpbandits.stores.sealing import Sealer

VIEWS = ("", "/ledger", "/guarantee", "/estimates", "/card", "/chooser", "/trail")
HOUR = {**NOISY, "answers_within": "1h"}
ONE = {**HOUR, "name": "trial", "kind": "MergedIMED", "n_arms": 1}
# Arms of one round each, of which the last ones wait in flights or for their turn.
MANY = {kind: {**HOUR, **KINDS[kind]} for kind in ("arms", "person", "private contexts", "people")}


def kinds_in(store):
    return {row.kind for row in read(store.place("default.trial")).held.rows}


def keys_of(policy):
    return Sealer(policy._first_life)._keys


def play(trial, count, words, rewards=send_first):
    asked = asked_of(trial.get().told)
    for i in range(count):
        unit = {"unit": f"{i // 2}"} if "max_rounds" in words else {}
        trial.decide(decision_id=f"{i}", **asked, **unit)
    for i in range(count):
        for value in rewards(i):
            trial.reward(value, decision_id=f"{i}")


def test_rewards_count_until_the_last_deadline(served, clock):
    trial = served.declare(**ONE)
    for i in range(3):
        trial.decide(decision_id=f"{i}")
        clock.now += 60
    told = trial.because("/archive")
    assert (told["status"], told["finished"]) == ("archived", None)
    assert told["finishes"] == "2027-01-15T09:02:00+00:00"  # an hour after the last decision
    known = trial.decide(decision_id="1")  # which is repeated
    assert known["decision_id"] == "1"
    assert trial.decide(410)["type"] == "archived"
    served.pass_time(3450)
    assert trial.post("/rewards", 410, reward=1.0, decision_id="0").told["type"] == "too-late"
    for i in (1, 2):
        trial.reward(1.0, decision_id=f"{i}")
    assert trial.get("/estimates").told["releases"] == 1
    trial.because("/resume", 410)
    served.pass_time(120)
    told = trial.get().told
    assert told["finished"] == "2027-01-15T09:02:30+00:00"
    assert told["releases"] == 2
    for what in ("/rewards", "/decisions", "/activate", "/cancel"):
        body = {"reward": 1.0} if what == "/rewards" else {}
        assert trial.post(what, 410, decision_id="2", **body).told["type"] == "archived"
    assert trial.because("/erase", unit="Ann") == {"decisions": 0}
    lines = trial.get("/trail").told["lines"]
    assert [line["what"] for line in lines[1:3]] == ["archived", "finished"]


def test_deferred_decisions_may_be_activated_meanwhile(served):
    trial = served.declare(**ONE)
    for i in range(2):
        trial.decide(decision_id=f"{i}", deferred=True)
    trial.because("/archive")
    trial.post("/activate", 200, decision_id="0")
    trial.reward(1.0, decision_id="0")
    trial.post("/cancel", 200, decision_id="1")


def test_without_open_decisions_it_finishes_at_once(served):
    trial = served.declare(**ONE)
    trial.decide()
    served.pass_time(3700)
    assert trial.because("/archive")["finished"] is not None
    assert served.declare(**{**ONE, "name": "none"}).because("/archive")["finished"] is not None


def test_deadlines_in_decisions_end_with_the_time_for_retries(served, clock):
    words = {**ONE, "answers_within": 5, "retries_for": "10min"}
    trial = served.declare(**words)
    trial.decide(decision_id="one")
    trial.because("/archive")
    served.pass_time(590)
    trial.reward(1.0, decision_id="one")
    served.pass_time(20)
    assert trial.get().told["finished"] is not None
    assert trial.get().told["releases"] > 0


@pytest.mark.parametrize("kind", MANY)
def test_nothing_private_is_left_and_the_rest_is_as_before(kind, store, clock):
    with Served(store, clock) as served:
        trial = served.declare(name="trial", **MANY[kind])
        play(trial, 40, MANY[kind])
        policy = served.experiment().policy
        before = keys_of(policy)
        assert before
        assert {"reply", "pull"} & kinds_in(store)
        trial.because("/archive")
        assert {"reply", "pull"} & kinds_in(store)
        served.pass_time(3700)
        assert kinds_in(store) <= {"line", "release", "service"}
        assert not before.keys() & keys_of(policy).keys()
        assert len(keys_of(policy)) == 1  # of the empty private part
        fresh = served.experiment().declaration.build().session
        for side in ("raw", "exact", "wall.running"):
            for name, array in policy.session.state.arrays.items():
                if name.startswith(side):
                    assert (array == fresh.state.arrays[name]).all(), name
        assert policy.diagnostics.pending == 0
        shown = {view: trial.get(view).content for view in VIEWS}
        page = Page(served.http.get("/console/trial").text)
        assert "archived It is finished. Nothing private is left" in page.text
        assert not page.forms
        traffic = served.http.get("/metrics").content
    for _ in range(2):
        with Served(store, clock) as served:
            trial = served.client()
            assert {view: trial.get(view).content for view in VIEWS} == shown
            assert served.http.get("/metrics").content == traffic
            served.pass_time(86_400)
            assert {view: trial.get(view).content for view in VIEWS} == shown
            assert trial.decide(410)["type"] == "archived"


def test_it_finishes_after_a_restart_too(store, clock):
    with Served(store, clock) as served:
        trial = served.declare(**{**ONE, "budget": None})  # without noise
        trial.decide(decision_id="one")
        trial.because("/archive")
    with Served(store, clock) as served:
        trial = served.client()
        trial.reward(0.75, decision_id="one")
        served.pass_time(3700)
        assert trial.get().told["finished"] is not None
        assert trial.get("/estimates").told["means"] == [0.75]


def test_a_commit_that_fails_at_the_end_is_repeated(store, clock, monkeypatch):
    with Served(store, clock) as served:
        trial = served.declare(**ONE)
        trial.decide(decision_id="one")
        trial.because("/archive")
        real, faults = store.commit_all, [1, 1]

        def failing(batches):
            if faults:
                faults.pop()
                return [StoreError("the disk is full")] * len(batches)
            return real(batches)

        monkeypatch.setattr(store, "commit_all", failing)
        served.pass_time(3700)
        trial.get(status=None)
        assert "pull" in kinds_in(store)
        served.pass_time(2)
        assert kinds_in(store) <= {"line", "release", "service"}
        assert trial.get().told["releases"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_ended_policy_chooses_from_released_values_without_a_record(kind):
    words = {"name": "trial", **HOUR, **KINDS[kind]}
    policy = Declaration.read(words).build()
    made = []
    for _ in range(2):
        for i in range(30):
            contexts, at = _contexts(policy), 60.0 * i if policy._uses_clock else None
            user = {"user": i} if policy.max_rounds else {}
            made.append(policy.pull(contexts, at=at, **user))
            if i % 2:
                with suppress(UpdateError):
                    policy.update(1.0, made[-1], at=at)
        releases, means = policy.ledger.releases, repr(policy.estimates)
        policy.end()
    assert (policy.ledger.releases, repr(policy.estimates)) == (releases, means)
    assert not any(one.recorded for one in made[30:])
    with pytest.raises(UpdateError, match="must come from this policy's"):
        policy.update(1.0, made[0].token)


@pytest.mark.parametrize("kind", SCHEDULED)
def test_when_it_finishes_is_the_same_whatever_was_answered(kind, served):
    seen = []
    for name, rewards in (("one", send_first), ("other", send_repeated_or_none)):
        words = {**SCHEDULED[kind], "answers_within": "10min"}
        trial = served.declare(name=name, **words)
        start = served.clock.now
        play(trial, 24, words, rewards)
        told = [trial.because("/archive")]
        for _ in range(12):
            served.pass_time(60.0)
            told.append(trial.get().told)
        moved = [(one["finished"] is not None, one["releases"], one["recorded"]) for one in told]
        assert moved[-1][0]
        assert not moved[0][0]
        seen.append(moved)
        served.clock.now = start + 86_400
    assert seen[0] == seen[1]
