"""Decisions over HTTP, durable in SQLite: processor time of the service, rate and latency at 64
connections, beside a handler that answers a constant, and beside a policy that costs nothing.

The service has a process of its own.  Its cases take turns, so that all meet the same machine.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .connections import Connection, written
from .timing import Row, scaled

CONNECTIONS, TURNS, REQUESTS = 64, 5, 4000
WORDS = {"budget": {"zcdp": 1.0}, "answers_within": 1000}
DECLARED = {
    "free": {"arms": 5, **WORDS},
    "finite arms": {"arms": 5, **WORDS},
    "RSLinearIMED, 10 x 5": {"arms": 10, "features": 5, "horizon": 10**6, **WORDS},
}
_WIDE = {
    "kind": "PrivateLinUCB",
    "n_arms": 25,
    "dimension": 25,
    "horizon": 10**6,
    "budget": {"zcdp": 1.0},
    "answers_within": 64,  # the connections: rewards are learned while they come
}
# Rounds with rewards, from each of which the policy learns with noise.
LEARNING = {
    "with rewards, simulated noise, 25 x 25": {**_WIDE, "noise": "simulation"},
    "with rewards, secure noise, 25 x 25": {**_WIDE, "noise": "secure"},
}
NAMES = {case: f"case-{i}" for i, case in enumerate([*DECLARED, *LEARNING])}
NUMBERS = itertools.count()


def rows(size: float) -> Iterator[Row]:
    try:
        import apsw  # noqa: F401
        import cryptography  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as missing:
        yield Row.skipped("decisions over HTTP", missing)
        return
    with tempfile.TemporaryDirectory() as name:
        with served(Path(name)) as port:
            measured = asyncio.run(_in_turns(port, scaled(REQUESTS, size, 128)))
            yield from _costs(measured)
            yield from _beside_simulated(measured)
            for case in list(DECLARED)[1:]:
                rate = 0.5 * measured[case].rate
                yield asyncio.run(_latency(port, case, rate, scaled(REQUESTS, size, 128)))
        yield from _start(Path(name))


class Measured(NamedTuple):
    """Microseconds of the service's processor time for a request, and requests a second."""

    cost: float
    rate: float


def _costs(measured: dict[str, Measured]) -> Iterator[Row]:
    for case, own in measured.items():
        yield Row(case, own.cost, "us", "", f"{own.rate:,.0f} a second")
    free = measured["free"]
    for case, constant, target, rates in (
        ("finite arms", measured["constant"], "<= 1.6", ">= 0.6"),
        ("RSLinearIMED, 10 x 5", measured["constant, 10 x 5"], "<= 2.2", ">= 0.5"),
    ):
        own = measured[case]
        yield Row(f"  {case}, time", own.cost / constant.cost, "x constant", target)
        yield Row(f"  {case}, time beside a free policy", own.cost / free.cost, "x free", target)
        yield Row(f"  {case}, rate", own.rate / constant.rate, "x constant", rates)
        yield Row(f"  {case}, rate beside a free policy", own.rate / free.rate, "x free", rates)


def _beside_simulated(measured: dict[str, Measured]) -> Iterator[Row]:
    simulated, secure = (measured[case].rate for case in LEARNING)
    yield Row("  secure noise, rate", secure / simulated, "x simulated", ">= 0.5")


# Clients --------------------------------------------------------------------------------------


async def _in_turns(port: int, requests: int) -> dict[str, Measured]:
    cases = ["constant", "constant, 10 x 5", *DECLARED, *LEARNING]
    turns: dict[str, list[Measured]] = {case: [] for case in cases}
    for turn in range(TURNS + 1):
        for case in cases:
            before, begun = await _spent(port), time.perf_counter()
            await _closed(port, case, requests)
            took, used = time.perf_counter() - begun, await _spent(port) - before
            if turn:  # the first one warms up
                turns[case].append(Measured(1e6 * used / requests, requests / took))
    return {case: Measured(*np.median(own, axis=0)) for case, own in turns.items()}


async def _closed(port: int, case: str, requests: int) -> None:
    """Each connection sends its next request when it has a reply."""
    share = requests // CONNECTIONS

    async def client() -> None:
        connection = await Connection.to(port)
        for _ in range(share):
            request = _request(case)
            await connection.send(request)
            if case in LEARNING:
                await connection.send(_rewarded(case, request))
        connection.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))


async def _latency(port: int, case: str, rate: float, requests: int) -> Row:
    """Requests at random times, whether earlier ones have a reply or not."""
    rng, took, loop = random.Random(1), list[float](), asyncio.get_running_loop()
    idle: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        idle.put_nowait(await Connection.to(port))

    async def send(due: float) -> None:
        connection = await idle.get()
        await connection.send(_request(case))
        took.append(loop.time() - due)
        idle.put_nowait(connection)

    due, tasks = loop.time(), []
    for _ in range(requests):
        due += rng.expovariate(rate)
        await asyncio.sleep(max(0.0, due - loop.time()))
        tasks.append(asyncio.create_task(send(due)))
    await asyncio.gather(*tasks)
    half, late = np.percentile(took, [50, 99])
    remark = f"{1e3 * half:.1f} and {1e3 * late:.1f} ms, at {rate:,.0f} a second"
    return Row(f"{case}, p99 at half load", late / half, "x p50", "<= 4", remark)


