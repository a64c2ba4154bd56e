"""A store in a PostgreSQL database, for processes of many machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from ..errors import ArgumentError, ClaimError, MissingExtra, StateFileError, StoreError
from ..validation import real
from .databases import DatabasePlace, DatabaseStore, Shared, batch_refused, claim_refused
from .store import WHY, Batch, Held, Mark, Row

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as error:
    raise MissingExtra(
        "PostgreSQLStore needs psycopg: pip install 'dpbandits[postgresql]'"
    ) from error

VERSION = 1
SCHEMES = ("postgresql://", "postgres://")
AT_ONCE = 2**23  # bytes of rows in one statement
STREAMED = 200  # rows that a reader has at a time
# A network that is gone must not block others for long; an address may say otherwise.
PARAMETERS = {"connect_timeout": 10, "tcp_user_timeout": 10_000, "client_encoding": "utf8"}
SESSION = """SET synchronous_commit = on; SET default_transaction_isolation = 'read committed';
SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s'"""

TABLES = f"""
CREATE TABLE dpbandits_places (
    key text COLLATE "C" PRIMARY KEY, life text NOT NULL, number bigint NOT NULL,
    head bytea NOT NULL, until timestamptz NOT NULL
);
CREATE TABLE dpbandits_rows (
    place text COLLATE "C", kind text COLLATE "C", key bytea, content bytea NOT NULL,
    PRIMARY KEY (place, kind, key)
);
CREATE TABLE dpbandits_former (
    place text COLLATE "C", life text COLLATE "C", PRIMARY KEY (place, life)
);
CREATE TABLE dpbandits_version (version integer NOT NULL);
INSERT INTO dpbandits_version VALUES ({VERSION});
"""
ALONE = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'dpbandit', 'big')})"
EXISTS = "SELECT to_regclass('dpbandits_version') IS NOT NULL"
HELD = "SELECT life, number, head FROM dpbandits_places WHERE key = %s"
ROWS = "SELECT kind, key, content FROM dpbandits_rows WHERE place = %s ORDER BY kind, key"
LEFT = """SELECT life, number, extract(epoch FROM until - clock_timestamp())::float8
    FROM dpbandits_places WHERE key = %s"""
FOLLOW = """UPDATE dpbandits_places
    SET number = %(number)s, head = %(head)b, until = now() + %(lease)s * interval '1 second'
    WHERE key = %(key)s AND life = %(life)s AND number = %(number)s - 1 RETURNING 1"""
LOSE = """INSERT INTO dpbandits_former
    SELECT key, life FROM dpbandits_places WHERE key = %(key)s AND life <> %(life)s FOR UPDATE
    ON CONFLICT DO NOTHING"""
REPLACE = """INSERT INTO dpbandits_places AS old VALUES (
        %(key)s, %(life)s, %(number)s, %(head)b, now() + %(lease)s * interval '1 second'
    ) ON CONFLICT (key) DO UPDATE
    SET (life, number, head, until)
        = (excluded.life, excluded.number, excluded.head, excluded.until)
    WHERE CASE old.life WHEN excluded.life THEN old.number < excluded.number
    ELSE old.until <= now() AND NOT EXISTS (
        SELECT FROM dpbandits_former AS former
        WHERE former.place = excluded.key AND former.life = excluded.life
    ) END RETURNING 1"""
NEW = """INSERT INTO dpbandits_places VALUES (
        %(key)s, %(life)s, %(number)s, %(head)b, now() + %(lease)s * interval '1 second'
    ) ON CONFLICT (key) DO NOTHING RETURNING 1"""
CLAIM = """UPDATE dpbandits_places
    SET life = %(heir)s, until = now() + %(lease)s * interval '1 second'
    WHERE key = %(key)s AND life = %(life)s AND number = %(number)s AND until <= now()
    RETURNING 1"""
LOST = "INSERT INTO dpbandits_former VALUES (%s, %s) ON CONFLICT DO NOTHING"
RENEW = """UPDATE dpbandits_places SET until = now() + %s * interval '1 second'
    WHERE key = %s AND life = %s"""
RELEASE = "UPDATE dpbandits_places SET until = '-infinity' WHERE key = %s AND life = %s"
EMPTY = "DELETE FROM dpbandits_rows WHERE place = %s"
PUT = """INSERT INTO dpbandits_rows
    SELECT %s, new.* FROM unnest(%b::text[], %b::bytea[], %b::bytea[]) AS new
    ON CONFLICT (place, kind, key) DO UPDATE SET content = excluded.content"""
