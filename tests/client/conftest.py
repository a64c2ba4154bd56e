"""Clients of both kinds, which tests call alike, a stub of a service, and a service."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn

from dpbandits.client import AsyncClient, Client
from dpbandits.service.access import Keys
from dpbandits.service.app import make_app
from dpbandits.service.owner import Owner
from dpbandits.service.service import Service
from dpbandits.stores.addresses import store_at


class Awaiting:
    """An object with methods to be awaited, which are called like others."""

    def __init__(self, one: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._one, self._loop = one, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._one, name)
        if name == "experiment":
            return lambda name: Awaiting(found(name), self._loop)
        if not callable(found):
            return found
        return lambda *args, **words: self._loop.run_until_complete(found(*args, **words))

    def __repr__(self) -> str:
        return repr(self._one)


@pytest.fixture(params=["blocking", "awaited"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Makes clients of one kind."""
    made: list[Any] = []
    loop = asyncio.new_event_loop()

    def connect(url: str = "http://stub", key: str | None = None, **words: Any) -> Any:
        if request.param == "blocking":
            made.append(Client(url, key, **words))
        else:
            made.append(Awaiting(AsyncClient(url, key, **words), loop))
        return made[-1]

    yield connect
    for one in made:
        one.close()
        with pytest.raises(RuntimeError, match="closed"):
            one.experiments()
    loop.close()


class Clock:
    """A time that passes only while a client pauses."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 9))
        self.now += seconds

    async def sleep_soon(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of clients, whose pauses are the longest possible ones."""
    clock = Clock()
    monkeypatch.setattr("dpbandits.client.exchange.monotonic", clock.monotonic)
    monkeypatch.setattr("dpbandits.client.methods.monotonic", clock.monotonic)
    monkeypatch.setattr("dpbandits.client.exchange.random.uniform", lambda lo, hi: hi)
    monkeypatch.setattr("dpbandits.client.transports.time", _Module(clock.sleep))
    monkeypatch.setattr("dpbandits.client.transports.asyncio", _Module(clock.sleep_soon))
    return clock


class _Module:
    def __init__(self, sleep: Callable[[float], Any]) -> None:
        self.sleep = sleep


class Stub(httpx.MockTransport):
    """A service that gives the same replies, or raises the same errors, one after the other; of
    the last there are as many as wanted.
    """

    def __init__(self, *outcomes: httpx.Response | Exception) -> None:
        super().__init__(self._reply)
        self.requests, self._outcomes = list[httpx.Request](), list(outcomes)

    def _reply(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        outcomes = self._outcomes
        outcome = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return httpx.Response(outcome.status_code, headers=outcome.headers, content=outcome.content)


@pytest.fixture
def stub() -> type[Stub]:
    return Stub


# A service of this process ------------------------------------------------------------------


class Served(NamedTuple):
    url: str
    keys: dict[str, str]


async def compiled(declaration: Any) -> None:
    """Nothing has to be compiled; but it may take a while, or fail."""
    await asyncio.sleep(0.1)
    if declaration.title == "fails":
        raise OSError("no space left")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    with pytest.MonkeyPatch.context() as patch, socket.socket() as listening:
        patch.setenv("DPBANDITS_STATE_DIR", str(folder / "state"))
        patch.setattr("dpbandits.client.methods._LOOK_EVERY", 0.05)
        listening.bind(("127.0.0.1", 0))
        keys = Keys(folder / "keys.json")
        roles = [("admin",), ("decide", "reward"), ("read",)]
        secrets = {"+".join(one): keys.add(roles=one)[1] for one in roles}
        secrets["slow"] = keys.add(per_second=2.0)[1]
        service = Service(Owner(store_at(f"sqlite:///{folder}/service.db")), keys, compiled)
        server = uvicorn.Server(uvicorn.Config(make_app(service), log_level="error"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", secrets)
        server.should_exit = True
        thread.join()


@pytest.fixture
def admin(served: Served, connect: Any) -> Any:
    return connect(served.url, served.keys["admin"])
