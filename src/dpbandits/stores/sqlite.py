"""A store in an SQLite database, for all processes of one machine."""

from __future__ import annotations

import ctypes
import gc
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from ..errors import ArgumentError, ClaimError, MissingExtra, StateFileError, StoreError
from ..validation import shown
from .databases import (
    DatabasePlace,
    DatabaseStore,
    Shared,
    batch_refused,
    claim_refused,
    keep_for_good,
)
from .files import sync_folder
from .store import Batch, Held, Mark, Row

try:
    import apsw
except ImportError as error:
    raise MissingExtra("SQLiteStore needs apsw: pip install 'dpbandits[serve]'") from error

APPLICATION = int.from_bytes(b"dpbs", "big")
VERSION = 1
PATIENCE = 10_000  # milliseconds, for which a process waits for another's transaction

TABLES = """
CREATE TABLE places (
    key TEXT PRIMARY KEY, life TEXT NOT NULL, number INTEGER NOT NULL, head BLOB NOT NULL
) STRICT;
CREATE TABLE rows (
    place TEXT, kind TEXT, key BLOB, content BLOB NOT NULL, PRIMARY KEY (place, kind, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE former (place TEXT, life TEXT, PRIMARY KEY (place, life)) STRICT, WITHOUT ROWID;
"""
HELD = "SELECT life, number, head FROM places WHERE key = ?"
ROWS = "SELECT kind, key, content FROM rows WHERE place = ? ORDER BY kind, key"
FOLLOW = """UPDATE places SET number = :number, head = :head
    WHERE key = :key AND life = :life AND number = :number - 1"""
LOSE = """INSERT OR IGNORE INTO former
    SELECT key, life FROM places WHERE key = :key AND life <> :life"""
REPLACE = """INSERT INTO places VALUES (:key, :life, :number, :head)
    ON CONFLICT (key) DO UPDATE
    SET life = excluded.life, number = excluded.number, head = excluded.head
    WHERE CASE life WHEN excluded.life THEN number < excluded.number
    ELSE NOT EXISTS (SELECT 1 FROM former WHERE (place, life) = (:key, :life)) END"""
NEW = "INSERT INTO places VALUES (:key, :life, :number, :head) ON CONFLICT (key) DO NOTHING"
CLAIM = "UPDATE places SET life = ? WHERE key = ? AND life = ? AND number = ?"
LOST = "INSERT OR IGNORE INTO former VALUES (?, ?)"
EMPTY = "DELETE FROM rows WHERE place = ?"
PUT = "REPLACE INTO rows VALUES (?, ?, ?, ?)"
TAKE = "DELETE FROM rows WHERE (place, kind, key) = (?, ?, ?)"


def refuse_defective(version: str) -> None:
    """Refuse an SQLite library that may lose transactions when it begins its log anew.

    This is the WAL-reset bug of 3.7.0 to 3.51.2, see https://sqlite.org/wal.html#walresetbug.
    3.52.0 was withdrawn.

    Raises:
        MissingExtra: the version is one of these.
    """
    number = tuple(map(int, version.split(".")[:3]))
    repaired = (3, 44, 6) <= number < (3, 45) or (3, 50, 7) <= number < (3, 51)
    if (number < (3, 51, 3) and not repaired) or number == (3, 52, 0):
        raise MissingExtra(
            f"SQLiteStore needs SQLite 3.51.3 or newer, but not 3.52.0; apsw has {version}:"
            " pip install --upgrade apsw"
        )


