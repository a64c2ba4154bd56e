"""The command ``dpbandits``."""

import contextlib
import os
import sys

from .commands import app

NOT_WRITTEN = 1


def main() -> None:
    """Run the command line.  Failed reads or writes end in a sentence and exit code 1: a full disk,
    a folder without permission.  A pipe that closes early ends it silently, as is usual.
    """
    try:
        app(prog_name="dpbandits")
    except OSError as error:
        place = "the output" if error.filename is None else error.filename
        with contextlib.suppress(OSError):  # the place for errors may be full, too
            print(f"Error: {place}: {error.strerror or error}", file=sys.stderr, flush=True)
        _drop_output()
        sys.exit(NOT_WRITTEN)


def _drop_output() -> None:
    """Discard unwritten output; otherwise the interpreter tries again when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or no file
            os.dup2(nowhere, stream.fileno())


__all__ = ["app", "main"]
