"""Showing how far a study is: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_SECONDS_BETWEEN_LINES = 5.0


class StudyProgress(Progress):
    """Shows ``stages`` with their runs; called with (what, runs done, runs in all)."""

    def __init__(self, console: Console, stages: Mapping[str, int | None]) -> None:
        bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        columns = (*bar, TextColumn("runs"), TimeElapsedColumn())
        super().__init__(*columns, console=console, disable=not console.is_terminal)
        self._bars = {one: self.add_task(escape(one), total=total) for one, total in stages.items()}
        self._spoken = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        self.update(self._bars[what], completed=done, total=total)
        now = time.monotonic()
        if self.disable and (done == total or now - self._spoken >= _SECONDS_BETWEEN_LINES):
            self._spoken = now
            line = f"{what}: {done} of {total} runs"
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
