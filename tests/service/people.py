"""Experiments of devices and shufflers, and those who talk to them."""

import json
from base64 import b64decode, b64encode
from contextlib import contextmanager

import httpx
import numpy as np

from dpbandits.client import Retries
from dpbandits.device import ConnectedDevice
from dpbandits.policies.registry import arguments_of_today, find

PRIVATE = {"protects": "contexts and rewards", "horizon": 1000, "features": 2, "arms": ["x", "y"]}
LOCAL = {**PRIVATE, "trust": "local", "reports": True, "budget": {"zcdp": 1.0}}
SUMS = {
    **PRIVATE,
    "trust": "shuffle",
    "messages": True,
    "batch": 3,
    "budget": {"approx": [1, 1e-3]},
}
ARMS = {"arms": ["x", "y"], "trust": "shuffle", "messages": True, "budget": {"pure": 1.0}}
REWARDS = {"arms": ["x", "y"], "trust": "local", "reports": True, "budget": {"pure": 1.0}}
ADVICE = {**REWARDS, "experts": 2, "horizon": 1000}
KINDS = {"local": LOCAL, "sums": SUMS, "arms": ARMS, "rewards": REWARDS, "advice": ADVICE}
ROWS = [[0.6, 0.0], [0.0, 0.6]]  # a person's features
AT_ONCE = Retries(limit=0.05, attempt=5.0, first=1e-3)


def policy_of(config):
    """The policy of a config, without records."""
    given = arguments_of_today(config["chooser"]["arguments"])
    return find(given.pop("class"))(**given)


class Through(httpx.BaseTransport):
    """To a service in this process, until it is broken.

    Attributes:
        sent: all requests, as method, path and body.
        broken: "before" requests arrive or "after" their replies leave; None otherwise.
    """

    def __init__(self, http):
        self.http, self.sent, self.broken = http, [], None

    def handle_request(self, request):
        body = request.read()
        self.sent.append((request.method, request.url.path, body))
        if self.broken == "before":
            raise httpx.ConnectError("nobody is there")
        reply = self.http.request(
            request.method, str(request.url), content=body, headers=dict(request.headers)
        )
        if self.broken == "after":
            raise httpx.ReadTimeout("the reply is lost")
        return httpx.Response(reply.status_code, content=reply.content, headers=reply.headers)

    def bodies(self, method="POST"):
        return [body for known, _, body in self.sent if known == method]


class Collecting:
    """A shuffler of the tests: it takes all, and makes a batch of that."""

    def __init__(self, client):
        self.client, self.bodies, self.status = client, [], 202

    def handle(self, request):
        if self.status == 202:
            self.bodies.append(json.loads(request.content))
            return httpx.Response(202, json={"label": self.bodies[-1]["label"]})
        problem = {"type": "stale", "detail": "It is over.", "status": self.status}
        return httpx.Response(self.status, json=problem)

    def batch(self, batch_id="b"):
        """The body of a batch for the server."""
        label, bodies = self.bodies[0]["label"], self.bodies
        self.bodies = []
        assert {one["label"] for one in bodies} == {label}
        told = json.loads(self.client.get("/randomiser").told["round"])
        total = None
        if bodies[0]["masked"] is not None:
            policy = policy_of(self.client.get("/config").told)
            modulus = policy.protocol_for(told["batch"]).modulus
            total = (np.sum([one["masked"] for one in bodies], axis=0) % modulus).tolist()
        sealed = sorted(one["sealed"] for one in bodies)
        return {"batch_id": batch_id, "label": label, "sum": total, "sealed": sealed}


class Both(httpx.BaseTransport):
    """To a service, and to a shuffler of the tests."""

    def __init__(self, server, shuffler):
        self.server, self.shuffler = server, shuffler

    def handle_request(self, request):
        if request.url.host == "shuffler":
            request.read()
            return self.shuffler.handle(request)
        return self.server.handle_request(request)


@contextmanager
def device_of(
    client, folder, transport=None, shuffler=None, config=None, shuffler_address=None, **words
):
    """The device of a person, who has a folder."""
    words |= {} if shuffler_address is None else {"shuffler": shuffler_address}
    through = transport or Through(client.http)
    if shuffler is not None:
        through, words["shuffler"] = Both(through, shuffler), "http://shuffler"
    made = ConnectedDevice(
        config or json.dumps(client.get("/config").told),
        folder,
        server="http://127.0.0.1",
        transport=through,
        retries=AT_ONCE,
        **words,
    )
    with made:
        yield made


def report_of(client, reward=1.0):
    """A report as a device makes it."""
    device = policy_of(client.get("/config").told).device()
    device.choose(ROWS)
    return device.report(reward).tolist()


def changed(sealed):
    """A ciphertext that does not open."""
    whole = bytearray(b64decode(sealed))
    whole[-1] ^= 1
    return b64encode(whole).decode()
