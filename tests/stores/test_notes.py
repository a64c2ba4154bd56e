"""What a service keeps with a policy: durable with it, sealed where contexts are private."""

from contextlib import suppress

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.errors import StateFileError, StoreError
from dpbandits.policies.batches import batch_of
from dpbandits.stores import FilePlace
from dpbandits.stores.sqlite import SQLiteStore

BUDGET = dpb.ZCDP(0.5)
MARK = b"something that nobody else writes"


@pytest.fixture(params=["file", "sqlite"])
def place(request, tmp_path):
    if request.param == "file":
        return FilePlace(tmp_path / "policy")
    return SQLiteStore(tmp_path / "policies.db").place("one")


def test_notes_are_as_durable_as_decisions(place):
    policy = dpb.bandit(2, BUDGET, seed=1)
    policy.notes["service", b"declared"] = b"early"
    policy.save(place)
    with policy.batch():
        policy.notes["reply", b"1"] = b"first"
        policy.notes["reply", b"2"] = b"second"
        policy.update(1.0, policy.pull())
    with policy.batch():
        del policy.notes["reply", b"1"]
        policy.notes["service", b"declared"] = b"late"
    kept = dict(policy.notes)
    del policy
    again = dpb.load(place)
    assert (
        dict(again.notes)
        == kept
        == {
            ("service", b"declared"): b"late",
            ("reply", b"2"): b"second",
        }
    )


def test_a_fold_of_the_journal_keeps_notes(tmp_path):
    policy = dpb.bandit(2, BUDGET, seed=1)
    place = FilePlace(tmp_path / "policy")
    policy.save(place)
    with policy.batch():
        policy.notes["reply", b"1"] = MARK
    policy.save(place)  # a whole batch
    del policy
    assert dict(dpb.load(place).notes) == {("reply", b"1"): MARK}


@pytest.mark.parametrize("hidden", [False, True], ids=["public", "private"])
def test_replies_are_sealed_where_contexts_are_private(tmp_path, hidden):
    words = {"protects": "contexts and rewards"} if hidden else {}
    policy = dpb.bandit(3, BUDGET, features=2, horizon=500, seed=1, **words)
    store = SQLiteStore(tmp_path / "policies.db")
    policy.save(store.place("one"))
    with policy.batch():
        policy.notes["reply", b"1"] = MARK
        policy.pull(np.zeros((3, 2)))
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert (MARK in written) != hidden
    del policy
    assert dpb.load(store.place("one")).notes["reply", b"1"] == MARK


def test_restoring_keeps_facts_and_drops_replies(place):
    policy = dpb.bandit(2, BUDGET, seed=1)
    policy.save(place)
    with policy.batch():
        policy.notes["service", b"declared"] = b"fact"
        policy.notes["reply", b"1"] = MARK
    del policy
    assert dict(dpb.restore(place).notes) == {("service", b"declared"): b"fact"}


def test_a_batch_says_of_each_policy_whether_it_was_kept(tmp_path):
    first, second = (dpb.bandit(2, BUDGET, seed=seed) for seed in (1, 2))
    first.save(SQLiteStore(tmp_path / "a.db").place("one"))
    broken = SQLiteStore(tmp_path / "b.db")
    second.save(broken.place("one"))
    broken.close()
    (tmp_path / "b.db").rename(tmp_path / "c.db")
    (tmp_path / "b.db").mkdir()  # where no database can be
    with suppress(StoreError, StateFileError), batch_of([first, second]) as outcomes:
        first.pull()
        second.pull()
    assert outcomes[0] is None
    assert isinstance(outcomes[1], StoreError | StateFileError)
    assert dpb.inspect(first.kept_in).rounds == 1
