"""The service, the shuffler, and the people with their devices, who come in batches."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

from ..client.exchange import Retries, ServiceError
from ..device import ConnectedDevice
from ..folders import make_private
from ..policies.registry import arguments_of_today, find
from ..service.access import Keys
from ..shuffle.sealing import ServerKey, unpacked
from ..shuffler.tickets import Tickets
from .people import ARMS, FEATURES, REWARD_RANGE, People
from .processes import Party, PartyError, running

NAME, BATCHES = "walks", 20
SERVICE, SHUFFLER, DEVICES = "service", "shuffler", "devices"  # folders
_AT_ONCE = 4  # people
_SLOWEST = 60.0  # seconds for a batch to arrive
_RETRIES = Retries(limit=10.0, first=0.02, most=0.5)
_LOOK = 0.05


def words(people: int) -> dict[str, Any]:
    """The experiment, in words of ``bandit``, but for its trust."""
    return {
        "arms": ARMS,
        "features": FEATURES,
        "protects": "contexts and rewards",
        "horizon": people,
        "batch": people // BATCHES,
        "budget": {"approx": [1.0, 1e-5]},
        "reward_range": list(REWARD_RANGE),
    }


class Secrets(NamedTuple):
    """What is known of a person by nobody but their device.

    Attributes:
        ticket: which the shuffler sees with each request, and does not keep.
        arm: which the device chose.
        message: before it is split.
        masked: the part for the shuffler, which it keeps until the batch closes.
    """

    ticket: str
    arm: int
    message: np.ndarray
    masked: np.ndarray


class Told(NamedTuple):
    """What the service says at the end.

    Attributes:
        summary, guarantee, ledger: as its addresses give them.
    """

    summary: Mapping[str, Any]
    guarantee: Mapping[str, Any]
    ledger: Mapping[str, Any]


class Parties:
    """The three parties, while they run.

    Args:
        service, shuffler: the processes.
        devices: the folder of the devices.
        people: who have them.
        secret: the service's key for reading.

    Attributes:
        tickets: of the shuffler.
        reader: of the service.
        config: of devices.
        policy: of the config, without records.
    """

    def __init__(
        self, service: Party, shuffler: Party, devices: Path, people: People, secret: str
    ) -> None:
        self.service, self.shuffler, self.people = service, shuffler, people
        self._devices, self.tickets = devices, Tickets.at(shuffler.folder / "tickets")
        self.reader = _Reader(service.address, secret)
        self.config = self.reader.text("config")
        self.policy = _policy_of(self.config)
        [key] = (service.folder / "state" / "hpke").iterdir()
        self.key = ServerKey(key.read_bytes())
        self._transport = _Kept(httpx.HTTPTransport())

    def play(self, batch: int, half_time: Callable[[list[Secrets]], None]) -> list[Secrets]:
        """Let the people of a batch come, and wait until the service has learned from it.

        Args:
            half_time: called with the secrets of the first half of them, who have reported.

        Raises:
            PartyError: a process has ended, or a report is lost.
        """
        size = self.policy.config["batch"]
        first, half, end = (batch * size, batch * size + size // 2, (batch + 1) * size)
        came = self._come(range(first, half))
        half_time(came)
        came += self._come(range(half, end))
        self.wait_for(batch + 1)
        return came

    def told(self) -> Told:
        """What the service says."""
        return Told(*(json.loads(self.reader.text(part)) for part in ("", "guarantee", "ledger")))

    def close(self) -> None:
        """Close all connections."""
        self.reader.close()
        self._transport.end()

    def check(self) -> None:
        """Refuse to go on without one of the processes."""
        self.service.check()
        self.shuffler.check()

    def _come(self, people: range) -> list[Secrets]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            try:
                return list(pool.map(self._one, people))
            except ServiceError as error:
                pool.shutdown(cancel_futures=True)
                self.check()
                raise PartyError(f"a device cannot go on: {error}") from None
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _one(self, person: int) -> Secrets:
        """A person's device chooses, reports and sends."""
        folder = self._devices / f"{person}"
        ticket = self.tickets.issue(NAME, self.people.names[person])
        contexts = self.people.contexts[person]
        with ConnectedDevice(
            self.config,
            folder,
            server=self.service.address,
            shuffler=self.shuffler.address,
            ticket=ticket,
            retries=_RETRIES,
            transport=self._transport,
        ) as device:
            arm = device.choose(contexts)
            reward = float(self.people.rewards[person, arm])
            device.report(reward)
            message, masked = self._opened(folder)
            if device.send() != 1:
                raise PartyError("the shuffler has refused a report for good")
        diary = {"name": self.people.names[person], "ticket": ticket, "arm": arm}
        diary |= {"features": contexts.tolist(), "reward": reward}
        (folder / "diary.json").write_text(json.dumps(diary))
        return Secrets(ticket, arm, message, masked)

    def _opened(self, folder: Path) -> tuple[np.ndarray, np.ndarray]:
        """The message that a device is about to send, and its part for the shuffler.

        It takes both the device's request and the service's key.
        """
        [(_, body)] = json.loads((folder / "device.json").read_text())["outbox"]
        sent, protocol = json.loads(body), self.policy.protocol
        share = self.key.open(sent["label"], NAME, b64decode(sent["sealed"]))
        masked = np.array(sent["masked"], np.int64)
        return (masked + unpacked(protocol, share)) % protocol.modulus, masked

    def wait_for(self, releases: int) -> None:
        """Wait until the service has learned from so many batches.

        Raises:
            PartyError: a process has ended, or a batch takes too long.
        """
        until = time.monotonic() + _SLOWEST
        while json.loads(self.reader.text(""))["releases"] < releases:
            self.check()
            if time.monotonic() > until:
                raise PartyError(f"batch {releases} has not reached the service")
            time.sleep(_LOOK)


