"""The log of the service: a line of JSON for each event, without anybody's data.

Lines have names of experiments, ids of keys and kinds of errors.  They have no rewards, contexts,
units, decisions or texts of requests.  Rewards are not logged at all, because when they come is not
public.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from contextlib import suppress
from typing import Any


def log(event: str, **facts: str | int | float | None) -> None:
    """Write an event to standard error."""
    line: dict[str, Any] = {"at": round(time.time(), 3), "event": event, **facts}
    with suppress(OSError, ValueError):  # nobody reads it
        print(json.dumps(line), file=sys.stderr, flush=True)


def take_all_over() -> None:
    """Write what libraries log, and warnings, as lines of JSON, too."""
    logging.getLogger().addHandler(_Lines(logging.WARNING))
    # Policies log answers that are late or clipped: when they come is not public.
    logging.getLogger("dpbandits").setLevel(logging.CRITICAL)
    warnings.showwarning = _warned


class _Lines(logging.Handler):
    """Writes records of other loggers, without tracebacks, which may have data."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[0] if record.exc_info else None
        kind = None if error is None else error.__name__
        detail = record.getMessage() if error is None else None
        log("logged", logger=record.name, level=record.levelname, error=kind, detail=detail)


def _warned(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    # Of answers policies only log: warnings are about public features.
    log("warning", kind=category.__name__, detail=str(message))