def _request(case: str) -> bytes:
    body: dict[str, object] = {"decision_id": f"{next(NUMBERS):030d}"}
    for shape, contexts in CONTEXTS.items():
        if case.endswith(shape):
            body["contexts"] = contexts
    path = (
        "/constant" if case.startswith("constant") else f"/v1/experiments/{NAMES[case]}/decisions"
    )
    return written("POST", path, json.dumps(body).encode())


def _rewarded(case: str, request: bytes) -> bytes:
    decision_id = json.loads(request.partition(b"\r\n\r\n")[2])["decision_id"]
    body = json.dumps({"decision_id": decision_id, "reward": 0.5}).encode()
    return written("POST", f"/v1/experiments/{NAMES[case]}/rewards", body)


def _contexts(arms: int, dimension: int) -> list[list[float]]:
    drawn = np.random.default_rng(1).uniform(0.0, dimension**-0.5, (arms, dimension))
    rows: list[list[float]] = drawn.round(6).tolist()
    return rows


CONTEXTS = {"10 x 5": _contexts(10, 5), "25 x 25": _contexts(25, 25)}


async def _spent(port: int) -> float:
    """Seconds of processor time of the service so far."""
    connection = await Connection.to(port)
    told = await connection.send(written("GET", "/spent"))
    connection.close()
    return float(told)


# The service ----------------------------------------------------------------------------------


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """The port of a service that has compiled everything."""
    environment = {**os.environ, "DPBANDITS_STATE_DIR": str(folder / "state")}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.service", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(60.0)


def main(folder: Path) -> None:
    """Serve, and print the port when everything is compiled."""
    import uvicorn
    from starlette.requests import Request
    from starlette.routing import Route

    from dpbandits.service import app, client_calls, http, server
    from dpbandits.service.declaration import Declaration

    server.tune()
    declarations = [
        Declaration.read({"name": NAMES[case], "allow_simulation": True, **words})
        for case, words in {**DECLARED, **LEARNING}.items()
    ]
    _free_of_charge(client_calls.ClientCalls)
    service = server.service_of(server.Settings(f"sqlite:///{folder}/policies.db"))

    async def begin() -> None:
        await server.begin(service, declarations)
        print(listening.getsockname()[1], flush=True)

    async def constant(request: Request) -> app.Response:
        with service.bodies.counted(request, ""):
            app._decision(await http.body_of(request))
        return app._json({"arm": 0, "propensity": 1.0, "recorded": True})

    async def spent(request: object) -> app.Response:
        return app._json(time.process_time())  # type: ignore[arg-type]

    made = app.make_app(service, on_start=begin)
    made.router.routes[:0] = [
        Route("/constant", constant, methods=["POST"]),
        Route("/spent", spent),
    ]
    config = uvicorn.Config(made, port=0, log_config=None, access_log=False, server_header=False)
    listening = config.bind_socket()
    uvicorn.Server(config).run(sockets=[listening])


def _free_of_charge(kind: type) -> None:
    """Let one experiment decide without its policy."""
    from dpbandits.session.decisions import Decision

    real = kind._chosen

    def chosen(self, asked, now):  # type: ignore[no-untyped-def]
        if self._experiment.name != NAMES["free"]:
            return real(self, asked, now)
        session = self._policy.session
        return Decision(0, 1.0, self.replies.aside, False, session.life).sealed(session.seal)

    kind._chosen = chosen


def _start(folder: Path) -> Iterator[Row]:
    """From the start of a process to its first decision, on a store with experiments."""
    environment = {**os.environ, "DPBANDITS_STATE_DIR": str(folder / "state")}
    begun = time.perf_counter()
    code = "import dpbandits.service.server"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    imported = time.perf_counter() - begun
    begun = time.perf_counter()
    store = f"sqlite:///{folder}/policies.db"
    process = subprocess.Popen(
        [sys.executable, "-m", "dpbandits", "serve", "--insecure", "--port", "0", "--store", store],
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stderr is not None
    try:
        told = next(json.loads(line) for line in process.stderr if b'"started"' in line)
        asyncio.run(_first(told["port"]))
        took = time.perf_counter() - begun
    finally:
        process.terminate()
        process.wait(60.0)
    remark = f"{took:.1f} s, of which {imported:.1f} s import"
    yield Row(
        "first decision of a process, beyond its import", took - imported, "s", "<= 1", remark
    )


async def _first(port: int) -> None:
    while True:
        try:
            connection = await Connection.to(port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.005)
            continue
        await connection.send(_request("finite arms"))
        connection.close()
        return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
