"""Releases at rounds that are fixed in advance: no record can move them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...kernel import kernel

_MOST_KEPT = 10**8  # features of a batch


@kernel
def next_release(rounds: int, batch: int, growth: float, longest: float) -> int:
    """Round of the release after that at ``rounds``: later by a share, within the bounds."""
    # ``min`` before ``int``: ``longest`` may be infinite.
    return max(rounds + batch, int(min(np.ceil(rounds * (1.0 + growth)), rounds + longest)))


class Schedule(NamedTuple):
    """Schedule of releases."""

    batch: int  # rounds of the first batch, and of the shortest
    growth: float = 0.0  # a batch is this share of the rounds before it
    longest: float = math.inf  # rounds of the longest batch

    def releases(self, horizon: int) -> int:
        """Number of releases up to a horizon; at least 1.

        >>> [one.releases(30) for one in (Schedule(4), Schedule(1, 1.0), Schedule(1, 1.0, 5.0))]
        [7, 5, 8]
        """
        if self.growth == 0.0:
            return max(1, horizon // self.batch)
        releases, rounds = 0, self.batch
        while rounds <= horizon:
            step = next_release(rounds, *self) - rounds
            if step >= self.longest:  # as all that follow
                return releases + 1 + int((horizon - rounds) // self.longest)
            releases, rounds = releases + 1, rounds + step
        return max(1, releases)

    def memory(self, horizon: int, dimension: int) -> dict[str, int]:
        """Memory for records until their batch is over: the length of the longest batch
        (``capacity``), if not too long, and the round after which none is kept (``last``).

        >>> Schedule(1, 1.0).memory(30, dimension=2)
        {'capacity': 8, 'last': 16}
        """
        capacity, last, end = min(self.batch, horizon), 0, self.batch
        while end <= horizon:
            capacity, last, end = max(capacity, end - last), end, next_release(end, *self)
        if (room := capacity * dimension) > _MOST_KEPT:
            raise ArgumentError(
                f"horizon or growth must be smaller for features of {dimension} numbers, got"
                f" horizon={horizon}: the longest batch would keep {room} numbers in memory, and at"
                f" most {_MOST_KEPT} are allowed",
                "horizon",
            )
        return {"capacity": capacity, "last": last}
