"""Locks on files, against all other threads and processes."""

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

_taken = threading.local()


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Open a file, which is made for its owner alone where there is none, and lock it.

    Returns:
        Its descriptor, within the block.

    Raises:
        ReentryError: this thread has locked it already, and would wait for itself.
        OSError: the file cannot be opened.
    """
    mine: set[Path] = _taken.__dict__.setdefault("paths", set())
    if path in mine:
        raise ReentryError(f"nothing was done: the call came while its own thread wrote {path}")
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    mine.add(path)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        mine.discard(path)
        os.close(handle)  # which unlocks
