"""One commit for many requests, stores that fail, and two services on one store."""

import asyncio
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest
from services import ARMS, NOISY, Served

import dpbandits as dpb
from dpbandits import ZCDP, restore
from dpbandits.algorithms import MergedIMED
from dpbandits.errors import ClaimError, StoreError
from dpbandits.service import http
from dpbandits.service import owner as owner_module
from dpbandits.service.declaration import Declaration
from dpbandits.service.owner import MOST_AT_ONCE, Owner
from dpbandits.service.problems import Problem
from dpbandits.stores.sqlite import SQLiteStore


class Failing(SQLiteStore):
    """Counts transactions; each of ``faults`` spoils one of them, or the last one all."""

    def __init__(self, path):
        super().__init__(path)
        self.transactions, self.faults, self.for_good, self.entered = 0, [], None, threading.Event()
        self.go = threading.Event()
        self.go.set()

    def commit_all(self, batches):
        self.entered.set()
        assert self.go.wait(30.0)
        self.transactions += 1
        fault = self.faults.pop(0) if self.faults else self.for_good
        return super().commit_all(batches) if fault is None else fault(self, batches)


def loses(store, batches):
    """Nothing is written."""
    return [StoreError("the disk is full")] * len(batches)


def loses_the_answer(store, batches):
    """All is written, and nobody is told."""
    SQLiteStore.commit_all(store, batches)
    return [StoreError("the connection broke")] * len(batches)


def has_a_defect(store, batches):
    """It raises what no store should."""
    raise ZeroDivisionError


def loses_the_first(store, batches):
    """One experiment cannot be written."""
    mine = [one for one in batches if one[0].key == "default.trial"]
    others = iter(SQLiteStore.commit_all(store, [one for one in batches if one not in mine]))
    return [StoreError("too large") if one in mine else next(others) for one in batches]


@pytest.fixture
def store(tmp_path):
    return Failing(tmp_path / "policies.db")


@pytest.fixture
def trial(served):
    return served.declare(**ARMS)


def decisions(trial, count, prefix="d"):
    return [(f"{trial.at}/decisions", {"decision_id": f"{prefix}{i}"}) for i in range(count)]


def test_one_commit_for_all_requests_that_wait(served, store, trial):
    other = served.declare(**{**ARMS, "name": "other"})
    store.go.clear()
    store.entered.clear()
    count, before = 300, store.transactions
    waiting = [
        served.http.portal.start_task_soon(served.http.posted, *call)
        for call in [*decisions(trial, count), *decisions(other, count)]
    ]
    assert store.entered.wait(30.0)
    while len(served.owner._waiting) < 2 * count - MOST_AT_ONCE and not any(
        one.done() for one in waiting
    ):
        pass
    served.http.portal.call(served.http.idle)
    assert not any(one.done() for one in waiting)  # nothing leaves before the commit
    store.go.set()
    assert {one.result().status_code for one in waiting} == {200}
    assert store.transactions - before <= 4
    assert served.experiment().policy.session.rounds.pulls == count


@pytest.mark.parametrize("fault", [loses, loses_the_answer, has_a_defect])
def test_a_store_that_fails_once_loses_nothing(served, store, trial, clock, fault):
    known = trial.decide(decision_id="before")
    store.faults = [fault]
    reply = trial.post("/decisions", decision_id="one", unit="Ann")
    if fault is not loses_the_answer:
        assert reply.status_code == (500 if fault is has_a_defect else 503)
    made = trial.decide(decision_id="one", unit="Ann")
    store.faults = [fault]
    assert trial.post("/rewards", reward=0.75, decision_id="before").status_code in (202, 500, 503)
    assert trial.reward(0.25, decision_id="before") == {"learned": True, "why": None}
    rounds = served.experiment().policy.session.rounds
    assert rounds.pulls == 2
    served.pass_time(3601)
    assert trial.get("/estimates").told["means"][known["arm"]] == 0.75  # the first one counts
    served.__exit__()
    with Served(store, clock) as again:
        trial = again.client()
        assert trial.decide(decision_id="one", unit="Ann") == made
        assert trial.decide(decision_id="before") == known


