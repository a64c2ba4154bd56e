"""Sums of people's vectors through devices, a shuffler and a service, which are three processes.
They are compared with the same messages made, sealed, summed and opened in one process.

Devices are tasks of one process.  They write nothing to a disk; the shuffler and the service do.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.shuffle import Randomizer

from .connections import Connection, written
from .timing import Row, scaled

MISSING: ImportError | None = None
try:
    import apsw  # noqa: F401
    import cryptography  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401

    from dpbandits.demonstration.parties import BATCHES, NAME, Parties, started
    from dpbandits.demonstration.people import People
    from dpbandits.device.programs import Config
    from dpbandits.shuffle.sealing import label_of, open_batch
except ImportError as error:
    MISSING = error

PEOPLE, DEVICES = 100_000, 256
PAUSE = 0.01  # seconds


def rows(size: float) -> Iterator[Row]:
    if MISSING is not None:
        yield Row.skipped("sums through three processes", MISSING)
        return
    count = scaled(PEOPLE // BATCHES, size, 2) * BATCHES
    with tempfile.TemporaryDirectory() as name:
        with started(Path(name), People.drawn(count, 1)) as parties:
            work = _Work(parties)
            took = _seconds(lambda: asyncio.run(work.through_processes()))
        alone = _seconds(work.alone)
    remark = "made, sealed, summed and opened"
    yield Row(f"modular sums of {count:,} people in one process", alone, "s", "", remark)
    remark = f"{took:.1f} s, with HTTP and disks"
    yield Row("  through three processes", took / alone, "x one process", "<= 3", remark)


class _Work:
    """What devices, shuffler and server do for all people, batch by batch.

    Args:
        parties: that run.
    """

    def __init__(self, parties: Parties) -> None:
        self._parties, people = parties, parties.people.names
        self._config, self._protocol = Config(parties.config), parties.policy.protocol
        self._randomizer = Randomizer(self._protocol)
        self._vector = np.full(self._protocol.dimension, 0.2)
        self._tickets = [parties.tickets.issue(NAME, one) for one in people]
        self._size = self._protocol.batch

    def _made(self, label: str) -> dict[str, Any]:
        """One person's body for the shuffler."""
        messages = self._randomizer.encode(self._vector)
        return self._config.sealed(self._protocol, messages, label)

    async def through_processes(self) -> None:
        port = int(self._parties.shuffler.address.rpartition(":")[2])
        connections = [await Connection.to(port) for _ in range(DEVICES)]
        for batch in range(len(self._tickets) // self._size):
            label = json.loads(self._parties.reader.text("randomiser"))["label"]
            tickets = iter(self._tickets[batch * self._size : (batch + 1) * self._size])
            await asyncio.gather(*(self._send(one, tickets, label) for one in connections))
            self._parties.wait_for(batch + 1)
        for one in connections:
            one.close()

    async def _send(self, connection: Connection, tickets: Iterator[str], label: str) -> None:
        for ticket in tickets:
            body = json.dumps(self._made(label)).encode()
            request = written("POST", f"/v1/experiments/{NAME}/messages", body, ticket)
            while (await connection.ask(request))[0] != 202:  # the batch is not open yet
                await asyncio.sleep(PAUSE)

    def alone(self) -> None:
        protocol, key, label = self._protocol, self._parties.key, label_of(0, "")
        for _ in range(len(self._tickets) // self._size):
            bodies = [self._made(label) for _ in range(self._size)]
            total = sum(np.array(one["masked"]) for one in bodies) % protocol.modulus
            sealed = [b64decode(one["sealed"]) for one in bodies]
            open_batch(protocol, key, label, NAME, total, sealed)


def _seconds(work: Callable[[], Any]) -> float:
    """Of the clock, as processes wait for each other."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
