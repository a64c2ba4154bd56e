"""Showing how far a study is: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_SECONDS_BETWEEN_LINES = 5.0


class StudyProgress(Progress):
    """Shows ``stages`` with their runs, and the time that all of them still take; called with
    (what, runs done, runs in all).
    """

    def __init__(self, console: Console, stages: Mapping[str, int | None]) -> None:
        bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        left = TextColumn("{task.fields[left]}")
        columns = (*bar, TextColumn("runs"), TimeElapsedColumn(), left)
        super().__init__(*columns, console=console, disable=not console.is_terminal)
        self._bars = {
            one: self.add_task(escape(one), total=total, left="") for one, total in stages.items()
        }
        self._stages = {one: (0, total or 0) for one, total in stages.items()}
        self._pace = Pace()
        self._spoken = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        self._stages[what] = done, total
        left = in_words(self._pace.left(*map(sum, zip(*self._stages.values(), strict=True))))
        self.update(self._bars[what], completed=done, total=total, left=left)
        now = time.monotonic()
        if self.disable and (done == total or now - self._spoken >= _SECONDS_BETWEEN_LINES):
            self._spoken = now
            line = ", ".join(filter(None, (f"{what}: {done} of {total} runs", left)))
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class Pace:
    """Estimates the time that is left from the pace in the second half of the time so far.  So it
    forgets compilation and parts that were found finished, and follows workers that come and go.
    The time until the first runs are done counts for nothing: it is that of starting.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._seen: deque[tuple[float, int]] = deque()

    def left(self, done: int, total: int) -> float | None:
        """Seconds until all are done; None where nothing is left, or the pace is unknown."""
        now = self._clock()
        self._seen.append((now, done))
        while self._seen[0] != (now, done) and self._seen[1][0] <= (self._start + now) / 2:
            self._seen.popleft()
        then, before = self._seen[0]
        if done >= total or done <= before:
            return None
        return (total - done) * (now - then) / (done - before)


def in_words(seconds: float | None) -> str:
    """A time that is left, in words; nothing for None.

    >>> in_words(30), in_words(600), in_words(9000)
    ('less than a minute left in all', 'about 10 min left in all', 'about 2.5 h left in all')
    """
    if seconds is None:
        return ""
    if seconds < 60:
        return "less than a minute left in all"
    minutes = seconds / 60
    amount = f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
    return f"about {amount} left in all"
