"""Processes that help this one: they import this package, and play pieces of its tasks.

They stay for the next call, and end when they have nothing to do, or their parent ends.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from typing import IO, Any

from .tasks import Piece, Task, dumped, played, unpacked

_GONE = 1.0  # between looks of a helper at whether its parent lives
_IDLE = 30.0  # seconds after which a helper ends that has nothing to do


# Here ------------------------------------------------------------------------------------------


class Helper:
    """A process that plays pieces, as seen from this one."""

    def __init__(self) -> None:
        if getattr(sys, "frozen", False) or not sys.executable:
            raise OSError("this program is no Python interpreter")
        path = [str(folder) for folder in sys.path]
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
            f" sys.path[:] = {path!r}; from {__name__} import help_out; help_out()"
        )
        self._begun = time.time()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._pipes = self._process.stdin, self._process.stdout
        self._greeted, self._of = False, _surroundings()
        self.taken = threading.Event()  # by a call, while it rested
        LIVING.add(self)

    @property
    def is_of_today(self) -> bool:
        """Whether it lives, and a new one would have no other modules, files or places."""
        if self._process.poll() is not None or self._of != _surroundings():
            return False
        return all(_written(module) < self._begun for module in list(sys.modules.values()))

    def ask(self, what: bytes | Piece) -> bytes:
        """Send a task or a piece, and wait for the answer."""
        sent, received = self._pipes
        assert sent is not None
        assert received is not None
        pickle.dump(what, sent)
        sent.flush()
        self._greeted = self._greeted or _GREETING in received  # after what others have printed
        return _read(received)

    def kill(self) -> None:
        """End it, whatever it does.  A thread that waits for it may hold its pipes."""
        LIVING.discard(self)
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End one that no other thread waits for."""
        self.kill()
        for pipe in filter(None, self._pipes):
            with suppress(OSError):
                pipe.close()


LIVING: set[Helper] = set()
RESTING: list[Helper] = []  # those that have nothing to do
_GREETING = b"a helper of dpbandits\n"

if hasattr(os, "register_at_fork"):  # a fork has no helpers of its own
    os.register_at_fork(after_in_child=RESTING.clear)
    os.register_at_fork(after_in_child=LIVING.clear)


def rested() -> Helper | None:
    """A helper that rests, and is as a new one; None where none does."""
    with suppress(IndexError):
        while not (helper := RESTING.pop()).is_of_today:
            helper.end()
        helper.taken.set()
        return helper
    return None


def rest(helper: Helper) -> None:
    """Keep a helper for another call, and clear it away when none has come."""
    helper.taken.clear()
    RESTING.append(helper)
    if helper not in LIVING or not helper.taken.wait(_IDLE + 1.0):  # killed, or over by itself
        with suppress(ValueError):
            RESTING.remove(helper)
            helper.end()


def _surroundings() -> tuple[str, ...]:
    """Where modules and files are looked for."""
    return os.getcwd(), *map(str, sys.path)


def _written(module: Any) -> float:
    """When a module's file was written; long ago for those that are installed."""
    with suppress(Exception):  # of any object that stands for a module
        if not module.__file__.startswith((sys.prefix, sys.base_prefix)):
            return os.stat(module.__file__).st_mtime
    return 0.0


@atexit.register
def _end() -> None:
    for helper in list(LIVING):
        helper.kill()


# In a helper -----------------------------------------------------------------------------------


def _write(answer: bytes, to: IO[bytes]) -> None:
    to.write(len(answer).to_bytes(8, "little"))
    to.write(answer)
    to.flush()


def _read(source: IO[bytes]) -> bytes:
    """What ``_write`` has written; it is unpickled later, while the helper goes on."""
    head = source.read(8)
    answer = source.read(size := int.from_bytes(head, "little"))
    if len(head) < 8 or len(answer) < size:
        raise EOFError
    return answer


def help_out() -> None:
    """Be a helper: play what standard input brings, until it ends or brings nothing for long."""
    nothing = os.open(os.devnull, os.O_RDWR)  # and standard error, where that was closed
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what a task prints is no answer
    answers.write(b"\n" + _GREETING)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    task: Any = None
    with suppress(EOFError, BrokenPipeError):
        while True:
            patience = threading.Timer(_IDLE, os._exit, (0,))
            patience.daemon = True
            patience.start()
            what = pickle.load(asked)
            patience.cancel()
            if isinstance(what, bytes):
                task, reason = unpacked(what)
                _write(reason.encode(), answers)
            else:
                _write(_answered(task, what), answers)


def _end_with(parent: int) -> None:
    """End also in the middle of a piece, when the parent has ended and nobody waits for it."""
    while os.getppid() == parent:
        time.sleep(_GONE)
    os._exit(0)


def _answered(task: Task, piece: Piece) -> bytes:
    """The results of a piece, and warnings; nothing where it fails, or they cannot be sent."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            results = played(task, piece)
        except Exception:  # which is raised where it is played again
            return b""
    told = [(one.message, one.category, one.filename, one.lineno) for one in caught]
    if not told:
        with suppress(Exception):
            return pickle.dumps((results, told))
    try:
        answer = dumped((results, told))
        pickle.loads(answer)
    except Exception:  # of any object within
        return b""
    return answer
