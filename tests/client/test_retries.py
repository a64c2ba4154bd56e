"""What a client sends when it gets no reply, when it gives up, and what it says then."""

from __future__ import annotations

import json
import os
import pickle
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from uuid import UUID

import httpx
import numpy as np
import pytest

import dpbandits
from dpbandits.client import (
    AsyncClient,
    Client,
    Decision,
    DecisionRequest,
    Retries,
    RewardReply,
    RewardRequest,
    ServiceError,
)
from dpbandits.client.transports import certificates
from dpbandits.errors import ArgumentError

SOURCE = Path(dpbandits.__path__[0]).parent
SECRET = "dpb_never-to-be-seen"
MADE = {
    "decision_id": "1",
    "token": "T",
    "arm": 1,
    "arm_name": "green",
    "propensity": 1.0,
    "recorded": True,
    "active": True,
    "answer_by": "2026-12-01T08:00:00+00:00",
    "added_later": "which older clients do not know",
}
DECIDED = httpx.Response(200, json=MADE)
TAKEN = httpx.Response(202, json={"learned": True, "why": None})
SUMMARY = httpx.Response(200, json={"status": "paused"})
UNSENT = [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow"), httpx.PoolTimeout("full")]
LOST = [
    httpx.ReadTimeout("slow"),
    httpx.WriteTimeout("slow"),
    httpx.ReadError("reset"),
    httpx.RemoteProtocolError("disconnected"),
]


def problem(status, kind="a-kind", **headers):
    told = {"type": kind, "title": "A kind", "status": status, "detail": "A sentence.", "word": "w"}
    return httpx.Response(status, json=told, headers=headers)


def bodies(stub):
    return [one.content for one in stub.requests]


@pytest.mark.parametrize(
    "failure",
    [*UNSENT, *LOST, *map(problem, (429, 502, 503, 504)), httpx.Response(502, html="<h1>no</h1>")],
    ids=repr,
)
def test_a_decision_is_asked_for_again_with_the_same_bytes(connect, clock, stub, failure):
    service = stub(failure, failure, DECIDED)
    shop = connect(transport=service).experiment("shop")
    decision = shop.decide(unit="visitor 7", contexts=np.eye(2), available=["green"])
    first, *others = bodies(service)
    assert others == [first, first]
    sent = json.loads(first)
    assert UUID(sent.pop("decision_id")).version == 4
    assert sent == {"unit": "visitor 7", "contexts": [[1, 0], [0, 1]], "available": ["green"]}
    assert clock.pauses == [0.1, 0.2]
    assert decision.choice == "green"
    assert decision.answer_by == datetime(2026, 12, 1, 8, tzinfo=UTC)
    shop.decide()
    assert json.loads(bodies(service)[-1])["decision_id"] != json.loads(first)["decision_id"]


@pytest.mark.parametrize("failure", [*UNSENT, *LOST, *map(problem, (429, 502, 503, 504))], ids=repr)
def test_rewards_and_batches_are_sent_again_with_the_same_bytes(connect, clock, stub, failure):
    for call, success in [
        (lambda one: one.reward(0.5, "1"), TAKEN),
        (lambda one: one.activate("1"), TAKEN),
        (lambda one: one.cancel("1"), TAKEN),
        (lambda one: one.summary(), SUMMARY),
        (
            lambda one: one.decide_many([DecisionRequest(unit=1), DecisionRequest()]),
            httpx.Response(200, json={"results": [{"status": 200, **MADE}] * 2}),
        ),
        (
            lambda one: one.reward_many([RewardRequest(1.0, "1")]),
            httpx.Response(200, json={"results": [{"status": 202, "learned": True}]}),
        ),
    ]:
        service = stub(failure, success)
        call(connect(transport=service).experiment("shop"))
        first, second = bodies(service)
        assert first == second


@pytest.mark.parametrize(
    ("failure", "attempts"),
    [
        *[(one, 2) for one in [*UNSENT, problem(429), problem(503)]],
        *[(one, 1) for one in [*LOST, problem(502), problem(504), problem(500)]],
    ],
    ids=repr,
)
def test_operators_act_twice_only_if_they_did_not_act_before(
    connect, clock, stub, failure, attempts
):
    service = stub(failure, SUMMARY)
    try:
        connect(transport=service).experiment("shop").pause(reason="a test")
    except ServiceError:
        assert attempts == 1
    assert len(service.requests) == attempts


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 409, 410, 413, 422, 500])
def test_a_refusal_is_told_at_once(connect, clock, stub, status):
    service = stub(problem(status, "id-reused", location="http://elsewhere"))
    with pytest.raises(ServiceError, match="A sentence") as caught:
        connect(transport=service).experiment("shop").decide(fallback=1)
    error = caught.value
    told = (error.status, error.kind, error.detail, error.more)
    assert told == (status, "id-reused", "A sentence.", {"word": "w"})
    assert str(error) == f"A sentence. (id-reused, status {status})"
    assert not error.is_temporary
    assert len(service.requests) == 1
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.more) == (str(error), error.more)


