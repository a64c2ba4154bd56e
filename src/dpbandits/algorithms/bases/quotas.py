"""Rounds laid out beforehand: a quota for each arm in every phase, whose sums are released at once.

The public side has ``goal``, ``played`` (K,) and a ``clock`` with the slots of ``PhaseClock``, or
that begins with them; the raw side ``total`` (K,).  A phase's length never depends on its rewards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...kernel import Generator, kernel
from ...protocol import Contexts, Row

FOREVER = 1 << 60


class PhaseClock(NamedTuple):  # slots of a public clock
    phase: int = 0  # from 1
    left: int = 1  # rounds of the phase


CLOCK = PhaseClock()


@kernel
def choose(params: Any, public: Any, contexts: Contexts, rng: Generator) -> tuple[int, float]:
    """The first arm whose quota is not used up."""
    for a in range(params.n_arms):
        if public.played[a] < public.goal[a]:
            return a, 1.0
    return 0, 1.0


@kernel
def hold_rounds(params: Any, public: Any, arm: int) -> int:
    return public.goal[arm] - public.played[arm]


@kernel
def record_pull(params: Any, public: Any, arm: int, x: Row, n: int) -> None:
    public.played[arm] += n
    public.clock[CLOCK.left] -= n


@kernel
def release_due(params: Any, public: Any) -> bool:
    return public.clock[CLOCK.left] == 0
