"""Keep a session in a place: what each step has changed is one batch, and one commit.

Until its commit returns, nothing that a step computed may leave.  A commit that fails is repeated
with the same bytes before anything else is done.  So the values of noise do not
decide whether it becomes durable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from ..errors import ClaimError, StateFileError, StoreError
from ..privacy.ledger import HEAD
from ..stores import WHY, Batch, Mark, Place, Row
from ..stores.arguments import as_json
from ..stores.sealing import Sealer
from ..stores.stamps import Stamps
from ..stores.witness import Witness
from . import saved_rows
from .packing import joined, key_of
from .rounds import Choice, Pending
from .rows import ABSENT
from .saved_head import Layout, private_part, public_part
from .session import Session

FORMAT = 6
ABOUT, HEAD_ROW = "about", "head"  # kinds of rows: the first one, and one that is no row
_NO_ARM = 2**62  # and later numbers are none, too
_LONGEST = 64  # batches under one key, where nothing ends


class Durable(NamedTuple):
    """What the last commit has made public: from it choices may be served if a later one fails."""

    public: np.ndarray
    choice: Choice


class Keeper:
    """A session, and the place that keeps it.

    Attributes:
        place: where batches are committed.
        number: of the last batch.
        durable: what it has made public.
    """

    def __init__(
        self,
        session: Session,
        place: Place,
        about: dict[str, Any],
        witness: Witness,
        number: int,
        sealer: Sealer,
    ) -> None:
        self.place, self.number = place, number
        self._session, self._about, self._witness = session, about, witness
        self._unsent: Batch | None = None
        self._coming: Durable | None = None
        self._unnoted: bool | None = None  # whether the note of the last batch has to be durable
        self._process = os.getpid()
        self._sealer = sealer
        self._seals = _Seals(sealer, session) if place.sealed else None
        self._stamps = Stamps(witness.secret)
        self._renewing = False  # whether the next batch is a whole one, under new keys
        self._streams = [_Stream(one) for one in session.streams]

    # Commits ----------------------------------------------------------------------------------

    def begin(self, *, new: bool = False) -> None:
        """Write everything for the first time; ``note`` has to follow.  ``new`` where nothing may
        have been there.
        """
        self._released = True
        with self._sealer.undone():
            batch = self._whole()._replace(new=new)
            try:
                self.place.commit(batch, self._session.life)
            except (StoreError, ClaimError):
                self._refuse_unmade(batch)
        self.forget()
        self.number, self._unnoted = batch.number, True

    def commit(self) -> None:
        """Write the changes since the last commit, if any."""
        self.settle()
        if self.prepare() is not None:
            self.settle()

    def prepare(self) -> tuple[Place, Batch, str] | None:
        """The batch of all that has changed, or that could not be written before; None without."""
        if self._unsent is None:
            whole = self._renewing or self.place.wants_whole
            head, rows = self._new_head(), [] if self._renewing else list(self._changed())
            if not (rows or self._renewing) and head == self._head:
                return None
            self._released = any(one.has_released for one in self._streams)
            with self._sealer.undone():
                self._unsent = self._whole() if whole else self._part(head, rows)
            self._renewing = False
            self.forget(head)
        return self.place, self._unsent, self._session.life

    def renew_all(self) -> None:
        """Write everything anew in the next batch, and destroy all keys of before."""
        self._renewing = True

    def settle(self) -> None:
        """Write the batch that could not be written before, with the same bytes."""
        if self._unsent is not None or self._unnoted is not None:
            with self.going_on():
                if self._unsent is None:
                    self.note()
                else:
                    self.take_in(self._tried(self._unsent))

    def _tried(self, batch: Batch) -> BaseException | None:
        """The outcome of a commit."""
        try:
            self.place.commit(batch, self._session.life)
        except (StoreError, ClaimError) as error:
            return error
        return None

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Let nobody load the policy before a commit is noted.

        Raises:
            ClaimError: a copy is loaded already.
        """
        self._refuse_fork()
        with self._witness.going_on(self._session.life, self.place):
            yield

    @property
    def policy(self) -> str:
        """By what the witness knows the policy."""
        return self._witness.path.name

    def take_in(self, outcome: BaseException | None) -> None:
        """Note the batch, which was tried while ``going_on``; or raise what has come of it."""
        batch = self._unsent
        assert batch is not None
        try:
            if outcome is not None:
                raise outcome
        except (StoreError, ClaimError):
            self._refuse_unmade(batch)
        self._made(batch)

    def _refuse_unmade(self, batch: Batch) -> None:
        """Raise the error at hand, unless the answer to the commit is all that was lost."""
        with suppress(StateFileError, StoreError):  # the error at hand tells more
            if self.place.mark() == Mark(self._session.life, batch.number):
                return
        raise

    def _made(self, batch: Batch) -> None:
        assert self._coming is not None
        self.number, self._unsent, self.durable = batch.number, None, self._coming
        self._unnoted = batch.whole or self._released
        self.note()

    def note(self) -> None:
        """Tell the witness of the last batch, while it is locked."""
        assert self._unnoted is not None
        self._witness.note(Mark(self._session.life, self.number), durable=self._unnoted)
        self._unnoted = None
        self.destroy_keys()

    def destroy_keys(self) -> None:
        """Destroy keys that nothing in the place needs."""
        self._sealer.destroy()

    def close(self) -> None:
        """Say that the life has ended cleanly; a fork of its process cannot know that."""
        self._refuse_fork()
        self.place.release(self._session.life)

    @property
    def next_number(self) -> int:
        """A number that no batch of the session has, in whatever place."""
        return self.number + 1 + (self._unsent is not None)

    def forget(self, head: tuple[bytes, bytes] | None = None) -> None:
        """Everything in the place, or in a batch for it, is as it is here; ``head`` is its head."""
        for one in self._streams:
            one.forget()
        self._session.notes.changes = []
        self._head = head or self._new_head()
        rounds = self._session.rounds
        now = Durable(self._session.state.blocks[1].copy(), rounds.current_choice)
        if self._unsent is None:
            self.durable = now
        self._coming = now

    def _refuse_fork(self) -> None:
        if os.getpid() != self._process:
            raise ClaimError(
                f"{self.place} was not written, because this process is a fork. Save in the"
                f" process that made the policy: {WHY}"
            )

    # Batches ----------------------------------------------------------------------------------

    def _new_head(self) -> tuple[bytes, bytes]:
        return public_part(self._session), private_part(self._session)

    def _whole(self) -> Batch:
        layout = Layout.of(self._session)
        about = {"version": FORMAT, **self._about, "layout": layout._asdict()}
        about["sealed"] = self._seals is not None
        about["served"] = any(kind == "service" for kind, _ in self._session.notes)
        first = Row(ABOUT, b"", json.dumps(about, default=as_json).encode())
        rows = list(saved_rows.whole_rows(self._session))
        self._sealer.begin()
        head, rows = self._sealed(self._new_head(), [first, *rows])
        return Batch(self.number + 1, head, rows, whole=True)

    def _part(self, head: tuple[bytes, bytes], rows: list[Row]) -> Batch:
        if self._seals is not None:
            ended = any(one.has_ended for one in self._streams)
            self._seals.rotate(ended=self._released or ended)
        return Batch(self.number + 1, *self._sealed(head, rows))

    def _sealed(self, both: tuple[bytes, bytes], rows: list[Row]) -> tuple[bytes, list[Row]]:
        """Head and rows as they are written."""
        public, private = both
        if self._seals is not None:
            private = self._seals.content(Row(HEAD_ROW, b"", private))
            rows = [self._seals.row(row) for row in rows]
        head = self._stamps.stamped(Row(HEAD_ROW, b"", joined(public, private)))
        return head.content or b"", [self._stamps.stamped(row) for row in rows]

    def _changed(self) -> Iterator[Row]:
        bandit, *others = self._streams
        yield from bandit.changed()
        for one in others:
            yield from map(saved_rows.of_holdout, one.changed())
        notes = self._session.notes
        for kind, key in notes.changed():
            yield Row(kind, key, notes.get((kind, key)))


