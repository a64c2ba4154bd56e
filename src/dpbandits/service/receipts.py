"""Reports and batches that a service remembers, for senders that got no reply and send them again.

They are rows of the policy's place, as durable as the learned reports.  An id is kept as a
keyed hash.  Each is forgotten by the time at which it came first, and by nothing else.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import NamedTuple, Self

from ..policies import Policy
from ..session.saved_rows import RECEIPT
from .replies import MOST

_ROW = struct.Struct("<16sdB")  # digest of the request, time, and what came of it


class Receipt(NamedTuple):
    """One report or batch.

    Attributes:
        digest: by which a repeated request is recognised.
        came: when, in seconds since the epoch.
        outcome: what came of it.
    """

    digest: bytes
    came: float
    outcome: int

    @classmethod
    def read(cls, row: bytes) -> Self:
        """The receipt of a row."""
        return cls._make(_ROW.unpack(row))


class Receipts:
    """The remembered reports or batches of one policy.

    Args:
        policy: keeps them in its place.
        retries_for: for how many seconds a repeated request is recognised.
    """

    def __init__(self, policy: Policy, retries_for: float) -> None:
        self._policy, self._notes, self._retries_for = policy, policy.notes, retries_for
        known = (
            (Receipt.read(row).came, key)
            for (kind, key), row in self._notes.items()
            if kind == RECEIPT
        )
        self._queue = deque(sorted(known))  # in the order in which they are forgotten

    @property
    def is_full(self) -> bool:
        """Whether no other can be remembered."""
        return len(self._queue) >= MOST

    def find(self, id_: str) -> Receipt | None:
        """The receipt of an id."""
        row = self._notes.get((RECEIPT, self._alias(id_)))
        return None if row is None else Receipt.read(row)

    def add(self, id_: str, receipt: Receipt) -> None:
        """Remember a report or batch."""
        key = self._alias(id_)
        self._notes[RECEIPT, key] = _ROW.pack(*receipt)
        self._queue.append((receipt.came, key))

    def forget(self, now: float) -> None:
        """Forget those whose time has passed."""
        while self._queue and self._queue[0][0] + self._retries_for <= now:
            self._notes.pop((RECEIPT, self._queue.popleft()[1]), None)

    def clear(self) -> None:
        """Forget all."""
        self.forget(float("inf"))

    def _alias(self, id_: str) -> bytes:
        return self._policy.session.seal.alias("receipt:" + id_)