def test_a_client_tries_until_its_limit(connect, clock, stub):
    service = stub(httpx.ConnectError("[Errno 111] Connection refused"))
    retries = Retries(limit=20.0, attempt=3.0, first=1.0, most=5.0)
    with pytest.raises(ServiceError) as caught:
        connect(transport=service, retries=retries).experiment("shop").decide()
    assert clock.pauses == [1.0, 2.0, 4.0, 5.0, 5.0]  # the next would end after 22 seconds
    assert (caught.value.status, caught.value.kind) == (None, "unreachable")
    assert "Connection refused" in str(caught.value)
    timeouts = [one.extensions["timeout"] for one in service.requests]
    assert [set(one.values()) for one in timeouts] == [{3.0}] * 6
    assert timeouts[0].keys() == {"connect", "read", "write", "pool"}


def test_an_attempt_has_no_more_time_than_is_left(connect, clock, stub):
    service = stub(problem(503))
    retries = Retries(limit=60.0, attempt=10.0, first=2.0)
    with pytest.raises(ServiceError):
        connect(transport=service, retries=retries).experiment("shop").decide(within=5.0)
    assert [one.extensions["timeout"]["read"] for one in service.requests] == [5.0, 3.0]


def test_pauses_are_drawn_from_nothing_to_the_bound(connect, clock, stub, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "dpbandits.client.exchange.random.uniform", lambda lo, hi: drawn.append((lo, hi)) or hi / 2
    )
    connect(transport=stub(problem(503), problem(503), DECIDED)).experiment("shop").decide()
    assert drawn[:2] == [(0.0, 0.1), (0.0, 0.2)]
    assert clock.pauses == [0.05, 0.1]


@pytest.mark.parametrize("status", [429, 503, 502])
def test_the_service_says_when_to_come_back(connect, clock, stub, status):
    service = stub(problem(status, **{"retry-after": "7"}), DECIDED)
    connect(transport=service).experiment("shop").decide()
    assert clock.pauses == [7.1]


def test_a_date_says_when_to_come_back(connect, clock, stub):
    when = datetime.now(UTC) + timedelta(seconds=20)
    service = stub(problem(503, **{"retry-after": format_datetime(when, usegmt=True)}), DECIDED)
    connect(transport=service).experiment("shop").decide()
    assert 15.0 < clock.pauses[0] <= 20.1


@pytest.mark.parametrize("told", ["soon", "-3", "Mon, 01 Jan 2024 00:00:00 GMT", "1" * 400])
def test_nonsense_is_no_time_and_eternity_is_too_long(connect, clock, stub, told):
    service = stub(problem(503, **{"retry-after": told}), DECIDED)
    shop = connect(transport=service).experiment("shop")
    if told.isdecimal():
        with pytest.raises(ServiceError) as caught:
            shop.decide()
        assert caught.value.is_temporary
        assert clock.pauses == []
    else:
        shop.decide()
        assert clock.pauses == [0.1]


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), problem(503)], ids=repr)
def test_a_fallback_is_served_when_the_service_is_not_there(connect, clock, stub, failure):
    service = stub(failure)
    shop = connect(transport=service).experiment("shop")
    with pytest.raises(ServiceError):
        shop.decide(within=0.5)
    decision = shop.decide(fallback="blue", within=0.5)
    assert (decision.arm, decision.arm_name, decision.choice) == (None, "blue", "blue")
    assert (decision.recorded, decision.is_local, decision.propensity) == (False, True, None)
    assert UUID(decision.decision_id).version == 4
    numbered = shop.decide(fallback=0, within=0.5)
    assert (numbered.arm, numbered.arm_name, numbered.choice) == (0, None, 0)
    attempts = len(service.requests)
    unsent = RewardReply(False, "the decision was made without the service")
    for reply in (shop.reward(1.0, decision), shop.activate(decision), shop.cancel(decision)):
        assert reply == unsent
    assert shop.reward_many([RewardRequest(1.0, decision)]) == [unsent]
    assert len(service.requests) == attempts


