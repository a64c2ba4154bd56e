"""The compiled loop over arms: one source, one compiled copy per algorithm and kind of environment.

The arm is chosen once and stands for ``hold_rounds`` rounds; the environment answers with the sum
of their rewards.  The cost is that of the releases, not of the rounds.  A hold is never split,
because two smaller binomial draws would not be the same random numbers; only the horizon cuts the
last one.  When a search for the best arm is over, what it recommends is played to the horizon:
nothing more is recorded, and what was open then is never released.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..environments.base import ArmsKernels
from ..kernel import Generator, Kernel, Vector, bind, entry, kernel, unbound
from ..privacy.ledger import is_full
from ..protocol import Kernels, Wall
from .clipping import Entering, entered
from .tally import BAD_SENSITIVITY, CURSOR, DONE, LEDGER_FULL, PAUSED, Tally

prepare = choose = hold_rounds = record_pull = weigh = accumulate = release_due = unbound
release = draw = regret = clipped = stop = recommend = unbound

LEARNING = ("record_pull", "weigh", "accumulate", "release_due")
_STEPS = ("prepare", "choose", "hold_rounds", *LEARNING, "stop", "recommend")


@kernel
def _clipped(
    environment: Any, arm: int, start: int, n: int, entering: Entering, rng: Generator
) -> float:
    """The sum of n rewards, each as the policy takes it in."""
    if not entering.clip:
        return draw(environment, arm, start, n, rng)
    total = 0.0
    for i in range(n):
        total += entered(entering, draw(environment, arm, start + i, np.int64(1), rng))
    return total


@entry
def _arms(
    params: Any,
    raw: Any,
    public: Any,
    memo: Vector,
    wall: Wall,
    environment: Any,
    tally: Tally,
    entering: Entering,
    horizon: int,
    until: int,
    max_hold: int,
    world_rng: Generator,
    choice_rng: Generator,
    privacy_rng: Generator,
) -> int:
    """Play until the horizon, or pause at the first step at or after round ``until``.

    ``max_hold`` = 1 takes every round of a hold by itself, for checks.
    """
    # Taken out once: in an entry every look into a named tuple counts references.
    cursor, marks, curve, sums, counts, _, trace = tally
    ledger = wall.ledger
    t, mark = cursor[CURSOR.round], cursor[CURSOR.mark]
    status = DONE
    while t < horizon:
        if t >= until:
            status = PAUSED
            break
        if is_full(ledger):
            status = LEDGER_FULL
            break
        over = cursor[CURSOR.stopped] > 0
        if over and cursor[CURSOR.left] == 0:
            cursor[CURSOR.arm], cursor[CURSOR.left] = recommend(params, public), horizon - t
        elif cursor[CURSOR.left] == 0:
            prepare(params, public, 0, choice_rng)
            cursor[CURSOR.arm] = choose(params, public, 0, choice_rng)[0]
            cursor[CURSOR.left] = hold_rounds(params, public, cursor[CURSOR.arm])
        arm = cursor[CURSOR.arm]
        n = min(cursor[CURSOR.left], horizon - t, max_hold)
        cursor[CURSOR.left] -= n
        for i in range(min(n, trace.size - t)):
            trace[t + i] = arm
        total = clipped(environment, arm, t, n, entering, world_rng)
        while mark < marks.size and marks[mark] <= t + n:
            curve[mark] = sums[0] + regret(environment, arm, t, marks[mark] - t)
            mark += 1
        sums[0] += regret(environment, arm, t, n)
        sums[1] += total
        counts[arm] += n
        t += n
        if over:
            continue
        record_pull(params, public, arm, 0, n)
        weigh(params, public, arm, 0)
        accumulate(params, raw, arm, 0, total, n)
        if release_due(params, public):
            if not release(params, raw, public, memo, wall, t, privacy_rng):
                status = BAD_SENSITIVITY
                break
            if stop(params, public):
                cursor[CURSOR.stopped], cursor[CURSOR.left] = t, 0
    cursor[CURSOR.round], cursor[CURSOR.mark] = t, mark
    return status


@cache
def arms_loop(kernels: Kernels, crossing: Kernel, environment: ArmsKernels) -> Kernel:
    """The loop of one algorithm, with its release, in one kind of environment."""
    clipped = bind(_clipped, draw=environment.draw)
    return kernels.fill(
        _arms, *_STEPS, release=crossing, clipped=clipped, regret=environment.regret
    )
