"""Devices, a shuffler and a service, each as it runs, in one process."""

import asyncio
import json
import math
import time
from contextlib import suppress

import httpx
import pytest
from people import PRIVATE, ROWS, Through, device_of
from services import Http, Served

from dpbandits.client import ServiceError
from dpbandits.service.access import Keys
from dpbandits.shuffler import experiment
from dpbandits.shuffler.app import make_app
from dpbandits.shuffler.config import Config
from dpbandits.shuffler.tickets import Tickets

SUMS = {
    **PRIVATE,
    "trust": "shuffle",
    "messages": True,
    "batch": 4,
    "max_rounds": 2,
    "budget": {"approx": [1, 1e-3]},
}
ARMS = {
    "kind": "ArmsShuffled",
    "n_arms": 2,
    "messages": True,
    "batches": {"kind": "Fixed", "rounds": 3},
    "budget": {"pure": 1.0},
}
SEARCH = {
    "kind": "BestArmShuffled",
    "n_arms": 2,
    "failure_probability": 0.5,
    "rule": {"kind": "TopTwo", "first": 3, "growth": 0.5},
    "messages": True,
    "budget": {"pure": 30.0},
}
FILE = """
server = "http://127.0.0.1"
key = {{ file = "key" }}
tickets = "tickets"
store = "records.db"

[[experiments]]
name = "trial"
config = "config.json"
least = 2
closes = "full"
"""


class ToServed(httpx.AsyncBaseTransport):
    """From the event loop of a shuffler to a service."""

    def __init__(self, http):
        self.http = http

    async def handle_async_request(self, request):
        given = {"content": await request.aread(), "headers": dict(request.headers)}
        reply = await asyncio.to_thread(
            self.http.request, request.method, str(request.url), **given
        )
        return httpx.Response(reply.status_code, stream=httpx.ByteStream(reply.content))


@pytest.fixture
def keyed(store, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "PAUSE", 0.02)
    monkeypatch.setattr(experiment, "LOOK", 0.1)
    with Served(store, clock, Keys(tmp_path / "keys.json")) as served:
        yield served


def bearer(served, **words):
    _, secret = served.service.keys.add(**words)
    served.service.keys._looked = -math.inf
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.parametrize("words", [SUMS, ARMS, SEARCH])
def test_people_choose_a_shuffler_mixes_and_the_service_learns(keyed, tmp_path, words):
    admin = bearer(keyed)
    client = keyed.declare(admin, name="trial", **words, public=True)
    config = json.dumps(client.get("/config").told)
    folder = tmp_path / "shuffler"
    folder.mkdir()
    (folder / "config.json").write_text(config)
    key = bearer(keyed, roles=["read", "shuffle"])["authorization"].removeprefix("Bearer ")
    (folder / "key").write_text(key)
    (folder / "shuffler.toml").write_text(FILE.format())
    tickets = Tickets.at(folder / "tickets")
    pinned = Config.read(folder / "shuffler.toml")
    people = words.get("batch", 3)
    with Http(make_app(pinned, ToServed(keyed.http))) as shuffler:
        both = Split(Through(keyed.http), Through(shuffler))
        for batch in range(2):
            for person in range(people):
                name = f"Ann-{person}" if words is SUMS else f"Ann-{batch}-{person}"
                parties = {"config": config, "ticket": tickets.issue("trial", name)}
                at = tmp_path / "people" / name
                with device_of(
                    client, at, both, shuffler_address="http://shuffler", **parties
                ) as device:
                    device.choose(ROWS if words is SUMS else None)
                    device.report(1.0)
                    sent(device)
            until(lambda batch=batch: client.get().told["releases"] == batch + 1)
    assert client.get().told["recorded"] == (2 if words is SUMS else 6)
    whole = b"".join(path.read_bytes() for path in tmp_path.glob("policies.db*"))
    assert b"Ann-" not in whole


class Split(httpx.BaseTransport):
    """To the party that an address names."""

    def __init__(self, server, shuffler):
        self.server, self.shuffler = server, shuffler

    def handle_request(self, request):
        one = self.shuffler if request.url.host == "shuffler" else self.server
        return one.handle_request(request)


def sent(device):
    """Send until the shuffler has opened the batch."""

    def arrived():
        with suppress(ServiceError):
            device.send()
        return device.waiting == 0

    until(arrived)


def until(done):
    end = time.monotonic() + 30.0
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)
