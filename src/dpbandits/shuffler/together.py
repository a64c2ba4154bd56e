"""Work for all requests that came meanwhile: one transaction, and one wait for disks, for many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

S = TypeVar("S")
Errors = Sequence[Exception | None]


class Together(Generic[S]):
    """Does work for many requests at once; a group begins when the one before ends.

    Args:
        work: gives, for a list of requests, a list of errors; None for what succeeded.
    """

    def __init__(
        self, work: Callable[[Sequence[S]], Awaitable[Sequence[Exception | None]]]
    ) -> None:
        self._work = work
        self._waiting: list[tuple[S, asyncio.Future[None]]] = []
        self._running: asyncio.Task[None] | None = None

    async def do(self, request: S) -> None:
        """Do the work for one request.

        Raises:
            Exception: that of the request, or of the work for its group.
        """
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, end))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        await end

    async def _run(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            errors: Errors
            try:
                errors = await self._work([request for request, _ in group])
            except Exception as error:
                errors = [error] * len(group)
            for (_, end), found in zip(group, errors, strict=True):
                if end.done():  # nobody waits for it any more
                    continue
                if found is None:
                    end.set_result(None)
                else:
                    end.set_exception(found)
        self._running = None
