"""One call of a policy at a time, and a commit after each."""

from __future__ import annotations

import threading
from typing import Protocol

from ..errors import ReentryError


class Keeping(Protocol):
    """What keeps the policy: see ``session.keeping.Keeper``."""

    def commit(self) -> None:
        """Write all changes."""

    def settle(self) -> None:
        """Repeat a commit that failed."""


class Turns:
    """A lock that threads take in turn, and that refuses a call from within a step.

    ``with turns:`` is for calls that read, which may be nested; ``with turns.step:`` for calls that
    change the policy.  A step must not be entered by its own thread: a signal handler runs between
    two instructions, when a release may be half made.

    Attributes:
        keeper: commits at the end of each step, before anything of it leaves; None for a policy in
            memory only.
        batching: whether a block of several steps makes the commit instead.
    """

    def __init__(self) -> None:
        self.lock, self.stepping = threading.RLock(), False
        self.keeper: Keeping | None = None
        self.batching = False
        self.dirty = False  # whether a step may have changed something that was not committed
        self.step, self.aside = _Step(self, commits=True), _Step(self, commits=False)

    def __enter__(self) -> None:
        self.lock.acquire()
        if self.stepping:  # by this thread, which has the lock
            self.refuse()
        if self.keeper is not None:
            self.settle(self.keeper)

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    def settle(self, keeper: Keeping) -> None:
        """Make earlier results durable before anything else is done or shown."""
        if self.batching:
            return
        try:
            if self.dirty:
                keeper.commit()
                self.dirty = False
            else:
                keeper.settle()
        except BaseException:
            self.lock.release()
            raise

    def refuse(self) -> None:
        """Give the lock back, and say what to do."""
        self.lock.release()
        raise ReentryError(
            "nothing was done: this call interrupted another call in the same thread, as a signal"
            " handler does. Set a flag in the handler, and act on the flag between calls"
            " (docs/serving/operations.md)"
        )


class _Step:
    __slots__ = ("commits", "turns")

    def __init__(self, turns: Turns, *, commits: bool) -> None:
        self.turns, self.commits = turns, commits

    def __enter__(self) -> None:
        turns = self.turns
        turns.lock.acquire()
        if turns.stepping:
            turns.refuse()
        if turns.keeper is not None and self.commits:
            turns.settle(turns.keeper)
            turns.dirty = True
        turns.stepping = True

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        turns = self.turns
        try:
            if turns.keeper is not None and self.commits and not turns.batching:
                turns.keeper.commit()
                turns.dirty = False
        finally:
            turns.stepping = False
            turns.lock.release()