@pytest.mark.parametrize("fault", [loses, has_a_defect])
def test_a_store_that_fails_for_good_lets_nothing_out(served, store, trial, fault):
    known = trial.decide(decision_id="known")
    store.for_good = fault
    wrong = {503, 500} if fault is has_a_defect else {503}
    for i in range(5):
        reply = trial.post("/decisions", decision_id=f"{i}")
        assert reply.status_code in wrong
        assert "arm" not in reply.told
        assert trial.post("/decisions", decision_id="known").status_code in wrong
        assert trial.post("/rewards", reward=1.0, decision_id="known").status_code in wrong
        assert trial.get(status=None).status_code in wrong
        assert "dpbandits_decisions_total{" not in served.http.get("/metrics").text
        listed = served.http.get("/v1/experiments").json()["experiments"]
        assert [one["status"] for one in listed] == ["failed"]
    assert served.http.get("/healthz").status_code == 200
    store.for_good = None
    assert trial.decide(decision_id="known") == known
    made = [trial.decide(decision_id=f"{i}") for i in range(5)]
    assert len({one["token"] for one in made}) == 5
    trial.reward(1.0, decision_id="known")


def test_other_experiments_go_on(served, store, trial):
    other = served.declare(**{**ARMS, "name": "other"})
    store.for_good = loses_the_first
    replies = served.http.at_once([*decisions(trial, 20), *decisions(other, 20)])
    assert [one.status_code for one in replies] == [503] * 20 + [200] * 20
    assert {one.headers.get("retry-after") for one in replies[:20]} == {"1"}
    other.get()
    listed = served.http.get("/v1/experiments").json()["experiments"]
    assert [one["status"] for one in listed] == ["running", "failed"]
    served.pass_time(10)
    store.for_good = None
    replies = served.http.at_once(decisions(trial, 20))
    assert {one.status_code for one in replies} == {200}
    assert served.experiment().policy.session.rounds.pulls == 20


def keeps_waiting(store, batches):
    """Another program has the database locked."""
    time.sleep(0.03)
    return [StoreError("database is locked")] * len(batches)


def test_a_store_that_is_stuck_is_tried_once_for_all_experiments(served, store, trial, monkeypatch):
    monkeypatch.setattr(owner_module, "SLOW", 0.02)
    every = [trial, *(served.declare(**{**ARMS, "name": f"t{i}"}) for i in range(3))]
    store.for_good = keeps_waiting
    calls = [decisions(one, 1)[0] for one in every]
    assert {one.status_code for one in served.http.at_once(calls)} == {503}
    assert served.http.get("/readyz").status_code == 503
    before = store.transactions
    served.pass_time(2)
    assert store.transactions == before + 1
    store.for_good = None
    served.pass_time(2)
    assert served.http.get("/readyz").status_code == 200
    assert {one.status_code for one in served.http.at_once(calls)} == {200}


def test_who_stops_while_the_store_is_stuck_does_not_wait_for_it(served, store, trial, monkeypatch):
    monkeypatch.setattr(owner_module, "SLOW", 0.02)
    store.for_good = keeps_waiting
    trial.post("/decisions", 503)
    store.go.clear()
    store.entered.clear()
    start = served.http.portal.start_task_soon
    first = start(served.http.posted, *decisions(trial, 1)[0])
    assert store.entered.wait(30.0)
    later = [start(served.http.posted, *call) for call in decisions(trial, 20)]
    while len(served.owner._waiting) < 20:
        served.http.portal.call(served.http.idle)
    before = store.transactions
    served.http.portal.call(served.owner.stop)
    store.go.set()
    assert first.result().json()["type"] == "store"
    assert {one.result().json()["type"] for one in later} == {"stopping"}
    assert store.transactions == before + 1


def test_a_service_does_not_start_on_a_store_that_is_locked(store, clock, monkeypatch, tmp_path):
    with Served(store, clock) as served:
        for i in range(3):
            served.declare(**{**ARMS, "name": f"t{i}"})
    monkeypatch.setattr("dpbandits.stores.sqlite.PATIENCE", 30)
    monkeypatch.setattr(owner_module, "SLOW", 0.02)
    other = apsw.Connection(str(store.path))
    other.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    with pytest.raises(StoreError, match="Another program has it open"):
        Owner(SQLiteStore(store.path), clock).take_over()
    assert time.monotonic() < begun + 2.0
    other.close()


def test_noise_is_not_drawn_again_for_a_commit_that_failed(served, store):
    trial = served.declare(name="trial", arms=2, **NOISY)
    for _ in range(20):
        trial.reward(1.0, token=trial.decide()["token"])
    store.faults = [loses]
    served.pass_time(3601)  # the releases of this tick are not written
    drawn = served.experiment().policy.session.state.wall.ledger.head.copy()
    trial.get()
    ledger = served.experiment().policy.session.state.wall.ledger.head
    assert (ledger == drawn).all()
    assert trial.get().told["releases"] > 0


