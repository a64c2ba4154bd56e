"""A device that talks to a service, and survives crashes of itself and of the service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx
import msgspec

from ..client.exchange import Endpoint, Retries, ServiceError, read, unexpected
from ..client.messages import encode
from ..client.transports import Blocking, certificates
from ..errors import ArgumentError
from ..shuffle.sealing import label_of
from .programs import Config, program_of
from .state import Kept, StateFile

_FINAL = (409, 410, 413, 422)  # statuses of refusals after which a report is lost
_NOT_NOW = ("paused", "not-started")  # kinds of others, that time or an operator ends
_LONGEST = 100  # letters of a label
_ECHOED = ("report_id", "label")  # by which a reply is that to a report


class _Told(msgspec.Struct):
    """What the server describes."""

    label: str
    round: str


class ConnectedDevice(Blocking):
    """A person's device, which talks to a service and, with shuffle trust, to a shuffler.

    What it sends has the noise of its config.  It sends no more true reports than that allows.
    Have ``report`` and ``send`` called at times that do not depend on the reward: with a timer, for
    example.

    Args:
        config: the text that the service gives at ``/config``.  Ship it with the program, from a
            source that people trust: everything that is promised to them rests on it.
        folder: of its state, which no other device uses.  Never go back to an older copy.
        server: the address of the service.
        key: of the service, with the roles ``report`` and ``read``.  Where the server decides,
            ``decide`` and ``reward``.  None for a service without keys, and with a shuffler for
            an experiment that is public.
        shuffler: the address of the shuffler, with shuffle trust.
        ticket: by which the shuffler knows the person.
        unit: by which the service knows the person, where it counts reports or decisions.
        retries: for how long a call is tried.
        transport: of httpx, for certificates or proxies of your own.

    Use it in a ``with`` statement, or call ``close``.

    Raises:
        ArgumentError: an argument is wrong.
        ClaimError: another process has the folder.
        StateFileError: the folder is another device's, or damaged.
    """

    def __init__(
        self,
        config: str,
        folder: str | Path,
        *,
        server: str,
        key: str | None = None,
        shuffler: str | None = None,
        ticket: str | None = None,
        unit: str | int | None = None,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        pinned, retries = Config(config), retries or Retries()
        self._receiver = self._server = Endpoint(server, key, retries)
        if pinned.policy._serving == "messages":
            if shuffler is None:
                raise ArgumentError(
                    "shuffler must be the address of a shuffler, such as https://shuffler.example,"
                    " got None: the policy takes messages",
                    "shuffler",
                )
            self._receiver = Endpoint(shuffler, ticket, retries)
        self._path = f"/v1/experiments/{quote(pinned.name, safe='')}/"
        self._unit = {} if unit is None else {"unit": unit}
        self._state = StateFile(Path(folder), Kept(pinned.name, pinned.reports))
        kept = self._state.kept
        self._program = program_of(pinned, min(kept.left, pinned.reports))
        self._http = httpx.Client(transport=transport, verify=certificates())
        if kept.label:
            self._program.use(kept.label, json.loads(kept.round))

    @property
    def left(self) -> int:
        """How many true reports the person may still send."""
        return self._program.left

    @property
    def waiting(self) -> int:
        """How many reports were made that have not arrived."""
        return len(self._state.kept.outbox)

    def choose(self, contexts: Any = None) -> int:
        """Choose an arm for the person, by what the server has released.

        If the server is not reached, what it released before decides.

        Args:
            contexts: as ``Policy.pull`` takes them, or advice.  Private ones stay here.

        Raises:
            ArgumentError: the contexts have another shape, or the config does not allow what the
                server describes.
            ServiceError: the server refuses, or is not reached and nothing is known of it.
        """
        if self._program.decides:
            self._refresh()
        return self._program.choose(contexts, self._ask)

    def report(self, reward: float | None = None) -> None:
        """Make a report on the last choice, and keep it until ``send``.

        It holds only noise if there was no choice since the last report, or no report is left.

        Args:
            reward: clipped to the range of rewards; None where none came.

        Raises:
            ArgumentError: the server decides, and has made no decision.
            ServiceError: the server was never reached, and only it knows the batch.
            StoreError: the report cannot be kept.  It is lost, and counts.
        """
        if self._program.decides and not self._state.kept.label:
            self._refresh()
        body = self._program.report(reward)
        if self._program.sends_to == "reports":
            body |= self._unit
        made = self._path + self._program.sends_to, encode(body).decode()
        outbox = (*self._state.kept.outbox, made)
        self._state.change(left=self._program.left, outbox=outbox)

    def send(self) -> int:
        """Send the reports that have not arrived, always in the same bytes.

        A report that is refused for good is lost: one for a batch that is over, for example.  It is
        not made anew, because that would be a second report.

        Returns:
            How many have arrived.

        Raises:
            ServiceError: one has not arrived, and may later.
            StoreError: the arrival cannot be noted, so the report is sent again.
        """
        arrived = 0
        while outbox := self._state.kept.outbox:
            path, body = outbox[0]
            try:
                reply = self._run(self._receiver.ask("POST", path, body.encode()))
                _refuse_strange(reply, body)
                arrived += 1
            except ServiceError as error:
                if not _is_final(error):
                    raise
            self._state.change(outbox=outbox[1:])
        return arrived

    def close(self) -> None:
        """Close all connections, and let another process have the folder."""
        self._http.close()
        self._state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ConnectedDevice of {self._state.kept.experiment!r}, contents not shown>"

    def _refresh(self) -> None:
        """Learn of the present round, if the server is reached, or was never."""
        kept = self._state.kept
        try:
            reply = self._run(self._server.ask("GET", self._path + "randomiser"))
        except ServiceError as error:
            if error.is_temporary and (kept.label or self._program.sends_to == "reports"):
                return
            raise
        told = read(reply, _Told)
        number = told.label[:_LONGEST].partition(":")[0]
        if not number.isdecimal() or told.label != label_of(int(number), told.round):
            raise unexpected(reply.status_code)
        if told.label == kept.label:
            return
        try:
            self._program.use(told.label, json.loads(told.round))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise unexpected(reply.status_code) from None
        self._state.change(label=told.label, round=told.round)

    def _ask(self, what: str, body: dict[str, Any]) -> Any:
        content = encode({**body, **self._unit})
        return read(self._run(self._server.ask("POST", self._path + what, content)), dict[str, Any])


def _is_final(error: ServiceError) -> bool:
    """Whether a report that was refused will not be taken later."""
    if error.kind in _NOT_NOW:
        return False
    return error.status in _FINAL or error.kind == "unknown-decision"


def _refuse_strange(reply: httpx.Response, body: str) -> None:
    """Refuse a reply of something else, such as a page that asks for a password."""
    told, sent = read(reply, dict[str, Any]), json.loads(body)
    echoed = [name for name in _ECHOED if name in sent]
    if [told.get(name) for name in echoed] != [sent[name] for name in echoed] or (
        not echoed and "learned" not in told
    ):
        raise unexpected(reply.status_code)
