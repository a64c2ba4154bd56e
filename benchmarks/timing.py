"""How things are timed here: the best of several repetitions, after a warm-up that compiles."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, its value, and what it is to be compared with."""

    name: str
    value: float
    unit: str
    target: str = ""
    remark: str = ""


def best(work: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the fastest of ``repeats`` calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
