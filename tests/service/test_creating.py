"""Experiments whose making fails: they are seen, declared again, deleted, and forgotten."""

import asyncio
import gc
import threading
import time
import weakref

import pytest
from operators import Page, basic
from services import ARMS, Served

from dpbandits.algorithms import MergedIMED
from dpbandits.privacy import ZCDP
from dpbandits.service import server
from dpbandits.service import service as making
from dpbandits.service.access import Keys
from dpbandits.service.declaration import Declaration, DeclarationError
from dpbandits.service.server import Settings, begin, service_of

AT = "/v1/experiments/trial"


async def failing(_):
    raise DeclarationError([("name", "it could not be tried: no memory")])


@pytest.fixture
def failed(served):
    """A service in which the making of "trial" has failed, and all others do."""
    served.service.good, served.service.warm = served.service.warm, failing
    post(served, ARMS)
    return served


def post(served, words, status=202):
    reply = served.http.post("/v1/experiments", json=words)
    assert reply.status_code == status, reply.text
    until = time.monotonic() + 30.0
    while served.service.making and status == 202:
        assert time.monotonic() < until
        time.sleep(0.001)
    return reply


def test_a_failure_is_seen(failed):
    told = failed.client().get().told
    assert told["status"] == "failed"
    assert told["problem"]["status"] == 422
    assert "no memory" in told["problem"]["detail"]
    assert failed.http.get("/v1/experiments").json()["experiments"] == [told]
    assert "no memory" in Page(failed.http.get("/console/trial").text).text
    assert failed.client().decide(404)["type"] == "unknown-experiment"
    assert failed.http.get("/readyz").status_code == 200  # it is not of the file


@pytest.mark.parametrize("words", [ARMS, {**ARMS, "arms": ["x", "y"]}])
def test_it_may_be_declared_again(failed, words):
    post(failed, words)
    assert failed.client().get().told["status"] == "failed"
    failed.service.warm = failed.service.good
    post(failed, words)
    assert failed.client().get().told["arms"] == words["arms"]
    assert not failed.service.failed


def test_it_may_be_deleted(failed):
    reply = failed.http.request("DELETE", AT)
    assert (reply.status_code, reply.json()) == (200, {"name": "trial", "status": "deleted"})
    assert failed.client().get(status=404).told["type"] == "unknown-experiment"
    assert failed.http.request("DELETE", AT).status_code == 404
    failed.service.warm = failed.service.good
    post(failed, ARMS)
    assert failed.http.request("DELETE", AT).status_code == 409  # it runs
    failed.client().decide()


def test_failures_do_not_pile_up(served):
    made = []

    async def warm(declaration):
        made.append(weakref.ref(declaration))
        raise DeclarationError([("name", "x" * 10**6)])

    served.service.warm = warm
    for i in range(120):
        post(served, {**ARMS, "name": f"t{i}"})
    assert len(served.service.failed) == making.MOST_FAILED
    assert served.client("t119").get().told["status"] == "failed"
    served.client("t0").get(status=404)
    assert all(len(one.detail) <= 1000 for one in served.service.failed.values())
    served.http.portal.call(served.http.idle)
    gc.collect()
    assert sum(one() is not None for one in made) <= 1


def test_while_it_starts_requests_are_told_to_wait(served, monkeypatch):
    go = threading.Event()

    async def slow(_):
        while not go.is_set():
            await asyncio.sleep(0.001)

    monkeypatch.setattr(making, "MOST_MAKING", 2)
    served.service.warm = slow
    for name in ("trial", "other"):
        assert served.http.post("/v1/experiments", json={**ARMS, "name": name}).status_code == 202
    refused = served.http.post("/v1/experiments", json={**ARMS, "name": "third"})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert served.http.post("/v1/experiments", json=ARMS).status_code == 202  # a repeated request
    reply = served.client().post("/decisions", 503)
    assert (reply.told["type"], reply.headers["retry-after"]) == ("starting", "1")
    assert served.client().post("/decisions/batch", 503, decisions=[{}]).told["type"] == "starting"
    assert served.http.request("DELETE", AT).status_code == 409
    go.set()


