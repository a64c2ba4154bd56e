"""One call of a policy at a time."""

from __future__ import annotations

import threading

from ..errors import ReentryError


class Turns:
    """A lock that threads take in turn, and that refuses a call from within a step.

    ``with turns:`` is for calls that read, which may be nested; ``with turns.step:`` for calls that
    change the policy.  A step must not be entered by its own thread: a signal handler runs between
    two instructions, when a release may be half made.
    """

    def __init__(self) -> None:
        self.lock, self.stepping = threading.RLock(), False
        self.step = _Step(self)

    def __enter__(self) -> None:
        self.lock.acquire()
        if self.stepping:  # by this thread, which has the lock
            self.refuse()

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    def refuse(self) -> None:
        """Give the lock back, and say what to do."""
        self.lock.release()
        raise ReentryError(
            "nothing was done: the call came within another one of the same thread, as from a"
            " signal handler; set a flag there, and act on it between calls"
            " (docs/serving/operations.md)"
        )


class _Step:
    __slots__ = ("turns",)

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def __enter__(self) -> None:
        turns = self.turns
        turns.lock.acquire()
        if turns.stepping:
            turns.refuse()
        turns.stepping = True

    def __exit__(self, *_: object) -> None:
        self.turns.stepping = False
        self.turns.lock.release()
