"""How things are timed here, and what a group reports.

Times are processor times of this process, so that other work on the machine counts little: the best
of several repetitions, after one that compiles.  Where single rounds are timed, or what a user
waits for, they are times of the clock.
"""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_COMPARE = {"<=": operator.le, ">=": operator.ge, "<": operator.lt}
_OF_TIME = {"ns": 1, "us": 1, "ms": 1, "s": 1, "rounds/s": -1}  # the power of a second in a unit


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: what was measured.
        value: None for what was left out; ``remark`` says why.
        unit: of the value; "x" for a ratio.
        target: what it is to be compared with: "<= 3", "< 1" or ">= 25".
        remark: what else is to be known of it.
    """

    name: str
    value: float | None
    unit: str
    target: str = ""
    remark: str = ""

    def missed(self, slowness: float = 1.0) -> bool:
        """Whether the value misses its target, on a machine that takes ``slowness`` times as long
        as the one for which targets in units of time are set.
        """
        found = re.match(r"(<=|>=|<) ([\d.,e-]+)", self.target)
        if self.value is None or found is None:
            return False
        limit = float(found[2].replace(",", "")) * slowness ** _OF_TIME.get(self.unit, 0)
        return not _COMPARE[found[1]](self.value, limit)

    @classmethod
    def skipped(cls, name: str, reason: ImportError) -> Row:
        return cls(name, None, "", "", f"skipped: {reason}")


def scaled(full: int, size: float, least: int = 1) -> int:
    """How many rounds, runs or repetitions of the full number there are at a size; at least
    ``least``.
    """
    return max(least, round(full * size))


def best(work: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the fastest of ``repeats`` calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)
