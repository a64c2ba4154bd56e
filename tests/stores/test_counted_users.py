"""Counts of users survive: a save, a load, a release that fails, and a crash at any moment of one."""

import numpy as np
import pytest
from clinic import CONTEXTS
from sqlite_store import SQLiteStore

import dpbandits as dpb
from dpbandits.stores import FileStore

MOST = 3
OPENED = {
    "file": lambda folder: FileStore(folder / "a"),
    "sqlite": lambda folder: SQLiteStore(folder / "a", "one"),
}


class Crash(BaseException):
    """After which a process does nothing more."""


def episodic(**options):
    return dpb.papers.concentrated.AdaCUCB(
        3, **{"budget": dpb.ZCDP(0.5), "seed": 1, "max_rounds": MOST} | options
    )


def at_once(**options):
    given = {"budget": dpb.ZCDP(0.5), "horizon": 500, "seed": 1, "max_rounds": MOST} | options
    return dpb.algorithms.PrivateLinUCB(3, 2, **given)


MADE = pytest.mark.parametrize("make", [episodic, at_once])


def pull(policy, user):
    number = policy.session.rounds.pulls
    contexts = (
        CONTEXTS[number % len(CONTEXTS)]
        if isinstance(policy, dpb.algorithms.PrivateLinUCB)
        else None
    )
    return policy.pull(contexts, user=user)


def play(policy, users, recorded=None):
    """Let users come; how many of their rounds have been recorded, added to ``recorded``."""
    recorded = {} if recorded is None else recorded
    for user in users:
        decision = pull(policy, user)
        recorded[user] = recorded.get(user, 0) + decision.recorded
        policy.update(0.5, decision)
    return recorded


def some(rounds, seed=0):
    """Users who come back: of names and of numbers."""
    who = ["ann", "bob", 7, "7", -(10**30), "ünal"] + [f"user {i}" for i in range(30)]
    return [who[i] for i in np.random.default_rng(seed).integers(0, len(who), rounds)]


def counts(policy):
    return dict(policy.session.rounds.users.recorded)


@MADE
@pytest.mark.parametrize("store", OPENED)
def test_counts_are_saved_and_loaded(make, store, tmp_path):
    policy, twin = make(), make()
    recorded = play(policy, some(40))
    play(twin, some(40))
    policy.save(OPENED[store](tmp_path))
    loaded = dpb.load(OPENED[store](tmp_path))
    assert counts(loaded) == counts(policy) == {u: n for u, n in recorded.items() if n}
    assert loaded.session.rounds.users.unreleased == policy.session.rounds.users.unreleased
    assert loaded.ledger.spent() == policy.ledger.spent()
    assert play(loaded, some(40, seed=1)) == play(twin, some(40, seed=1))
    assert loaded.max_rounds == MOST


@MADE
@pytest.mark.parametrize("store", OPENED)
@pytest.mark.parametrize("step", ["announce", "confirm"])
def test_no_record_is_released_whose_round_a_crash_forgets(make, store, step, tmp_path):
    policy = make()
    recorded = play(policy, some(20))
    policy.save(OPENED[store](tmp_path))
    play(policy, some(20, seed=1), recorded)
    used = policy.session.gate.store
    happened = getattr(used, step)

    def crashing(*arguments):
        happened(*arguments) if step == "announce" else None
        raise Crash

    setattr(used, step, crashing)
    with pytest.raises(Crash):
        play(policy, some(200, seed=2), recorded)
    del policy
    survivor = dpb.load(OPENED[store](tmp_path))
    # All are counted: their records were released, or may be in the release that the crash ended.
    assert counts(survivor) == {user: n for user, n in recorded.items() if n}
    assert survivor.session.rounds.users.unreleased == set()
    total = play(survivor, some(200, seed=3), recorded)
    assert max(total.values()) == MOST
    assert survivor.ledger.total() <= survivor.meter.limit * (1 + 1e-9)


def test_a_crash_between_releases_forgets_only_rounds_that_were_not_released(tmp_path):
    policy = episodic()
    policy.save(tmp_path / "a")
    seen = last = {}
    for number in range(60):
        before = policy.ledger.releases
        play(policy, [number % 20])
        if policy.ledger.releases > before:
            # what was recorded before this pull, and is released with it
            seen = last
        last = counts(policy)
    del policy
    assert counts(dpb.load(tmp_path / "a")) == seen
    assert sum(seen.values()) > 10


@MADE
@pytest.mark.parametrize("step", ["begin", "done"])
def test_a_release_that_fails_keeps_the_counts(make, step, tmp_path, monkeypatch):
    policy = make()
    play(policy, some(20))
    policy.save(tmp_path / "a")
    append, failed = FileStore._append, []

    def failing(store, entry):
        if step in entry and not failed:
            failed.append(entry)
            raise OSError("no space left on device")
        append(store, entry)

    monkeypatch.setattr(FileStore, "_append", failing)
    users = iter(some(100, seed=1))
    with pytest.raises(OSError, match="no space"):
        play(policy, users)
    known = counts(policy)
    if policy.card.learns_at_once:
        policy.update(0.5)  # it can be given again
    play(policy, users)
    assert all(counts(policy)[user] >= n for user, n in known.items())
    assert max(counts(policy).values()) == MOST
    made = policy.ledger.releases
    del policy
    survivor = dpb.load(tmp_path / "a")
    assert survivor.ledger.releases == made
    assert all(counts(survivor)[user] >= n for user, n in known.items())


def test_secure_noise_counts_alike(tmp_path):
    policy = episodic(noise="secure", seed=None)
    policy.save(tmp_path / "a")
    play(policy, some(60))
    known, waiting = counts(policy), policy.session.rounds.users.unreleased
    del policy
    survivor = dpb.load(tmp_path / "a")
    assert all(
        counts(survivor).get(user, 0) >= n - ((-1, user) in waiting) for user, n in known.items()
    )
