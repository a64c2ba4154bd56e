"""Kill a shuffler under load at any moment, and look what left it.

``python tests/shuffler/shuffle_kills.py --kills 100`` does it in histories of ten kills.

People with good devices send their records until they are answered.  The server sometimes does not
answer, before or after it has taken a batch.  At the end:

* each label has one output at most, and each time it was sent it had the same bytes;
* each output has as many ciphertexts as the batch has people;
* no record is in two outputs, and no person in two batches;
* each output has all records of its batch that were acknowledged;
* the server opened the sum of the records in it.
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
from collections import defaultdict
from contextlib import suppress
from itertools import count
from pathlib import Path

import httpx
import numpy as np
from parties import NAME, Person, Server, linear, listening, written

ROOT = Path(__file__).parents[2]
CLIENTS, OF_A_HISTORY, PEOPLE = 3, 10, 4
HURRIED = """
from dpbandits.client.exchange import Retries
from dpbandits.shuffler import experiment, sending
experiment.PAUSE, experiment.LOOK = 0.02, 0.1
sending.RETRIES = Retries(limit=1.0, attempt=1.0, first=0.01, most=0.05)
"""


class Process:
    """``dpbandits shuffle``, which is killed and started again.

    Args:
        before: code that runs first, to make it faulty.
    """

    def __init__(self, file: Path) -> None:
        self.file, self.address, self.process = file, "", None

    def start(self, before: str = "") -> None:
        code = f"{HURRIED}\n{before}\nfrom dpbandits.cli import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "shuffle", str(self.file), "--port", "0"],
            stderr=subprocess.PIPE,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "src"),
                "NUMBA_DISABLE_JIT": "1",
                "DPBANDITS_STATE_DIR": str(self.file.parent / "state"),
            },
        )
        self.log = []
        threading.Thread(target=self._listen, args=[self.process], daemon=True).start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        for line in process.stderr:
            self.log.append(line.decode())
            with suppress(ValueError):
                told = json.loads(line)
                if told["event"] == "started":
                    self.address = f"http://127.0.0.1:{told['port']}"

    def stop(self, how: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(how)
        self.process.wait(60)
        self.address = ""


class History:
    """A server, people who send, and a shuffler between them, which is killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.server = Server(linear(PEOPLE, horizon=10**6))
        self.server.fault = self._fault
        self.http, address = listening(self.server)
        file, self.tickets, _ = written(folder, self.server, address)
        self.shuffler = Process(file)
        self.lock, self.numbers, self.over = threading.Lock(), count(), False
        self.sent = {}  # ciphertext: person
        self.acknowledged = defaultdict(set)  # label: ciphertexts

    def _fault(self, method, path, body):
        dice = self.random.random()
        if method == "POST" and dice < 0.2:
            return 503, {}
        if method == "POST" and dice < 0.4:
            self.server._answer(method, path, body)
            return 500, {}
        return None

    def people(self) -> None:
        """Devices, one after the other."""
        with httpx.Client(timeout=5.0) as http:
            while not self.over:
                with self.server._lock:
                    person = Person(self.server, self.tickets, f"user-{next(self.numbers)}").make()
                    self.sent[person.body["sealed"]] = person
                if self._answered(http, person):
                    self.acknowledged[person.label].add(person.body["sealed"])

    def _answered(self, http: httpx.Client, person: Person) -> bool:
        """Send the same bytes until there is an answer; whether it is yes."""
        body = json.dumps(person.body)
        while not self.over:
            try:
                url = f"{self.shuffler.address}/v1/experiments/{NAME}/messages"
                reply = http.post(url, content=body, headers=person.headers())
            except (httpx.HTTPError, httpx.InvalidURL):
                time.sleep(0.02)
                continue
            if reply.status_code in (202, 409):
                return reply.status_code == 202
            assert reply.status_code in (429, 503), reply.text
            time.sleep(0.02)
        return False

    def run(self, kills: int, points: tuple[str, ...] = ()) -> None:
        """Kill so often, at random moments; then at each of these points of the program."""
        clients = [threading.Thread(target=self.people, daemon=True) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            for _ in range(kills):
                self.shuffler.start()
                if self.random.random() < 0.8:  # else while it starts
                    self._await_batches(1)
                time.sleep(self.random.uniform(0.0, 0.5))
                self.shuffler.stop()
            for point in points:
                self.shuffler.start(point)
                self.shuffler.process.wait(60)
                assert self.shuffler.process.returncode == -signal.SIGKILL, self.shuffler.log
            self.shuffler.start()
            self._await_batches(5)
        finally:
            self.over = True
            for client in clients:
                client.join()
            self.shuffler.stop()
            self.http.shutdown()
            self.http.server_close()

    def _await_batches(self, more: int) -> None:
        end, before = time.monotonic() + 60.0, len(self.server.taken)
        while len(self.server.taken) < before + more:
            assert time.monotonic() < end, self.shuffler.log
            assert self.shuffler.process.poll() is None, self.shuffler.log
            time.sleep(0.01)

    def check(self) -> int:
        """Raise where anything was lost or leaked; the number of batches."""
        bodies = defaultdict(set)
        for body in self.server.bodies:
            bodies[json.loads(body)["label"]].add(body)
        seen, users = set(), set()
        for label, [body] in bodies.items():
            sealed = json.loads(body)["sealed"]
            assert len(set(sealed)) == len(sealed) == PEOPLE
            assert not seen & set(sealed), "a record is in two outputs"
            assert self.acknowledged[label] <= set(sealed), "a record is lost"
            people = {self.sent[one].user for one in sealed}
            assert not users & people, "a person is in two outputs"
            seen.update(sealed)
            users.update(people)
        modulus = self.server.policy.protocol.modulus
        for label, values in self.server.outputs:
            [body] = bodies[label]
            records = [self.sent[one].record for one in json.loads(body)["sealed"]]
            assert values.tolist() == (np.sum(records, axis=0) % modulus).tolist()
        assert len(self.server.outputs) == len({label for label, _ in self.server.outputs})
        return len(bodies)


def killed(target: str, when: str) -> str:
    """Code that kills the process before or after the second call of a function of the package."""
    return f"""
import inspect, os, signal
from dpbandits.shuffler import {target.split(".")[0]} as module
owner, name = getattr(module, {target.split(".")[1]!r}), {target.split(".")[2]!r}
function, calls = getattr(owner, name), []
def at(when):
    calls.append(when)
    if when == {when!r} and calls.count(when) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
def faulty(self, *given):
    at("before")
    result = function(self, *given)
    at("after")
    return result
async def awaited(self, *given):
    at("before")
    result = await function(self, *given)
    at("after")
    return result
setattr(owner, name, awaited if inspect.iscoroutinefunction(function) else faulty)
"""


STORED = ("begin", "take", "close_batch", "sent")
POINTS = tuple(
    killed(f"store.BatchStore.{name}", when) for name in STORED for when in ("before", "after")
) + tuple(killed("sending.Server._bounded", when) for when in ("before", "after"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for number in range(-(-given.kills // OF_A_HISTORY)):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["DPBANDITS_STATE_DIR"] = f"{folder}/state"
            history = History(Path(folder), given.seed + number)
            history.run(OF_A_HISTORY)
            batches = history.check()
            refused = len(history.sent) - sum(map(len, history.acknowledged.values()))
            print(f"history {number}: {batches} batches, {refused} records were too late")


if __name__ == "__main__":
    main()
