"""A disk that is full after any number of bytes: a commit is whole or nothing, is told, and is
repeated with the same bytes.
"""

import errno
import os
from contextlib import contextmanager

import pytest
from clinic import Clinic, ada, died, journal, state_in, state_of

import dpbandits as dpb
from dpbandits.errors import StoreError
from dpbandits.stores.addresses import place_at

resource = pytest.importorskip("resource")


@contextmanager
def room(size):
    """No file grows beyond a size: a write is short, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fails(action, size):
    """Whether an action fails for want of room."""
    try:
        with room(size):
            action()
    except StoreError:
        return True
    return False


def content(path):
    return path.read_bytes(), journal(path).read_bytes()


def test_a_journal_on_a_disk_that_is_full_after_any_byte(tmp_path):
    clinic, twin = Clinic(ada()).play(40), Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.policy.pull()
    twin.policy.pull()
    for _ in range(3):
        before = content(path)
        start = size = len(before[1])
        assert fails(clinic.policy.pull, size)
        while fails(lambda: clinic.policy.rounds, size):  # which repeats the commit
            assert content(path) == before
            size += 1
        twin.policy.pull()
        assert len(content(path)[1]) == size > start + 1000
        assert content(path)[1].startswith(before[1])
        assert state_of(clinic.policy).arrays == state_of(twin.policy).arrays
    before = state_of(clinic.policy)
    died(clinic)
    assert state_of(dpb.load(path)) == before


def test_a_snapshot_on_a_disk_that_is_full_after_any_byte(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.play(2)
    before, size = content(path), 0
    while fails(lambda: clinic.policy.save(path), size):
        assert content(path) == before
        assert len(list(tmp_path.iterdir())) == 3  # with the state folder
        size += 1
    assert path.stat().st_size == size
    assert state_in(path) == state_of(clinic.policy)
    clinic.until_release()
    assert state_in(path) == state_of(clinic.policy)


def test_a_database_on_a_disk_that_is_full_after_any_number_of_bytes(tmp_path):
    """Its log grows by pages of which each may be torn."""
    place = place_at(f"sqlite:///{tmp_path}/a.db#one")
    clinic, twin = Clinic(ada()).play(40), Clinic(ada()).play(40)
    clinic.policy.save(place)
    log = tmp_path / "a.db-wal"
    reader = place.store._opened()  # while it is open, the log is not begun anew
    while log.stat().st_size < 100_000:  # beyond the other files
        clinic.policy.pull()
        twin.policy.pull()
    for _ in range(2):
        before, start = place.mark(), log.stat().st_size
        size = start
        assert fails(clinic.policy.pull, size)
        while fails(lambda: clinic.policy.rounds, size):
            if size % 10 == 0:
                assert place.mark() == before
            size += 7
        assert size > start + 4096
        twin.policy.pull()
        assert place.mark() == before._replace(number=before.number + 1)
        assert state_of(clinic.policy).arrays == state_of(twin.policy).arrays
    reader.close()
    before = state_of(clinic.policy)
    died(clinic)
    assert state_of(dpb.load(place)) == before


@contextmanager
def taking(most, patch):
    """Let ``os.write`` take so many bytes, some at a time, and then none."""
    left, write = [most], os.write

    def short(handle, data):
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, "no space left on device")
        taken = write(handle, bytes(data[: min(left[0], 11)]))
        left[0] -= taken
        return taken

    with patch.context() as patched:
        patched.setattr(os, "write", short)
        yield


@pytest.mark.parametrize("where", ["file", "sqlite"])
def test_notes_and_keys_on_a_disk_that_is_full_after_any_byte(where, tmp_path, monkeypatch):
    """A note that is torn is not taken for one, nor is a key."""
    place = place_at(tmp_path / "a" if where == "file" else f"sqlite:///{tmp_path}/a.db#one")
    clinic = Clinic(dpb.algorithms.HTINF(3, budget=dpb.ZCDP(0.5), seed=1))  # releases each round
    clinic.policy.save(place)

    def is_known():
        mark = place.mark()
        return clinic.policy._keeper._witness.is_behind(mark._replace(number=mark.number - 1))

    failed = 0
    for most in range(350):
        with taking(most, monkeypatch):
            try:
                clinic.policy.update(0.5, clinic.policy.pull())
            except StoreError:
                failed += 1
            else:
                assert is_known()
        clinic.policy.update(0.5, clinic.policy.pull())
        assert is_known()
    assert failed > (190 if where == "file" else 230)
    assert failed < 350
    before = state_of(clinic.policy)
    died(clinic)
    assert state_of(dpb.load(place)) == before
