"""The log of the service: a line of JSON for each event, without anybody's data.

Lines have names of experiments, ids of keys and kinds of errors.  They have no rewards, contexts,
units, decisions or texts of requests.  Rewards are not logged at all, because when they come is not
public.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from typing import Any


def log(event: str, **facts: str | int | float | None) -> None:
    """Write an event to standard error."""
    line: dict[str, Any] = {"at": round(time.time(), 3), "event": event, **facts}
    with suppress(OSError, ValueError):  # nobody reads it
        print(json.dumps(line), file=sys.stderr, flush=True)