def test_a_defect_of_an_experiment_is_its_own(served, trial, monkeypatch, capsys):
    from dpbandits.service.client_calls import ClientCalls

    other = served.declare(**{**ARMS, "name": "other"})
    real = ClientCalls.decide

    def decide(self, *given):
        if self._experiment.name == "trial":
            raise ZeroDivisionError("secret")
        return real(self, *given)

    monkeypatch.setattr(ClientCalls, "decide", decide)
    told = trial.decide(500)
    assert "secret" not in str(told)
    results = trial.post("/decisions/batch", 200, decisions=[{}]).told["results"]
    assert results[0]["status"] == 500
    other.decide()
    shown = capsys.readouterr().err
    assert shown.count("ZeroDivisionError") == 2
    assert "secret" not in shown


def test_a_tick_that_fails_is_logged(served, trial, monkeypatch, capsys):
    monkeypatch.setattr(served.experiment(), "tick", lambda now: 1 / 0)
    served.pass_time(2)
    assert (
        '"tick failed", "experiment": "trial", "error": "ZeroDivisionError"'
        in capsys.readouterr().err
    )
    trial.decide()


def test_a_flood_does_not_hold_deadlines_up(served, trial, clock):
    ticked, flood = served.owner._ticked, 200
    clock.now += 10

    def again(one, now):
        nonlocal flood
        flood -= 1
        if flood and served.owner._ticked == ticked:
            served.http.portal.start_task_soon(ask)
            served.http.portal.call(served.http.idle)  # so there is always one that waits

    async def ask():
        await served.owner.ask(("default", "trial"), again)

    served.http.portal.call(ask)
    while flood and served.owner._ticked == ticked:
        pass
    assert flood > 190


def test_bodies_that_wait_are_bounded_by_their_bytes(served, store, trial, monkeypatch):
    monkeypatch.setattr(http, "MOST_OF_ONE", 3_500_000)
    large = [(f"{trial.at}/decisions", {"contexts": ["x" * 1_000_000]})] * 5
    store.go.clear()
    store.entered.clear()
    start = served.http.portal.start_task_soon
    first = start(served.http.posted, *decisions(trial, 1)[0])
    assert store.entered.wait(30.0)
    waiting = [start(served.http.posted, *call) for call in large]
    served.http.portal.call(served.http.idle)
    refused = [one.result() for one in waiting if one.done()]
    assert [one.status_code for one in refused] == [503, 503]
    assert {one.json()["type"] for one in refused} == {"busy"}
    assert {one.headers["retry-after"] for one in refused} == {"1"}
    store.go.set()
    assert first.result().status_code == 200
    assert sorted(one.result().status_code for one in waiting) == [422] * 3 + [503] * 2
    for _ in range(5):  # there is room again
        assert served.http.post(large[0][0], json=large[0][1]).status_code == 422


def test_no_tenant_has_all_the_room_for_bodies(monkeypatch):
    monkeypatch.setattr(http, "MOST_BYTES", 10)
    monkeypatch.setattr(http, "MOST_OF_ONE", 5)
    bodies, one = http.Bodies(), SimpleNamespace(state=SimpleNamespace())
    with bodies.counted(one, "a"):
        one.state.count(5)
        with pytest.raises(Problem):
            one.state.count(1)
        others = [SimpleNamespace(state=SimpleNamespace()) for _ in range(2)]
        with bodies.counted(others[0], "b"), bodies.counted(others[1], "c"):
            others[0].state.count(5)
            with pytest.raises(Problem) as refused:
                others[1].state.count(1)
    assert refused.value.status == 503
    with bodies.counted(one, "a"):
        one.state.count(5)


# Two processes -----------------------------------------------------------------------------


def test_a_second_service_is_a_standby(store, clock, tmp_path):
    with Served(store, clock) as first, Served(SQLiteStore(store.path), clock) as second:
        trial = first.declare(**ARMS)
        made = trial.decide(decision_id="one")
        second.pass_time(6)
        refused = second.client().post("/decisions", 503)
        assert refused.told["type"] == "elsewhere"
        assert second.http.get("/readyz").status_code == 503
        assert second.http.get("/healthz").status_code == 200
        assert second.http.post("/v1/experiments", json=ARMS).status_code == 202
        while second.client().get(status=None).told["status"] == "starting":
            pass
        trial.decide()  # nothing was taken away
        first.__exit__()
        second.pass_time(6)
        assert second.http.get("/readyz").status_code == 200
        assert second.client().decide(decision_id="one") == made


