"""Sums behind the wall, of which most releases are made, in the field ``total`` of the raw side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...kernel import Vector, kernel
from ...protocol import Row


class Sums(NamedTuple):  # the raw side
    total: np.ndarray  # (n,) of what was not released yet: one sum, or one for each arm


@kernel
def accumulate(params: Any, raw: Any, arm: int, x: Row, reward: float, n: int) -> None:
    """Add a reward to the only sum."""
    raw.total[0] += reward


@kernel
def accumulate_by_arm(params: Any, raw: Any, arm: int, x: Row, reward: float, n: int) -> None:
    """Add a reward to the sum of its arm."""
    raw.total[arm] += reward


@kernel
def sensitivity(params: Any, public: Any, norm: int) -> float:
    """The sensitivity of a set of sums if each record enters one of them, once."""
    return params.width


@kernel
def summarise(params: Any, raw: Any, public: Any, memo: Vector, statistic: Vector) -> None:
    """Return all sums, and reset them."""
    for i in range(statistic.size):
        statistic[i] = raw.total[i]
        raw.total[i] = 0.0


# Rewards that cross the wall one by one, each as soon as it is there: a public ``clock`` has these
# slots, or begins with them, and ``publish`` clears ``CLOCK.fresh``.


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
