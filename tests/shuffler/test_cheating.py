"""What the shuffler does where the server or a device cheats."""

import json
import time
from dataclasses import asdict, replace

import httpx
import pytest
from parties import HANGS, Server, arms, body_of, linear, until

from dpbandits.shuffle import Randomizer
from dpbandits.shuffle.sealing import label_of

LOOKED = 5  # times after which a server has had its chance


def announcing(server, **changes):
    """Let a server announce another protocol, under a right label."""
    text = json.dumps({**json.loads(server.described()), **changes})
    answer = {"label": label_of(server.version(), text), "round": text}

    def fault(method, *_):
        return (200, answer) if method == "GET" else None

    server.fault = fault
    return answer["label"]


def never_opens(shuffler, label):
    """The server's label is not taken, however often the shuffler looks."""
    seen = len(shuffler.server.keys)
    until(lambda: len(shuffler.server.keys) >= seen + LOOKED)
    person = shuffler.person("ann").make()
    person.body["label"] = label
    assert shuffler.post(person).status_code in (409, 503)
    assert not shuffler.server.bodies


@pytest.mark.parametrize(
    "change",
    [
        {"noise": 1},
        {"noise": 10**6},
        {"levels": 1},
        {"sensitivity": 1e-3},
        {"bound": 1e-3},
        {"largest": 0.1},
        {"dropout": 1},
        {"dimension": 4},
        {"batch": 3},
        {"batch": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [linear, arms])
def test_another_protocol_is_refused(start, make, change, capfd):
    """The device would refuse it, too; the shuffler does not count on that."""
    server = Server(make())
    protocol = server.policy.protocol.to_dict() | change
    label = announcing(server, protocol=protocol, batch=protocol["batch"])
    never_opens(start(server), label)
    assert "RoundError" in capfd.readouterr().err


def test_the_class_of_a_protocol_is_pinned(start):
    server = Server(linear())
    told = server.policy.protocol.to_dict()
    never_opens(start(server), announcing(server, protocol={**told, "class": "GaussianReports"}))


@pytest.mark.parametrize("people", [1, 3, 51, 10**6, 2**60, -4, 4.0, "4", None])
def test_batches_of_other_sizes_are_refused(start, people):
    """In bandits with arms each size has its protocol: none is taken below ``least``, where people
    add less noise than the shuffler, or above ``most``, where each adds little.
    """
    server = Server(arms())
    if isinstance(people, int) and 1 <= people <= 10**6:
        told = asdict(server.policy.protocol_for(people)) | {"class": "LaplaceShares"}
    else:
        told = server.policy.protocol.to_dict()
    never_opens(start(server), announcing(server, protocol=told, batch=people))


def test_a_larger_batch_of_arms_is_taken_with_its_own_protocol(start):
    """Refusals above are of the size, and not of every change."""
    server = Server(arms())
    told = server.policy.protocol_for(5).to_dict()
    label = announcing(server, protocol=told, batch=5)
    shuffler = start(server)
    person = shuffler.person("ann").make()
    record = Randomizer(server.policy.protocol_for(5)).encode([0.1]).values[0]
    person.body = body_of(server, label, record, server.policy.protocol_for(5))
    assert shuffler.send(person) == (202, None)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        {"label": "0:00", "round": "{}"},
        {"label": 0, "round": "{}"},
        {"label": "0:" + "0" * 64},
        b"",
        b"<html>",
        b"[" * 100_000,
        b'{"label": 1e999}',
        HANGS,
    ],
)
def test_answers_that_announce_nothing(start, answer):
    server = Server(linear())
    server.fault = lambda method, *_: (200, answer) if method == "GET" else None
    shuffler = start(server)
    never_opens(shuffler, server.round()[0])
    server.fault = None
    shuffler.batch(shuffler.people(4))


def test_a_label_is_that_of_the_text(start):
    server = Server(linear())
    label, text = server.round()
    wrong = label[:-1] + ("0" if label[-1] != "0" else "1")
    server.fault = lambda method, *_: (200, {"label": wrong, "round": text})
    never_opens(start(server), wrong)


def test_a_victim_with_another_chooser_is_in_nobodys_batch(start):
    """The server shows them another text under the same number: their label differs."""
    shuffler = start()
    people, victim = shuffler.people(4), shuffler.person("victim").make()
    told = json.loads(shuffler.server.described())
    told["chooser"]["public"]["public.estimate"][0] += 1e-9
    victim.label = label_of(0, json.dumps(told))
    victim.body = body_of(shuffler.server, victim.label, victim.record)
    assert shuffler.send(people[0]) == (202, None)
    assert shuffler.send(victim) == (409, "stale")
    shuffler.batch(people[1:])
    assert victim.body["sealed"] not in json.loads(shuffler.server.bodies[0])["sealed"]


