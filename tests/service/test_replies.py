"""What a service remembers of decisions: those that are open, and no more than that."""

import pytest

from dpbandits.service import replies
from dpbandits.service.declaration import Declaration
from dpbandits.service.experiment import Experiment
from dpbandits.service.problems import Problem
from dpbandits.service.results import Asked


def experiment(**words):
    declaration = Declaration.read(
        {"name": "shop", "arms": ["a", "b"], "budget": {"zcdp": 1.0}, "allow_simulation": True}
        | {"noise": "simulation", "retries_for": "10s", "baseline": "a", **words}
    )
    return Experiment("default", declaration, declaration.build())


def remembered(one):
    return sum(kind == replies.KIND for kind, _ in one.policy.notes)


@pytest.mark.parametrize("within", ["1min", 4])
def test_decisions_are_forgotten_after_their_deadlines(within):
    one = experiment(answers_within=within)
    for i in range(20):
        one.clients.decide(Asked(f"d{i}"), 100.0 * i)
    assert 0 < remembered(one) < 10
    one.clients.reward(1.0, "d19", None, None, 1_901.0)
    with pytest.raises(Problem) as refused:
        one.clients.reward(1.0, "d0", None, None, 1_901.0)
    assert refused.value.status == 404


@pytest.mark.parametrize("within", ["1min", 400])
def test_open_decisions_are_never_forgotten_and_others_are_refused_meanwhile(monkeypatch, within):
    monkeypatch.setattr(replies, "MOST", 10)
    one = experiment(answers_within=within)
    for i in range(10):
        one.clients.decide(Asked(f"d{i}", deferred=i == 0), 1.0)
    with pytest.raises(Problem) as refused:
        one.clients.decide(Asked("d10"), 1.0)
    assert (refused.value.status, refused.value.kind) == (503, "full")
    assert one.clients.decide(Asked("d3"), 2.0).decision_id == "d3"  # repeated
    with pytest.raises(Problem) as refused:
        one.clients.reward(1.0, "d0", None, None, 3.0)
    assert refused.value.kind == "not-active"
    if isinstance(within, str):
        one.tick(1_000.0)
        assert one.clients.decide(Asked("d10"), 1_000.0).recorded


def test_of_unrecorded_decisions_the_oldest_go_first(monkeypatch):
    monkeypatch.setattr(replies, "MOST", 5)
    one = experiment()
    one.change_status("paused", "me", "trial", 0.0)
    for i in range(9):
        assert one.clients.decide(Asked(f"d{i}"), 1.0).arm_name == "a"
    assert remembered(one) == 5
    one.tick(12.0)
    assert remembered(one) == 0


def test_a_restart_remembers_the_same_decisions():
    one = experiment(answers_within="1min")
    for i in range(5):
        one.clients.decide(Asked(f"d{i}", unit=f"person {i % 2}"), float(i))
    one.change_status("paused", "me", "trial", 5.0)
    one.clients.decide(Asked("aside"), 6.0)
    again = replies.Replies(one.policy, 10.0)
    assert again.aside == 1
    for name in ("d0", "d4", "aside"):
        found = again.find(name)
        assert found is not None
        assert repr(found) == repr(one.clients.replies.find(name))  # nan is not itself
    again.forget(1_000.0)
    assert remembered(one) == 0


def test_erasing_a_person_reads_their_decisions_alone(monkeypatch):
    one = experiment(answers_within="1h")
    for i in range(600):
        one.clients.decide(Asked(f"d{i}", unit=None if i % 3 == 0 else i % 300), float(i))
    one.change_status("paused", "me", "trial", 600.0)
    one.clients.decide(Asked("aside", unit=7), 600.0)
    again = replies.Replies(one.policy, 10.0)  # as after a restart
    read, real = [], replies.Remembered.read
    monkeypatch.setattr(replies.Remembered, "read", lambda row: read.append(row) or real(row))
    monkeypatch.setattr(type(one.policy.notes), "items", None)
    mine = one.policy.session.seal.alias(7)
    assert [found.made for found in again.of_unit(mine)] == [7.0, 307.0, 600.0]
    del read[:]
    assert one.erase(7, "me", "asked", 601.0) == 3
    assert len(read) <= 10
    assert one.erase(7, "me", "asked", 601.0) == 0
    one.clients.replies.forget(10_000.0)
    assert not one.clients.replies._by_unit


def test_operations_that_are_repeated_are_done_once():
    one = experiment()
    for _ in range(2):
        one.retire("b", "me", "sold out", 1.0)
    for _ in range(2):
        one.change_status("paused", "me", "stocktaking", 2.0)
    for _ in range(2):
        one.add("b", "me", "back", 3.0)
    for _ in range(2):
        one.change_status("archived", "me", "over", 4.0)
    assert [line["what"] for line in one.trail.lines] == [
        "retired an arm",
        "paused",
        "added an arm",
        "archived",
        "finished",
    ]


def test_operations_are_repeated_likewise_after_the_breaker_has_tripped():
    one = experiment(breaker={"floor": 0.5})
    for status in ("paused", "archived"):
        one.tripped = 1.0
        for _ in range(2):
            one.change_status(status, "me", "a trial", 2.0)
    assert [line["what"] for line in one.trail.lines] == ["paused", "archived", "finished"]


def test_tokens_of_the_baseline_are_no_tokens_of_the_policy():
    one = experiment()
    one.change_status("paused", "me", "trial", 0.0)
    tokens = {one.clients.decide(Asked(f"d{i}"), 1.0).token for i in range(3)}
    one.change_status("running", "me", "trial", 2.0)
    tokens |= {one.clients.decide(Asked(f"e{i}"), 2.0).token for i in range(3)}
    assert len(tokens) == 6
