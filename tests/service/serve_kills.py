"""Kill a service under load at any moment, and look whether anything it has said is lost.

``python tests/service/serve_kills.py --kills 100`` does it on SQLite and PostgreSQL in turn.

A history is a ``dpbandits serve`` that is started, killed and started again, on one store.  Clients
ask for decisions, send rewards, and repeat each request until it is answered.  Some kills come
while the service starts, the others within half a second of its first replies.

Noise is far below rewards, so released sums can be read: every acknowledged reward has to be in
exactly one of them, or in a sum that was not released yet.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
CLIENTS, OF_A_HISTORY = 6, 10  # kills
LONGEST_START = 60.0  # seconds
DECLARED = """[[experiments]]
name = "trial"
arms = 3
budget.zcdp = 1e26
noise = "simulation"
allow_simulation = true
answers_within = 400
"""


class Service:
    """A process that is killed and started again; ``address`` is where it listens now.

    Args:
        before: code that runs first, to make it faulty.
    """

    def __init__(self, store: str, folder: Path, before: str = "") -> None:
        self.store, self.folder, self.address, self.before = store, folder, "", before
        self.process: subprocess.Popen[bytes] | None = None
        (folder / "trial.toml").write_text(DECLARED)

    def start(self) -> None:
        """Begin a life, without waiting for it."""
        code = f"{self.before}\nfrom dpbandits.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", "trial.toml", "--insecure"]
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--store", self.store],
            cwd=self.folder,
            stderr=subprocess.PIPE,
            env=environment(self.folder),
        )
        self._listener = threading.Thread(target=self._listen, args=[self.process], daemon=True)
        self._listener.start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            with suppress(ValueError):
                told = json.loads(line)
                if told["event"] == "started" and process is self.process:
                    self.address = f"http://127.0.0.1:{told['port']}"
            with open(self.folder / "log", "ab") as file:
                file.write(line)

    def await_ready(self) -> None:
        until = time.monotonic() + LONGEST_START
        while True:
            with suppress(httpx.TransportError):
                if httpx.get(self.address + "/readyz").status_code == 200:
                    return
            if time.monotonic() > until:
                raise AssertionError(f"it did not start: {self.log()}")
            time.sleep(0.02)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(LONGEST_START)
        self._listener.join(LONGEST_START)
        self.address = ""

    def log(self) -> str:
        return (self.folder / "log").read_text()[-2000:]


def environment(folder: Path) -> dict[str, str]:
    """That of a service: its kernels need no compiler, and its claims lie in the folder."""
    own = {"PYTHONPATH": str(ROOT / "src"), "DPBANDITS_STATE_DIR": str(folder / "state")}
    return {**os.environ, **own, "NUMBA_DISABLE_JIT": "1"}


class Known:
    """All that clients have been told, or have said."""

    def __init__(self) -> None:
        self.decisions: dict[str, bytes] = {}
        self.rewards: dict[str, float] = {}  # acknowledged
        self.unsure: dict[str, float] = {}  # sent, and lost or late
        self.releases, self.stopping = 0, False


def reward_of(name: str) -> float:
    """A reward that differs from all others in the first digits."""
    return 0.05 + 0.9 * random.Random(name).random()


def play(service: Service, known: Known, client: int) -> None:
    """Ask, answer, and repeat what was not answered, until the end."""
    number = 0
    with httpx.Client(timeout=10.0) as http:
        while not known.stopping:
            name, number = f"{client}-{number}", number + 1
            made, _ = insist(service, known, http, "/decisions", {"decision_id": name})
            if made is None:
                return
            known.decisions[name] = made.content
            value = reward_of(name)
            known.unsure[name] = value
            taken, tries = insist(
                service, known, http, "/rewards", {"decision_id": name, "reward": value}
            )
            if taken is not None and taken.status_code == 202:
                known.rewards[name] = known.unsure.pop(name)
            elif taken is not None and tries == 1:
                del known.unsure[name]  # it came too late
            if number % 10 == 0:
                with suppress(httpx.HTTPError, KeyError):
                    told = http.get(service.address + "/v1/experiments/trial").json()
                    known.releases = max(known.releases, told["releases"])


def insist(
    service: Service, known: Known, http: httpx.Client, what: str, body: dict[str, Any]
) -> tuple[httpx.Response | None, int]:
    """The reply to a request, and how often it was sent; None at the end."""
    tries = 0
    while not known.stopping:
        tries += 1
        with suppress(httpx.TransportError):
            reply = http.post(service.address + "/v1/experiments/trial" + what, json=body)
            if reply.status_code != 503:
                require(reply.status_code in (200, 202, 410), reply.status_code, reply.text)
                return reply, tries
        time.sleep(0.02)
    return None, tries


def history(
    seed: int, kills: int, store: str, folder: Path, let_go: Callable[[], None], before: str = ""
) -> None:
    """Kill a service so often; raises an AssertionError for a fault.

    Args:
        let_go: ends the lease of a process that is dead.
        before: as of ``Service``.
    """
    rng, service, known = random.Random(seed), Service(store, folder, before), Known()
    failures: list[BaseException] = []

    def work(client: int) -> None:
        try:
            play(service, known, client)
        except BaseException as error:
            failures.append(error)

    service.start()
    service.await_ready()
    clients = [threading.Thread(target=work, args=[i]) for i in range(CLIENTS)]
    for one in clients:
        one.start()
    try:
        for _ in range(kills):
            if rng.random() < 0.2:
                time.sleep(2.5 * rng.random())
            else:
                service.await_ready()
                time.sleep(0.5 * rng.random())
            service.kill()
            require(not failures, seed, *map(repr, failures))
            let_go()
            service.start()
        service.await_ready()
        time.sleep(0.3)
        known.stopping = True
        for one in clients:
            one.join(LONGEST_START)
    except BaseException:
        known.stopping = True
        service.kill()
        raise
    require(not failures, seed, *map(repr, failures))
    check_replies(service, known, seed)
    service.kill(signal.SIGTERM)
    check_sums(store, folder, known, seed)


def check_replies(service: Service, known: Known, seed: int) -> None:
    """The same replies to all requests again."""
    url = service.address + "/v1/experiments/trial"
    with httpx.Client() as http:
        for name, content in known.decisions.items():
            again = http.post(url + "/decisions", json={"decision_id": name})
            require(again.content == content, seed, name, again.text, content)
        require(http.get(url).json()["releases"] >= known.releases, seed, "a release was lost")
    tokens = {json.loads(content)["token"] for content in known.decisions.values()}
    require(len(tokens) == len(known.decisions), seed, "a decision was given twice")


def check_sums(store: str, folder: Path, known: Known, seed: int) -> None:
    """All acknowledged rewards are there once: in released sums, or in those to come."""
    code = (
        "import dpbandits as dpb, json, sys; s = dpb.load(sys.argv[1]).session; r = s.rounds;"
        "held = sum(sum(v) for _, _, v, _ in s.exchange.made);"
        "held += sum(float(f.ended.statistic.sum()) for f in r.flights.values());"
        "held += sum(float(side.sum()) for side in s.state.raw);"
        "print(json.dumps([held, s.state.wall.ledger.head.tolist()]))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, f"{store}#default.trial"],
        env=environment(folder),
        capture_output=True,
        check=False,
    )
    require(told.returncode == 0, seed, told.stderr.decode()[-2000:])
    held, _ = json.loads(told.stdout)
    sure = sum(known.rewards.values())
    nearest = min(abs(sure + extra - held) for extra in sums_of([*known.unsure.values()]))
    require(nearest < 1e-3, seed, f"rewards sum to {sure:.6f}, and {held:.6f} are there")


def sums_of(values: list[float]) -> list[float]:
    """All sums of some of these."""
    require(len(values) <= 14, "too many rewards were not answered:", len(values))
    sums = [0.0]
    for value in values:
        sums += [one + value for one in sums]
    return sums


def require(true: bool, *told: object) -> None:
    if not true:
        raise AssertionError(" ".join(map(str, told)))


# All -----------------------------------------------------------------------------------------


def run(kills: int, postgresql: str, seed: int = 0) -> Iterator[tuple[str, int, float]]:
    """At least so many kills, on both stores in turn; yields store, kills and seconds."""
    made = 0
    while made < kills:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="kills") as name:
            folder = Path(name)
            if seed % 2:
                with schema(postgresql, seed) as (store, let_go):
                    history(seed, min(OF_A_HISTORY, kills), store, folder, let_go)
            else:
                history(
                    seed,
                    min(OF_A_HISTORY, kills),
                    f"sqlite:///{folder}/policies.db",
                    folder,
                    lambda: None,
                )
        made += min(OF_A_HISTORY, kills)
        yield ("postgresql" if seed % 2 else "sqlite"), made, time.monotonic() - begun
        seed += 1


@contextmanager
def schema(address: str, seed: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """A store of its own in a database, and a function that ends its leases."""
    import psycopg

    name = f"kills_{os.getpid()}_{seed}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")

        def let_go() -> None:
            with suppress(psycopg.errors.UndefinedTable):
                connection.execute(f"UPDATE {name}.dpbandits_places SET until = '-infinity'")

        yield f"{address}&options=-csearch_path%3D{name}", let_go
        connection.execute(f"DROP SCHEMA {name} CASCADE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="in all, on both stores")
    parser.add_argument("--postgresql", help="the address of a database; by default one is started")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.path.append(str(ROOT / "tests" / "stores"))
    from kills import own_server

    with ExitStack() as started:
        address = given.postgresql or started.enter_context(own_server())
        for store, made, took in run(given.kills, address, given.seed):
            print(f"{store}: {made} kills so far, nothing lost, {took:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
