"""Forked processes that tell numbers while they work, and may be killed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from typing import NoReturn

from .walk import require

Work = Callable[[Callable[[int], None]], None]  # it gets a function that tells a number


class Forked:
    """A forked process that works, and tells numbers."""

    def __init__(self, work: Work) -> None:
        reading, writing = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            _work(work, writing)
        os.close(writing)
        self.told = os.fdopen(reading, "rb")

    def ended(self) -> tuple[int, bool]:
        """Wait for the end.

        Returns:
            The last number that the process told, or 0, and whether it was killed.
        """
        with self.told:
            numbers = self.told.read().split()
        _, status = os.waitpid(self.process, 0)
        return int(numbers[-1]) if numbers else 0, os.WIFSIGNALED(status)


def _work(work: Work, writing: int) -> NoReturn:
    def told(number: int) -> None:
        os.write(writing, b"%d\n" % number)

    try:
        work(told)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(0)


def killed(work: Work, rng: random.Random, early: bool) -> int:
    """Let a process work, and kill it: early, or after it has told a number.

    Returns:
        The last number that it told, or 0.
    """
    child, first = Forked(work), b""
    if not early:
        first = child.told.readline()
    time.sleep(rng.uniform(0.0, 0.05))
    os.kill(child.process, signal.SIGKILL)
    number, by_signal = child.ended()
    require(by_signal, "a process ended with an error, which it has printed")
    return max(number, int(first or 0))
