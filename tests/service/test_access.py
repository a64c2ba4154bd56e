"""Keys, tenants and rates; and bodies that are too long, too slow or no JSON."""

import asyncio
import json
import os
import re
import stat
import time

import httpx
import pytest
from services import ARMS, Served

from dpbandits.errors import ArgumentError, StateFileError
from dpbandits.service import access, http
from dpbandits.service.access import Keys

ROLES = {
    "decide": [("POST", "/decisions"), ("POST", "/decisions/batch"), ("POST", "/activate"), ("POST", "/cancel")],
    "reward": [("POST", "/rewards"), ("POST", "/rewards/batch")],
    "read": [("GET", view) for view in ("", "/ledger", "/guarantee", "/estimates", "/card", "/chooser")],
    "admin": [("GET", "/trail"), *(("POST", what) for what in ("/pause", "/resume", "/archive", "/retire", "/add", "/erase"))],
}  # fmt: skip


@pytest.fixture
def keys(tmp_path, monkeypatch):
    monkeypatch.setattr(access, "_EVERY_SECOND", 0.0)  # the file is read at each request
    return Keys(tmp_path / "secret" / "keys.json")


@pytest.fixture
def guarded(store, clock, keys):
    with Served(store, clock, keys) as one:
        yield one


def bearer(secret):
    return {"authorization": f"Bearer {secret}"}


def new(keys, *roles, **given):
    return bearer(keys.add(roles=roles or ["admin"], **given)[1])


@pytest.fixture
def trial(guarded, keys):
    return guarded.declare(headers=new(keys), **ARMS)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_opens_its_addresses_and_no_others(guarded, keys, trial, role):
    headers = new(keys, role)
    for other, calls in ROLES.items():
        for method, what in calls:
            reply = guarded.http.request(method, trial.at + what, headers=headers, content=b"{")
            assert (reply.status_code == 403) == (role not in (other, "admin")), what
            assert reply.status_code in (200, 403, 422)
    for path, roles in (("/metrics", "read"), ("/v1/experiments", "read")):
        assert (guarded.http.get(path, headers=headers).status_code == 403) == (
            role not in (roles, "admin")
        )
    reply = guarded.http.post("/v1/experiments", headers=headers, content=b"{")
    assert (reply.status_code == 403) == (role != "admin")


def test_without_a_valid_key_nothing_is_shown(guarded, trial):
    paths = [trial.at, "/v1/experiments", "/metrics", "/v1/experiments/none"]
    for headers in (
        {},
        bearer("x"),
        {"authorization": "Basic eDp4"},
        {"authorization": "Bearer"},
        bearer("é"),
    ):
        for path in paths:
            reply = guarded.http.get(path, headers={k: v.encode() for k, v in headers.items()})
            assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert guarded.http.get(path).status_code == 200


def test_tenants_do_not_see_each_other(guarded, keys, trial):
    theirs = new(keys, tenant="other")
    for calls in ROLES.values():
        for method, what in calls:
            reply = guarded.http.request(
                method, trial.at + what, headers=theirs, json=BODIES.get(what, {})
            )
            assert (reply.status_code, reply.json()["type"]) == (404, "unknown-experiment"), what
    own = guarded.declare(headers=theirs, **{**ARMS, "arms": ["x", "y"]})
    assert own.get().told["arms"] == ["x", "y"]
    assert trial.get().told["arms"] == ["a", "b", "c"]
    token = trial.decide()["token"]
    own.reward(1.0, 404, token=token)
    listed = guarded.http.get("/v1/experiments", headers=theirs).json()["experiments"]
    assert [one["arms"] for one in listed] == [["x", "y"]]
    metrics = guarded.http.get("/metrics", headers=theirs).text
    assert 'tenant="other"' in metrics
    assert 'tenant="default"' not in metrics


