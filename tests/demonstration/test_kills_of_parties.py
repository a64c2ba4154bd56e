"""Kills of devices, shuffler and service in one history: each person is in one batch at most, and
each batch is learned once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import apsw
import httpx
import pytest

from dpbandits.shuffler.tickets import Tickets

SOURCE, KILLS, BATCH = Path(__file__).parents[2] / "src", 12, 4
AT = "/v1/experiments/trial"
DECLARED = f"""[[experiments]]
name = "trial"
arms = 2
features = 2
horizon = 100_000
protects = "contexts and rewards"
trust = "shuffle"
messages = true
budget.approx = [1, 1e-3]
batch = {BATCH}
"""
SHUFFLING = f"""server = "http://127.0.0.1:{{server}}"
tickets = "tickets"
store = "shuffler.db"

[[experiments]]
name = "trial"
config = "config.json"
least = {BATCH}
closes = "full"
"""
# Person after person, until the process ends.
DEVICES = """
import itertools, pathlib, sys, time
from dpbandits.client import Retries, ServiceError
from dpbandits.device import ConnectedDevice
from dpbandits.shuffler.tickets import Tickets
folder, server, shuffler = pathlib.Path(sys.argv[1]), *sys.argv[2:]
config, tickets = (folder / "config.json").read_text(), Tickets(folder / "tickets")
done = folder / "done"
for person in itertools.count(int(done.read_text()) if done.exists() else 0):
    with ConnectedDevice(
        config, folder / "devices" / str(person), server=server, shuffler=shuffler,
        ticket=tickets.issue("trial", str(person)), retries=Retries(limit=0.5, first=0.01, most=0.1),
    ) as device:
        while device.left or device.waiting:
            try:
                if not device.waiting:
                    device.choose([[0.6, 0.0], [0.0, 0.6]])
                    device.report(1.0)
                device.send()
            except ServiceError:
                time.sleep(0.05)
    (folder / "next").write_text(str(person + 1))
    (folder / "next").replace(done)
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Parties:
    """The three processes, which are killed and started again where they were."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.running = folder, dict[str, subprocess.Popen[bytes]]()
        self.ports = {"service": free_port(), "shuffler": free_port()}
        (folder / "trial.toml").write_text(DECLARED)
        (folder / "shuffler.toml").write_text(SHUFFLING.format(server=self.ports["service"]))
        Tickets.at(folder / "tickets")

    def start(self, party: str) -> None:
        addresses = [f"http://127.0.0.1:{port}" for port in self.ports.values()]
        store = f"sqlite:///{self.folder}/policies.db"
        command = {
            "service": ["-m", "dpbandits", "serve", "trial.toml", "--insecure", "--store", store],
            "shuffler": ["-m", "dpbandits", "shuffle", "shuffler.toml"],
            "devices": ["-c", DEVICES, str(self.folder), *addresses],
        }[party]
        if party in self.ports:
            command += ["--port", str(self.ports[party])]
        own = {"PYTHONPATH": str(SOURCE), "DPBANDITS_STATE_DIR": str(self.folder / "state")}
        with (self.folder / "log").open("ab") as log:
            self.running[party] = subprocess.Popen(
                [sys.executable, *command],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={**os.environ, **own, "NUMBA_DISABLE_JIT": "1"},
            )

    def kill(self, party: str) -> None:
        assert self.running[party].poll() is None, (self.folder / "log").read_text()[-2000:]
        self.running[party].send_signal(signal.SIGKILL)
        self.running.pop(party).wait(60)

    def ask(self, what: str = "") -> str | None:
        with suppress(httpx.HTTPError):
            reply = httpx.get(f"http://127.0.0.1:{self.ports['service']}{AT}{what}")
            if reply.status_code == 200:
                return reply.text
        return None

    def learned(self, more: int) -> int:
        """Wait until the service has learned from so many batches; how many these are."""
        until = time.monotonic() + 90.0
        while True:
            told = self.ask()
            if told is not None and (found := json.loads(told)["releases"]) >= more:
                return int(found)
            assert time.monotonic() < until, (self.folder / "log").read_text()[-3000:]
            time.sleep(0.05)

    def rows(self) -> tuple[list[int], int, int]:
        """In how many batches each person was; outputs that wait; people of the open batch."""
        with_all = apsw.Connection(str(self.folder / "shuffler.db"))
        batches = [count for (count,) in with_all.execute("SELECT batches FROM users")]
        [(waiting,)] = with_all.execute("SELECT count(*) FROM outputs")
        came = with_all.execute("SELECT count(*) FROM records").fetchall()[0][0]
        with_all.close()
        return batches, waiting, came


@pytest.mark.long
def test_each_person_is_in_one_batch_that_is_learned_once(tmp_path):
    parties, rng = Parties(tmp_path), random.Random(1)
    try:
        parties.start("service")
        while (config := parties.ask("/config")) is None:
            assert parties.running["service"].poll() is None
            time.sleep(0.05)
        (tmp_path / "config.json").write_text(config)
        for party in ("shuffler", "devices"):
            parties.start(party)
        batches = parties.learned(1)
        for number in range(KILLS):
            party = ("service", "shuffler", "devices")[number % 3]
            time.sleep(rng.uniform(0.0, 0.3))
            parties.kill(party)
            parties.start(party)
            batches = parties.learned(batches + 1)
        parties.kill("devices")
        until = time.monotonic() + 60.0
        while (found := parties.rows())[1]:  # the last output is on its way
            assert time.monotonic() < until
            time.sleep(0.1)
        told = json.loads(parties.ask() or "")
    finally:
        for party in list(parties.running):
            parties.kill(party)
    in_batches, _, open_people = found
    assert set(in_batches) == {1}
    assert len(in_batches) == BATCH * told["releases"]
    # Who came while a full batch was on its way has lost their report.
    assert len(in_batches) + open_people <= int((tmp_path / "done").read_text()) + 1
    assert told["releases"] > KILLS
