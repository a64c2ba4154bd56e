"""A store in an SQLite database, which many policies share."""

import json
import sqlite3

import numpy as np

from dpbandits.errors import ClaimError
from dpbandits.privacy.ledger import Line
from dpbandits.stores import WHY, Announcement, Life, Store

TABLES = """CREATE TABLE IF NOT EXISTS lives (name PRIMARY KEY, saves, claimed);
CREATE TABLE IF NOT EXISTS snapshots (key PRIMARY KEY, life, content);
CREATE TABLE IF NOT EXISTS releases (life, saves, line, users, noisy, UNIQUE (life, saves, line));"""
READ = "SELECT content FROM snapshots WHERE key = ?"
SAVE = """INSERT INTO lives VALUES (?, ?, FALSE)
    ON CONFLICT (name) DO UPDATE SET saves = excluded.saves WHERE NOT claimed"""
ANNOUNCE = """REPLACE INTO releases SELECT name, saves, ?, ?, NULL
    FROM lives JOIN snapshots ON life = name WHERE key = ? AND name = ? AND NOT claimed"""
CONFIRM = "UPDATE releases SET noisy = ? WHERE rowid = last_insert_rowid()"
ANNOUNCED = "SELECT line, users FROM releases WHERE (life, saves) = (?, ?) ORDER BY rowid"
CLAIM = "UPDATE lives SET claimed = TRUE WHERE (name, saves) = (?, ?) AND NOT claimed"


class SQLiteStore(Store):
    """The place of one policy, its ``key``, in a database."""

    def __init__(self, path: str, key: str) -> None:
        self.key = key
        self._db = sqlite3.connect(path, isolation_level="IMMEDIATE", check_same_thread=False)
        self._db.executescript(TABLES)

    def read(self) -> bytes:
        for (content,) in self._db.execute(READ, [self.key]):
            return content
        raise FileNotFoundError(f"there is no policy {self.key!r}")

    def write(self, snapshot: bytes, life: Life) -> None:
        with self._change(SAVE, *life):  # both statements, or neither
            self._change("REPLACE INTO snapshots VALUES (?, ?, ?)", self.key, life.name, snapshot)

    def announce(self, coming: Announcement) -> None:
        with self._db:
            self._change(ANNOUNCE, *map(json.dumps, coming), self.key, self.life.name)

    def confirm(self, values: np.ndarray) -> None:
        with self._db:
            self._change(CONFIRM, json.dumps(values.tolist()))

    def announced(self, life: Life) -> list[Announcement]:
        return [
            Announcement(Line(*json.loads(line)), [(user, n) for user, n in json.loads(users)])
            for line, users in self._db.execute(ANNOUNCED, life)
        ]

    def claim(self, life: Life) -> sqlite3.Connection:
        return self._change(CLAIM, *life)  # so that a claim without a snapshot is undone

    def _change(self, statement: str, *given: object) -> sqlite3.Connection:
        if self._db.execute(statement, given).rowcount == 0:
            self._db.rollback()
            raise ClaimError(f"policy {self.key!r} carries on elsewhere, or was overwritten; {WHY}")
        return self._db
