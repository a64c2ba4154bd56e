"""What most releases are made of: sums behind the wall, in the field ``total`` of the raw side."""

from __future__ import annotations

from typing import Any

from ...kernel import Vector, kernel
from ...protocol import Row


@kernel
def accumulate(params: Any, raw: Any, arm: int, x: Row, reward: float, n: int) -> None:
    """One sum, of rewards."""
    raw.total[0] += reward


@kernel
def accumulate_by_arm(params: Any, raw: Any, arm: int, x: Row, reward: float, n: int) -> None:
    """A sum for each arm."""
    raw.total[arm] += reward


@kernel
def sensitivity(params: Any, public: Any, norm: int) -> float:
    """The sensitivity of sums of which a record enters one, once."""
    return params.width


@kernel
def summarise(params: Any, raw: Any, public: Any, memo: Vector, statistic: Vector) -> None:
    """All sums, which start again."""
    for i in range(statistic.size):
        statistic[i] = raw.total[i]
        raw.total[i] = 0.0