def store_of(folder: Path) -> str:
    """The address of the service's store."""
    return f"sqlite:///{folder / SERVICE / 'policies.db'}"


@contextmanager
def started(folder: Path, people: People) -> Iterator[Parties]:
    """The three parties in folders of their own; their processes end with the block.

    Args:
        folder: an absolute path.
    """
    own = _made(folder / SERVICE)
    keys = Keys(own / "keys.json")
    _, reader = keys.add(roles=["read"])
    _, sender = keys.add(roles=["read", "shuffle"])
    declared = {"name": NAME, "trust": "shuffle", "messages": True, "public": True}
    _write_service(own / "experiments.toml", declared | words(len(people.names)))
    serving = ["serve", f"{own}/experiments.toml", "--store", store_of(folder)]
    with running("service", own, [*serving, "--keys", f"{own}/keys.json"]) as service:
        config, other = _config(service, reader), _made(folder / SHUFFLER)
        _write_shuffler(other, service.address, sender, config, people)
        with running("shuffler", other, ["shuffle", f"{other}/shuffler.toml"]) as shuffler:
            parties = Parties(service, shuffler, _made(folder / DEVICES), people, reader)
            try:
                yield parties
            finally:
                parties.close()


def _made(folder: Path) -> Path:
    make_private(folder)
    return folder


def _write_service(path: Path, declared: Mapping[str, Any]) -> None:
    lines = [f"{word} = {_toml(value)}" for word, value in declared.items()]
    path.write_text("\n".join(["[[experiments]]", *lines, ""]))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{word} = {_toml(one)}' for word, one in value.items())}}}"
    return json.dumps(value)


def _config(service: Party, secret: str) -> str:
    """What devices are shipped with, once the service is ready."""
    until = time.monotonic() + _SLOWEST
    with httpx.Client(base_url=service.address) as http:
        while http.get("/readyz").status_code != 200:
            service.check()
            if time.monotonic() > until:
                raise PartyError("the service is not ready")
            time.sleep(_LOOK)
    reader = _Reader(service.address, secret)
    try:
        return reader.text("config")
    finally:
        reader.close()


def _write_shuffler(folder: Path, server: str, secret: str, config: str, people: People) -> None:
    (folder / "config.json").write_text(config)
    (folder / "key").write_text(secret)
    Tickets.at(folder / "tickets")
    (folder / "shuffler.toml").write_text(
        f"""server = "{server}"
key = {{ file = "key" }}
tickets = "tickets"
store = "shuffler.db"

[[experiments]]
name = "{NAME}"
config = "config.json"
least = {len(people.names) // BATCHES}
closes = "full"
"""
    )


def _policy_of(config: str) -> Any:
    """The policy of a config, without records."""
    given = arguments_of_today(json.loads(config)["chooser"]["arguments"])
    return find(given.pop("class"))(**given)


class _Reader:
    """Reads from the experiment's addresses."""

    def __init__(self, address: str, secret: str) -> None:
        headers = {"authorization": f"Bearer {secret}"}
        self._at = f"{address}/v1/experiments/{NAME}"
        self._http = httpx.Client(headers=headers)

    def text(self, part: str) -> str:
        try:
            reply = self._http.get(f"{self._at}/{part}".rstrip("/"))
        except httpx.RequestError as error:
            raise PartyError(f"the service cannot be reached: {type(error).__name__}") from None
        if reply.status_code != 200:
            raise PartyError(f"the service replies to /{part} with status {reply.status_code}")
        return reply.text

    def close(self) -> None:
        self._http.close()


class _Kept(httpx.BaseTransport):
    """Connections that all devices of this process share; ``close`` of one leaves them open."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self.handle_request = transport.handle_request  # type: ignore[method-assign]
        self.end = transport.close
