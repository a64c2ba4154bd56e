"""Whether others can change what a folder holds, for folders whose files are run as code.

The rule, which is OpenSSH's for keys: a folder and all folders above it belong to this user or to
root, and only their owners may write to them; sticky folders, such as ``/tmp``, may stand above it.
For root it is the same rule: a command that runs as root in another user's home (``sudo``) must not
run that user's code.  Where there are no owners, as on Windows, nothing is asked.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # as in Linux


class Fault(NamedTuple):
    """What breaks the rule."""

    place: Path
    reason: str  # the fault of the place
    closable: bool  # whether ``chmod go-w`` by this user mends it


def fault_of_folder(folder: Path) -> Fault | None:
    """What breaks the rule in a folder, or above it; None if nothing does.

    Symbolic links are followed one by one, as others may replace any of them.

    Raises:
        OSError: there is no such folder, or nobody may look at it; those above it are in order.
    """
    if not hasattr(os, "geteuid"):
        return None
    ahead = [*reversed(folder.absolute().parts)]
    here, links = Path(ahead.pop()), 0
    status = here.lstat()
    while True:
        sticky = bool(ahead) and bool(status.st_mode & stat.S_ISVTX)
        if fault := fault_of(here, status, sticky=sticky):
            return fault
        if not ahead:
            return None
        part = ahead.pop()
        beyond = here.parent if part == ".." else here / part
        status = beyond.lstat()
        if not stat.S_ISLNK(status.st_mode):
            if not stat.S_ISDIR(status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(beyond))
            here = beyond
            continue
        if fault := fault_of(beyond, status):
            return fault
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))
        target = Path(os.readlink(beyond))
        ahead += reversed(target.parts)
        if target.is_absolute():
            here = Path(ahead.pop())
        status = here.lstat()


def fault_of(place: Path, status: os.stat_result, *, sticky: bool = False) -> Fault | None:
    """How a file, a folder or a link by itself breaks the rule; None if it does not.

    Args:
        place: where it is.
        status: its owner and mode.
        sticky: whether others may write to it, as they cannot replace what is in it.
    """
    if not hasattr(os, "geteuid"):
        return None
    user = os.geteuid()
    if status.st_uid not in (0, user):
        return Fault(place, f"belongs to another user (uid {status.st_uid})", False)
    if status.st_mode & _OTHERS_WRITE and not (sticky or stat.S_ISLNK(status.st_mode)):
        shared = status.st_uid != user or bool(status.st_mode & stat.S_ISVTX)  # as /tmp is
        return Fault(place, "can be written by other users", not shared)
    return None


def make_private(folder: Path) -> None:
    """Make a folder and those above it, as far as they are missing, for their owner only.

    Raises:
        OSError: one cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
