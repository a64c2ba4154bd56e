"""Which folders others can change."""

import os
import stat
from pathlib import Path

import pytest

from dpbandits.folders import fault_of, fault_of_folder, make_private

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners")
as_root = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root gives folders away"
)
STRANGER = 54321


def folder(path: Path, mode: int = 0o700, owner: int | None = None) -> Path:
    path.mkdir()
    path.chmod(mode)  # whatever the umask is
    if owner is not None:
        os.chown(path, owner, owner)
    return path


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500])
def test_folders_that_only_their_owner_writes_are_in_order(tmp_path, mode):
    assert fault_of_folder(folder(tmp_path / "a", mode)) is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
@pytest.mark.parametrize("below", ["", "b"])
def test_folders_that_others_write_are_not(tmp_path, mode, below):
    """A sticky one may stand above, but is no folder of one's own."""
    shared = folder(tmp_path / "a", mode)
    inner = folder(shared / below) if below else shared
    fault = fault_of_folder(inner)
    if below and mode == 0o1777:
        assert fault is None
    else:
        assert fault == (shared, "can be written by other users", mode != 0o1777)


@as_root
@pytest.mark.parametrize("place", ["a", "a/b", "a/b/c"])
@pytest.mark.parametrize("mode", [0o700, 0o1777])
def test_folders_of_another_user_are_not(tmp_path, place, mode):
    inner = folder(folder(folder(tmp_path / "a", 0o1777) / "b") / "c")
    os.chown(tmp_path / place, STRANGER, STRANGER)
    (tmp_path / place).chmod(mode)
    assert fault_of_folder(inner) == (
        tmp_path / place,
        f"belongs to another user (uid {STRANGER})",
        False,
    )


def test_links_are_followed_one_by_one(tmp_path):
    bad, good = folder(tmp_path / "bad", 0o777), folder(tmp_path / "good")
    (good / "to_bad").symlink_to(bad)
    assert fault_of_folder(good / "to_bad").place == bad
    folder(bad / "inner")
    (good / "below_bad").symlink_to("../bad/inner")
    assert fault_of_folder(good / "below_bad").place == bad
    (good / "own").symlink_to(folder(good / "inner"), target_is_directory=True)
    assert fault_of_folder(good / "own") is None
    assert fault_of_folder(good / "own" / ".." / "own") is None  # .. of the target
    (bad / "to_good").symlink_to(good)  # which others may replace
    assert fault_of_folder(bad / "to_good" / "own").place == bad


@as_root
def test_links_of_another_user_are_not_followed(tmp_path):
    own, sticky = folder(tmp_path / "own"), folder(tmp_path / "sticky", 0o1777)
    (sticky / "link").symlink_to(own)
    assert fault_of_folder(sticky / "link") is None
    os.chown(sticky / "link", STRANGER, STRANGER, follow_symlinks=False)
    assert fault_of_folder(sticky / "link").place == sticky / "link"


def test_a_folder_that_is_not_there_is_no_answer_unless_others_can_make_it(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to("circle")
    for missing in ("none", "none/such", "file", "file/below", "circle"):
        with pytest.raises(OSError, match=missing.partition("/")[0]):
            fault_of_folder(tmp_path / missing)
    shared = folder(tmp_path / "shared", 0o777)
    assert fault_of_folder(shared / "none" / "such").place == shared


def test_relative_folders_stand_below_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(folder(tmp_path / "here", 0o777))
    folder(tmp_path / "here" / "inner")
    assert fault_of_folder(Path("inner")).place == tmp_path / "here"


def test_new_folders_are_private(tmp_path):
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b" / "c")
        make_private(tmp_path / "a" / "b" / "c")  # is there
    finally:
        os.umask(before)
    made = [tmp_path / one for one in ("a", "a/b", "a/b/c")]
    assert [stat.S_IMODE(one.stat().st_mode) for one in made] == [0o700] * 3
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_private(tmp_path / "file" / "below")


def test_without_owners_nothing_is_asked(tmp_path, monkeypatch):
    shared = folder(tmp_path / "a", 0o777)
    monkeypatch.delattr(os, "geteuid")
    assert fault_of_folder(shared) is None
    assert fault_of(shared, shared.stat()) is None
