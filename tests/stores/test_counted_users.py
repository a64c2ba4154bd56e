"""Counts of users survive: a save, a load, a release that fails, and a crash at any moment of one."""

import numpy as np
import pytest
from clinic import CONTEXTS, Recording, inside, lose_a_draw

import dpbandits as dpb
from dpbandits.stores import FilePlace, FolderStore

MOST = 3
OPENED = {
    "file": lambda folder: FilePlace(folder / "a"),
    "folder": lambda folder: FolderStore(folder / "many").place("one"),
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
    """How many rounds of each user were recorded, by alias."""
    return {alias: one.rounds for alias, one in policy.session.rounds.users.seen.items()}


def told(policy, recorded):
    """The same of our own count, of the users who have any."""
    return {policy.session.seal.alias(user): n for user, n in recorded.items() if n}


@MADE
@pytest.mark.parametrize("store", OPENED)
def test_counts_are_saved_and_loaded(make, store, tmp_path):
    policy, twin = make(), make()
    recorded = play(policy, some(20))
    policy.save(OPENED[store](tmp_path))
    play(policy, some(40)[20:], recorded)
    play(twin, some(40))
    seen, spent = dict(policy.session.rounds.users.seen), policy.ledger.spent()
    del policy
    loaded = dpb.load(OPENED[store](tmp_path))
    assert counts(loaded) == told(loaded, recorded)
    assert loaded.session.rounds.users.seen == seen
    assert loaded.session.rounds.users.most == max(recorded.values())
    assert loaded.ledger.spent() == spent
    assert play(loaded, some(40, seed=1)) == play(twin, some(40, seed=1))
    assert loaded.max_rounds == MOST


@MADE
@pytest.mark.parametrize("store", OPENED)
@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("releasing", [False, True])
def test_no_record_is_kept_whose_round_a_crash_forgets(make, store, made, releasing, tmp_path):
    """Killed before or after a commit: the count and the pull are there, or neither is."""
    policy = make()
    recorded = play(policy, some(20))
    place = Recording(OPENED[store](tmp_path))
    policy.save(place)
    before = [policy.ledger.releases, policy.rounds, counts(policy)]

    def crashing(moment):
        if moment == ("after" if made else "before"):
            released, rounds = inside(policy)  # noqa: F821
            if released > before[0] if releasing else rounds > before[1]:
                raise Crash
        if moment == "after":
            before[:] = *inside(policy), counts(policy)  # noqa: F821

    place.looked = crashing
    with pytest.raises(Crash):
        play(policy, some(200, seed=2), recorded)
    expected = counts(policy) if made else before[2]
    released, rounds = inside(policy) if made else before[:2]
    del policy
    survivor = dpb.load(OPENED[store](tmp_path))
    assert counts(survivor) == expected
    assert (survivor.rounds, survivor.ledger.releases) == (rounds, released)
    for user, n in counts(survivor).items():
        assert n >= told(survivor, recorded).get(user, 0)
    play(survivor, some(200, seed=3))
    assert max(counts(survivor).values()) == MOST
    assert survivor.ledger.total() <= survivor.meter.limit * (1 + 1e-9)


@MADE
def test_a_commit_that_fails_keeps_the_counts(make, tmp_path):
    policy = make()
    place = Recording(FilePlace(tmp_path / "a"))
    policy.save(place)
    play(policy, some(20))
    place.failing, known = 1, counts(policy)
    with pytest.raises(dpb.errors.StoreError, match="no space"):
        pull(policy, "somebody new")
    assert counts(policy) == known | {policy.session.seal.alias("somebody new"): 1}
    assert not pull(policy, "somebody new").recorded or policy.card.learns_at_once
    play(policy, some(100, seed=1))
    now = counts(policy)
    assert max(now.values()) == MOST
    del policy
    assert counts(dpb.load(tmp_path / "a")) == now


@MADE
@pytest.mark.parametrize("saved", [False, True])
def test_a_draw_that_is_lost_keeps_the_counts(make, saved, tmp_path, monkeypatch):
    """Her record may have been seen, so she may not give another for it."""
    policy = make(noise="secure", seed=None)
    if saved:
        policy.save(tmp_path / "a")
    recorded = play(policy, some(10))
    with monkeypatch.context() as patch:
        lose_a_draw(patch, policy)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            for user in some(100, seed=1):
                decision = pull(policy, user)
                recorded[user] = recorded.get(user, 0) + decision.recorded
                policy.update(0.5, decision)
    assert all(counts(policy)[user] >= n for user, n in told(policy, recorded).items())
    # No record of anybody waits for a release: each may be in the next one.
    first = policy.session.state.wall.first_unreleased[-1]
    waiting = [last for one in policy.session.rounds.users.seen.values() for _, last in one.latest]
    assert not [last for last in waiting if last >= first]
    play(policy, some(300, seed=2))
    now = counts(policy)
    assert max(now.values()) == MOST
    assert policy.ledger.total() <= policy.meter.limit * (1 + 1e-9)
    if saved:
        del policy
        assert counts(dpb.load(tmp_path / "a")) == now


def test_a_user_waits_for_the_release_of_her_record_also_after_a_crash(tmp_path):
    policy = episodic()
    policy.save(tmp_path / "a")
    while policy.session.rounds.left < 4:
        play(policy, [f"stranger {policy.rounds}"])
    assert pull(policy, "ann").recorded
    del policy
    survivor = dpb.load(tmp_path / "a")
    assert not pull(survivor, "ann").recorded
    assert pull(survivor, "bob").recorded
    made = survivor.ledger.releases
    while survivor.ledger.releases == made:
        play(survivor, [survivor.session.rounds.pulls])
    assert pull(survivor, "ann").recorded


def test_no_name_is_in_the_files(tmp_path):
    policy = episodic()
    policy.save(tmp_path / "a")
    play(policy, ["Ms. Example", 31415926535])
    content = (tmp_path / "a").read_bytes() + (tmp_path / "a.journal").read_bytes()
    assert policy.session.seal.alias("Ms. Example") in content
    for name in (b"Example", b"31415926535", (31415926535).to_bytes(5, "little")):
        assert name not in content
