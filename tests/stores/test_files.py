"""Policies in files: who goes on with one, and what a disk or another process may do to it."""

import gc
import os
import shutil
import textwrap
import threading
from contextlib import suppress

import pytest
from clinic import (
    FORKING,
    UNWARNED,
    Clinic,
    Recording,
    ada,
    died,
    exit_code,
    fail,
    forked,
    inside,
    journal,
    known,
    refused,
    rewritten,
    start,
    state_in,
    state_of,
)

import dpbandits as dpb
from dpbandits.errors import StateFileError, StoreError
from dpbandits.policies import loading
from dpbandits.policies.batches import batch_of
from dpbandits.stores import FilePlace, files, locks, witness
from dpbandits.stores.addresses import place_at
from dpbandits.stores.witness import Witness


def copied(path, name):
    """A copy of a file and its journal."""
    copy = path.parent / name
    shutil.copy(path, copy)
    if journal(path).exists():
        shutil.copy(journal(path), journal(copy))
    return copy


def place_in(where, folder, name, of=None):
    """A place in a file or a database; as a copy of another, if one is named."""
    if where == "file":
        path = copied(folder / of, name) if of else folder / name
        return FilePlace(path)
    if of:
        place_at(f"sqlite:///{folder}/{of}.db#one").store.close()
        shutil.copy(folder / f"{of}.db", folder / f"{name}.db")
    return place_at(f"sqlite:///{folder}/{name}.db#one")


# Who goes on ---------------------------------------------------------------------------------


