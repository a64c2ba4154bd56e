"""Places and stores: the conformance tests on those that ship, and what is special of each."""

import os
import sqlite3
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import apsw
import pytest

import dpbandits as dpb
from dpbandits.errors import ClaimError, MissingExtra, StateFileError, StoreError
from dpbandits.stores import FilePlace, FolderStore
from dpbandits.stores.addresses import place_at, store_at
from dpbandits.stores.databases import Shared
from dpbandits.stores.postgresql import PostgreSQLStore
from dpbandits.stores.sqlite import SQLiteStore, refuse_defective
from dpbandits.stores.store import Batch, Mark, Row
from dpbandits.testing import PlaceConformance, StoreConformance
from dpbandits.testing.places import begun

pytest_plugins = ["tests.stores.postgresql_server"]

ROW = Row("a", b"1", b"x")


class TestFilePlace(PlaceConformance):
    def open(self, folder):
        return FilePlace(folder / "policy.dpb")


class TestFolderStore(StoreConformance):
    def open_store(self, folder):
        return FolderStore(folder / "policies")


# SQLite ---------------------------------------------------------------------------------------


class TestSQLiteStore(StoreConformance):
    def open_store(self, folder):
        return SQLiteStore(folder / "policies.db")


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_a_database_is_its_owners_and_appears_with_the_first_commit(tmp_path):
    store = SQLiteStore(tmp_path / "policies.db")
    place = store.place("one")
    assert (place.mark(), place.read(), store.keys(), files(tmp_path)) == (None, None, [], [])
    before = os.umask(0)
    begun(place, ROW)
    os.umask(before)
    assert files(tmp_path) == ["policies.db", "policies.db-shm", "policies.db-wal"]
    for path in tmp_path.glob("policies.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    store.close()
    assert files(tmp_path) == ["policies.db"]
    assert place.mark() == Mark("old", 1)


def test_commits_wait_for_the_disk(tmp_path):
    store = SQLiteStore(tmp_path / "policies.db")
    begun(store.place("one"))
    with store._shared.alone() as connection:
        assert (connection.pragma("synchronous"), connection.pragma("journal_mode")) == (2, "wal")


def test_readers_leave_the_log_alone(tmp_path):
    writer = SQLiteStore(tmp_path / "policies.db")
    begun(writer.place("one"), ROW)
    log = (tmp_path / "policies.db-wal").read_bytes()
    place = SQLiteStore(tmp_path / "policies.db").place("one")
    assert (place.mark(), list(place.read().rows)) == (Mark("old", 1), [ROW])
    assert (tmp_path / "policies.db-wal").read_bytes() == log


@pytest.mark.parametrize("kind", ["other", "empty", "text", "newer"])
def test_a_database_of_something_else_is_refused_and_stays(kind, tmp_path):
    path = tmp_path / "policies.db"
    if kind == "other":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE places (key)")
    elif kind == "newer":
        store = SQLiteStore(path)
        begun(store.place("one"))
        store.close()
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 2")
        connection.close()
    else:
        path.write_bytes(b"no database" * 100 if kind == "text" else b"")
    before, place = path.read_bytes(), SQLiteStore(path).place("one")
    expected = {"newer": "has version 2; .* reads 1", "text": "is damaged, or no database"}
    for action in (place.mark, place.read, lambda: begun(place)):
        with pytest.raises(StateFileError, match=expected.get(kind, "not a database of dpbandits")):
            action()
    assert (path.read_bytes(), files(tmp_path)) == (before, ["policies.db"])


def backed_up(folder):
    """A copy of a store with two places, as SQLite makes it: without a write-ahead log."""
    original = SQLiteStore(folder / "original.db")
    for key in ("one", "two"):
        begun(original.place(key), *(Row("a", bytes([i]), b"x" * 3000) for i in range(99)))
    with original._shared.alone() as connection:
        connection.execute("VACUUM INTO ?", [str(folder / "copy.db")])
    original.close()
    assert (folder / "copy.db").read_bytes()[18:20] == b"\1\1"
    return SQLiteStore(folder / "copy.db")


@pytest.mark.parametrize("first", ["read", "mark", "keys", "commit"])
def test_a_backup_by_sqlite_is_read_and_written_at_once(first, tmp_path, monkeypatch):
    monkeypatch.setattr("dpbandits.stores.sqlite.PATIENCE", 50)
    store = backed_up(tmp_path)
    if first in ("mark", "keys"):
        assert store.place("one").mark() if first == "mark" else store.keys()
    if first == "commit":
        store.place("two").commit(Batch(2, b"second", []), "old")
    held = store.place("one").read()
    next(held.rows)  # a reader that is not done
    store.place("one").commit(Batch(2, b"second", []), "old")
    assert len(list(held.rows)) == 98
    assert (tmp_path / "copy.db").read_bytes()[18:20] == b"\2\2"


def test_a_backup_that_another_program_reads_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dpbandits.stores.sqlite.PATIENCE", 10)
    store = backed_up(tmp_path)
    other = apsw.Connection(str(store.path))
    other.execute("BEGIN; SELECT * FROM places").fetchall()
    for action in (store.keys, store.place("one").read, store.place("one").mark):
        with pytest.raises(StoreError, match=r"locked\. Another program has it open"):
            action()
    other.close()
    assert store.keys() == ["one", "two"]


def test_a_damaged_database_is_told(tmp_path):
    store = SQLiteStore(tmp_path / "policies.db")
    begun(store.place("one"), *(Row("a", bytes([key]), b"x" * 3000) for key in range(99)))
    store.close()
    content = bytearray((tmp_path / "policies.db").read_bytes())
    content[4096:] = b"\xee" * (len(content) - 4096)
    (tmp_path / "policies.db").write_bytes(content)
    with pytest.raises(StateFileError, match="damaged"):
        list(store.place("one").read().rows)


def test_a_file_that_cannot_be_used_is_told(tmp_path):
    place = SQLiteStore(tmp_path / "none" / "policies.db").place("one")
    with pytest.raises(StoreError, match="cannot be used"):
        begun(place)
    with pytest.raises(OSError, match="cannot be used"):
        begun(place)


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_a_file_that_was_replaced_or_removed_while_open_is_told(how, tmp_path):
    path, backup = tmp_path / "policies.db", tmp_path / "backup"
    begun(SQLiteStore(backup).place("one"), ROW).store.close()
    place = begun(SQLiteStore(path).place("one"))
    os.replace(backup, path) if how == "replaced" else path.unlink()
    (tmp_path / "policies.db-wal").unlink()
    (tmp_path / "policies.db-shm").unlink()
    with pytest.raises(
        StoreError, match=r"policies.db cannot be used: its file was replaced, moved or removed$"
    ):
        place.commit(Batch(2, b"second", []), "old")
    assert place.mark() == (Mark("old", 1) if how == "replaced" else None)


def test_who_waits_too_long_for_another_process_is_told_and_may_repeat(tmp_path, monkeypatch):
    monkeypatch.setattr("dpbandits.stores.sqlite.PATIENCE", 10)
    place = begun(SQLiteStore(tmp_path / "policies.db").place("one"))
    other = apsw.Connection(str(tmp_path / "policies.db"))
    other.execute("BEGIN IMMEDIATE")
    place.store.close()
    with pytest.raises(StoreError, match=r"locked|busy"):
        place.commit(Batch(2, b"second", []), "old")
    other.execute("ROLLBACK")
    assert place.mark() == Mark("old", 1)
    place.commit(Batch(2, b"second", []), "old")


@pytest.mark.parametrize(
    "version", ["3.7.0", "3.44.5", "3.45.0", "3.50.6", "3.51.0", "3.51.2", "3.52.0"]
)
def test_versions_that_lose_transactions_are_refused(version):
    with pytest.raises(MissingExtra, match=f"3.51.3 or newer, .* apsw has {version}"):
        refuse_defective(version)


def test_versions_that_lose_nothing_are_taken():
    for version in ["3.44.6", "3.44.7", "3.50.7", "3.51.3", "3.52.1", "3.53.0", "4.0.0"]:
        refuse_defective(version)
    refuse_defective(apsw.sqlite_lib_version())


# PostgreSQL -----------------------------------------------------------------------------------


class TestPostgreSQLStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def _database(self, database):
        self.database, self.stores = database, []
        yield
        for store in self.stores:
            store.close()

    def open_store(self, folder):
        self.stores.append(PostgreSQLStore(self.database))
        return self.stores[-1]


def through(wire, database):
    """The address of a database by way of the wire."""
    head, _, options = database.partition("?host=")
    return f"{head}?host={wire.folder}&{options.partition('&')[2]}"


def test_readers_make_no_tables(database):
    store = PostgreSQLStore(database)
    place = store.place("one")
    place.release("old")
    assert (place.mark(), place.read(), store.keys()) == (None, None, [])
    with store._shared.alone() as connection:
        found = connection.execute("SELECT to_regclass('dpbandits_places')").fetchone()
    assert found == (None,)
    store.close()


def test_a_holder_that_was_alive_lately_is_not_replaced(database):
    place = begun(PostgreSQLStore(database, lease=100).place("one"))
    with pytest.raises(ClaimError, match=r"alive lately\. .* again in (99|100) s"):
        place.claim(Mark("old", 1), "new")
    with pytest.raises(ClaimError, match="alive lately"):
        place.commit(Batch(1, b"other", [], whole=True), "other")
    place.release("new")  # which does not hold it
    with pytest.raises(ClaimError, match="alive lately"):
        place.claim(Mark("old", 1), "new")
    place.release("old")
    place.claim(Mark("old", 1), "new")
    with pytest.raises(ClaimError, match="alive lately"):
        place.claim(Mark("new", 1), "newer")
    with pytest.raises(ClaimError, match="has changed since it was read"):
        place.claim(Mark("old", 1), "newer")
    place.store.close()


def test_a_lease_ends_by_itself_and_its_holder_may_go_on_until_somebody_claims(database):
    place = begun(PostgreSQLStore(database, lease=0.05).place("one"))
    threading.Event().wait(0.1)
    place.commit(Batch(2, b"second", []), "old")
    threading.Event().wait(0.1)
    place.claim(Mark("old", 2), "new")
    with pytest.raises(ClaimError, match="a copy of this one"):
        place.commit(Batch(3, b"third", []), "old")
    place.store.close()


def test_a_holder_that_says_so_keeps_its_lease_without_a_commit(database):
    store = PostgreSQLStore(database, lease=0.05)
    place, lost = begun(store.place("one")), begun(store.place("two"))
    store.lease = 100.0
    place.renew("old")
    lost.renew("somebody else")
    threading.Event().wait(0.1)
    assert 90.0 < place.lease_left <= 100.0
    assert lost.lease_left == 0.0
    with pytest.raises(ClaimError, match="alive lately"):
        place.claim(Mark("old", 1), "new")
    lost.claim(Mark("old", 1), "new")
    store.close()


@pytest.mark.parametrize("number", [1, 2])
def test_a_commit_whose_answer_is_lost_was_made_and_mark_tells(number, database, wire):
    store = PostgreSQLStore(through(wire, database))
    place = store.place("one")
    begun(place if number == 2 else store.place("two"))  # which makes the tables
    wire.torn_by = b"COMMIT"
    with pytest.raises(StoreError, match="cannot be used"):
        place.commit(Batch(number, b"head", [ROW], whole=number == 1), "old")
    assert wire.torn_by is None
    assert place.mark() == Mark("old", number)
    assert list(place.read().rows) == [ROW]
    place.commit(Batch(number + 1, b"head", []), "old")
    store.close()


def test_a_commit_that_never_arrives_is_not_made_and_is_repeated(database, wire):
    place = begun(PostgreSQLStore(through(wire, database)).place("one"))
    wire.torn_by = b"dpbandits_places"
    batch = Batch(2, b"head", [ROW])
    with pytest.raises(StoreError, match="cannot be used"):
        place.commit(batch, "old")
    assert place.mark() == Mark("old", 1)
    place.commit(batch, "old")
    place.store.close()


def test_mark_waits_for_a_commit_under_way_whose_connection_was_lost(database):
    import psycopg

    place = begun(PostgreSQLStore(database).place("one"))
    place.store._unsure = True
    with psycopg.connect(database) as lost:
        lost.execute("UPDATE dpbandits_places SET number = 2")
        timer = threading.Timer(0.3, lost.commit)
        timer.start()
        assert place.mark() == Mark("old", 2)
        timer.join()
    place.store.close()


def test_a_server_that_is_away_is_told_and_no_message_has_the_password(tmp_path):
    store = PostgreSQLStore(f"postgresql://ann:s3cret@/db?host={tmp_path}&port=5433")
    assert str(store.place("one")) == (
        f"postgresql://ann@{str(tmp_path).replace('/', '%2F')}:5433/db#one"
    )
    for action in (store.place("one").mark, lambda: begun(store.place("one")), store.keys):
        with pytest.raises(StoreError, match="cannot be used") as caught:
            action()
        assert "s3cret" not in str(caught.value) + repr(store) + str(caught.value.__cause__)


def test_commits_wait_for_the_disk_of_the_server(database):
    store = PostgreSQLStore(database.replace("options=", "options=-csynchronous_commit%3Doff%20"))
    begun(store.place("one"))
    with store._shared.alone() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    store.close()


def test_tables_of_a_newer_version_are_refused(database):
    store = PostgreSQLStore(database)
    begun(store.place("one"))
    with store._shared.alone() as connection:
        connection.execute("UPDATE dpbandits_version SET version = 2")
    place = PostgreSQLStore(database).place("one")
    for action in (place.mark, place.read, lambda: begun(place)):
        with pytest.raises(StateFileError, match=r"has version 2; .* reads 1"):
            action()
    store.close()


def test_batches_larger_than_one_statement_are_written(database, monkeypatch):
    monkeypatch.setattr("dpbandits.stores.postgresql.AT_ONCE", 500)
    rows = [Row("a", bytes([key]), b"x" * 100) for key in range(50)]
    place = begun(PostgreSQLStore(database).place("one"), *rows)
    assert list(place.read().rows) == rows
    place.store.close()


# Connections ----------------------------------------------------------------------------------


class Connection:
    closed_by: ClassVar[list[int]] = []

    def close(self):
        self.closed_by.append(os.getpid())


@pytest.fixture(autouse=True)
def nothing_closed():
    Connection.closed_by.clear()


def test_a_forked_process_leaves_its_parents_connection_alone():
    shared = Shared(Connection)
    with shared.alone() as before:  # as another thread may have it at the time
        process = os.fork()
        if process == 0:
            with shared.alone() as own:
                os._exit(0 if own is not before and Connection.closed_by == [] else 1)
        assert os.waitpid(process, 0)[1] == 0
    with shared.alone() as after:
        assert after is before
    shared.close()
    assert Connection.closed_by == [os.getpid()]


def test_a_connection_that_ends_at_a_fork_is_closed_before_it():
    shared = Shared(Connection, ends_at_fork=True)
    with shared.alone() as before:
        pass
    process = os.fork()
    if process == 0:
        os._exit(0 if Connection.closed_by == [os.getppid()] else 1)
    assert os.waitpid(process, 0)[1] == 0
    with shared.alone() as after:
        assert after is not before


def test_a_process_that_was_forked_during_a_read_is_told(tmp_path):
    place = begun(SQLiteStore(tmp_path / "policies.db").place("one"), ROW, ROW._replace(key=b"2"))
    held = place.read()
    process = os.fork()
    if process == 0:
        for action in (place.mark, lambda: place.commit(Batch(2, b"", []), "old")):
            try:
                action()
            except StoreError as error:
                if "forked during a read or a commit" in str(error):
                    continue
            os._exit(1)
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
    assert len(list(held.rows)) == 2
    place.commit(Batch(2, b"", []), "old")


@pytest.mark.parametrize("kind", ["text", "empty", "missing"])
def test_a_file_that_was_refused_hinders_no_forked_process(kind, tmp_path):
    wrong = tmp_path / "wrong" / "policies.db"
    if kind != "missing":
        wrong.parent.mkdir()
        wrong.write_bytes(b"no database" * 100 if kind == "text" else b"")
    kept = []  # errors hold the frames of what failed
    for action in (
        SQLiteStore(wrong).place("one").read,
        lambda: begun(SQLiteStore(wrong).place("one")),
    ):
        try:
            action()
        except (OSError, StateFileError, StoreError) as error:
            kept.append(error)
    assert kept
    assert_a_forked_process_commits(tmp_path / "policies.db")


def test_a_read_that_nobody_finished_hinders_no_forked_process(tmp_path):
    place = begun(SQLiteStore(tmp_path / "policies.db").place("one"), ROW, ROW._replace(key=b"2"))
    held = place.read()
    next(held.rows)
    circle = [held]
    circle.append(circle)
    del held, circle
    assert_a_forked_process_commits(tmp_path / "others.db")


def assert_a_forked_process_commits(path):
    process = os.fork()
    if process == 0:
        with suppress(StoreError):
            begun(SQLiteStore(path).place("one"), ROW)
            os._exit(0)
        os._exit(1)
    assert os.waitpid(process, 0)[1] == 0


def test_after_an_error_a_connection_is_made_again():
    shared = Shared(Connection)
    with pytest.raises(KeyError), shared.alone() as before:
        raise KeyError
    with shared.alone() as after:
        assert after is not before


# Addresses ------------------------------------------------------------------------------------


def test_addresses_name_places_and_stores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = place_at("sqlite:///a%23b.db#Zwei%20%2F%202")
    assert (place.store.path, place.key) == (tmp_path / "a#b.db", "Zwei / 2")
    begun(place, ROW)
    assert place_at(f"sqlite:///{tmp_path}/a%23b.db#Zwei%20%2F%202").mark() == Mark("old", 1)
    assert store_at(str(place.store)).keys() == ["Zwei / 2"]
    assert place_at(str(place)).mark() == Mark("old", 1)
    assert (
        str(place_at("postgresql://ann:s3cret@host:99/db#one")) == "postgresql://ann@host:99/db#one"
    )
    assert str(store_at("postgres://ann@host/db")) == "postgresql://ann@host/db"
    assert (place_at(place), store_at(place.store)) == (place, place.store)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (7, "^where must name a file, or a place .*, got 7$"),
        (b"file", "^where must name a file, or a place .*, got b'file'$"),
        ("", "^where must name a file, or a place .*, got ''$"),
        (
            "sqlite:///policies.db",
            "^where must name a place of the store: add # and the policy's key, ",
        ),
        (
            "sqlite:///policies.db#",
            "^where must name a place of the store: add # and the policy's key, ",
        ),
        ("sqlite:///#one", "^path must name a file, got ''$"),
        (
            "mysql://ann:s3cret@host/db#one",
            "^an address must be a path, or begin with sqlite:/// or",
        ),
        ("postgresql://ann:s3cret@[h/db#one", "^url must be of the form postgresql://user@host"),
        ("sqlite:///policies.db#" + "x" * 61, "^key must be a text of 1 to 60 printable"),
    ],
)
def test_what_is_no_address_of_a_place_is_refused(where, message):
    with pytest.raises(dpb.ArgumentError, match=message) as caught:
        place_at(where)
    assert "s3cret" not in str(caught.value)