class _Stream:
    """The session of a bandit or of its holdout, and how much of it the place has."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def forget(self) -> None:
        """The place has everything."""
        rounds, ledger = self._session.rounds, self._session.state.wall.ledger
        for rows in rounds.rows:
            rows.changes = []
        rounds.users.seen.changes = []
        self._flights = len(rounds.flights)
        self._lines = int(ledger.head[HEAD.lines])
        self._releases = int(ledger.head[HEAD.releases])
        self._sent, self._session.exchange.noted = len(self._session.exchange.made), []
        self._pulls = rounds.pulls

    @property
    def has_released(self) -> bool:
        """Whether there is a release that the place has not."""
        return int(self._session.state.wall.ledger.head[HEAD.releases]) > self._releases

    @property
    def has_ended(self) -> bool:
        """Whether an episode is over that runs in the place."""
        return len(self._session.rounds.flights) > self._flights

    def changed(self) -> Iterator[Row]:
        """What the place has not."""
        session, rounds = self._session, self._session.rounds
        if self.has_released:
            yield from saved_rows.lines(session, self._lines - 1)  # the last may cover more
        yield from saved_rows.made(session, self._sent)
        yield from (saved_rows.learned(*one) for one in session.exchange.noted)
        yield from self._changed_flights()
        yield from self._changed_pulls()
        for number in rounds.answers.changed():
            value = rounds.answers.get(number)
            yield _gone("answer", number) if value is None else saved_rows.answered(number, value)
        booked = rounds.unreleased.changed()
        for arm in booked:
            one = rounds.unreleased.get(arm)
            yield _gone("booked", arm) if one is None else saved_rows.booked(arm, one)
        # A release takes away the row of each arm that it covers.  The next arm may depend on its
        # noise: if it is one of them, some other row is taken away, and lengths do not tell.
        others = min(rounds.unreleased.renewed(), session.arms.count - len(booked))
        yield from (_gone("booked", _NO_ARM + i) for i in range(others))
        seen = rounds.users.seen
        for alias in seen.changed():
            yield saved_rows.user(session, alias, seen[alias])
        for i in range(seen.kept()):
            yield from saved_rows.unrecorded(i)

    def _changed_flights(self) -> Iterator[Row]:
        flights = self._session.rounds.flights
        for number, before in flights.changed().items():
            flight = flights.get(number)
            if flight is not None:
                yield from saved_rows.flown(flight)
            elif before is not ABSENT:
                yield from (
                    Row(kind, saved_rows.flight_key(before), None) for kind in ("flight", "sum")
                )

    def _changed_pulls(self) -> Iterator[Row]:
        """Pulls that wait, in the running episode or in flight; and those that do no longer."""
        rounds = self._session.rounds
        before = dict.fromkeys(rounds.flown.changed(), ABSENT) | rounds.pending.changed()
        for number in before:
            pending, new = self._waiting(number), number >= self._pulls
            if pending is None:
                if not new:  # of others there is no row
                    yield _gone("pull", number)
            elif new or pending is not before[number]:
                yield saved_rows.pulled(number, pending)

    def _waiting(self, number: int) -> Pending | None:
        rounds = self._session.rounds
        flown = rounds.flown.get(number)
        return rounds.pending.get(number) if flown is None else flown.pending


class _Seals:
    """What a place gets sealed: answers, exact sums and, where contexts are private, more."""

    def __init__(self, sealer: Sealer, session: Session) -> None:
        self._sealer, self._count = sealer, 0
        self._kinds = sealed_kinds(session)

    def rotate(self, *, ended: bool) -> None:
        """Take a new key after an episode, and now and then where none ends."""
        self._count += 1
        if ended or self._count >= _LONGEST:
            self._count = 0
            self._sealer.rotate()

    def row(self, row: Row) -> Row:
        if row.kind not in self._kinds:
            return row
        if row.content is None:
            self._sealer.forget(row.kind, row.key)
            return row
        return row._replace(content=self.content(row))

    def content(self, row: Row) -> bytes:
        assert row.content is not None
        lasting = row.kind == saved_rows.REPLY
        return self._sealer.seal(row.kind, row.key, row.content, lasting=lasting)


def sealed_kinds(session: Session) -> frozenset[str]:
    """The kinds of rows that are sealed in a place that wants it."""
    hidden = ("pull", saved_rows.REPLY, "booked") if session.card.hides_contexts else ()
    kinds = ("answer", "sum", *hidden)
    return frozenset((*kinds, *(saved_rows.HOLDOUT + kind for kind in kinds)))


def _gone(kind: str, number: int) -> Row:
    return Row(kind, key_of(number), None)