def cold(store, clock, go, events):
    """A standby that compiles until ``go`` is set."""

    async def warm(declaration):
        events.append(("compiled", declaration.name))
        while not go.is_set():
            await asyncio.sleep(0.001)
        if go.faulty:
            raise MemoryError

    standby = Served(SQLiteStore(store.path), clock, is_warm=lambda _: go.is_set())
    standby.service.warm = warm
    return standby


@pytest.mark.parametrize("faulty", [False, True])
def test_a_standby_compiles_while_it_waits_and_takes_over_only_then(
    store, clock, monkeypatch, faulty
):
    go, events, real = threading.Event(), [], owner_module.play
    go.faulty = faulty
    with Served(store, clock) as first:
        made = first.declare(**ARMS).decide(decision_id="one")
        with cold(store, clock, go, events) as second:
            monkeypatch.setattr(
                owner_module, "play", lambda *given, **more: events.append("taken") or real(*given, **more)
            )  # fmt: skip
            await_until(lambda: events)
            assert events == [("compiled", "trial")]  # and the first one serves
            assert second.client().post("/decisions", 503).told["type"] == "starting"
            first.client().decide()
            first.__exit__()
            second.pass_time(6)
            assert second.http.get("/readyz").status_code == 503
            assert second.http.get("/healthz").status_code == 200
            assert "taken" not in events
            go.set()
            await_until(lambda: second.http.get("/readyz").status_code == 200)
            assert events == [("compiled", "trial"), "taken"]
            assert second.client().decide(decision_id="one") == made


def test_a_standby_that_is_warm_takes_over_at_once(store, clock):
    go, events = threading.Event(), []
    go.faulty = False
    with Served(store, clock) as first, cold(store, clock, go, events) as second:
        first.declare(**ARMS)
        second.pass_time(6)
        await_until(lambda: events)
        go.set()
        await_until(lambda: not second.owner.cold)
        assert second.client().post("/decisions", 503).told["type"] == "elsewhere"
        first.__exit__()
        second.pass_time(6)
        second.client().decide()
        assert len(events) == 1


def await_until(done):
    until = time.monotonic() + 30.0
    while not done():
        assert time.monotonic() < until
        time.sleep(0.002)


def test_an_experiment_that_another_process_has_taken_is_let_go(served, store, trial):
    """And requests that wait for it get an answer."""
    trial.decide(decision_id="one")
    other = served.declare(**{**ARMS, "name": "other"})
    place = served.experiment().policy.kept_in
    place.claim(place.mark(), "f" * 32)  # as another machine would
    replies = served.http.at_once([*decisions(trial, 40), *decisions(other, 40)])
    assert [one.status_code for one in replies] == [503] * 40 + [200] * 40
    assert {one.json()["type"] for one in replies[:40]} == {"elsewhere"}
    assert trial.post("/decisions", 503, decision_id="one").told["type"] == "elsewhere"
    assert served.http.get("/readyz").json()["missing"] == 1
    assert place.mark().life == "f" * 32
    served.pass_time(6)
    other.decide()


def test_policies_that_are_not_served_are_left_alone(store, clock):
    policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
    policy.save(store.place("a trial"))
    policy.close()
    with Served(store, clock) as served:
        assert served.http.get("/v1/experiments").json() == {"experiments": []}
        assert served.http.get("/readyz").json() == {"ready": True, "missing": 0}
        served.pass_time(6)


def test_an_experiment_that_cannot_be_read_is_missing_and_others_run(store, clock):
    with Served(store, clock) as served:
        for name in ("broken", "trial"):
            served.declare(**{**ARMS, "name": name}).decide()
        notes = served.experiment("broken").policy.notes
        with served.experiment("broken").policy.batch():
            notes["service", b"declaration"] = b'{"tenant": "default", "name": "A"}'
    with Served(store, clock) as served:
        served.client().decide()
        assert served.http.get("/readyz").json() == {"ready": False, "missing": 1}
        served.client("broken").post("/decisions", 503)