TAKE = """DELETE FROM dpbandits_rows AS old
    USING unnest(%b::text[], %b::bytea[]) AS gone (kind, key)
    WHERE old.place = %s AND old.kind = gone.kind AND old.key = gone.key"""


class PostgreSQLStore(DatabaseStore):
    """Places in one PostgreSQL database, for many machines.

    Tables are made where they are missing: ``dpbandits_places``, ``_rows``, ``_former`` and
    ``_version``, in the first schema of the search path.

    *Leases.*  The holder of a place has it until its lease ends, by the server's clock.  Each
    commit renews the lease.  Until then nobody else can claim the place; afterwards the holder
    may go on, until somebody does.  The lease only saves two live copies from taking the place
    from each other.  Safety does not rest on clocks: every commit checks in its own transaction
    who holds the place.

    *Standbys.*  A commit returns when it is on the server's disk (``synchronous_commit`` is on).
    An asynchronous standby that takes over may lack the last commits, and a policy that goes on
    there releases the same data again.  So let servers that may take over be named in
    ``synchronous_standby_names``, and fence the former server off.  A restored backup is as
    dangerous as an old standby.

    It needs the extra ``postgresql``.  Each process has one connection, and makes another after
    an error.

    Args:
        url: as libpq takes it, ``postgresql://user:password@host/database``.
        lease: seconds.

    Raises:
        ArgumentError: ``url`` is none, or ``lease`` is not positive.
        MissingExtra: psycopg is not installed.
    """

    def __init__(self, url: str, *, lease: float = 30.0) -> None:
        self._parameters = {**PARAMETERS, **_parameters(url)}
        self.lease = real("lease", lease, 0.0, strict=True)
        self._shared = Shared(self._connected)
        self._made = False  # whether the tables are there
        self._unsure = False  # whether a transaction may still be under way, on a lost connection

    def __str__(self) -> str:
        name = {"user": "", "host": "", "port": "", "dbname": "", **self._parameters}
        user = f"{name['user']}@" if name["user"] else ""
        port = f":{name['port']}" if name["port"] else ""
        return f"postgresql://{user}{quote(name['host'], safe=':')}{port}/{name['dbname']}"

    def keys(self) -> list[str]:
        with self._asking() as connection:
            if not _exists(connection, self):
                return []
            found = connection.execute("SELECT key FROM dpbandits_places ORDER BY key")
            return [key for (key,) in found]

    def close(self) -> None:
        self._shared.close()

    def _mark(self, key: str) -> Mark | None:
        with self._asking() as connection:
            if not _exists(connection, self):
                return None
            if self._unsure:
                with connection.transaction():  # waits until the lost transaction has ended
                    connection.execute("LOCK TABLE dpbandits_places IN SHARE MODE")
                self._unsure = False
            return _left(connection, key)[0]

    def _read(self, key: str) -> Held | None:
        with _told(self):
            connection = self._opened()
            try:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                found = None
                if _exists(connection, self):
                    found = connection.execute(HELD, [key], binary=True).fetchone()
            except BaseException:
                connection.close()
                raise
            if found is None:
                connection.close()
                return None
            life, number, head = found
            return Held(Mark(life, number), head, self._rows(connection, key))

    def _rows(self, connection: Any, key: str) -> Iterator[Row]:
        with _told(self), closing(connection), connection.cursor("dpbandits") as cursor:
            cursor.itersize = STREAMED
            cursor.execute(ROWS, [key], binary=True)
            yield from map(Row._make, cursor)

    def _claim(self, place: DatabasePlace, held: Mark, heir: str) -> ClaimError | None:
        given = {"key": place.key, "heir": heir, "lease": self.lease, **held._asdict()}
        with self._transaction() as connection:
            if connection.execute(CLAIM, given).fetchone() is not None:
                connection.execute(LOST, [place.key, held.life])
                return None
            found, seconds = _left(connection, place.key)
        return _still_leased(place, seconds) if found == held else claim_refused(place)

    def _write(
        self, batches: Sequence[tuple[DatabasePlace, Batch, str]]
    ) -> Sequence[ClaimError | None]:
        with self._transaction() as connection:
            return [self._attempt(connection, *one) for one in batches]

    def _attempt(
        self, connection: Any, place: DatabasePlace, batch: Batch, life: str
    ) -> ClaimError | None:
        """Write a batch, or nothing, and return its refusal."""
        try:
            with connection.transaction():
                self._take(connection, place, batch, life)
                _write_rows(connection, place.key, batch)
        except ClaimError as refused:
            return refused
        return None

    def _take(self, connection: Any, place: DatabasePlace, batch: Batch, life: str) -> None:
        """Write number and head, if the place takes the batch, and renew the lease."""
        given = {"key": place.key, "life": life, "number": batch.number, "head": batch.head}
        if batch.whole and not batch.new:
            connection.execute(LOSE, given)
        statement = NEW if batch.new else REPLACE if batch.whole else FOLLOW
        taken = connection.execute(statement, {**given, "lease": self.lease})
        if taken.fetchone() is None:
            held, seconds = _left(connection, place.key)
            if batch.whole and held is not None and held.life != life and seconds > 0:
                raise _still_leased(place, seconds)
            raise batch_refused(place, held, batch, life)

    def _release(self, key: str, life: str) -> None:
        with self._asking() as connection:
            if _exists(connection, self):
                connection.execute(RELEASE, [key, life])

    def _renew(self, key: str, life: str) -> None:
        with self._asking() as connection:
            if _exists(connection, self):
                connection.execute(RENEW, [self.lease, key, life])

    def _lease_left(self, key: str) -> float:
        with self._asking() as connection:
            return max(0.0, _left(connection, key)[1]) if _exists(connection, self) else 0.0

    # Connections ------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with _told(self), self._shared.alone() as connection:
            self._make_tables(connection)
            self._unsure = True
            with connection.pipeline(), connection.transaction():
                yield connection
            self._unsure = False

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        with _told(self), self._shared.alone() as connection:
            yield connection

    def _connected(self) -> Any:
        connection = self._opened()
        connection.execute(SESSION)
        return connection

    def _opened(self) -> Any:
        return psycopg.connect(**self._parameters, autocommit=True)

    def _make_tables(self, connection: Any) -> None:
        if self._made:
            return
        with connection.transaction():
            connection.execute(ALONE)  # two processes may come to this at the same time
            if not _exists(connection, self):
                connection.execute(TABLES)
        self._made = True


