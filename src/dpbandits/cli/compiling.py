"""Compilation on two cores, while a study runs."""

from __future__ import annotations

import contextlib
import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from numba.core import event

if TYPE_CHECKING:
    from ..studies.cells import Cell


@contextlib.contextmanager
def compiling_ahead(cells: Callable[[], Sequence[Cell]], jobs: int) -> Iterator[None]:
    """While the block computes the cells in order and has to compile, another process compiles
    their kernels in reverse order.  That process makes the same cells.

    Threads of one process compile one after the other; processes share compiled code.
    """
    helper = multiprocessing.get_context("spawn").Process(
        target=_compile_backwards, args=(cells,), daemon=True
    )
    if jobs == 1:
        yield
        return
    try:
        with event.install_listener("numba:compile", _AtFirst(helper.start)):
            yield
    finally:
        if helper.pid is not None:
            helper.kill()
            helper.join()


class _AtFirst(event.Listener):
    def __init__(self, act: Callable[[], None]) -> None:
        self._act: Callable[[], None] | None = act

    def on_start(self, event: event.Event) -> None:
        if self._act is not None:
            act, self._act = self._act, None
            act()

    def on_end(self, event: event.Event) -> None: ...


def _compile_backwards(cells: Callable[[], Sequence[Cell]]) -> None:
    # What is to be said, the other process says.
    with warnings.catch_warnings(action="ignore"), contextlib.suppress(Exception):
        for cell in reversed(cells()):
            compile_cell(cell)


def compile_cell(cell: Cell) -> None:
    """Play a round of the cell, which compiles all its code."""
    horizon = None if cell.horizon is None else 1
    replace(cell, horizon=horizon, runs=1, record=()).compute(1, lambda done, total: None)