def test_a_graceful_stop_answers_what_waits(served, store, trial):
    store.go.clear()
    store.entered.clear()
    start = served.http.portal.start_task_soon
    waiting = [start(served.http.posted, *call) for call in decisions(trial, 50)]
    assert store.entered.wait(30.0)
    served.http.portal.call(served.http.idle)
    served.http.portal.call(served.owner.stop)
    assert trial.post("/decisions", 503).told["type"] == "busy"
    store.go.set()
    assert {one.result().status_code for one in waiting} == {200}
    served.owner.join(30.0)
    assert not served.owner.is_alive()
    assert served.http.get("/healthz").status_code == 503


def test_a_backup_is_refused_and_served_once_it_is_restored(store, clock, tmp_path):
    with Served(store, clock) as served:
        trial = served.declare(name="trial", arms=2, max_rounds=2, **NOISY)
        old = trial.decide(decision_id="old", unit="Ann")
        shutil.copy(store.path, tmp_path / "backup")
        shutil.copy(f"{store.path}-wal", tmp_path / "backup-wal")
        lost = trial.decide(decision_id="lost", unit="Bob")
    store.path.unlink()
    for end in ("-wal", "-shm"):
        Path(f"{store.path}{end}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup", store.path)
    shutil.copy(tmp_path / "backup-wal", f"{store.path}-wal")
    with Served(store, clock) as served:
        told = served.client().post("/decisions", 503, unit="Eve").told
        assert told["type"] == "unusable"
        assert "older copy" in told["detail"]
        assert served.http.get("/readyz").json() == {"ready": False, "missing": 1}
        restore(store.place("default.trial")).close()
        served.pass_time(6)
        trial = served.client()
        assert trial.decide(decision_id="old", unit="Ann") != old
        for token in (old["token"], lost["token"]):
            trial.reward(1.0, 404, token=token)
        served.pass_time(2)
        trail = [line["what"] for line in trial.get("/trail").told["lines"]]
        assert trail == ["created", "restored"]
        trial.reward(1.0, token=trial.decide(unit="Eve")["token"])


def test_tokens_of_before_a_restore_are_gone(store, clock):
    with Served(store, clock) as served:
        old = served.declare(name="trial", arms=2, **NOISY).decide()
    restore(store.place("default.trial")).close()
    with Served(store, clock) as served:
        told = served.client().post("/rewards", 410, token=old["token"], reward=1.0)
        assert told.told["type"] == "restored"


def test_a_late_reward_is_late_after_any_number_of_restarts(store, clock):
    with Served(store, clock) as served:
        trial = served.declare(**ARMS)
        made = [trial.decide(decision_id=one) for one in ("one", "two")]
        served.pass_time(4000)
    for _ in range(3):
        with Served(store, clock) as served:
            for how in ({"decision_id": "one"}, {"token": made[1]["token"]}):
                told = served.client().post("/rewards", 410, reward=1.0, **how).told
                assert told["type"] == "too-late"


def test_of_two_services_that_create_an_experiment_at_once_one_does(tmp_path, clock):
    """Between the look at the place and the save of the first, the second one saves."""
    first, second = (Owner(SQLiteStore(tmp_path / "one.db"), clock) for _ in range(2))
    words = {"name": "shop", "arms": 2, "budget": None, "allow_simulation": True}
    declaration = Declaration.read(words)
    build = Declaration.build

    class Slow(Declaration):
        def build(self):
            if not second.experiments:
                second.create("default", declaration, "second", 1.0)
            return build(self)

    with pytest.raises(ClaimError):
        first.create("default", Slow(**vars(declaration)), "first", 1.0)
    assert list(second.experiments) == [("default", "shop")]
    assert not first.experiments
    first.take_over()
    assert list(first.missing) == ["default.shop"]


def test_a_policy_of_somebody_else_is_not_claimed(tmp_path, clock):
    store = SQLiteStore(tmp_path / "one.db")
    policy = dpb.bandit(2, None, seed=1)
    policy.save(store.place("my own trial"))
    owner = Owner(store, clock)
    owner.take_over()
    assert (owner.experiments, owner.missing) == ({}, {})
    policy.update(1.0, policy.pull())  # which is not refused


def test_a_service_notices_that_its_place_was_taken(tmp_path, clock):
    store = SQLiteStore(tmp_path / "one.db")
    owner = Owner(store, clock)
    words = {"name": "shop", "arms": 2, "budget": None, "allow_simulation": True}
    owner.create("default", Declaration.read(words), "me", 1.0)
    dpb.bandit(2, None, seed=1).save(store.place("default.shop"))  # by mistake
    owner._keep_leases()
    assert not owner.experiments