@pytest.mark.parametrize(
    "reply",
    [
        (409, {"type": "stale", "detail": "gone"}),
        (409, {"type": "stopped", "detail": "No batch is coming."}),
        (404, {"type": "unknown-experiment", "detail": "There is no such experiment."}),
        (413, {"type": "too-large", "detail": "The body is too long."}),
        (422, {"type": "invalid", "detail": "sealed must have 4 sealed records."}),
        (410, {}),
    ],
    ids=lambda reply: f"{reply[0]} {reply[1].get('type')}",
)
def test_a_server_that_refuses_a_batch_gets_no_other_under_its_label(start, reply):
    """It asks for the same batch again, and devices send the same bytes again."""
    shuffler = start(Server(linear(max_rounds=3)))
    server, people = shuffler.server, shuffler.people(4)
    server.fault = lambda method, *_: reply if method == "POST" else None
    for person in people:
        shuffler.send(person)
    until(lambda: server.bodies)
    seen = len(server.keys)
    until(lambda: len(server.keys) >= seen + LOOKED)
    for person in people:
        assert shuffler.send(person) == (409, "stale")
    shuffler.__exit__()
    shuffler.__enter__()
    until(lambda: len(server.keys) >= seen + 2 * LOOKED)
    for person in people:
        assert shuffler.send(person) == (409, "stale")
    assert len(server.bodies) == 1
    # That batch counts: the server has seen it.
    server.fault = None
    server.extra = {"life": 2}
    shuffler.batch([one.make() for one in people])
    shuffler.batch([one.make() for one in people])
    assert shuffler.send(people[0].make()) == (409, "spent")


class Endless(httpx.AsyncByteStream):
    async def __aiter__(self):
        while True:
            yield bytes(2**20)


@pytest.mark.parametrize(
    "reply",
    [
        (200, {}),
        (200, {"batch_id": "0" * 32}),
        (200, b"<html>"),
        (200, Endless()),
        (200, HANGS),
        (307, {}),
        (401, {}),
        (403, {}),
        (404, {}),
        (409, {}),
        (409, {"type": "paused", "detail": "The experiment is paused."}),
        (413, {}),
        (422, {}),
        (429, {}),
        (500, {}),
        (503, {}),
    ],
    ids=lambda reply: f"{reply[0]} {type(reply[1]).__name__}",
)
def test_a_batch_is_sent_again_as_the_same_bytes_until_it_is_taken(start, reply):
    shuffler = start()
    server, people = shuffler.server, shuffler.people(5)
    server.fault = lambda method, *_: reply if method == "POST" else None
    for person in people[:4]:
        shuffler.send(person)
    until(lambda: len(server.bodies) >= 3)
    before = time.monotonic()  # devices are answered meanwhile
    assert shuffler.post(people[4]).told["type"] in ("waiting", "stale")
    assert time.monotonic() < before + 1.0
    server.fault = None
    until(lambda: server.taken)
    assert len(set(server.bodies)) == 1


def test_a_batch_whose_reply_was_lost_is_taken_once(start):
    shuffler = start()
    server, lost = shuffler.server, []

    def fault(method, path, body):
        if method == "POST" and not lost:
            lost.append(server._answer(method, path, body))
            return 500, {}

    server.fault = fault
    shuffler.batch(shuffler.people(4))
    until(lambda: len(server.bodies) == 2)
    assert len(server.outputs) == 1
    server.fault = None
    shuffler.batch(shuffler.people(4, first=10))


def test_a_batch_that_the_server_has_given_up_is_dropped(start):
    """Nothing of it leaves, also if the server comes back to its label."""
    shuffler = start(Server(linear(batch=5)))
    server, lost = shuffler.server, shuffler.people(4)
    first = lost[0].label
    for person in lost[:3]:
        shuffler.send(person)
    server.extra = {"life": 2}
    until(lambda: shuffler.post(lost[3]).told.get("type") == "stale")
    server.extra = {}
    again = shuffler.people(5)
    assert again[0].label == first
    until(lambda: shuffler.post(again[0]).status_code == 202)
    shuffler.batch(again)
    [body] = server.bodies
    assert sorted(json.loads(body)["sealed"]) == sorted(one.body["sealed"] for one in again)


def test_a_record_that_was_copied_is_not_counted_twice(start):
    """By somebody who has seen it: the sum would have one person's record twice."""
    shuffler = start()
    first, thief = shuffler.people(2)
    assert shuffler.send(first) == (202, None)
    for masked in (first.body["masked"], thief.body["masked"]):
        thief.body = {**first.body, "masked": masked}
        assert shuffler.send(thief) == (409, "copied")


@pytest.mark.parametrize("change", [{"least": 5}, {"policy": linear(context_bound=0.5)}], ids=min)
def test_a_batch_of_a_configuration_that_has_changed_does_not_leave(start, change):
    shuffler = start()
    server, people = shuffler.server, shuffler.people(4)
    for person in people[:3]:
        shuffler.send(person)
    shuffler.__exit__()
    [pinned] = shuffler.config.experiments.values()
    changed = replace(pinned, **change)
    shuffler.config = replace(shuffler.config, experiments={"study": changed})
    shuffler.__enter__()
    until(lambda: shuffler.post(people[3]).told["type"] == "waiting")
    assert not server.bodies
