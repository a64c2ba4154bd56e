"""What every store has to do.  A store of your own is tested by a subclass that opens it:

    class TestMine(StoreConformance):
        def open(self, folder):
            return MyStore(folder / "mine")

Every call of ``open`` with the same folder is another process's look at the same place.
"""

import threading
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.privacy.channels import GAUSSIAN
from dpbandits.privacy.ledger import WHOLE, Line
from dpbandits.stores import Announcement, Life, Store, User

OLD, NEW = Life("old", 1), Life("new", 1)


def coming(first: int, *users: tuple[User, int]) -> Announcement:
    return Announcement(Line(first, first + 4, WHOLE, GAUSSIAN, 1.0, 2.0, 3), list(users))


def played_until(
    policy: dpb.papers.concentrated.AdaCUCB, releases: int
) -> dpb.papers.concentrated.AdaCUCB:
    while policy.ledger.releases < releases:
        policy.update(1.0, policy.pull())
    return policy


class Crash(BaseException):
    """After which a process does nothing more."""


class StoreConformance(ABC):
    """The tests of one kind of store."""

    @abstractmethod
    def open(self, folder: Path) -> Store:
        """A new object for the one place in the folder."""

    # The store by itself ------------------------------------------------------------------------

    def test_nothing_is_read_before_the_first_save(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            self.open(tmp_path).read()

    def test_the_last_snapshot_is_read_by_everybody(self, tmp_path):
        store = self.open(tmp_path)
        assert store.life is None
        for saves, content in enumerate((b"\x00 one", b"\xff two"), 1):
            store.save(content, Life("old", saves))
            assert store.life == Life("old", saves)
            assert store.read() == self.open(tmp_path).read() == content

    def test_announcements_belong_to_the_last_snapshot(self, tmp_path):
        store = self.open(tmp_path)
        store.save(b"one", OLD)
        assert store.announced(OLD) == []
        store.announce(coming(0))
        store.confirm(np.array([0.5, -1e300]))
        store.announce(coming(5))  # and a crash before it is confirmed
        assert self.open(tmp_path).announced(OLD) == store.announced(OLD) == [coming(0), coming(5)]
        assert all(isinstance(one.line, Line) for one in store.announced(OLD))
        assert store.announced(NEW) == []
        store.save(b"two", Life("old", 2))
        assert self.open(tmp_path).announced(Life("old", 2)) == []

    def test_an_announcement_that_is_repeated_counts_once(self, tmp_path):
        store = self.open(tmp_path)
        store.save(b"one", OLD)
        store.announce(coming(0))
        store.confirm(np.zeros(1))
        for number in range(3):
            store.announce(coming(5, ("ann", number), (7, 1)))
        store.confirm(np.zeros(1))
        store.announce(coming(10, ("7", 1)))
        assert self.open(tmp_path).announced(OLD) == [
            coming(0),
            coming(5, ("ann", 2), (7, 1)),  # as it came last
            coming(10, ("7", 1)),
        ]

    def test_a_claimed_life_neither_announces_nor_saves_and_is_claimed_once(self, tmp_path):
        original, heir = self.open(tmp_path), self.open(tmp_path)
        original.save(b"one", OLD)
        with heir.claim(OLD):
            heir.save(b"two", NEW)
        for refused in (
            lambda: original.announce(coming(0)),
            lambda: original.save(b"three", Life("old", 2)),
            lambda: self.open(tmp_path).claim(OLD).__enter__(),
        ):
            with pytest.raises(dpb.ClaimError):
                refused()
        assert original.read() == b"two"
        heir.announce(coming(0))
        assert self.open(tmp_path).announced(NEW) == [coming(0)]

    def test_a_claim_that_saves_nothing_did_not_happen(self, tmp_path):
        original, heir = self.open(tmp_path), self.open(tmp_path)
        original.save(b"one", OLD)
        original.announce(coming(0))
        with pytest.raises(Crash), heir.claim(OLD):
            raise Crash
        assert original.read() == b"one"
        original.announce(coming(5))  # it goes on
        assert original.announced(OLD) == [coming(0), coming(5)]
        with self.open(tmp_path).claim(OLD):
            original = None

    def test_an_older_save_is_not_claimed(self, tmp_path):
        store = self.open(tmp_path)
        store.save(b"one", OLD)
        store.save(b"two", Life("old", 2))
        with pytest.raises(dpb.ClaimError), self.open(tmp_path).claim(OLD):
            pass
        with self.open(tmp_path).claim(Life("old", 2)):
            pass

    def test_who_was_overwritten_by_another_policy_announces_nothing(self, tmp_path):
        older, newer = self.open(tmp_path), self.open(tmp_path)
        older.save(b"one", OLD)
        newer.save(b"two", NEW)
        with pytest.raises(dpb.ClaimError):
            older.announce(coming(0))
        newer.announce(coming(5))
        assert self.open(tmp_path).announced(NEW) == [coming(5)]

    def test_of_many_claims_at_once_one_is_granted(self, tmp_path):
        self.open(tmp_path).save(b"one", OLD)
        stores, together = [self.open(tmp_path) for _ in range(4)], threading.Barrier(4)
        granted, refused = [], []

        def claim(number: int) -> None:
            together.wait()
            try:
                with stores[number].claim(OLD):
                    stores[number].save(b"two", Life(f"new {number}", 1))
                granted.append(number)
            except dpb.ClaimError:
                refused.append(number)

        threads = [threading.Thread(target=claim, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(granted), len(refused)) == (1, 3)

    # With a policy ------------------------------------------------------------------------------

    def policy(self, folder: Path) -> dpb.papers.concentrated.AdaCUCB:
        policy = played_until(dpb.papers.concentrated.AdaCUCB(3, budget=dpb.ZCDP(0.5), seed=1), 5)
        policy.save(self.open(folder))
        return policy

    def test_a_policy_goes_on_where_it_was_saved(self, tmp_path):
        twin = played_until(dpb.papers.concentrated.AdaCUCB(3, budget=dpb.ZCDP(0.5), seed=1), 5)
        self.policy(tmp_path)
        loaded = dpb.load(self.open(tmp_path))
        for policy in (loaded, twin):
            played_until(policy, 9)
        assert loaded.ledger.frame.equals(twin.ledger.frame)
        assert loaded.session.state.public.estimate.tolist() == (
            twin.session.state.public.estimate.tolist()
        )

    @pytest.mark.parametrize("step", ["announce", "confirm"])
    def test_what_was_announced_before_a_crash_counts_as_spent(self, step, tmp_path):
        policy = self.policy(tmp_path)
        played_until(policy, 6)
        store = policy.session.gate.store
        happened = getattr(store, step)

        def crashing(*arguments):
            happened(*arguments) if step == "announce" else None
            raise Crash

        setattr(store, step, crashing)  # after the announcement, and before the confirmation
        with pytest.raises(Crash):
            played_until(policy, 7)
        assert policy.ledger.releases == 6
        del policy
        survivor = dpb.load(self.open(tmp_path))
        assert survivor.ledger.releases == 7
        assert survivor.ledger.total() == pytest.approx(0.5)
        spans = played_until(survivor, 9).ledger.frame
        assert (spans["first"].to_numpy()[1:] > spans["last"].to_numpy()[:-1]).all()
        assert survivor.ledger.total() == pytest.approx(0.5)

    def test_an_inspection_charges_what_was_announced_and_claims_nothing(self, tmp_path):
        policy = self.policy(tmp_path)
        saved = policy.estimates
        played_until(policy, 8)
        for _ in range(2):
            seen = dpb.inspect(self.open(tmp_path))
            assert seen.ledger.frame.equals(policy.ledger.frame)
            assert (seen.since, seen.superseded) == (3, False)
            assert seen.estimates.means.tolist() == saved.means.tolist()
        played_until(policy, 9)
        del policy
        assert dpb.load(self.open(tmp_path)).ledger.releases == 9

    def test_a_policy_is_loaded_once_and_its_original_stops(self, tmp_path):
        original = self.policy(tmp_path)
        loaded = dpb.load(self.open(tmp_path))
        with pytest.raises(dpb.ClaimError):
            played_until(original, 6)
        with pytest.raises(dpb.ClaimError):
            original.save(self.open(tmp_path))
        played_until(loaded, 6)

    def test_copies_for_simulation_claim_nothing(self, tmp_path):
        original = played_until(self.policy(tmp_path), 6)
        copies = [dpb.load(self.open(tmp_path), simulation=True) for _ in range(2)]
        assert [copy.ledger.releases for copy in copies] == [6, 6]
        played_until(original, 7)
        dpb.load(self.open(tmp_path))