BODIES = {
    "/decisions/batch": {"decisions": [{}]},
    "/rewards": {"reward": 1, "token": "x"},
    "/rewards/batch": {"rewards": [{"reward": 1, "token": "x"}]},
    "/retire": {"arm": 0, "reason": "x"},
    "/add": {"arm": 0, "reason": "x"},
    "/erase": {"unit": 1, "reason": "x"},
    **{what: {"reason": "x"} for what in ("/pause", "/resume", "/archive")},
}


def test_a_pattern_limits_a_key(guarded, keys, trial):
    headers = new(keys, experiments=["shop-*"])
    assert guarded.http.get(trial.at, headers=headers).status_code == 404
    assert guarded.http.post("/v1/experiments", headers=headers, json=ARMS).status_code == 404
    shop = guarded.declare(headers=headers, **{**ARMS, "name": "shop-1"})
    assert shop.decide()["recorded"]
    listed = guarded.http.get("/v1/experiments", headers=headers).json()["experiments"]
    assert [one["name"] for one in listed] == ["shop-1"]
    assert 'experiment="trial"' not in guarded.http.get("/metrics", headers=headers).text


def test_a_rate_is_held(guarded, keys, trial, monkeypatch):
    now = [time.monotonic() + 100.0]
    monkeypatch.setattr(access.time, "monotonic", lambda: now[0])
    headers = new(keys, "decide", per_second=2.0)
    url = trial.at + "/decisions"

    def send():
        return guarded.http.post(url, headers=headers, json={})

    assert [send().status_code for _ in range(4)] == [200, 200, 429, 429]
    refused = send()
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["type"] == "too-many"
    now[0] += 0.5
    assert [send().status_code for _ in range(2)] == [200, 429]
    now[0] += 1000.0
    assert [send().status_code for _ in range(3)] == [200, 200, 429]  # no more are saved up
    trial.decide()  # other keys go on
    with pytest.raises(ArgumentError, match="per_second"):
        keys.add(per_second=0.0)


def test_items_of_batches_are_counted_too(guarded, keys, trial, monkeypatch):
    now = [time.monotonic() + 100.0]
    monkeypatch.setattr(access.time, "monotonic", lambda: now[0])
    headers = new(keys, "decide", per_second=10.0)
    url = trial.at + "/decisions/batch"

    def send(n):
        return guarded.http.post(url, headers=headers, json={"decisions": [{}] * n}).status_code

    assert [send(100), send(1)] == [200, 429]
    now[0] += 8.9  # of nine seconds, after ten for the first second
    assert send(1) == 429
    now[0] += 0.3
    assert send(1) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"host": "evil.example"},
        {"origin": "http://127.0.0.1:81"},
    ],
)
def test_without_keys_pages_of_other_sites_are_refused(served, headers):
    trial = served.declare(**ARMS)
    for method, path in (
        ("POST", trial.at + "/decisions"),
        ("GET", trial.at),
        ("POST", "/v1/experiments"),
    ):
        reply = served.http.request(
            method, path, headers={**headers, "content-type": "text/plain"}, content=b"{}"
        )
        assert reply.status_code == 403
    for own in ("http://127.0.0.1", "http://localhost"):
        same = {"origin": own, "host": own.removeprefix("http://")}
        assert served.http.post(trial.at + "/decisions", headers=same, json={}).status_code == 200


def test_keys_are_revoked_and_exchanged_while_the_service_runs(guarded, keys, trial):
    old, secret = keys.add(roles=["decide"])
    assert (
        guarded.http.post(trial.at + "/decisions", headers=bearer(secret), json={}).status_code
        == 200
    )
    fresh = new(keys, "decide")
    assert (
        guarded.http.post(trial.at + "/decisions", headers=bearer(secret), json={}).status_code
        == 200
    )
    keys.revoke(old.id)
    assert (
        guarded.http.post(trial.at + "/decisions", headers=bearer(secret), json={}).status_code
        == 401
    )
    assert guarded.http.post(trial.at + "/decisions", headers=fresh, json={}).status_code == 200
    with pytest.raises(ArgumentError, match="id must name a key"):
        keys.revoke(old.id)