def _parameters(url: str) -> dict[str, Any]:
    """The parts of an address.  Messages do not show it: it may have a password."""
    if isinstance(url, str) and url.startswith(SCHEMES) and "#" not in url:
        try:
            return dict(conninfo_to_dict(url))
        except psycopg.Error:
            pass
    raise ArgumentError("url must be of the form postgresql://user@host/database", "url")


def _exists(connection: Any, store: PostgreSQLStore) -> bool:
    """Whether the tables are there, in the version of this package."""
    if not connection.execute(EXISTS).fetchone()[0]:
        return False
    (version,) = connection.execute("SELECT version FROM dpbandits_version").fetchone()
    if version != VERSION:
        raise StateFileError(f"{store} has version {version}; this dpbandits reads {VERSION}")
    return True


def _left(connection: Any, key: str) -> tuple[Mark | None, float]:
    """Who holds a place, and for how many seconds nobody else can claim it."""
    found = connection.execute(LEFT, [key]).fetchone()
    if found is None:
        return None, 0.0
    life, number, seconds = found
    return Mark(life, number), seconds


def _still_leased(place: DatabasePlace, seconds: float) -> ClaimError:
    return ClaimError(
        f"{place} is held by a process that was alive lately. If it has ended, try again in"
        f" {max(1, math.ceil(seconds))} s; {WHY}"
    )


def _write_rows(connection: Any, key: str, batch: Batch) -> None:
    if batch.whole:
        connection.execute(EMPTY, [key])
    for rows in _portions(row for row in batch.rows if row.content is not None):
        connection.execute(PUT, [key, *map(list, zip(*rows, strict=True))])
    gone = [row for row in batch.rows if row.content is None]
    if gone:
        connection.execute(TAKE, [[row.kind for row in gone], [row.key for row in gone], key])


def _portions(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Lists of rows, each small enough for one statement."""
    portion, size = [], 0
    for row in rows:
        portion.append(row)
        size += len(row.key) + len(row.content or b"") + 64
        if size >= AT_ONCE:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


@contextmanager
def _told(store: PostgreSQLStore) -> Iterator[None]:
    """Turn errors of PostgreSQL into the package's, without details, which would show keys."""
    try:
        yield
    except psycopg.errors.UndefinedTable:
        raise StateFileError(f"{store} lacks some of its tables") from None
    except psycopg.Error as error:
        text = error.diag.message_primary or str(error).partition("\n")[0]
        raise StoreError(f"{store} cannot be used: {text}") from None
