"""Connections that send nothing, or too slowly, make room for others.

uvicorn limits neither the time in which headers come, nor their size, nor how many connections have
no request under way.  Each of these would let anyone use up files and memory, without a key.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.auto import AutoHTTPProtocol

SLOWEST_HEADERS = 10.0  # seconds, after the first byte; of a new connection, after its beginning
LARGEST_HEADERS = 64 * 2**10  # bytes
MOST_IDLE = 2048  # connections without a request under way
_Protocol: Any = object  # one of uvicorn's, which are not typed
_Auto: Any = AutoHTTPProtocol


class Bounded(_Protocol):
    """Closes a connection whose headers are slow or large, and of too many idle connections the one
    that has been so for longest.
    """

    _idle: ClassVar[dict[Bounded, None]] = {}  # the longest first

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._deadline: asyncio.TimerHandle | None = None
        self._rest()
        self._hurry()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:  # which has all headers
            self._begin()
        elif self._is_idle:
            self._hurry()
            is_new = before is None or before.scope["headers"] is not self.headers
            self._unread += is_new * len(data)  # and not the body of a request that was refused
            if self._unread > LARGEST_HEADERS:
                self.transport.abort()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_idle:
            self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._begin()
        super().connection_lost(exc)

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _begin(self) -> None:
        self._idle.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _rest(self) -> None:
        self._idle[self], self._unread = None, 0
        if len(self._idle) > MOST_IDLE:
            oldest = next(iter(self._idle))
            oldest._begin()
            oldest.transport.abort()

    def _hurry(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(SLOWEST_HEADERS, self.transport.abort)


class Connection(Bounded, _Auto):
    """A connection of uvicorn, with these bounds."""
