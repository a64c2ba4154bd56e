"""The compiled loop over arms, and what both loops keep of a run: one source, one compiled copy per
algorithm and kind of environment.

The arm is chosen once and stands for ``hold_rounds`` rounds; the environment answers with the sum
of their rewards.  The cost is that of the releases, not of the rounds.  A hold is never split,
because two smaller binomial draws would not be the same random numbers; only the horizon cuts the
last one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..environments.base import ArmsKernels
from ..kernel import Kernel, bind, entry, kernel, unbound
from ..policies.protocol import Kernels
from ..policies.steps import steps_of
from ..privacy.ledger import is_full

prepare = choose = hold_rounds = record_pull = accumulate = release_due = cross = draw = regret = (
    clipped
) = unbound

DONE, PAUSED, LEDGER_FULL, BAD_SENSITIVITY = range(4)
ROUND, MARK, ARM, LEFT = range(4)


class Tally(NamedTuple):
    """Where a run stands and what has been seen of it; the loop continues from here when it is
    called again.
    """

    cursor: np.ndarray  # (4,) int64: rounds played, next mark, standing arm, rounds left for it
    marks: np.ndarray  # (M,) int64: rounds after which regret is recorded, increasing
    curve: np.ndarray  # (M,) cumulative expected regret at the marks
    sums: np.ndarray  # (2,) regret and reward so far
    counts: np.ndarray  # (K,) int64: rounds of each arm
    # (M,) from the estimated to the true parameter at the marks; (0,) where there is none
    distance: np.ndarray
    trace: np.ndarray  # (T,) int64: the arm of every round; (0,) where nobody asked


def new_tally(marks: np.ndarray, n_arms: int, *, distances: bool = False, trace: int = 0) -> Tally:
    """The start of a run; ``trace`` is for how many rounds to record the arm."""
    return Tally(
        cursor=np.zeros(4, np.int64),
        marks=marks,
        curve=np.zeros(marks.size),
        sums=np.zeros(2),
        counts=np.zeros(n_arms, np.int64),
        distance=np.full(marks.size if distances else 0, np.nan),
        trace=np.zeros(trace, np.int64),
    )


@kernel
def _clipped(environment, arm, start, n, clip, lo, hi, rng):
    """The sum of n rewards, each clipped to [lo, hi] where ``clip`` says so."""
    if not clip:
        return draw(environment, arm, start, n, rng)
    total = 0.0
    for i in range(n):
        total += min(max(draw(environment, arm, start + i, 1, rng), lo), hi)
    return total


@entry
def _arms(
    params,
    raw,
    public,
    wall,
    environment,
    tally,
    bounds,
    horizon,
    until,
    max_hold,
    world_rng,
    choice_rng,
    privacy_rng,
):
    """Play until the horizon, or pause at the first step at or after round ``until``; see ``DONE``
    and its neighbours.

    ``max_hold`` = 1 takes every round of a hold by itself, for checks.
    """
    clip, lo, hi = bounds
    # Taken out once: in an entry every look into a named tuple counts references.
    cursor, marks, curve, sums, counts, ledger = (
        tally.cursor,
        tally.marks,
        tally.curve,
        tally.sums,
        tally.counts,
        wall.ledger,
    )
    t, mark = cursor[ROUND], cursor[MARK]
    status = DONE
    while t < horizon:
        if t >= until:
            status = PAUSED
            break
        if is_full(ledger):
            status = LEDGER_FULL
            break
        if cursor[LEFT] == 0:
            prepare(params, public, 0, choice_rng)
            cursor[ARM] = choose(params, public, 0, choice_rng)[0]
            cursor[LEFT] = hold_rounds(params, public, cursor[ARM])
        arm = cursor[ARM]
        n = min(cursor[LEFT], horizon - t, max_hold)
        cursor[LEFT] -= n
        for i in range(min(n, tally.trace.size - t)):
            tally.trace[t + i] = arm
        total = clipped(environment, arm, t, n, clip, lo, hi, world_rng)
        while mark < marks.size and marks[mark] <= t + n:
            curve[mark] = sums[0] + regret(environment, arm, t, marks[mark] - t)
            mark += 1
        sums[0] += regret(environment, arm, t, n)
        sums[1] += total
        counts[arm] += n
        record_pull(params, public, arm, 0, n)
        accumulate(params, raw, public, arm, 0, total, n)
        t += n
        if release_due(params, public) and not cross(params, raw, public, wall, t, privacy_rng):
            status = BAD_SENSITIVITY
            break
    cursor[ROUND], cursor[MARK] = t, mark
    return status


_bound: dict[tuple[Kernels, ArmsKernels], Kernel] = {}


def arms_loop(kernels: Kernels, environment: ArmsKernels) -> Kernel:
    """The loop of one algorithm in one kind of environment; compiled at its first call."""
    key = (kernels, environment)
    if key not in _bound:
        algorithm: dict[str, Any] = kernels._asdict()
        own = {
            name: algorithm[name]
            for name in (
                "prepare",
                "choose",
                "hold_rounds",
                "record_pull",
                "accumulate",
                "release_due",
            )
        }
        _bound[key] = bind(
            _arms,
            **own,
            cross=steps_of(kernels).cross_inside,
            clipped=bind(_clipped, draw=environment.draw),
            regret=environment.regret,
        )
    return _bound[key]
