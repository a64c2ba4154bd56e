"""Showing how far a study is: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_SECONDS_BETWEEN_LINES = 5.0


class StudyProgress:
    """To be called with (what, done, total), inside a ``with`` block."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Progress | None = None
        if console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("runs"),
                TimeElapsedColumn(),
            )
            self._bars = Progress(*columns, console=console)
        self._tasks: dict[str, TaskID] = {}
        self._spoken = time.monotonic()

    def __enter__(self) -> StudyProgress:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bars is not None:
            self._bars.stop()

    def announce(self, what: str, total: int) -> None:
        """Show something that has not begun."""
        if self._bars is not None:
            self._tasks[what] = self._bars.add_task(what, total=total)

    def __call__(self, what: str, done: int, total: int) -> None:
        """``done`` of the ``total`` runs in ``what`` are done."""
        if self._bars is not None:
            self._bars.update(self._tasks[what], completed=done, total=total)
        elif done == total or time.monotonic() - self._spoken >= _SECONDS_BETWEEN_LINES:
            self._spoken = time.monotonic()
            self._console.print(f"{what}: {done} of {total} runs", markup=False, highlight=False, soft_wrap=True)