def test_of_several_rewards_those_of_fallbacks_stay_here(connect, clock, stub):
    local, known = Decision.fallback("0", "blue"), Decision.fallback("1", 1)
    results = [{"status": 202, "learned": True, "why": None}]
    results += [{"status": 404, "problem": json.loads(problem(404, "unknown-decision").content)}]
    service = stub(httpx.Response(200, json={"results": results}))
    shop = connect(transport=service).experiment("shop")
    replies = shop.reward_many(
        [
            RewardRequest(1.0, local),
            RewardRequest(np.float32(0.5), "1", arm="green"),
            RewardRequest(0.0, known),
            RewardRequest(None, "2"),
        ]
    )
    assert [type(one) for one in replies] == [RewardReply, RewardReply, RewardReply, ServiceError]
    assert [one.learned for one in replies[:3]] == [False, True, False]
    assert replies[3].kind == "unknown-decision"
    assert json.loads(bodies(service)[0])["rewards"] == [
        {"reward": 0.5, "decision_id": "1", "arm": "green"},
        {"reward": None, "decision_id": "2"},
    ]


def test_nothing_is_sent_for_nothing(connect, stub):
    service = stub(problem(422))
    shop = connect(transport=service).experiment("shop")
    assert (shop.decide_many([]), shop.reward_many([])) == ([], [])
    assert service.requests == []


@pytest.mark.parametrize(
    "reply",
    [
        httpx.Response(200, html="<h1>Please log in</h1>"),
        httpx.Response(200, json={"results": []}),
        httpx.Response(200, json=[1]),
        httpx.Response(200, content=b"\xff"),
    ],
    ids=lambda one: one.text[:10],
)
def test_what_is_no_reply_of_the_service_is_an_error(connect, stub, reply):
    shop = connect(transport=stub(reply)).experiment("shop")
    for call in (
        lambda: shop.decide(fallback=0),
        lambda: shop.reward(1.0, "1"),
        lambda: shop.decide_many([DecisionRequest()]),
    ):
        with pytest.raises(ServiceError) as caught:
            call()
        assert (caught.value.status, caught.value.kind) == (200, "unexpected")


def test_names_cannot_lead_elsewhere(connect, stub):
    service = stub(SUMMARY)
    connect("http://stub/bandits/", transport=service).experiment("../x?y#z").summary()
    assert service.requests[0].url.raw_path == b"/bandits/v1/experiments/..%2Fx%3Fy%23z"


def test_keys_are_sent_and_never_shown(connect, clock, stub):
    service = stub(httpx.LocalProtocolError(f"Illegal header value b'Bearer {SECRET}'"))
    client = connect("https://stub", SECRET, transport=service)
    shop = client.experiment("shop")
    with pytest.raises(ServiceError) as caught:
        shop.decide()
    (request,) = service.requests
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    inner = getattr(shop, "_one", shop)
    shown = [client, shop, caught.value, str(caught.value), inner, vars(inner), request.headers]
    shown += [vars(vars(inner)["_endpoint"])]
    assert [one for one in shown if SECRET in repr(one)] == []
    assert "Experiment('shop', " in repr(shop)
    assert "Client('https://stub')" in repr(shop)


@pytest.mark.parametrize("key", [SECRET + "\n", f"Bearer {SECRET}", SECRET + "ä", ""])
def test_a_key_that_is_none_is_refused_and_not_repeated(key):
    with pytest.raises(ArgumentError, match=r"^key must be") as caught:
        Client("https://stub", key)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["bandits.example", "ftp://a", "http://", f"https://u:{SECRET}@a", "http://a?b", 3, ""]
)
def test_addresses_are_checked(url):
    with pytest.raises(ArgumentError, match=r"^url must be") as caught:
        Client(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("word", ["limit", "attempt", "first", "most"])
def test_times_are_checked(word):
    with pytest.raises(ArgumentError, match=f"^{word} must be"):
        Retries(**{word: float("nan")})


def test_what_json_has_not_is_refused_by_its_kind(connect, stub):
    shop = connect(transport=stub(TAKEN)).experiment("shop")
    with pytest.raises(TypeError, match="a value of type complex"):
        shop.reward(1j, "1")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            "import sys, dpbandits.client; print({'numba', 'numpy', 'pandas'} & {*sys.modules})",
            "set()",
        ),
        (
            "import sys; sys.modules['httpx'] = None\ntry:\n    import dpbandits.client\n"
            "except ImportError as error:\n    print(error)",
            "dpbandits.client needs httpx and msgspec: pip install 'dpbandits[client]'",
        ),
    ],
)
def test_it_needs_little_and_says_what(program, told):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == told


def test_a_process_loads_certificates_once(monkeypatch):
    loaded, load = [], ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda **given: loaded.append(1) or load())
    certificates.cache_clear()
    made = [Client("https://stub") for _ in range(3)]
    made.append(AsyncClient("https://stub"))
    assert loaded == [1]
    pools = {one._http._transport._pool._ssl_context for one in made}
    assert [one.verify_mode for one in pools] == [ssl.CERT_REQUIRED]
