"""Kills of a service under load (``serve_kills.py``), and what they would notice."""

import pytest
import serve_kills

pytest_plugins = ["tests.stores.postgresql_server"]
pytestmark = pytest.mark.long

# It does not write every fifth reply.
FORGETFUL = """
from dpbandits.stores.sqlite import SQLiteStore
real, left = SQLiteStore.commit_all, [5]
def commit_all(self, batches):
    return real(self, [(place, batch._replace(rows=[*filter(kept, batch.rows)]), life)
                       for place, batch, life in batches])
def kept(row):
    left[0] -= row.kind == "reply"
    return row.kind != "reply" or left[0] % 5
SQLiteStore.commit_all = commit_all
"""
# It answers before it commits.
HASTY = """
import time
from dpbandits.service import owner
def hasty(self, requests):
    touched = {one.key: self.experiments[one.key] for one in requests}
    def work():
        now = self._time()
        owner._deliver([(one.future, owner._result(one.call, touched[one.key], now))
                        for one in requests])
        time.sleep(0.02)
    self._in_batch(touched, work)
    return []
owner.Owner._serve_together = hasty
"""


def test_kills_under_load_lose_nothing(database):
    kills = [made for _, made, _ in serve_kills.run(20, database)]
    assert kills == [10, 20]


@pytest.mark.parametrize("fault", [FORGETFUL, HASTY])
def test_a_faulty_service_is_noticed(tmp_path, fault):
    store = f"sqlite:///{tmp_path}/policies.db"
    with pytest.raises(AssertionError):
        serve_kills.history(1, 4, store, tmp_path, lambda: None, fault)