def test_what_is_no_address_of_a_store_is_refused():
    for where, message in ((7, "a folder, or a database"), ("sqlite:///a.db#b", "without '#'")):
        with pytest.raises(dpb.ArgumentError, match=f"^where must name .*{message}"):
            store_at(where)


def test_paths_name_files_and_folders(tmp_path):
    assert isinstance(place_at(tmp_path / "policy.dpb"), FilePlace)
    assert isinstance(store_at(str(tmp_path / "policies")), FolderStore)
    assert isinstance(place_at(Path("policy.dpb")), FilePlace)


def test_batches_of_another_store_are_refused(tmp_path):
    one, two = (SQLiteStore(tmp_path / name) for name in ("one.db", "two.db"))
    with pytest.raises(dpb.ArgumentError, match=r"^batches must belong to places of this store"):
        one.commit_all([(two.place("one"), Batch(1, b"head", [], whole=True), "old")])


def test_a_policy_that_was_closed_is_loaded_before_its_lease_ends(database):
    place = PostgreSQLStore(database, lease=1000.0).place("one")
    policy = dpb.bandit(2, budget=dpb.ZCDP(1.0), seed=1)
    policy.save(place)
    policy.update(1.0, policy.pull())
    for take_over in (dpb.load, dpb.restore):
        with pytest.raises(ClaimError, match="try again in"):
            take_over(place)
    policy.close()
    loaded = dpb.load(place)
    assert loaded.rounds == 1
    with pytest.raises(ClaimError):
        policy.pull()
