"""Services in this process, with a clock of the tests' own, and clients of them."""

import asyncio
import contextlib
import json
import time
from functools import partial

import httpx
from anyio.from_thread import start_blocking_portal

from dpbandits.service.app import make_app
from dpbandits.service.owner import Owner
from dpbandits.service.service import Service

ARMS = {"name": "trial", "arms": ["a", "b", "c"], "budget": None, "allow_simulation": True}
NONE = {"budget": None, "allow_simulation": True}
NOISY = {"budget": {"zcdp": 1.0}, "noise": "simulation", "allow_simulation": True, "seed": 1}
START = 1.8e9


class Clock:
    """A time that the test sets."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


async def compiled(_):
    """Nothing has to be compiled."""


class Client:
    """Calls of one experiment, which are checked to be JSON that every reader takes."""

    def __init__(self, http, name, headers=None):
        self.http, self.at = http, f"/v1/experiments/{name}"
        self.headers = headers or {}

    def post(self, what, status=None, **body):
        return self._checked(
            self.http.post(self.at + what, json=body, headers=self.headers), status
        )

    def get(self, what="", status=200):
        return self._checked(self.http.get(self.at + what, headers=self.headers), status)

    def _checked(self, reply, status):
        assert status in (None, reply.status_code), (reply.status_code, reply.text)
        if "json" in reply.headers["content-type"]:
            reply.told = json.loads(reply.content, parse_constant=refuse)
        return reply

    def decide(self, status=200, **body):
        return self.post("/decisions", status, **body).told

    def reward(self, value, status=202, **body):
        return self.post("/rewards", status, reward=value, **body).told

    def because(self, what, status=200, **body):
        return self.post(what, status, reason="a test", **body).told


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


class Http:
    """Requests to an application in this process, whose event loop has a thread of its own."""

    def __init__(self, app):
        self.app = app

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        enter = self._stack.enter_context
        self.portal = enter(start_blocking_portal())
        enter(self.portal.wrap_async_context_manager(self.app.router.lifespan_context(self.app)))
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        made = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        self.client = enter(self.portal.wrap_async_context_manager(made))
        return self

    def __exit__(self, *_):
        self._stack.close()

    def request(self, method, url, **given):
        return self.portal.call(partial(self.client.request, method, url, **given))

    def get(self, url, **given):
        return self.request("GET", url, **given)

    def post(self, url, **given):
        return self.request("POST", url, **given)

    async def posted(self, url, body):
        return await self.client.post(url, json=body)

    async def idle(self):
        """Let other tasks come to where they wait."""
        await asyncio.sleep(0.05)

    def at_once(self, calls):
        """The replies to posts that are all under way together."""
        waiting = [self.portal.start_task_soon(self.posted, *call) for call in calls]
        return [one.result() for one in waiting]


class Served:
    """A service over a store, which lives as long as the block."""

    def __init__(self, store, clock, keys=None, **given):
        self.owner, self.clock = Owner(store, clock=clock, **given), clock
        self.service = Service(self.owner, keys, compiled)
        self.owner.take_over()
        self.http = Http(make_app(self.service))
        self.service.ready = True

    def __enter__(self):
        self.http.__enter__()
        return self

    def __exit__(self, *_):
        self.http.__exit__()

    def declare(self, headers=None, **words):
        """Declare an experiment, and wait until it is there."""
        reply = self.http.post("/v1/experiments", json=words, headers=headers)
        assert reply.status_code == 202, reply.text
        client = Client(self.http, words["name"], headers)
        until = time.monotonic() + 60.0
        while (told := client.get().told)["status"] == "starting":
            assert time.monotonic() < until
            time.sleep(0.003)
        assert told["status"] == "running", told
        return client

    def client(self, name="trial", headers=None):
        return Client(self.http, name, headers)

    def experiment(self, name="trial", tenant="default"):
        return self.owner.experiments[tenant, name]

    def pass_time(self, seconds):
        """Let the clock go on, and the owner notice."""
        self.clock.now += seconds
        self.http.portal.call(self._ticked)

    async def _ticked(self):
        await self.owner.ask_alone(lambda _: self.owner._tick())


KINDS = {
    "arms": {"arms": ["a", "b"], "budget": {"pure": 1.0}},
    "fixed features": {"arms": 3, "features": [[1, 0], [0, 1], [0.6, 0.6]], "budget": {"zcdp": 1}},
    "features": {"arms": 3, "features": 2, "horizon": 1000, "budget": {"zcdp": 1.0}},
    "person": {"arms": 2, "person": 3, "horizon": 1000, "budget": {"zcdp": 1.0}},
    "private contexts": {"arms": 2, "features": 2, "horizon": 1000, "budget": {"approx": [1.0, 1e-6]}, "protects": "contexts and rewards"},
    "link": {"arms": 3, "features": 2, "horizon": 1000, "link": "logistic", "budget": {"zcdp": 1.0}},
    "experts": {"arms": 2, "experts": 3, "horizon": 1000, "budget": {"zcdp": 1.0}},
    "best arm": {"arms": 3, "goal": "best arm", "horizon": 300, "budget": {"zcdp": 1.0}},
    "drift": {"arms": 3, "drift": 500, "horizon": 1000, "budget": {"zcdp": 1.0}},
    "any drift": {"arms": 3, "drift": "any", "horizon": 1000, "budget": {"pure": 1.0}},
    "people": {"arms": 3, "max_rounds": 2, "budget": {"zcdp": 1.0}},
    "a kind": {"kind": "HTINF", "n_arms": 3, "budget": {"pure": 1.0}},
    "a paper's": {"kind": "AdaCUCB", "n_arms": 3, "budget": {"zcdp": 1.0}, "answers_within": "2h"},
    "by count": {"arms": 3, "answers_within": 5, "budget": {"zcdp": 1.0}},
    "holdout": {"arms": ["a", "b"], "holdout": {"share": 0.5, "batch": 4}, "budget": {"zcdp": 1.0}},
    "one sum": {"arms": 2, "holdout": {"share": 0.5, "batch": 4, "one_sum": True}, "budget": {"zcdp": 1.0}},
}  # fmt: skip


def asked_of(told):
    """A request that the experiment takes."""
    arms, width = len(told["arms"]), told["dimension"]
    if told["takes"] == "advice":
        return {"advice": [[1 / arms] * arms] * width}
    if told["takes"]:
        return {"contexts": [[0.25] * width] * arms}
    return {}
