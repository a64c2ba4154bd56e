"""Messages of a first run, which compiles."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from ..folders import make_private


def announce_compilation() -> None:
    """Announce compilation if the cache is empty: even building a policy compiles parts of it."""
    from numba.core import config

    from ..kernel_cache import cache_folder, cache_refusal

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
            " DPBANDITS_CACHE_DIR to another folder.",
            err=True,
        )


def can_write(folder: Path) -> bool:
    """Whether the folder can hold compiled code; creates the folder."""
    try:
        make_private(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
