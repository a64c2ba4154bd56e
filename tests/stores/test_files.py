"""The file store: the claims in the state folder, the journal beside the file, and what a disk or
another process may do to them.
"""

import os
import shutil
import textwrap
import threading

import numpy as np
import pytest
from clinic import (
    FORKING,
    UNWARNED,
    Clinic,
    ada,
    claims,
    exit_code,
    journal,
    journalled,
    start,
    state_of,
)

import dpbandits as dpb
from dpbandits.privacy.channels import GAUSSIAN
from dpbandits.privacy.ledger import WHOLE, Line
from dpbandits.stores import Announcement, FileStore, Life, decode, encode, files

COMING = Announcement(Line(0, 4, WHOLE, GAUSSIAN, 1.0, 2.0, 3), [("ann", 1)])


# Who goes on ---------------------------------------------------------------------------------


def test_a_file_is_loaded_once_and_then_belongs_to_the_loaded_policy(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    shutil.copy(path, tmp_path / "copy")
    first = Clinic(dpb.load(path))
    with pytest.raises(dpb.ClaimError, match="same raw data twice with fresh noise"):
        dpb.load(tmp_path / "copy")
    with pytest.raises(dpb.ClaimError, match="the loaded policy still runs"):
        dpb.load(path)
    first.until_release()
    assert first.policy.save(path) == path  # who saves, offers the file to the next
    second = Clinic(dpb.load(path))
    with pytest.raises(dpb.ClaimError, match="no release is made"):
        first.until_release()
    second.until_release()


def test_a_load_that_cannot_save_again_claims_nothing(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    content, before = path.read_bytes(), state_of(clinic.policy)

    def full(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "_replace", full)
        with pytest.raises(OSError, match="no space"):
            dpb.load(path)
    assert path.read_bytes() == content
    assert not claims(tmp_path)
    assert state_of(dpb.load(path)) == before


@pytest.mark.skipif(files.fcntl is None, reason="no locks on this platform")
def test_a_load_in_the_middle_of_an_announcement_waits_and_counts_it(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    before = clinic.policy.ledger.releases
    append, loaded = FileStore._append, []
    loader = threading.Thread(target=lambda: loaded.append(dpb.load(path)))

    def slow(self, entry):
        if "begin" in entry and loader.ident is None:
            loader.start()
            loader.join(0.3)
            assert not loaded
        append(self, entry)

    monkeypatch.setattr(FileStore, "_append", slow)
    clinic.until_release()
    loader.join()
    assert loaded[0].ledger.releases == before + 1


def test_of_two_policies_saved_to_one_file_only_the_later_goes_on(tmp_path):
    older, newer = Clinic(ada()).play(40), Clinic(ada(seed=12)).play(40)
    path = older.policy.save(tmp_path / "a")
    older.until_release()
    newer.policy.save(path)
    newer.until_release()
    content = journal(path).read_bytes()
    with pytest.raises(dpb.ClaimError, match="overwritten by another save"):
        older.until_release()
    assert journal(path).read_bytes() == content
    older.policy.save(tmp_path / "b")
    older.until_release()
    assert dpb.load(path).ledger.frame.equals(newer.policy.ledger.frame)
    assert dpb.load(tmp_path / "b").ledger.frame.equals(older.policy.ledger.frame)


def test_an_older_save_is_refused_before_and_after_the_last_was_loaded(tmp_path):
    clinic = Clinic(ada()).play(30)
    clinic.policy.save(tmp_path / "older")
    clinic.until_release().policy.save(tmp_path / "newer")
    with pytest.raises(dpb.ClaimError, match="is save 1 of a policy that was saved 2 times"):
        dpb.load(tmp_path / "older")
    assert not claims(tmp_path)
    clinic.policy = dpb.load(tmp_path / "newer")
    with pytest.raises(dpb.ClaimError, match="or another save of the same policy has"):
        dpb.load(tmp_path / "older")
    clinic.policy.save(tmp_path / "newest")
    for old in ("older", "newer"):
        with pytest.raises(dpb.ClaimError):
            dpb.load(tmp_path / old)
    dpb.load(tmp_path / "newest")


def test_the_original_is_refused_once_its_save_was_loaded(tmp_path):
    clinic = Clinic(ada()).play(30)
    path = clinic.policy.save(tmp_path / "a")
    loaded = Clinic(dpb.load(path))
    spent = len(clinic.policy.ledger)
    with pytest.raises(dpb.ClaimError, match="no release is made"):
        clinic.until_release()
    assert len(clinic.policy.ledger) == spent
    with pytest.raises(dpb.ClaimError, match="was not written"):
        clinic.policy.save(tmp_path / "b")
    assert not (tmp_path / "b").exists()
    loaded.until_release().policy.save(path)


def test_copies_for_simulation_are_free_and_independent(tmp_path):
    clinic = Clinic(ada()).play(30)
    path = clinic.policy.save(tmp_path / "a")
    copies = [dpb.load(path, simulation=True) for _ in range(3)]
    assert not claims(tmp_path)
    first, second, _ = (Clinic(copy).play(100) for copy in copies)
    assert first.arms == second.arms
    assert not journal(path).exists()
    clinic.until_release()  # the original is not disturbed
    dpb.load(copies[2].save(tmp_path / "b"))
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


def test_the_claim_itself_decides_a_race(tmp_path, monkeypatch):
    path = ada().save(tmp_path / "a")
    shutil.copy(path, tmp_path / "copy")
    # Both racers have looked before either claims.
    monkeypatch.setattr(files._Claims, "refuse", lambda *_: None)
    dpb.load(path)
    with pytest.raises(dpb.ClaimError, match="by another process"):
        dpb.load(tmp_path / "copy")


# The journal ---------------------------------------------------------------------------------


def test_the_journal_holds_the_ledger_lines_and_the_noisy_values(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    wall, last = clinic.policy.session.state.wall, len(clinic.policy.ledger) - 1
    head, begin, done = journalled(path)
    assert head == {"holder": clinic.policy.session.life.name, "serial": 1}
    begun, line = Line(*begin["begin"]), clinic.policy.ledger.frame.iloc[last]
    assert line["first"] <= begun.first <= begun.last == line["last"]  # lines that meet are one
    assert (begun.sensitivity, begun.multiplier) == (line["sensitivity"], line["multiplier"])
    assert done == {"done": wall.release.tolist()}


def test_a_new_save_starts_a_new_journal(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release().policy.save(path)
    before = state_of(clinic.policy)
    assert state_of(dpb.load(path, simulation=True)) == before  # the old journal is not this save's
    clinic.until_release()
    assert len(journalled(path)) == 3


def test_nothing_is_journalled_without_a_save_or_a_budget(tmp_path):
    unsaved = Clinic(ada()).play(100).policy
    assert unsaved.session.gate.store is None
    path = (
        Clinic(dpb.papers.concentrated.AdaCUCB(3, budget=None, seed=1))
        .play(10)
        .policy.save(tmp_path / "a")
    )
    Clinic(dpb.load(path)).play(100)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "state"]


def test_a_journal_cut_anywhere_counts_every_whole_announcement(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    before = clinic.policy.ledger.releases
    clinic.until_release().until_release()
    content = journal(path).read_bytes()
    for cut in range(0, len(content), 3):
        journal(path).write_bytes(content[:cut])
        announced = sum(b'"begin"' in line for line in content[:cut].split(b"\n")[:-1])
        if b"\n" not in content[:cut]:  # its first line says whose it is
            with pytest.raises(dpb.errors.StateFileError, match="is missing"):
                dpb.load(path, simulation=True)
            continue
        assert dpb.load(path, simulation=True).ledger.releases == before + announced


def test_a_torn_line_is_overwritten_by_the_next(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    with open(journal(path), "ab") as file:
        file.write(b"half a li")
    clinic.until_release()
    assert len(FileStore(path).announced(Life(clinic.policy.session.life.name, 1))) == 2
    assert journal(path).read_bytes().count(b"\n") == 5
    assert journal(path).read_bytes().endswith(b"\n")


def test_a_damaged_or_missing_journal_is_refused(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    content = journal(path).read_bytes()
    for place in range(0, len(content), 11):
        flipped = bytearray(content)
        flipped[place] ^= 4
        journal(path).write_bytes(flipped)
        with pytest.raises(dpb.errors.StateFileError, match="damaged in line"):
            dpb.load(path)
    journal(path).unlink()
    with pytest.raises(dpb.errors.StateFileError, match=r"\.journal is missing"):
        dpb.load(path)
    assert not claims(tmp_path)
    journal(path).write_bytes(content)
    dpb.load(path)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_journal_that_could_not_be_begun_is_begun_again(after, tmp_path, monkeypatch):
    store = FileStore(tmp_path / "a")
    store.save(b"snapshot" + b"0" * 64, Life("life", 1))
    note = files._Claims.note

    def failing(*arguments, **named):
        note(*arguments, **named) if after else None
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files._Claims, "note", failing)
        with pytest.raises(OSError, match="no space"):
            store.announce(COMING)
    assert store.announced(Life("life", 1)) == []  # nothing was drawn
    store.announce(COMING)
    store.confirm(np.zeros(1))
    assert [next(iter(entry)) for entry in journalled(store.path)] == ["holder", "begin", "done"]
    assert store.announced(Life("life", 1)) == [COMING]


# The disk ------------------------------------------------------------------------------------


def test_a_save_that_fails_changes_nothing(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    content = path.read_bytes()
    clinic.until_release()

    def broken(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", broken)
        with pytest.raises(OSError, match="no space"):
            clinic.policy.save(path)
    assert path.read_bytes() == content
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a.journal", "state"]
    assert dpb.load(path).ledger.frame.equals(clinic.policy.ledger.frame)


@pytest.mark.parametrize("step", ["_sync_folder", "_Claims.note"])
def test_a_save_that_fails_after_the_file_appeared_still_journals_for_that_file(
    step, tmp_path, monkeypatch
):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()

    def broken(*_, **__):
        raise OSError("state folder is gone")

    with monkeypatch.context() as patch:
        patch.setattr(f"dpbandits.stores.files.{step}", broken)
        with pytest.raises(OSError, match="is gone"):
            clinic.policy.save(path)
    before = state_of(clinic.policy)
    assert state_of(dpb.load(path, simulation=True)) == before
    clinic.until_release()
    assert dpb.load(path).ledger.frame.equals(clinic.policy.ledger.frame)


def test_a_process_that_was_killed_before_its_save_was_noted_can_be_loaded(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    before = state_of(clinic.policy)
    monkeypatch.setattr(files._Claims, "note", lambda *_, **__: None)
    clinic.policy.save(path)
    journal(path).unlink()
    assert state_of(dpb.load(path)) == before


@pytest.mark.parametrize("path", [None, 5, b"a", "", "/", True])
def test_a_path_has_to_name_a_file(path):
    for action in (ada().save, dpb.load):
        with pytest.raises(dpb.ArgumentError, match="path must name a file"):
            action(path)


def test_a_folder_is_no_saved_policy(tmp_path):
    with pytest.raises(dpb.errors.StateFileError, match="is a folder"):
        dpb.load(tmp_path)
    with pytest.raises(OSError, match="directory"):
        ada().save(tmp_path)


def test_a_state_folder_that_cannot_be_used_is_named(tmp_path, monkeypatch):
    path = ada().save(tmp_path / "a")
    (tmp_path / "file").touch()
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "file" / "state"))
    for action in (lambda: ada().save(tmp_path / "b"), lambda: dpb.load(path)):
        with pytest.raises(
            dpb.errors.StateFileError,
            match=r"file.state.claims cannot be used.*set DPBANDITS_STATE_DIR",
        ):
            action()
    assert not (tmp_path / "b").exists()


def test_a_life_that_leads_out_of_the_state_folder_is_refused(tmp_path):
    path = ada().save(tmp_path / "a")
    header, arrays = decode(path.read_bytes(), path)
    for life in ("../../x", "a/b", "", ".", "x" * 65, "a\n"):
        path.write_bytes(encode({**header, "life": [life, 1]}, dict(arrays)))
        with pytest.raises(dpb.errors.StateFileError, match="its life is named"):
            dpb.load(path)
    assert not claims(tmp_path)


def test_file_and_journal_are_private_to_their_owner(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    journal(path).touch(0o644)
    clinic.until_release()
    assert journalled(path)
    for each in (path, journal(path)):
        assert each.stat().st_mode & 0o077 == 0


def test_without_a_setting_claims_go_to_the_users_state_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DPBANDITS_STATE_DIR")
    monkeypatch.setattr(
        files.platformdirs,
        "user_state_dir",
        lambda name, appauthor: str(tmp_path / "home" / name),
    )
    dpb.load(ada().save(tmp_path / "a"))
    assert len(claims(tmp_path / "home" / "dpbandits")) == 1


# Kills -----------------------------------------------------------------------------------------


def killed_at(step, work):
    """Run work in a child that is killed before its ``step``-th change of the disk; its exit code."""
    left = [step]

    def counted(happen):
        def happening(*arguments, **options):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return happen(*arguments, **options)

        return happening

    def doomed():
        for name in ("open", "replace", "fsync", "unlink", "close"):
            setattr(os, name, counted(getattr(os, name)))
        work()

    return exit_code(doomed)


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
        shutil.copy(path, folder / "copy")
        shutil.copy(journal(path), journal(folder / "copy"))
        del clinic
        code = killed_at(step, lambda path=path: dpb.load(path))
        loaded, refused = [], []
        for each in (path, folder / "copy") if step % 2 else (folder / "copy", path):
            try:
                loaded.append(dpb.load(each))
            except dpb.ClaimError as error:
                refused.append(error)
        assert (len(loaded), len(refused)) == (1, 1), step
        assert loaded[0].ledger.releases == releases
        Clinic(loaded[0]).until_release()
        step += 1
    assert code == 1  # at the end of its work
    assert step > 15


@FORKING
@UNWARNED
def test_a_dead_heir_cannot_be_loaded_beside_the_one_that_took_its_place(tmp_path):
    """The child is killed between its save and the note of it; a copy of that save turns up later."""
    path = Clinic(ada()).play(40).policy.save(tmp_path / "a")
    shutil.copy(path, tmp_path / "backup")

    def work():
        files._Claims.note = lambda *_, **__: os._exit(9)
        dpb.load(path)

    assert exit_code(work) == 9
    shutil.move(path, tmp_path / "heir")
    shutil.copy(tmp_path / "backup", path)
    Clinic(dpb.load(path)).until_release()
    with pytest.raises(dpb.ClaimError, match="has been loaded"):
        dpb.load(tmp_path / "heir")


def test_claims_of_earlier_versions_stand(tmp_path):
    path = ada().save(tmp_path / "a")
    life = FileStore(path)
    claim = files._Claims(dpb.stores.decode(path.read_bytes(), life)[0]["life"][0])
    claim.claimed.write_text(f"{path}\n")
    with pytest.raises(dpb.ClaimError, match="has been loaded before"):
        dpb.load(path)