class SQLiteFile:
    """A database in a file on a local disk, for all threads of all processes of one machine.

    The first transaction makes the file, with mode 0600; ``-wal`` and ``-shm`` beside it belong to
    it.  Transactions of all processes follow each other, and each is on disk before it returns.
    Readers hinder nobody, and see one moment.  A copy that SQLite made without its write-ahead log,
    as by VACUUM INTO, gets one when it is opened.  It needs the extra ``serve``.

    A process that uses it must not open the file in another way, as by ``sqlite3`` or to copy it:
    when that is closed, the locks of the process are gone.  A process may fork, but what was forked
    during a read or a commit cannot use any database in SQLite.

    Args:
        path: the file.

    Raises:
        ArgumentError: ``path`` names no file.
        MissingExtra: apsw is not installed, or its SQLite can lose transactions.
    """

    application: ClassVar[int]
    version: ClassVar[int]
    tables: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        refuse_defective(apsw.sqlite_lib_version())
        if not isinstance(path, str | os.PathLike) or not Path(path).name:
            raise ArgumentError(f"path must name a file, got {shown(path)}", "path")
        self.path = Path(path).absolute()
        self._shared = Shared(self._connected, ends_at_fork=True)

    def __str__(self) -> str:
        return f"sqlite:///{quote(str(self.path))}"

    def close(self) -> None:
        """Close the connection; the next use makes another."""
        self._shared.close()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with _told(self), self._shared.alone() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if _has_moved(connection):
                raise StoreError(f"{self} cannot be used: its file was replaced, moved or removed")
            yield connection
            connection.execute("COMMIT")

    def _connected(self) -> Any:
        if not self.path.exists():
            self._create()
        connection = self._checked(apsw.SQLITE_OPEN_READWRITE)
        connection.execute("PRAGMA fullfsync = ON; PRAGMA synchronous = FULL")
        return connection

    def _create(self) -> None:
        """Make the database beside its place, where it appears complete or not at all."""
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        os.close(handle)
        try:
            with closing(_Connection(name)) as connection:
                connection.execute(self.tables)
                connection.pragma("application_id", self.application)
                connection.pragma("user_version", self.version)
                connection.execute("PRAGMA journal_mode = WAL")
            with suppress(FileExistsError):  # another process was faster
                os.link(name, self.path)
        finally:
            os.unlink(name)
        sync_folder(self.path.parent)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """Lend a connection that reads; None where there is no database."""
        connection = self._opened()
        try:
            yield connection
        finally:
            if connection is not None:
                connection.close()

    def _opened(self) -> Any:
        """A connection that reads, and leaves the log to those who write; or None."""
        if not self.path.exists():
            return None
        connection = self._checked(apsw.SQLITE_OPEN_READONLY)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.wal_autocheckpoint(0)
        return connection

    def _checked(self, flags: int) -> Any:
        if _Connection.inherited:
            raise StoreError(
                f"{self} cannot be used: this process was forked during a read or a commit. Start"
                " processes while the store is idle, or with the start method 'spawn'"
            )
        with ExitStack() as unless_kept:
            connection = unless_kept.enter_context(
                closing(_Connection(str(self.path), flags=flags))
            )
            connection.set_busy_timeout(PATIENCE)
            self._recognise(connection)
            if connection.pragma("journal_mode") != "wal":
                self._begin_log()
            unless_kept.pop_all()
        return connection

    def _begin_log(self) -> None:
        """Give a file a write-ahead log, which copies made by SQLite itself do not have.

        Without one a reader hinders those who write.
        """
        with (
            suppress(apsw.ReadOnlyError),  # then nobody writes
            closing(_Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection,
        ):
            connection.set_busy_timeout(PATIENCE)
            if connection.pragma("journal_mode", "wal") != "wal":
                raise StoreError(
                    f"{self} cannot be used: SQLite cannot keep a write-ahead log beside it"
                )

    def _recognise(self, connection: Any) -> None:
        found = connection.pragma("application_id"), connection.pragma("user_version")
        if found[0] != self.application:
            raise StateFileError(f"{self} is not a database of dpbandits")
        if found[1] != self.version:
            ours = self.version
            raise StateFileError(f"{self} has version {found[1]}; this dpbandits reads {ours}")


class SQLiteStore(SQLiteFile, DatabaseStore):
    """Places in one SQLite database; see ``SQLiteFile``."""

    application, version, tables = APPLICATION, VERSION, TABLES

    def keys(self) -> list[str]:
        with _told(self), self._reading() as connection:
            if connection is None:
                return []
            return [key for (key,) in connection.execute("SELECT key FROM places ORDER BY key")]

    def _mark(self, key: str) -> Mark | None:
        with _told(self), self._reading() as connection:
            return None if connection is None else _mark(connection, key)

    def _read(self, key: str) -> Held | None:
        with _told(self):
            connection = self._opened()
            if connection is None:
                return None
            with ExitStack() as unless_read:
                unless_read.enter_context(closing(connection))
                connection.execute("BEGIN")
                for life, number, head in connection.execute(HELD, [key]):
                    unless_read.pop_all()
                    return Held(Mark(life, number), head, self._rows(connection, key))
            return None

    def _rows(self, connection: Any, key: str) -> Iterator[Row]:
        with _told(self), closing(connection):
            yield from map(Row._make, connection.execute(ROWS, [key]))

    def _claim(self, place: DatabasePlace, held: Mark, heir: str) -> ClaimError | None:
        with self._transaction() as connection:
            connection.execute(CLAIM, [heir, place.key, *held])
            if not connection.changes():
                return claim_refused(place)
            connection.execute(LOST, [place.key, held.life])
        return None

    def _write(
        self, batches: Sequence[tuple[DatabasePlace, Batch, str]]
    ) -> Sequence[ClaimError | None]:
        with self._transaction() as connection:
            return [_attempt(connection, *one) for one in batches]

    def _release(self, key: str, life: str) -> None: ...


def _has_moved(connection: Any) -> bool:
    """Whether the open file is no longer the one at the path, where others would go on."""
    moved = ctypes.c_int()
    connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    return bool(moved.value)


class _Connection(apsw.Connection):
    """A connection that is known to be open.

    SQLite remembers which locks a process has on a file, and a forked process wrongly believes
    that it has those of its parent.  So no connection to any file may be open at a fork.
    """

    open: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()
    inherited = False  # whether one was open when this process was forked

    def __init__(self, *arguments: Any, **options: Any) -> None:
        _Connection.open.add(self)
        try:
            super().__init__(*arguments, **options)
        except BaseException:
            _Connection.open.discard(self)
            raise

    def close(self, *arguments: Any) -> None:
        super().close(*arguments)
        _Connection.open.discard(self)


def _before_fork() -> None:
    """Close what nobody can reach, such as the connection of a read that nobody finished."""
    if _Connection.open:
        gc.collect()


def _after_fork() -> None:
    for connection in list(_Connection.open):
        keep_for_good(connection)
        _Connection.inherited = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def _attempt(connection: Any, place: DatabasePlace, batch: Batch, life: str) -> ClaimError | None:
    """Write a batch, or nothing, and return its refusal."""
    connection.execute("SAVEPOINT batch")
    refused = None
    if _taken(connection, place.key, batch, life):
        _write_rows(connection, place.key, batch)
    else:
        connection.execute("ROLLBACK TO batch")
        refused = batch_refused(place, _mark(connection, place.key), batch, life)
    connection.execute("RELEASE batch")
    return refused


def _taken(connection: Any, key: str, batch: Batch, life: str) -> bool:
    """Whether the place takes the batch; if so, its head and number."""
    given = {"key": key, "life": life, "number": batch.number, "head": batch.head}
    if batch.whole and not batch.new:
        connection.execute(LOSE, given)
    connection.execute(NEW if batch.new else REPLACE if batch.whole else FOLLOW, given)
    return bool(connection.changes())


def _write_rows(connection: Any, key: str, batch: Batch) -> None:
    if batch.whole:
        connection.execute(EMPTY, [key])
    put = [(key, *row) for row in batch.rows if row.content is not None]
    gone = [(key, row.kind, row.key) for row in batch.rows if row.content is None]
    connection.executemany(PUT, put)
    connection.executemany(TAKE, gone)


def _mark(connection: Any, key: str) -> Mark | None:
    for life, number, _ in connection.execute(HELD, [key]):
        return Mark(life, number)
    return None


@contextmanager
def _told(store: SQLiteFile) -> Iterator[None]:
    """Turn errors of SQLite and of the system into the package's."""
    try:
        yield
    except StoreError:  # which is an OSError, too
        raise
    except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
        raise StateFileError(f"{store} is damaged, or no database: {error}") from error
    except apsw.BusyError as error:
        raise StoreError(
            f"{store} cannot be used: {error}. Another program has it open, and writes or holds a"
            " lock; end that program"
        ) from error
    except (apsw.Error, OSError) as error:
        raise StoreError(f"{store} cannot be used: {error}") from error
