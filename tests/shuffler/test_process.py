"""The rules of the shuffler, with honest parties."""

import json
import re
import time

import numpy as np
import pytest
from parties import KEY, NAME, Server, arms, body_of, linear, until

from dpbandits.shuffle import Randomizer
from dpbandits.shuffler import batch

POLICIES = {
    "linear": linear,
    "reports": lambda: linear(protocol="reports"),
    "arms": arms,
}


@pytest.mark.parametrize("kind", POLICIES)
def test_the_server_gets_what_the_protocol_outputs(start, kind):
    """Sums of the records of four people, or these in another order; the policy learns of it, and
    the next batch begins.
    """
    shuffler = start(Server(POLICIES[kind]()))
    server = shuffler.server
    for number in range(3):
        protocol = server.policy.protocol
        people = shuffler.people(protocol.batch, first=100 * number)
        shuffler.batch(people)
        label, values = server.outputs[-1]
        records = [one.record for one in people]
        assert label == people[0].label
        if kind == "reports":
            assert sorted(values.tolist()) == sorted(one.tolist() for one in records)
        else:
            assert values.tolist() == (np.sum(records, axis=0) % protocol.modulus).tolist()
    assert server.version() > 0
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_what_leaves_has_no_more_than_it_must(start):
    """No time, name, order or size: only these members, and ciphertexts of one length."""
    shuffler = start()
    people = shuffler.people(4)
    shuffler.batch(people)
    [body] = shuffler.server.bodies
    sent = json.loads(body)
    assert sent.keys() == {"batch_id", "label", "sum", "sealed"}
    assert re.fullmatch("[0-9a-f]{32}", sent["batch_id"])
    assert len(sent["sum"]) == shuffler.server.policy.protocol.dimension
    assert sorted(sent["sealed"]) == sorted(one.body["sealed"] for one in people)


def test_a_record_may_come_again_and_another_may_not(start):
    shuffler = start()
    first, second = shuffler.people(2)
    assert shuffler.send(first) == shuffler.send(first) == (202, None)
    body = first.body
    assert first.make().body != body
    assert shuffler.send(first) == (409, "another-record")
    first.body = {**body, "sealed": second.body["sealed"]}
    assert shuffler.send(first) == (409, "another-record")
    shuffler.batch([second, *shuffler.people(2, first=2)])
    assert body["sealed"] in json.loads(shuffler.server.bodies[0])["sealed"]


def test_a_person_is_in_one_batch_or_in_as_many_as_the_configuration_allows(start):
    shuffler = start(Server(linear(max_rounds=2)))
    for _ in range(2):
        shuffler.batch(shuffler.people(4))
    late = shuffler.people(1)[0]
    assert shuffler.send(late) == (409, "spent")
    shuffler.batch(shuffler.people(4, first=50))


def test_by_default_a_person_is_in_one_batch(start):
    shuffler = start()
    shuffler.batch(shuffler.people(4))
    assert shuffler.send(shuffler.people(1)[0]) == (409, "spent")


def test_records_of_a_batch_that_has_closed_are_stale(start):
    """Also those that came in time: a device does not send them again."""
    shuffler = start()
    people = shuffler.people(5)
    shuffler.batch(people[:4])
    for person in (people[0], people[4]):
        assert shuffler.send(person) == (409, "stale")
    for label in ("", "0:" + "0" * 64, "x" * 100):
        people[4].body["label"] = label
        assert shuffler.send(people[4]) == (409, "stale")


def test_what_no_device_sends(start):
    shuffler = start()
    [person] = shuffler.people(1)
    body, modulus = person.body, shuffler.server.policy.protocol.modulus
    sealed = body["sealed"]
    bad = [
        {"masked": None},
        {"masked": body["masked"][:-1]},
        {"masked": [*body["masked"], 0]},
        {"masked": [-1, *body["masked"][1:]]},
        {"masked": [modulus, *body["masked"][1:]]},
        {"masked": [2**70, *body["masked"][1:]]},
        {"masked": [0.5, *body["masked"][1:]]},
        {"masked": [True, *body["masked"][1:]]},
        {"sealed": sealed[:-4]},
        {"sealed": sealed + "AAAA"},
        {"sealed": "not base64"},
        {"sealed": None},
        {"label": 7},
        {"label": "x" * 1000},
        {"unit": "user-0"},
    ]
    for change in bad:
        person.body = {**body, **change}
        assert shuffler.send(person)[0] == 422, change
    for content in (b"", b"[]", b"{", b"null", b"[" * 100_000, b"\xff"):
        at = f"/v1/experiments/{NAME}/messages"
        reply = shuffler.http.post(at, content=content, headers=person.headers())
        assert reply.status_code == 422
        assert reply.headers["content-type"] == "application/problem+json"
    reply = shuffler.http.post(at, content=bytes(5 * 2**20), headers=person.headers())
    assert reply.status_code == 413
    person.body = body
    assert shuffler.send(person) == (202, None)


