"""The audit trail of an experiment: what was done to it, by whom, and why."""

from __future__ import annotations

import json
import struct
from collections.abc import MutableMapping
from typing import Any

from .results import written

SERVICE = "service"  # the kind of rows that a service keeps beside a policy
_TRAIL = b"trail"
_COUNT = struct.Struct(">Q")


class Trail:
    """The lines of a trail, which are rows of the policy's place.

    Args:
        notes: the rows beside the policy.

    Attributes:
        arms_changed: the number of the last line that is about an arm, from 1; 0 without one.
    """

    def __init__(self, notes: MutableMapping[tuple[str, bytes], bytes]) -> None:
        self._notes = notes
        self._count = sum(kind == SERVICE and key.startswith(_TRAIL) for kind, key in notes)
        about = [i for i, line in enumerate(self.lines, 1) if "arm" in line]
        self.arms_changed = about[-1] if about else 0

    def add(self, now: float, who: str, what: str, reason: str, **more: Any) -> None:
        """Add a line; one about an arm has it as ``arm``."""
        line = {"at": written(now), "who": who, "what": what, "reason": reason, **more}
        self._notes[SERVICE, _TRAIL + _COUNT.pack(self._count)] = json.dumps(line).encode()
        self._count += 1
        if "arm" in more:
            self.arms_changed = self._count

    @property
    def lines(self) -> list[dict[str, Any]]:
        """All lines."""
        rows = (self._notes[SERVICE, _TRAIL + _COUNT.pack(i)] for i in range(self._count))
        return [json.loads(row) for row in rows]
