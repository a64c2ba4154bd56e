"""The conformance tests of stores, on the one that ships and on one that a user might write."""

import sqlite3

import pytest
from sqlite_store import SQLiteStore
from store_conformance import NEW, OLD, StoreConformance, coming

import dpbandits as dpb
from dpbandits.stores import FileStore


class TestFileStore(StoreConformance):
    def open(self, folder):
        return FileStore(folder / "policy.dpb")


class TestSQLiteStore(StoreConformance):
    def open(self, folder):
        return SQLiteStore(folder / "policies.db", "one")

    def test_policies_of_one_database_do_not_meet(self, tmp_path):
        first, second = (SQLiteStore(tmp_path / "policies.db", key) for key in ("one", "two"))
        first.save(b"one", OLD)
        second.save(b"two", NEW)
        first.announce(coming(0))
        with SQLiteStore(tmp_path / "policies.db", "two").claim(NEW):
            pass
        first.announce(coming(5))
        assert (first.announced(OLD), second.announced(NEW)) == ([coming(0), coming(5)], [])
        assert first.read() == b"one"

    def test_values_are_in_the_database_before_they_are_used(self, tmp_path):
        policy = self.policy(tmp_path)
        while policy.ledger.releases < 7:
            policy.update(1.0, policy.pull())
        rows = sqlite3.connect(tmp_path / "policies.db").execute("SELECT noisy FROM releases")
        assert [row[0] for row in rows][-1] == str(policy.session.state.wall.release.tolist())


def test_a_store_that_is_none_is_refused():
    for action in (dpb.papers.concentrated.AdaCUCB(2, budget=None).save, dpb.load):
        with pytest.raises(dpb.ArgumentError, match="path must name a file"):
            action(object())