def test_tickets(start):
    """Of somebody else, of another experiment, changed, or none."""
    shuffler = start()
    person, other = shuffler.people(2)
    name, code = person.ticket.split(".")
    elsewhere = shuffler.tickets.issue("other", person.user)
    bad = [
        other.ticket.split(".")[0] + "." + code,
        elsewhere,
        f"{name}.{code[:-1]}",
        f"{name}.{code}=",
        f"{name}.",
        name,
        ".",
        "é",
        f"{name}=.{code}",
    ]
    for ticket in bad:
        headers = {"authorization": f"Bearer {ticket}".encode()}
        assert shuffler.post(person, headers=headers).status_code == 401, ticket
    assert shuffler.post(person, headers={"x": "y"}).status_code == 401
    assert shuffler.post(person, name="other").status_code == 404
    assert shuffler.send(person) == (202, None)


def test_batches_that_close_by_the_clock_are_filled_up(start):
    """With what looks like people's: nobody can tell how many came."""
    shuffler = start(Server(linear(batch=30)), closing='every = "1s"', least=3)
    people = shuffler.people(3)
    for person in people:
        assert shuffler.send(person) == (202, None)
    until(lambda: shuffler.server.taken)
    sent = json.loads(shuffler.server.bodies[0])
    assert len(sent["sealed"]) == 30
    assert {len(one) for one in sent["sealed"]} == {len(people[0].body["sealed"])}
    ours = {one.body["sealed"] for one in people}
    assert ours < set(sent["sealed"])


@pytest.mark.parametrize("came", [2, 4])
def test_the_work_of_closing_does_not_tell_how_many_came(start, monkeypatch, came):
    made = []
    seal = batch.seal_record
    monkeypatch.setattr(batch, "seal_record", lambda *given: made.append(1) or seal(*given))
    shuffler = start(closing='every = "1s"', least=2)
    for person in shuffler.people(came):
        shuffler.send(person)
    until(lambda: shuffler.server.taken)
    assert len(made) == 4


def test_a_batch_with_too_few_people_waits(start):
    """The shuffler knows the noise that it adds: it would read one person in a released sum."""
    shuffler = start(Server(linear(batch=30)), closing='every = "1s"', least=3)
    people = shuffler.people(3)
    for person in people[:2]:
        assert shuffler.send(person) == (202, None)
    time.sleep(2.2)
    assert not shuffler.server.bodies
    assert shuffler.send(people[2]) == (202, None)
    until(lambda: shuffler.server.taken)
    [body] = shuffler.server.bodies
    assert {one.body["sealed"] for one in people} < set(json.loads(body)["sealed"])


def test_a_batch_that_is_full_before_its_time_waits(start):
    shuffler = start(closing='every = "1d"')
    people = shuffler.people(5)
    for person in people[:4]:
        assert shuffler.send(person) == (202, None)
    assert shuffler.send(people[4]) == (429, "full")
    wait = int(shuffler.post(people[4]).headers["retry-after"])
    assert (wait + time.time()) % 86_400 < 2  # at midnight
    assert not shuffler.server.bodies


def test_records_and_batches_outlive_the_process(start):
    """Also an output that the server could not take yet: it gets the same bytes."""
    shuffler = start(closing='closes = "full"')
    server, people = shuffler.server, shuffler.people(4)
    server.fault = lambda method, *_: (503, {}) if method == "POST" else None
    for person in people[:3]:
        shuffler.send(person)
    shuffler.__exit__()
    shuffler.__enter__()
    shuffler.send(people[3])
    until(lambda: server.bodies)
    shuffler.__exit__()
    shuffler.__enter__()
    server.fault = None
    until(lambda: server.taken)
    assert len(set(server.bodies)) == 1
    sealed = sorted(one.body["sealed"] for one in people)
    assert sorted(json.loads(server.bodies[0])["sealed"]) == sealed


def test_padding_is_noise_of_devices(start):
    """The others of a batch of two people have the sum of messages of nobody."""
    shuffler = start(closing='every = "1s"', least=2)
    server, people = shuffler.server, shuffler.people(2)
    protocol = server.policy.protocol
    for person in people:
        shuffler.send(person)
    until(lambda: server.outputs)
    for value in server.outputs[0][1] - sum(person.record for person in people):
        middle = 2 * (protocol.levels + protocol.noise / 2)
        assert abs(value % protocol.modulus - middle) < 8 * (2 * protocol.noise / 4) ** 0.5


def test_pages_of_other_origins_may_send(start):
    shuffler = start()
    [person] = shuffler.people(1)
    asked = {
        "origin": "https://page.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    at = f"/v1/experiments/{NAME}/messages"
    reply = shuffler.http.request("OPTIONS", at, headers=asked)
    assert reply.status_code == 200
    assert reply.headers["access-control-allow-origin"] == "*"
    headers = {**person.headers(), "origin": "https://page.example"}
    assert shuffler.post(person, headers=headers).headers["access-control-allow-origin"] == "*"
    assert shuffler.http.get("/healthz").status_code == 200


def test_records_of_a_round_are_checked_by_its_own_protocol(start):
    """In the arms' batches the number of people changes, and with it the modulus."""
    shuffler = start(Server(arms()))
    server = shuffler.server
    while server.policy.protocol.batch == 4:
        shuffler.batch(shuffler.people(4, first=10 * server.version()))
    old, new = arms().protocol, server.policy.protocol
    assert new.modulus > old.modulus
    person = shuffler.person("new").make()
    record = Randomizer(new).encode([0.4]).values[0]
    person.body = body_of(server, person.label, record, protocol=new)
    person.body["masked"] = [new.modulus - 1]
    assert shuffler.send(person) == (202, None)
