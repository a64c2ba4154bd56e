"""Decisions that a service remembers, for clients that ask again or name them by ids of their own.

They are rows of the policy's place, and so as durable as the decisions.  An id is kept as a keyed
hash.  A decision is forgotten by its own time and deadline alone, whether a reward has come or not.
One that is open is never forgotten: at the limit the service makes no more decisions for a while.
"""

from __future__ import annotations

import math
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, Self

from ..policies import Policy
from ..session.decisions import Decision

KIND = "reply"
RECORDED, ACTIVE, CANCELLED, DEFERRED, HELD_OUT = 1, 2, 4, 8, 16
NO_UNIT = bytes(16)
MOST = 1_000_000  # decisions of one experiment
_COUNT = struct.Struct(">Q")
# Token; digest of the request; keyed hashes of its id and unit; arm, propensity, deadline, time.
# How many arms were shown, and flags.
_ROW = struct.Struct("<48s16s16s16sqdddIB")


class Remembered(NamedTuple):
    """One decision.

    Attributes:
        token: its bytes.
        digest: by which a repeated request is recognised.
        alias, unit: keyed hashes of the client's id and of the person.
        arm, propensity: nan where the latter has no closed form.
        answer_by, made: in seconds since the epoch; nan without a clock.
        shown: how many arms the person was shown.
        flags: of ``RECORDED``, ``ACTIVE``, ``CANCELLED``, ``DEFERRED`` and ``HELD_OUT``.
    """

    token: bytes
    digest: bytes
    alias: bytes
    unit: bytes
    arm: int
    propensity: float
    answer_by: float
    made: float
    shown: int
    flags: int

    @classmethod
    def read(cls, row: bytes) -> Self:
        """The decision of a row."""
        return cls._make(_ROW.unpack(row))

    @property
    def text(self) -> str:
        """The token as text."""
        return urlsafe_b64encode(self.token).decode()

    @property
    def is_recorded(self) -> bool:
        """Whether the policy learns from its reward."""
        return bool(self.flags & RECORDED)

    @property
    def is_active(self) -> bool:
        """Whether rewards are taken."""
        return bool(self.flags & ACTIVE)

    @property
    def is_cancelled(self) -> bool:
        """Whether it counts as not made."""
        return bool(self.flags & CANCELLED)

    @property
    def by_clock(self) -> bool:
        """Whether its deadline is a time; of others it is a number of pulls, or there is none."""
        return not math.isnan(self.answer_by)


def token_bytes(decision: Decision) -> bytes:
    """The token of a decision as bytes."""
    return urlsafe_b64decode(decision.token)


class Replies:
    """The remembered decisions of one policy.

    Args:
        policy: keeps them in its place.
        retries_for: for how many seconds a repeated request is recognised.

    Attributes:
        aside: how many decisions were remembered that the policy did not record.
    """

    def __init__(self, policy: Policy, retries_for: float) -> None:
        self._policy, self._notes, self.retries_for = policy, policy.notes, retries_for
        self._by_alias: dict[bytes, bytes] = {}  # keys of rows
        self._by_unit: dict[bytes, dict[bytes, None]] = {}  # likewise, in their order
        # Keys of rows, in the order in which they may be forgotten, with a time.
        self._timed: deque[tuple[float, bytes]] = deque()  # by deadlines on the clock
        self._counted: deque[tuple[float, bytes]] = deque()  # by deadlines in pulls
        self._unrecorded: deque[tuple[float, bytes]] = deque()
        self.aside = 0
        for key, one in sorted(self._all()):
            self._index(key, one)
            self._queue(key, one)
            if not one.is_recorded:
                self.aside = _COUNT.unpack(key[1:])[0] + 1

    @property
    def is_full(self) -> bool:
        """Whether there are so many open decisions that no other can be remembered."""
        return len(self._timed) + len(self._counted) >= MOST

    def alias(self, decision_id: str) -> bytes:
        """The keyed hash that stands for an id."""
        return self._policy.session.seal.alias("decision:" + decision_id)

    def find(self, decision_id: str) -> Remembered | None:
        """The decision with an id, or with a token as its id."""
        key = self._by_alias.get(self.alias(decision_id))
        return None if key is None else self._at(key)

    def of_number(self, number: int) -> Remembered | None:
        """The recorded decision with the number of its pull."""
        return self._at(_COUNT.pack(number))

    def of_unit(self, unit: bytes) -> list[Remembered]:
        """All decisions of a person."""
        found = (self._at(key) for key in self._by_unit.get(unit, ()))
        return [one for one in found if one is not None]

    def add(self, one: Remembered, number: int, now: float) -> None:
        """Remember a decision; ``number`` is that of its pull, if it is recorded."""
        if one.is_recorded:
            key = _COUNT.pack(number)
        else:
            key, self.aside = b"-" + _COUNT.pack(self.aside), self.aside + 1
        self._notes[KIND, key] = _ROW.pack(*one)
        self._index(key, one)
        self._queue(key, one)
        self.forget(now)

    def flag(self, one: Remembered, flag: int) -> None:
        """Give a decision another flag."""
        key = self._by_alias[one.alias]
        self._notes[KIND, key] = _ROW.pack(*one._replace(flags=one.flags | flag))

    def drop(self, one: Remembered) -> None:
        """Forget a decision."""
        self._drop(self._by_alias[one.alias])

    def clear(self) -> None:
        """Forget all decisions."""
        for rows in (self._timed, self._counted, self._unrecorded):
            for _, key in rows:
                self._notes.pop((KIND, key), None)
            rows.clear()
        self._by_alias.clear()
        self._by_unit.clear()

    def forget(self, now: float) -> None:
        """Forget decisions whose time has passed, and the oldest unrecorded ones of too many."""
        passed = self._policy.session.rounds.deadlines.passed
        while (rows := self._timed) and rows[0][0] <= now:
            self._drop(rows.popleft()[1])
        while (rows := self._counted) and rows[0][0] <= now and _number(rows[0][1]) < passed:
            self._drop(rows.popleft()[1])
        while (rows := self._unrecorded) and (rows[0][0] <= now or len(rows) > MOST):
            self._drop(rows.popleft()[1])

    def _all(self) -> Iterator[tuple[bytes, Remembered]]:
        for (kind, key), row in self._notes.items():
            if kind == KIND:
                yield key, Remembered.read(row)

    def _at(self, key: bytes) -> Remembered | None:
        row = self._notes.get((KIND, key))
        return None if row is None else Remembered.read(row)

    def _queue(self, key: bytes, one: Remembered) -> None:
        if not one.is_recorded:
            self._unrecorded.append((one.made + self.retries_for, key))
        elif one.by_clock:
            self._timed.append((one.answer_by + self.retries_for, key))
        else:
            self._counted.append((one.made + self.retries_for, key))

    def _index(self, key: bytes, one: Remembered) -> None:
        """Let a decision be found by its id and unit, and without a record, by its token."""
        self._by_alias[one.alias] = key
        if one.unit != NO_UNIT:
            self._by_unit.setdefault(one.unit, {})[key] = None
        if not one.is_recorded:
            self._by_alias[self.alias(one.text)] = key

    def _drop(self, key: bytes) -> None:
        row = self._notes.pop((KIND, key), None)
        if row is not None:
            one = Remembered.read(row)
            for alias in (one.alias, self.alias(one.text)):
                self._by_alias.pop(alias, None)
            mine = self._by_unit.get(one.unit, {})
            mine.pop(key, None)
            if not mine:
                self._by_unit.pop(one.unit, None)


def _number(key: bytes) -> int:
    number: int = _COUNT.unpack(key)[0]
    return number
