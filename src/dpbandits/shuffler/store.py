"""What the shuffler keeps on disk: open batches, outputs to be sent, and who was in how many.

The rows of a batch are deleted in the transaction that makes its output; SQLite overwrites them.
Keys of tables sort rows by hashes, but the log of an open batch has the order of arrival.  The log
is emptied after a batch.  While another process reads, SQLite cannot empty it: ``forget`` says so,
and has to be called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import apsw

from ..stores.sqlite import PATIENCE, SQLiteFile
from .batch import Record

T = TypeVar("T")
Refusal = Literal["invalid", "stale", "waiting", "another", "spent", "full", "copied"]


class Opened(NamedTuple):
    """The open batch of an experiment.

    Attributes:
        label, people: as the server announced them.
        protocol: a digest of what people's records have, by the pinned configuration.
        closes: when, in seconds since the epoch; None: when it is full.
        came: the number of people.
    """

    label: str
    people: int
    protocol: str
    closes: float | None
    came: int

    def is_due(self, now: float) -> bool:
        """Whether it must close."""
        return self.came >= self.people if self.closes is None else now >= self.closes


class Sent(NamedTuple):
    """What a user has sent.

    Attributes:
        user: a hash of their name.
        label: of the batch.
        record: for the batch, or why there is none.
    """

    user: bytes
    label: str
    record: Record | Refusal


class BatchStore(SQLiteFile):
    """The shuffler's rows, in one SQLite file; see ``SQLiteFile``."""

    _forgotten = True
    application: ClassVar[int] = int.from_bytes(b"dpbm", "big")
    version: ClassVar[int] = 2
    tables: ClassVar[str] = """
CREATE TABLE opened (
    experiment TEXT PRIMARY KEY, label TEXT NOT NULL, people INTEGER NOT NULL,
    protocol TEXT NOT NULL, closes REAL, came INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE records (
    experiment TEXT, user BLOB, masked BLOB NOT NULL, sealed BLOB NOT NULL,
    PRIMARY KEY (experiment, user), UNIQUE (experiment, sealed)
) STRICT, WITHOUT ROWID;
CREATE TABLE outputs (experiment TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE closed (experiment TEXT, label TEXT, PRIMARY KEY (experiment, label))
    STRICT, WITHOUT ROWID;
CREATE TABLE users (
    experiment TEXT, user BLOB, batches INTEGER NOT NULL, PRIMARY KEY (experiment, user)
) STRICT, WITHOUT ROWID;
"""

    def opened(self, name: str) -> Opened | None:
        """The open batch of an experiment."""
        with self._transaction() as connection:
            return _opened(connection, name)

    def output(self, name: str) -> bytes | None:
        """The output that the server has not taken yet."""
        with self._transaction() as connection:
            found = "SELECT body FROM outputs WHERE experiment = ?"
            return _first(connection.execute(found, [name]), bytes)

    def begin(
        self, name: str, label: str, people: int, protocol: str, closes: float | None
    ) -> bool:
        """Open a batch, unless its label was closed; whether it is open."""
        with self._transaction() as connection:
            if _was_closed(connection, name, label):
                return False
            connection.execute(
                "INSERT OR IGNORE INTO opened VALUES (?, ?, ?, ?, ?, 0)",
                [name, label, people, protocol, closes],
            )
        return True

    def postpone(self, name: str, label: str, least: int, closes: float | None) -> None:
        """Let a batch close later, unless so many people have come."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE opened SET closes = ? WHERE (experiment, label) = (?, ?) AND came < ?",
                [closes, name, label, least],
            )

    def take(
        self, name: str, checked: Callable[[Opened | None], Iterable[Sent]], max_rounds: int
    ) -> tuple[Opened | None, list[Refusal | None]]:
        """Take in the records of users in one transaction.  A record may come again.

        Args:
            checked: what they have sent, for the batch that is open.

        Returns:
            The batch with these records, and for each why it is not taken.
        """
        with self._transaction() as connection:
            sent = checked(_opened(connection, name))
            refused = [_taken(connection, name, one, max_rounds) for one in sent]
            return _opened(connection, name), refused

    def close_batch(
        self, name: str, label: str, make: Callable[[Sequence[Record]], bytes]
    ) -> bytes | None:
        """Make the output of a batch, count its people, and delete their records; None if another
        process was faster.
        """
        with self._deleting() as connection:
            opened = _opened(connection, name)
            if opened is None or opened.label != label:
                return None
            listed = "SELECT masked, sealed FROM records WHERE experiment = ?"
            body = make([Record(*row) for row in connection.execute(listed, [name]).fetchall()])
            connection.execute("INSERT INTO outputs VALUES (?, ?)", [name, body])
            connection.execute(
                """INSERT INTO users SELECT experiment, user, 1 FROM records WHERE experiment = ?
                ON CONFLICT DO UPDATE SET batches = batches + 1""",
                [name],
            )
            _end(connection, name)
            connection.execute("INSERT INTO closed VALUES (?, ?)", [name, label])
        return body

    def drop_batch(self, name: str, label: str) -> None:
        """Delete a batch whose label the server does not use any more.  As nothing of it has left,
        its label may come again.
        """
        with self._deleting() as connection:
            opened = _opened(connection, name)
            if opened is not None and opened.label == label:
                _end(connection, name)

    def sent(self, name: str, body: bytes) -> None:
        """Delete an output, which the server has taken or refused."""
        with self._deleting() as connection:
            gone = "DELETE FROM outputs WHERE (experiment, body) = (?, ?)"
            connection.execute(gone, [name, body])

    def forget(self) -> bool:
        """Empty the log of deleted rows; whether none is left."""
        if not self._forgotten:
            with self._shared.alone() as connection:
                self._forgotten = _emptied(connection)
        return self._forgotten

    @contextmanager
    def _deleting(self) -> Iterator[Any]:
        """A transaction after which the log is emptied, unless others read it."""
        with self._transaction() as connection:
            yield connection
        self._forgotten = False
        self.forget()

    def _connected(self) -> Any:
        connection = super()._connected()
        connection.execute("PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY").fetchall()
        # A process that was killed may have left deleted rows in the log.
        self._forgotten = _emptied(connection)
        return connection


def _emptied(connection: Any) -> bool:
    """Whether the log could be emptied.  It does not wait for others: devices wait meanwhile."""
    connection.set_busy_timeout(0)
    try:
        [(is_busy, *_)] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(PATIENCE)
    return not is_busy


def _opened(connection: Any, name: str) -> Opened | None:
    found = "SELECT label, people, protocol, closes, came FROM opened WHERE experiment = ?"
    return _first(connection.execute(found, [name]), Opened)


def _taken(connection: Any, name: str, sent: Sent, max_rounds: int) -> Refusal | None:
    user, label, record = sent
    if _was_closed(connection, name, label):
        return "stale"
    opened = _opened(connection, name)
    if opened is None:
        return "waiting"
    if opened.label != label:
        return "stale"
    if isinstance(record, str):
        return record
    own = "SELECT masked, sealed FROM records WHERE (experiment, user) = (?, ?)"
    known = _first(connection.execute(own, [name, user]), Record)
    if known is not None:
        return None if known == record else "another"
    spent = "SELECT batches FROM users WHERE (experiment, user) = (?, ?)"
    if (_first(connection.execute(spent, [name, user]), int) or 0) >= max_rounds:
        return "spent"
    if opened.came >= opened.people:
        return "full"
    copies = "SELECT count(*) FROM records WHERE (experiment, sealed) = (?, ?)"
    if _first(connection.execute(copies, [name, record.sealed]), int):
        return "copied"
    connection.execute("INSERT INTO records VALUES (?, ?, ?, ?)", [name, user, *record])
    connection.execute("UPDATE opened SET came = came + 1 WHERE experiment = ?", [name])
    return None


def _was_closed(connection: Any, name: str, label: str) -> bool:
    found = "SELECT count(*) FROM closed WHERE (experiment, label) = (?, ?)"
    return bool(_first(connection.execute(found, [name, label]), int))


def _first(cursor: Any, made: Callable[..., T]) -> T | None:
    """What the first row stands for; no statement stays open, as that would keep the log."""
    rows = cursor.fetchall()
    return made(*rows[0]) if rows else None


def _end(connection: Any, name: str) -> None:
    for table in ("records", "opened"):
        connection.execute(f"DELETE FROM {table} WHERE experiment = ?", [name])
