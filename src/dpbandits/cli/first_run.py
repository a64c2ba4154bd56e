"""A first run: its messages, and its compilation on two cores."""

from __future__ import annotations

import contextlib
import multiprocessing
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from numba.core import config, event

from ..folders import make_private

if TYPE_CHECKING:
    from ..studies.cells import Cell


def announce_compilation() -> None:
    """Announce compilation if the cache is empty: even building a policy compiles parts of it."""
    from ..kernel import cache_folder, cache_refusal

    folder = cache_folder()
    if config.DISABLE_JIT:
        return
    takes = "compiles the algorithms, which takes half a minute or so"
    if refusal := cache_refusal(folder):
        typer.echo(f"Every run {takes}: {refusal}", err=True)
    elif folder.is_dir() and any(folder.iterdir()):
        return
    elif can_write(folder):
        typer.echo(f"The first run {takes}; later runs start at once.", err=True)
    else:
        typer.echo(
            f"Every run {takes}: the cache folder {folder} cannot be written. Set"
            " DPBANDITS_CACHE_DIR to another.",
            err=True,
        )


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


def can_write(folder: Path) -> bool:
    """Whether the folder can hold compiled code; creates the folder."""
    try:
        make_private(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
