"""Locks on files, against all other threads and processes.

A lock belongs to the process that took it.  A forked child has copies of all open files, and would
keep their locks until it ends.  So it closes them first.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import ReentryError

try:
    import fcntl
except ImportError:  # not on POSIX
    fcntl = None  # type: ignore[assignment]


class Lock:
    """A file that is open and locked; it is made for its owner alone where there is none.

    Args:
        path: of the file.
        wait: whether to wait for who has it.

    Attributes:
        handle: its descriptor.

    Raises:
        BlockingIOError: another has it, and ``wait`` is False.
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path, *, wait: bool = True) -> None:
        with _guard:
            self.handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            _held.add(self)
        try:
            if fcntl is not None:
                fcntl.flock(self.handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BaseException:
            self.release()
            raise

    def read(self, at: int = 0, size: int | None = None) -> bytes:
        """All that is in the file, or up to ``size`` bytes from ``at`` on."""
        os.lseek(self.handle, at, os.SEEK_SET)
        if size is not None:
            return os.read(self.handle, size)
        return b"".join(iter(lambda: os.read(self.handle, 2**20), b""))

    def write(self, content: bytes, at: int) -> None:
        """Write all of some bytes: a disk that is nearly full may take less at once."""
        os.lseek(self.handle, at, os.SEEK_SET)
        view = memoryview(content)
        while view:
            view = view[os.write(self.handle, view) :]

    def release(self) -> None:
        """Unlock and close the file; in a forked process nothing is left to do."""
        with _guard:
            if self not in _held:
                return
            _held.discard(self)
            try:
                if fcntl is not None:  # by name: a child may not have closed its copy yet
                    fcntl.flock(self.handle, fcntl.LOCK_UN)
            finally:
                os.close(self.handle)


@contextmanager
def locked(path: Path) -> Iterator[Lock]:
    """Have a file locked in a block.

    Raises:
        ReentryError: this thread has locked it already, and would wait for itself.
        OSError: the file cannot be opened.
    """
    mine: set[Path] = _taken.__dict__.setdefault("paths", set())
    if path in mine:
        raise ReentryError(
            f"nothing was done: this call interrupted a write of {path} in the same thread, as a"
            " signal handler does"
        )
    lock = Lock(path)
    mine.add(path)
    try:
        yield lock
    finally:
        mine.discard(path)
        lock.release()


# Forks ---------------------------------------------------------------------------------------

_held: set[Lock] = set()
_guard = threading.RLock()  # no file is open without being held when the process forks
_taken = threading.local()


def _close_in_child() -> None:
    while _held:
        os.close(_held.pop().handle)
    _taken.__dict__.clear()
    _guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_close_in_child
    )
