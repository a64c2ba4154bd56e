"""Rewards that cross the wall one by one, each as soon as it is there.

The raw side holds it as ``total`` (1,); the public ``clock`` has the slots of ``RoundClock``, or
begins with them.  ``publish`` has to clear ``CLOCK.fresh``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...kernel import kernel
from ...protocol import Row
from .sums import accumulate, sensitivity, summarise


class RoundClock(NamedTuple):  # slots of a public clock
    rounds: int = 0
    arm: int = 1  # of the last round
    fresh: int = 2  # whether its reward is to be released


CLOCK = RoundClock()


@kernel
def record_pull(params: Any, public: Any, arm: int, x: Row, n: int) -> None:
    public.clock[CLOCK.rounds] += n
    public.clock[CLOCK.arm] = arm
    public.clock[CLOCK.fresh] = 1


@kernel
def release_due(params: Any, public: Any) -> bool:
    return public.clock[CLOCK.fresh] == 1


EVERY_ROUND: dict[str, Any] = {  # kernels but for ``init``, ``choose`` and ``publish``
    "record_pull": record_pull,
    "accumulate": accumulate,
    "release_due": release_due,
    "sensitivity": sensitivity,
    "summarise": summarise,
    "skips_closed": True,
}