def test_a_file_that_cannot_be_read_keeps_everyone_out_for_now(guarded, keys, trial):
    good = keys.path.read_bytes()
    for wrong in (b"{", b"[1]", b'{"a": 1}', b'[{"id": "x", "digest": "y", "role": 1}]'):
        keys.path.write_bytes(wrong)
        with pytest.raises(StateFileError):
            keys.all()
        assert trial.get(status=503)
    keys.path.unlink()
    trial.get(status=401)
    keys.path.write_bytes(good)
    trial.get()


def test_secrets_are_kept_nowhere(guarded, keys, trial, capsys):
    secrets = [keys.add(roles=["decide"])[1], trial.headers["authorization"].split()[1]]
    guarded.http.post(trial.at + "/decisions", headers=bearer(secrets[0]), content=b"\xff")
    guarded.http.get("/metrics", headers=bearer(secrets[0]))
    trial.because("/pause")
    told = capsys.readouterr()
    shown = told.out + told.err + trial.get("/trail").text + trial.get().text
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.path.parent.stat().st_mode) == 0o700
    for secret in secrets:
        assert re.fullmatch(r"dpb_[\w-]{43}", secret)  # 256 bits
        assert secret not in shown + keys.path.read_text()
        assert secret not in repr(keys) + repr(keys.all())
    assert len({one.digest for one in keys.all()}) == len(keys.all())
    assert json.loads(trial.get("/trail").content)["lines"][-1]["who"] in {
        one.id for one in keys.all()
    }


@pytest.mark.parametrize(
    "given",
    [
        {"roles": []},
        {"roles": ["root"]},
        {"experiments": []},
        {"tenant": "A"},
        {"tenant": "a" * 20},
    ],
)
def test_wrong_keys_are_not_made(keys, given):
    with pytest.raises(ArgumentError):
        keys.add(**given)
    assert not keys.path.exists()


def test_the_longest_names_fit_into_a_store(guarded, keys):
    headers = new(keys, tenant="t" * 19)
    assert guarded.declare(headers=headers, **{**ARMS, "name": "n" * 40}).decide()["recorded"]


# Bodies ------------------------------------------------------------------------------------


async def sent(application, chunks, headers=(), path="/v1/experiments/trial/rewards"):
    """The status of a request whose body comes in chunks, and how many chunks were taken."""
    taken, said = 0, []
    chunks = iter(chunks)

    async def receive():
        nonlocal taken
        chunk = next(chunks, None)
        if chunk is None:
            return {"type": "http.request", "body": b"", "more_body": False}
        if isinstance(chunk, float):
            await asyncio.sleep(chunk)
            chunk = b" "
        taken += 1
        return (
            chunk
            if isinstance(chunk, dict)
            else {"type": "http.request", "body": chunk, "more_body": True}
        )

    async def send(message):
        said.append(message)

    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers], "http_version": "1.1", "scheme": "http", "root_path": "",
    }  # fmt: skip
    await application(scope, receive, send)
    return said[0]["status"], taken


def test_a_body_of_100_megabytes_is_refused_before_it_is_read(served):
    served.declare(**ARMS)
    call, application = served.http.portal.call, served.http.app
    long = [(b"content-length", b"104857600")]
    assert call(sent, application, [b"x" * 65536] * 1600, long) == (413, 0)
    status, taken = call(sent, application, [b"x" * 65536] * 1600)  # which does not say its length
    assert status == 413
    assert taken <= http.LARGEST_BODY // 65536 + 1
    for odd in (b"-1", b"x", b"1e3", b""):
        assert call(sent, application, [b"{}"], [(b"content-length", odd)])[0] in (413, 422)


