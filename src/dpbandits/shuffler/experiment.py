"""One experiment of the shuffler: opens batches, takes records in, closes, and sends outputs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated

from msgspec import Meta

from ..client.exchange import ServiceError
from ..errors import DPBanditsError, StoreError
from ..service.log import log
from ..service.messages import Message
from ..service.problems import Problem
from .batch import Pinned, Record, Round, RoundError, noise, output, record_of
from .sending import Server
from .store import BatchStore, Opened, Refusal, Sent
from .together import Together

PAUSE = 5.0  # seconds after a failure
LOOK = 60.0  # seconds between looks whether the server has gone on without the batch

_REFUSED: dict[Refusal, tuple[int, str, str]] = {
    "invalid": (422, "invalid", "The record must have the form that devices send in this batch."),
    "stale": (409, "stale", "This batch is not open. Fetch what the next batch needs."),
    "waiting": (503, "waiting", "No batch is open. Send the same request again."),
    "another": (409, "another-record", "This batch has another record of yours."),
    "spent": (409, "spent", "You have reached the allowed number of batches."),
    "copied": (409, "copied", "Somebody else has sent the same record to this batch."),
    "full": (429, "full", "This batch is full. Send the same request again."),
}


class Submission(Message):
    """A person's record for a batch."""

    label: Annotated[str, Meta(max_length=100)]
    sealed: bytes
    masked: list[int] | None = None


class Experiment:
    """One experiment; ``run`` is its life.

    Args:
        pinned: what people trust.
        store: the rows of all experiments.
        server: the service.
    """

    def __init__(self, pinned: Pinned, store: BatchStore, server: Server) -> None:
        self.pinned, self._store, self._server = pinned, store, server
        self._name = pinned.name
        self._together = Together(self._take)
        self._changed = asyncio.Event()  # the batch is due
        self._looked, self._failure = -LOOK, ""

    async def take(self, user: bytes, sent: Submission) -> None:
        """Take in the record of a user.

        Raises:
            Problem: it is refused.
        """
        await self._together.do((user, sent))

    async def _take(self, sent: Sequence[tuple[bytes, Submission]]) -> list[Problem | None]:
        """Take in what came from users; why not, for each."""

        def checked(opened: Opened | None) -> Iterator[Sent]:
            found = None if opened is None else self._round(opened)
            return (Sent(user, one.label, _record(found, one)) for user, one in sent)

        take = partial(self._store.take, self._name, checked, self.pinned.max_rounds)
        opened, refused = await asyncio.to_thread(take)
        if opened is not None and opened.is_due(time.time()):
            self._changed.set()
        return [None if why is None else _refusal(why, opened) for why in refused]

    async def run(self) -> None:
        """Open batches, close them, and send outputs, for ever."""
        while True:
            self._changed.clear()
            pause = await self._tried_step()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()

    async def _tried_step(self) -> float:
        """As ``_step``; a failure is told once, and tried again."""
        try:
            pause, self._failure = await self._step(), ""
        except Exception as error:  # also one of this program: the rows say how to go on
            pause, why = PAUSE, _why(error)
            if why != self._failure:
                log("failed", experiment=self._name, error=type(error).__name__, why=why)
            self._failure = why
        return pause

    async def _step(self) -> float:
        """Do what comes next, and return for how long there is nothing else."""
        body = await asyncio.to_thread(self._store.output, self._name)
        if body is not None:
            return await self._send(body)
        opened = await asyncio.to_thread(self._store.opened, self._name)
        if opened is None:
            return await self._open()
        try:
            found = self._round(opened)
        except RoundError:  # the pinned configuration has changed
            await self._drop(opened)
            raise
        if opened.is_due(time.time()):
            return await self._close(opened, found)
        if time.monotonic() >= self._looked + LOOK:
            await self._look(opened)
            return 0.0
        if not await asyncio.to_thread(self._store.forget):
            raise StoreError(
                "deleted records stay in the log of the store while another process reads the store"
            )
        left = LOOK if opened.closes is None else opened.closes - time.time()
        return max(0.0, min(left, self._looked + LOOK - time.monotonic()))

    async def _open(self) -> float:
        found = await self._announced()
        people, closes = found.protocol.batch, self.pinned.closing_after(time.time())
        begun = partial(self._store.begin, self._name, found.label, people, found.digest, closes)
        if not await asyncio.to_thread(begun):
            raise RoundError(
                "the server has received the output of a batch, but still announces this batch"
            )
        log("batch open", experiment=self._name, people=people)
        return 0.0

    async def _look(self, opened: Opened) -> None:
        """Drop a batch that the server would not take any more."""
        if (await self._announced()).label != opened.label:
            await self._drop(opened)

    async def _drop(self, opened: Opened) -> None:
        await asyncio.to_thread(self._store.drop_batch, self._name, opened.label)
        log("batch dropped", experiment=self._name)

    async def _announced(self) -> Round:
        self._looked = time.monotonic()
        return self.pinned.announced(await self._server.round(self._name))

    async def _close(self, opened: Opened, found: Round) -> float:
        least, now = self.pinned.least, time.time()
        if opened.came < least:  # it would have too little noise that the shuffler does not know
            later = partial(self._store.postpone, self._name, found.label, least)
            await asyncio.to_thread(later, self.pinned.closing_after(now))
            return 0.0
        padding = []
        if opened.closes is not None:
            padding = await asyncio.to_thread(noise, self.pinned, found)
        make = partial(output, found, padding)
        close = partial(self._store.close_batch, self._name, found.label, make)
        if await asyncio.to_thread(close) is not None:
            log("batch closed", experiment=self._name)
        return 0.0

    async def _send(self, body: bytes) -> float:
        taken = await self._server.deliver(self._name, body)
        await asyncio.to_thread(self._store.sent, self._name, body)
        log("batch taken" if taken else "batch refused", experiment=self._name)
        return 0.0

    def _round(self, opened: Opened) -> Round:
        found = self.pinned.round_of(opened.people, opened.label)
        if found.digest != opened.protocol:
            raise RoundError("the batch belongs to an earlier configuration")
        return found


def _record(found: Round | None, sent: Submission) -> Record | Refusal:
    """A record for the open batch, or why there is none."""
    if found is None or found.label != sent.label:
        return "waiting"
    return record_of(found.protocol, sent.masked, sent.sealed) or "invalid"


def _refusal(refused: Refusal, opened: Opened | None) -> Problem:
    status, kind, detail = _REFUSED[refused]
    if refused == "full" and opened is not None and opened.closes is not None:
        wait = max(1.0, opened.closes - time.time())  # a full batch is full until it closes
        return Problem(status, kind, detail, retry_after=wait)
    return Problem(status, kind, detail)


def _why(error: Exception) -> str:
    """What an operator may read: the server's words are left out."""
    if isinstance(error, ServiceError):
        return f"status {error.status}" if error.status else "the server could not be reached"
    return str(error) if isinstance(error, DPBanditsError) else "a defect"