def test_an_experiment_of_the_file_that_fails_keeps_the_service_unready_until_it_is_mended(served):
    declared = [Declaration.read({**ARMS, "name": name}) for name in ("trial", "other")]
    good, served.service.warm, served.service.ready = served.service.warm, failing, False
    served.http.portal.call(begin, served.service, declared)
    assert served.http.get("/readyz").status_code == 503
    served.service.warm = good
    post(served, ARMS)
    assert served.http.get("/readyz").status_code == 503
    served.http.request("DELETE", "/v1/experiments/other")
    assert served.http.get("/readyz").status_code == 200


def test_a_policy_of_that_name_that_is_not_served_is_told(store, clock):
    policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
    policy.save(store.place("default.trial"))
    policy.close()
    with Served(store, clock) as served:
        post(served, ARMS)
        told = served.client().get().told
        assert (told["status"], told["problem"]["type"]) == ("failed", "taken")


def test_a_file_with_other_words_is_told_to_operators(store, clock, tmp_path, capsys):
    keys = Keys(tmp_path / "keys.json")
    admin, reader = (
        {"authorization": f"Bearer {keys.add(roles=[role])[1]}"} for role in ("admin", "read")
    )
    with Served(store, clock, keys) as served:
        trial = served.declare(headers=admin, **ARMS, title="A trial")
        assert trial.get().told["changes"] == []
    other = Declaration.read({**ARMS, "arms": ["a", "b"], "baseline": "a"})
    capsys.readouterr()
    with Served(store, clock, keys, declared={("default", "trial"): other}) as served:
        served.http.portal.call(begin, served.service, [other])
        assert served.client(headers=admin).get().told["changes"] == [
            {"word": "arms", "served": ["a", "b", "c"], "declared": ["a", "b"]},
            {"word": "baseline", "served": None, "declared": "a"},
            {"word": "title", "served": "A trial", "declared": None},
        ]
        assert "changes" not in served.client(headers=reader).get().told
        log = capsys.readouterr().err
        assert "arms is ['a', 'b', 'c'], declared is ['a', 'b']" in log
        assert log.count("declaration differs, and was not taken") == 3
        secret = admin["authorization"].removeprefix("Bearer ")
        pages = [
            Page(served.http.get(f"/console{path}", headers=basic(secret)).text).text
            for path in ("/trial", "")
        ]
        assert "baseline is None, declared is 'a'" in pages[0]
        assert all("running file differs" in page for page in pages)
        reply = served.http.post("/v1/experiments", headers=admin, json=dict(other.given))
        assert (reply.status_code, reply.json()["words"]) == (409, ["arms", "baseline", "title"])
    other = Declaration.read({**ARMS, "title": "A trial"})
    with Served(store, clock, keys, declared={("default", "trial"): other}) as served:
        assert served.client(headers=admin).get().told["changes"] == []


def test_the_command_names_words_that_differ_as_it_starts(
    store, clock, tmp_path, capsys, monkeypatch
):
    with Served(store, clock) as served:
        served.declare(**ARMS)
    monkeypatch.setattr(server, "is_warm", lambda _: True)
    settings = Settings(
        f"sqlite:///{tmp_path}/policies.db",
        declarations=[Declaration.read({**ARMS, "arms": ["a", "b"]})],
    )
    capsys.readouterr()
    service = service_of(settings)
    assert '"word": "arms is [' in capsys.readouterr().err
    for one in service.owner.experiments.values():
        one.policy.close()


def test_what_is_being_compiled_is_missing(store, clock):
    declared = {("default", "trial"): Declaration.read(ARMS)}
    with Served(store, clock, declared=declared) as served:
        served.service.ready = False
        assert served.http.get("/readyz").json() == {"ready": False, "missing": 1}
        post(served, ARMS)
        served.service.ready = True
        assert served.http.get("/readyz").json() == {"ready": True, "missing": 0}
