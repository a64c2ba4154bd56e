"""What a first run tells of itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer


def announce_compilation() -> None:
    """Where nothing is cached yet: even a policy that is only built has parts of it compiled."""
    from ..kernel import cache_folder

    folder = cache_folder()
    if folder.is_dir() and any(folder.iterdir()):
        return
    takes = "compiles the algorithms, which takes half a minute or so"
    if _can_write(folder):
        typer.echo(f"The first run {takes}; later runs start at once.", err=True)
    else:
        typer.echo(
            f"Every run {takes}: the cache folder {folder} cannot be written, $DPBANDITS_CACHE_DIR"
            " may name another.",
            err=True,
        )


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