def test_slow_bodies_and_clients_that_hang_up(served, monkeypatch, capsys):
    trial = served.declare(**ARMS)
    monkeypatch.setattr(http, "SLOWEST_BODY", 0.05)
    call, application = served.http.portal.call, served.http.app
    begun = time.monotonic()
    assert call(sent, application, [0.01] * 1000)[0] == 408
    assert time.monotonic() - begun < 5.0
    capsys.readouterr()
    assert call(sent, application, [b"{", {"type": "http.disconnect"}])[0] == 400
    assert capsys.readouterr().err == ""
    trial.decide()


DEEP = 10**5
BODIES_OF_NO_USE = {
    "deep lists": b"[" * DEEP,
    "deep contexts": b'{"contexts": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep objects": b'{"contexts": [' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"]}",
    "no UTF-8": b'{"decision_id": "\xff\xfe"}',
    "a surrogate": b'{"decision_id": "\\udfff"}',
    "a huge integer": b'{"contexts": [' + b"9" * 10**5 + b"]}",
    "a huge unit": b'{"unit": ' + b"9" * 10**5 + b"}",
    "infinity": b'{"contexts": [1e999]}',
    "NaN": b'{"contexts": [NaN]}',
    "an id of no length": b'{"decision_id": ""}',
    "a long id": b'{"decision_id": "' + b"x" * 201 + b'"}',
    "two values": b"{} {}",
    "UTF-16": '{"decision_id": "x"}'.encode("utf-16"),
}


@pytest.mark.parametrize("why", BODIES_OF_NO_USE)
def test_bodies_of_no_use(served, why):
    trial = served.declare(**ARMS)
    for path in (
        f"{trial.at}/decisions",
        f"{trial.at}/rewards",
        f"{trial.at}/erase",
        "/v1/experiments",
    ):
        reply = served.http.post(path, content=BODIES_OF_NO_USE[why])
        assert reply.status_code == 422, (path, reply.text)
        assert len(reply.content) < 1000
    trial.decide()


def test_of_a_key_that_comes_twice_the_last_one_counts(served):
    trial = served.declare(**ARMS)
    reply = served.http.post(
        f"{trial.at}/decisions", content=b'{"decision_id": "a", "decision_id": "b"}'
    )
    assert reply.json()["decision_id"] == "b"
    trial.reward(1.0, 404, decision_id="a")


def test_numbers_that_are_odd_and_valid(served):
    trial = served.declare(
        name="trial", arms=2, features=2, horizon=99, budget=None, allow_simulation=True
    )
    for number in ("-0.0", "1E-400", "0e5", "1" + "0" * 15, "0.1" + "0" * 300):
        body = f'{{"contexts": [[{number}, 0], [0, 0]]}}'
        assert served.http.post(f"{trial.at}/decisions", content=body).status_code == 200, number
    body = '{"contexts": [[1e308, 1e308], [1e308, -1e308]]}'
    assert served.http.post(f"{trial.at}/decisions", content=body).status_code in (200, 422)


@pytest.mark.parametrize("limit", ["MOST_WAITING", "MOST_OF_ONE"])
def test_too_many_waiting_requests_are_sent_away(limit, served, monkeypatch):
    trial = served.declare(**ARMS)
    for _ in range(3):
        trial.decide()  # which wait no more
    monkeypatch.setattr(f"dpbandits.service.owner.{limit}", 1)
    trial.decide()
    monkeypatch.setattr(f"dpbandits.service.owner.{limit}", 0)
    reply = trial.post("/decisions", 503)
    assert reply.headers["retry-after"] == "1"
    assert reply.told["type"] == "busy"
    monkeypatch.undo()
    assert isinstance(trial.http.client, httpx.AsyncClient)


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root gives files away")
def test_a_key_that_root_adds_leaves_the_file_to_its_owner(tmp_path):
    keys = Keys(tmp_path / "keys.json")
    keys.add()
    os.chown(keys.path, 12345, 12346)
    keys.add()
    assert (os.stat(keys.path).st_uid, os.stat(keys.path).st_gid) == (12345, 12346)