def test_a_file_is_loaded_once_and_then_belongs_to_the_loaded_policy(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    copy = copied(path, "copy")
    first = Clinic(dpb.load(path))
    for place in (copy, path):
        with pytest.raises(dpb.ClaimError, match=r"still runs.*raw data twice with fresh noise"):
            dpb.load(place)
    first.until_release()
    assert first.policy.save(path) == path  # who saves, offers the file to the next
    second = Clinic(dpb.load(path))
    with pytest.raises(dpb.ClaimError, match=r"and carries on"):
        first.play(1)
    second.until_release()
    died(second)
    with pytest.raises(dpb.ClaimError, match="or another copy of it, has been loaded before"):
        dpb.load(copy)
    dpb.load(path)


def test_a_load_that_cannot_write_claims_nothing(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    with monkeypatch.context() as patch:
        fail(patch, FilePlace, "_append", OSError(28, "no space left on device"))
        with pytest.raises(StoreError, match="no space"):
            dpb.load(path)
    clinic.until_release()  # the original goes on
    before = state_of(clinic.policy)
    assert state_of(dpb.load(path)) == before
    with pytest.raises(dpb.ClaimError):
        clinic.play(1)


@pytest.mark.skipif(locks.fcntl is None, reason="no locks on this platform")
def test_a_load_in_the_middle_of_a_commit_waits_and_counts_it(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    append, loaded = FilePlace._append, []
    loader = threading.Thread(target=lambda: loaded.append(dpb.load(path)))
    before = clinic.policy.ledger.releases

    def slow(self, *arguments):
        if loader.ident is None and clinic.policy.session.exchange.made[before:]:
            loader.start()
            loader.join(0.3)
            assert not loaded
        append(self, *arguments)

    monkeypatch.setattr(FilePlace, "_append", slow)
    with suppress(dpb.ClaimError):  # where the load is done before the call returns
        clinic.until_release()
    loader.join()
    # The original may have been left behind, and then shows nothing any more.
    lines, own = (one.session.state.wall.ledger for one in (loaded[0], clinic.policy))
    assert loaded[0].ledger.releases == before + 1
    assert lines.span[: lines.head[0]].tolist() == own.span[: own.head[0]].tolist()


@pytest.mark.parametrize("where", ["file", "sqlite"])
def test_a_load_of_a_place_that_was_written_since_it_was_read_reads_it_again(
    where, tmp_path, monkeypatch
):
    """It is neither an older copy, nor are its keys missing."""
    place = tmp_path / "a" if where == "file" else f"sqlite:///{tmp_path}/a.db#one"
    clinic, read, times = Clinic(ada()).play(30), loading.read, []
    clinic.policy.save(place)

    def overtaken(given):
        saved = read(given)
        if len(times) < 3:
            times.append(clinic.until_release())
        return saved

    monkeypatch.setattr(loading, "read", overtaken)
    loaded = dpb.load(place)
    assert len(times) == 3
    assert loaded.ledger.releases == inside(clinic.policy)[0]


@pytest.mark.skipif(locks.fcntl is None, reason="no locks on this platform")
@pytest.mark.parametrize("where", ["file", "sqlite"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_copy_that_is_loaded_while_its_original_commits_is_an_older_one(where, moment, tmp_path):
    """Before the commit is written, and between it and its note."""
    clinic, errors = Clinic(ada()).play(40), []
    place = Recording(place_in(where, tmp_path, "a"))
    clinic.policy.save(place)
    copy = place_in(where, tmp_path, "copy", of="a")

    def load():
        try:
            dpb.load(copy)
        except dpb.ClaimError as error:
            errors.append(str(error))

    loader = threading.Thread(target=load)

    def looked(now):
        if now == moment and loader.ident is None:
            loader.start()
            loader.join(0.3)
            assert loader.is_alive()

    place.looked = looked
    clinic.play(1)
    loader.join()
    assert len(errors) == 1
    assert "older copy, or was cut" in errors[0]
    clinic.until_release()
    assert not dpb.inspect(place.place).superseded


@pytest.mark.parametrize("where", ["file", "sqlite"])
def test_nothing_is_written_to_a_place_once_its_copy_was_loaded(where, tmp_path):
    """A batch there would show another release of what the copy will release."""
    clinic = Clinic(ada()).play(40)
    place = place_in(where, tmp_path, "a")
    clinic.policy.save(place)
    loaded = dpb.load(place_in(where, tmp_path, "copy", of="a"))
    before = place.mark()
    for _ in range(2):
        with (
            pytest.raises(dpb.ClaimError, match="has been loaded, and carries on"),
            batch_of([clinic.policy]),
        ):
            clinic.policy.pull()
        with pytest.raises(dpb.ClaimError, match="has been loaded, and carries on"):
            clinic.policy.pull()
        assert place.mark() == before
    assert dpb.inspect(place).superseded
    Clinic(loaded).until_release()


def test_a_load_by_the_thread_that_commits_is_refused(tmp_path):
    """It would wait for itself."""
    clinic, place = Clinic(ada()).play(40), Recording(FilePlace(tmp_path / "a"))
    clinic.policy.save(place)

    def looked(moment):
        with pytest.raises(dpb.errors.ReentryError, match="interrupted a write of"):
            dpb.load(tmp_path / "a")

    place.looked = looked
    clinic.until_release()
    before = state_of(clinic.policy)
    assert state_of(dpb.load(tmp_path / "a")) == before


def test_of_two_policies_saved_to_one_file_only_the_later_goes_on(tmp_path):
    older, newer = Clinic(ada()).play(40), Clinic(ada(seed=12)).play(40)
    path = older.policy.save(tmp_path / "a")
    older.until_release()
    newer.policy.save(path)
    newer.until_release()
    content = journal(path).read_bytes()
    for _ in range(2):
        with pytest.raises(dpb.ClaimError, match=r"and carries on"):
            older.until_release()
    assert journal(path).read_bytes() == content
    older.policy.save(tmp_path / "b")
    older.until_release()
    assert dpb.load(path).ledger.frame.equals(newer.policy.ledger.frame)
    assert dpb.load(tmp_path / "b").ledger.frame.equals(older.policy.ledger.frame)


def test_who_was_replaced_notices_whatever_the_file_system_reuses(tmp_path, monkeypatch):
    """A file that was replaced twice may have its first inode again."""
    for name in ("stat", "fstat"):
        real = getattr(os, name)

        def reusing(*given, real=real, **options):
            mode, _, *rest = real(*given, **options)[:10]
            return os.stat_result((mode, 7, *rest))

        monkeypatch.setattr(os, name, reusing)
    path = tmp_path / "a"
    for again in (1, 2, 3):
        original = ada()
        original.save(path)
        loaded = dpb.load(path)
        for _ in range(again):
            loaded.save(path)
        with pytest.raises(dpb.ClaimError):
            original.pull()
        loaded.pull()
        del loaded


def test_an_older_save_is_refused_before_and_after_the_last_was_loaded(tmp_path):
    clinic = Clinic(ada()).play(30)
    clinic.policy.save(tmp_path / "older")
    clinic.until_release().policy.save(tmp_path / "newer")
    before = known(tmp_path)
    with pytest.raises(dpb.ClaimError, match=r"batch \d+, but the policy's last batch is \d+"):
        dpb.load(tmp_path / "older")
    assert known(tmp_path) == before
    clinic.policy = dpb.load(tmp_path / "newer")
    with pytest.raises(dpb.ClaimError):
        dpb.load(tmp_path / "older")
    clinic.policy.save(tmp_path / "newest")
    for old in ("older", "newer"):
        with pytest.raises(dpb.ClaimError):
            dpb.load(tmp_path / old)
    dpb.load(tmp_path / "newest")


def test_last_nights_backup_is_refused(tmp_path):
    clinic = Clinic(ada()).play(30)
    path = clinic.policy.save(tmp_path / "a")
    clinic.play(1)
    backup = copied(path, "backup")
    clinic.play(1)
    died(clinic)
    with pytest.raises(dpb.ClaimError, match="older copy, or was cut"):
        dpb.load(backup)
    dpb.load(path)


def test_a_copy_of_a_save_that_seemed_to_fail_ends_the_original(tmp_path, monkeypatch):
    """The second place holds the policy, although its witness could not be told."""
    clinic = Clinic(ada(answers_within=0)).play(30)
    clinic.policy.save(tmp_path / "a")
    with monkeypatch.context() as patch:
        fail(patch, Witness, "note", StoreError(5, "the state folder is gone"))
        with pytest.raises(StoreError, match="is gone"):
            clinic.policy.save(tmp_path / "b")
    assert str(clinic.policy.kept_in) == str(tmp_path / "b")
    clinic.policy.pull()  # which tells the witness first
    loaded = dpb.load(tmp_path / "b")
    for _ in range(2):
        with pytest.raises(dpb.ClaimError, match="copy of this policy has been loaded"):
            clinic.policy.pull()
    with pytest.raises(dpb.ClaimError):
        dpb.load(tmp_path / "a")
    Clinic(loaded).until_release()


def test_a_file_without_its_state_folder_is_refused(tmp_path, monkeypatch):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    before = state_in(path)
    with monkeypatch.context() as patch:
        patch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "elsewhere"))
        with pytest.raises(
            dpb.ClaimError, match=r"has no record of this policy.*Copy the state folder"
        ):
            dpb.load(path)
        assert state_in(path) == before
        assert not dpb.inspect(path).superseded
    assert state_of(dpb.load(path)) == before


def test_the_original_is_refused_at_its_next_call_once_its_save_was_loaded(tmp_path):
    policy = ada(answers_within=0)
    path = policy.save(tmp_path / "a")
    first, second = policy.pull(), policy.pull()
    loaded = dpb.load(path)
    for call in (policy.pull, lambda: policy.update(1.0, first), lambda: policy.retire(0)):
        with pytest.raises(dpb.ClaimError, match=r"and carries on"):
            call()
    with pytest.raises(dpb.ClaimError, match="has been loaded and carries on"):
        policy.save(tmp_path / "b")
    assert not (tmp_path / "b").exists()
    assert loaded.update(1.0, second)
    Clinic(loaded).until_release().policy.save(path)


def test_copies_for_simulation_are_free_and_independent(tmp_path):
    clinic = Clinic(ada()).play(30)
    path = clinic.policy.save(tmp_path / "a")
    before, content = known(tmp_path), path.read_bytes()
    copies = [dpb.load(path, simulation=True) for _ in range(3)]
    first, second, _ = (Clinic(copy).play(100) for copy in copies)
    assert first.arms == second.arms
    assert [copy.kept_in for copy in copies] == [None] * 3
    assert (known(tmp_path), path.read_bytes()) == (before, content)
    assert journal(path).stat().st_size == 0
    clinic.until_release()  # the original is not disturbed
    dpb.load(copies[2].save(tmp_path / "b"))
    clinic.until_release()
    dpb.load(path)
    dpb.load(path, simulation=True)


def test_two_processes_cannot_both_release(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    script = f"""
        import pathlib, sys, time
        import dpbandits as dpb
        from clinic import Clinic
        folder, me = pathlib.Path({str(tmp_path)!r}), sys.argv[1]
        def meet(place):
            (folder / (place + me)).touch()
            while len(list(folder.glob(place + "*"))) < 2:
                time.sleep(0.001)
        meet("ready")
        try:
            clinic = Clinic(dpb.load(folder / "a"))
        except dpb.ClaimError:
            clinic = None
        meet("loaded")
        try:
            clinic and clinic.until_release()
            print("released" if clinic else "refused")
        except dpb.ClaimError:
            print("refused")
    """
    racers = [start(textwrap.dedent(script), str(i)) for i in range(2)]
    outcomes = sorted(racer.communicate(timeout=120)[0].strip() for racer in racers)
    assert outcomes == ["refused", "released"]
    assert dpb.load(path).ledger.releases


def test_the_claim_itself_decides_a_race(tmp_path):
    """A rival has looked before the other claims."""
    path, rival = ada().save(tmp_path / "a"), []

    class Slow(Recording):
        def read(self):
            found = self.place.read()
            rival.append(dpb.load(path))
            rival.pop()._let_go()  # dead, as far as locks can tell
            return found

    place = Slow(FilePlace(path))
    with pytest.raises(dpb.ClaimError, match="or another copy of it, has been loaded before"):
        dpb.load(place)
    mark = FilePlace(path).mark()
    with pytest.raises(dpb.ClaimError, match="by another process"):
        FilePlace(path).claim(mark._replace(life="0" * 32), "1" * 32)
    assert FilePlace(path).mark() == mark


# Forks ---------------------------------------------------------------------------------------


class Child:
    """A forked process that does nothing until it is told to end."""

    def __init__(self):
        self.told = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.told[1])
            os.read(self.told[0], 1)
            os._exit(0)

    def end(self):
        os.write(self.told[1], b".")
        os.waitpid(self.process, 0)
        for handle in self.told:
            os.close(handle)


@FORKING
@UNWARNED
def test_a_forked_child_keeps_nobody_from_loading(tmp_path):
    path = ada().save(tmp_path / "a")
    policy = dpb.load(path)
    child = Child()
    with pytest.raises(dpb.ClaimError, match="still runs"):
        dpb.load(path)
    del policy
    again = dpb.load(path)
    assert "is a fork" in forked(lambda: refused(again.close))
    other = Child()
    for each in (child, other):
        with pytest.raises(dpb.ClaimError, match="still runs"):
            dpb.load(path)
        each.end()
    again.pull()


@FORKING
@UNWARNED
def test_a_child_of_a_process_that_was_killed_keeps_nobody_from_loading(tmp_path):
    path, children = ada().save(tmp_path / "a"), tmp_path / "children"

    def work():
        policy = dpb.load(path)
        if os.fork() == 0:
            children.write_text(str(os.getpid()))
            threading.Event().wait(60)
        while not children.exists():
            threading.Event().wait(0.01)
        policy.pull()
        os._exit(9)

    assert exit_code(work) == 9
    try:
        assert dpb.load(path).session.rounds.pulls == 1
    finally:
        os.kill(int(children.read_text()), 9)


@FORKING
@UNWARNED
@pytest.mark.parametrize("where", ["file", "sqlite"])
def test_a_child_that_is_forked_in_a_commit_keeps_no_lock(where, tmp_path, monkeypatch):
    """Of the witness, the keys or the journal; nor does it unlock those of its parent."""
    clinic, place = Clinic(ada()).play(40), place_in(where, tmp_path, "a")
    clinic.policy.save(place)
    sync, children = os.fsync, []

    def forking(handle):
        if not children:
            children.append(Child())
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", forking)
        clinic.until_release()
    clinic.until_release()
    before = state_of(clinic.policy)
    died(clinic)
    assert state_of(dpb.load(place)) == before
    children.pop().end()


# The journal ---------------------------------------------------------------------------------


def test_a_new_save_starts_a_new_journal(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    assert journal(path).stat().st_size > 0
    clinic.policy.save(path)
    assert journal(path).stat().st_size == 0
    assert state_in(path) == state_of(clinic.policy)
    clinic.until_release()
    assert state_in(path) == state_of(clinic.policy)


def test_nothing_is_written_without_a_save(tmp_path):
    unsaved = Clinic(ada()).play(100).policy
    assert unsaved.kept_in is None
    assert list(tmp_path.iterdir()) == []


def test_a_journal_cut_anywhere_is_as_after_its_last_whole_batch(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    states, ends = [state_of(clinic.policy)], [0]
    for _ in range(6):
        before = journal(path).stat().st_size
        clinic.policy.pull()
        states.append(state_of(clinic.policy))
        ends.append(journal(path).stat().st_size)
        assert ends[-1] > before
    content = journal(path).read_bytes()
    died(clinic)
    for cut in [*range(0, len(content), 37), *ends, *(end - 1 for end in ends[1:])]:
        journal(path).write_bytes(content[:cut])
        whole = max(number for number, end in enumerate(ends) if end <= cut)
        assert state_in(path) == states[whole]
        if whole < 6:  # which the policy has answered
            with pytest.raises(dpb.ClaimError, match="or was cut"):
                dpb.load(path)
    journal(path).write_bytes(content + b"half a frame")
    assert state_of(dpb.load(path)) == states[-1]


def test_a_torn_frame_is_overwritten_by_the_next(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    for torn in (b"half a frame", b"\0" * 500):
        with open(journal(path), "ab") as file:
            file.write(torn)
        clinic.until_release()
        assert torn not in journal(path).read_bytes()[-600:] or not any(torn)
        assert state_in(path) == state_of(clinic.policy)
    before = state_of(clinic.policy)
    died(clinic)
    assert state_of(dpb.load(path)) == before


@pytest.mark.parametrize("torn", [1, 17, 18, 19, 60])
def test_a_journal_that_is_torn_at_its_beginning_is_begun_again(torn, tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.play(1)
    content = journal(path).read_bytes()
    clinic.policy.save(path)
    journal(path).write_bytes(content[:torn])  # as a process leaves it that is killed in a commit
    before = state_of(clinic.policy)
    died(clinic)
    clinic.policy = dpb.load(path)
    assert state_of(clinic.policy) == before
    clinic.play(3)
    after = state_of(clinic.policy)
    died(clinic)
    assert state_of(dpb.load(path)) == after


def test_a_damaged_or_missing_journal_is_refused(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    before, content = state_of(clinic.policy), journal(path).read_bytes()
    died(clinic)
    notes = known(tmp_path)
    for place in range(0, len(content), 41):
        flipped = bytearray(content)
        flipped[place] ^= 4
        journal(path).write_bytes(flipped)
        with pytest.raises((StateFileError, dpb.ClaimError), match=r"is not the journal|was cut"):
            dpb.load(path)
    journal(path).unlink()
    with pytest.raises(dpb.ClaimError, match="was cut"):
        dpb.load(path)
    assert known(tmp_path) == notes
    journal(path).write_bytes(content)
    assert state_of(dpb.load(path)) == before


# The disk ------------------------------------------------------------------------------------


def test_a_save_that_fails_changes_nothing(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    content = path.read_bytes(), journal(path).read_bytes()
    for place in (path, tmp_path / "b"):
        with monkeypatch.context() as patch:
            fail(patch, os, "replace", OSError(28, "no space left on device"))
            with pytest.raises(StoreError, match="no space"):
                clinic.policy.save(place)
        assert (path.read_bytes(), journal(path).read_bytes()) == content
        assert not (tmp_path / "b").exists()
        assert str(clinic.policy.kept_in) == str(path)
        clinic.play(1)
        content = path.read_bytes(), journal(path).read_bytes()
    assert not [one.name for one in tmp_path.iterdir() if one.name.startswith(".")]
    clinic.until_release()
    assert dpb.load(path).ledger.frame.equals(clinic.policy.ledger.frame)


@pytest.mark.parametrize("read", [False, True])
def test_a_call_that_could_not_be_noted_is_noted_before_the_next(read, tmp_path, monkeypatch):
    """Otherwise an older copy would be loaded."""
    policy = ada(answers_within=0)
    path = policy.save(tmp_path / "a")
    older = copied(path, "older")
    with monkeypatch.context() as patch:
        fail(patch, Witness, "note", StoreError(5, "the state folder is gone"))
        for _ in range(2):
            with pytest.raises(StoreError, match="is gone"):
                policy.pull()
    assert policy.session.rounds.pulls == 1
    _ = policy.estimates if read else policy.pull()
    del policy
    with pytest.raises(dpb.ClaimError, match="older copy, or was cut"):
        dpb.load(older)
    assert dpb.load(path).session.rounds.pulls == (1 if read else 2)


def test_a_save_whose_folder_is_not_synchronised_counts_once_it_is_there(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    with monkeypatch.context() as patch:
        fail(patch, files, "sync_folder", OSError(5, "input/output error"))
        clinic.policy.save(path)
    assert state_in(path) == state_of(clinic.policy)
    clinic.until_release()
    assert dpb.load(path).ledger.frame.equals(clinic.policy.ledger.frame)


def test_a_save_that_could_not_be_noted_can_be_made_again_or_loaded(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    with monkeypatch.context() as patch:
        fail(patch, Witness, "note", StoreError(5, "the state folder is gone"))
        with pytest.raises(StoreError, match="is gone"):
            clinic.policy.save(path)
    assert state_in(path) == state_of(clinic.policy)
    clinic.policy.save(path)
    clinic.until_release()
    assert state_in(path) == state_of(clinic.policy)
    with monkeypatch.context() as patch:
        patch.setattr(Witness, "note", lambda *_, **__: None)  # and then the process dies
        clinic.policy.save(path)
    before = state_of(clinic.policy)
    died(clinic)
    assert state_of(dpb.load(path)) == before


@pytest.mark.parametrize("path", [None, 5, b"a", "", "/", True, object()])
def test_a_path_has_to_name_a_file(path):
    for action in (ada().save, dpb.load, lambda path: ada().batch(path).__enter__()):
        with pytest.raises(dpb.ArgumentError, match=r"names? a"):
            action(path)


def test_a_folder_is_no_saved_policy(tmp_path):
    for action in (dpb.load, dpb.inspect, ada().save):
        with pytest.raises(StateFileError, match="is a folder"):
            action(tmp_path)


def test_a_folder_has_to_be_there(tmp_path):
    policy = ada()
    with pytest.raises(StoreError, match="could not be written"):
        policy.save(tmp_path / "nowhere" / "a")
    assert policy.kept_in is None
    policy.pull()


def test_a_state_folder_that_cannot_be_used_is_named(tmp_path, monkeypatch):
    path = ada().save(tmp_path / "a")
    (tmp_path / "file").touch()
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "file" / "state"))
    for action in (lambda: ada().save(tmp_path / "b"), lambda: dpb.load(path)):
        with pytest.raises(
            StateFileError, match=r"file.state.witnesses cannot be used.*set DPBANDITS_STATE_DIR"
        ):
            action()
    assert not (tmp_path / "b").exists()


def test_a_policy_that_leads_out_of_the_state_folder_is_refused(tmp_path):
    path = ada().save(tmp_path / "a")
    for name in ("../../x", "a/b", "", ".", "x" * 65, "0" * 31 + "\n", 5, None):
        rewritten(path, lambda about, name=name: about.update(policy=name))
        for action in (dpb.load, dpb.inspect):
            with pytest.raises(StateFileError):
                action(path)
    assert len(known(tmp_path)) == 1


def test_all_files_are_private_to_their_owner(tmp_path):
    clinic = Clinic(ada()).play(40)
    journal(tmp_path / "a").touch(0o644)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    notes = [one for one in (tmp_path / "state").rglob("*") if one.is_file()]
    assert notes
    for each in (path, journal(path), *notes):
        assert each.stat().st_mode & 0o077 == 0


def test_without_a_setting_notes_go_to_the_users_state_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DPBANDITS_STATE_DIR")
    monkeypatch.setattr(
        witness.platformdirs,
        "user_state_dir",
        lambda name, appauthor: str(tmp_path / "home" / name),
    )
    dpb.load(ada().save(tmp_path / "a"))
    assert list((tmp_path / "home" / "dpbandits" / "witnesses").iterdir())


# Kills -----------------------------------------------------------------------------------------


def doomed(step):
    """Kill this process before its ``step``-th change of the disk."""
    left = [step]

    def counted(happen):
        def happening(*arguments, **options):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return happen(*arguments, **options)

        return happening

    for name in ("open", "replace", "fsync", "unlink", "write", "close"):
        setattr(os, name, counted(getattr(os, name)))


def killed_at(step, work):
    """Run work in a child that is killed before its ``step``-th change of the disk; its exit code."""

    def run():
        doomed(step)
        work()

    return exit_code(run)


@FORKING
@UNWARNED
def test_a_load_that_is_killed_at_any_step_can_be_done_again_but_once(tmp_path):
    """By the file, or by a copy of it: one policy goes on, with all that was spent."""
    step, code = 0, 9
    while code == 9:
        folder = tmp_path / str(step)
        folder.mkdir()
        clinic = Clinic(ada(seed=step)).play(40)
        path = clinic.policy.save(folder / "a")
        releases = clinic.until_release().policy.ledger.releases
        copy = copied(path, "copy")
        before = state_of(clinic.policy)
        died(clinic)
        code = killed_at(step, lambda path=path: dpb.load(path))
        loaded, refused = [], []
        for each in (path, copy) if step % 2 else (copy, path):
            try:
                loaded.append(dpb.load(each))
            except dpb.ClaimError as error:
                refused.append(error)
        assert (len(loaded), len(refused)) == (1, 1), step
        assert loaded[0].ledger.releases == releases
        assert state_of(loaded[0]) == before
        Clinic(loaded[0]).until_release()
        step += 1
    assert code == 1  # at the end of its work
    assert step > 10


@FORKING
@UNWARNED
@pytest.mark.parametrize("first", [False, True])
def test_a_save_or_a_call_that_is_killed_at_any_step_is_whole_or_nothing(first, tmp_path):
    step, code, seen = 0, 9, set()
    while code == 9:
        path = tmp_path / f"{step}"

        def work(path=path, step=step):
            clinic = Clinic(ada(seed=1, answers_within=0)).play(40)
            if not first:
                clinic.policy.save(path)
            doomed(step)
            clinic.policy.save(path) if first else clinic.policy.pull()

        code = exit_code(work)
        policy = ada(seed=1, answers_within=0)
        clinic = Clinic(policy).play(40)
        before = state_of(policy)
        if not first:
            policy.pull()
        after = state_of(policy)
        if first and not path.exists():
            seen.add("nothing")
        else:
            # Killed before its note, the call was not answered: that it is there does no harm.
            found = state_of(dpb.load(path)) if noted(path) else None
            assert found in ((None, after) if first else (before, after))
            seen.add("before" if found == before and not first else "after")
        del clinic
        step += 1
    assert code == 1
    assert seen == ({"nothing", "after"} if first else {"before", "after"})


def noted(path):
    """Whether the state folder knows the policy; a first save that was killed need not be."""
    try:
        dpb.load(path)
    except dpb.ClaimError as error:
        assert "has no record of" in str(error)  # noqa: PT017
        return False
    gc.collect()
    return True


@FORKING
@UNWARNED
def test_a_dead_heir_cannot_be_loaded_beside_the_one_that_took_its_place(tmp_path):
    """The child is killed between its claim and the note of it; its file turns up later."""
    path = Clinic(ada()).play(40).policy.save(tmp_path / "a")
    backup = copied(path, "backup")

    def work():
        note, left = Witness.note, [1]

        def killing(*arguments, **options):
            if not left:
                os._exit(9)
            left.pop()
            note(*arguments, **options)

        Witness.note = killing
        dpb.load(path)

    assert exit_code(work) == 9
    assert FilePlace(path).mark().life != FilePlace(backup).mark().life
    shutil.move(path, tmp_path / "heir")
    shutil.move(journal(path), journal(tmp_path / "heir"))
    Clinic(dpb.load(backup)).until_release()
    gc.collect()
    with pytest.raises(dpb.ClaimError, match="has been loaded"):
        dpb.load(tmp_path / "heir")
