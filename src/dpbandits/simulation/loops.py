"""The compiled loops: one source each, one compiled copy per algorithm and kind of environment."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..calls import generator_at
from ..environments.base import ArmsKernels, ContextKernels
from ..kernel import Generator, Kernel, Vector, bind, entry, inlined, kernel, outlined, unbound
from ..privacy.ledger import is_full
from ..protocol import Kernels
from .clipping import Entering, entered
from .tally import BAD_SENSITIVITY, CURSOR, DONE, LEDGER_FULL, PAUSED

prepare = choose = hold_rounds = record_pull = weigh = accumulate = release_due = unbound
preprocess_contexts = estimate = stop = recommend = draw = regret = show = answer = unbound
release = clipped = distance_to = play = unbound

_LEARNING = ("record_pull", "weigh", "accumulate", "release_due")
_OF_ARMS = ("prepare", "choose", "hold_rounds", *_LEARNING, "stop", "recommend")
_OF_CONTEXTS = ("preprocess_contexts", "prepare", "choose", *_LEARNING)

# Python hands a loop both sides and the wall as one tuple, and what it meets as another.
# Generators are arguments by themselves: of a tuple that holds one, numba asks Python for all
# types, which takes longer than a short run.

# Arms ----------------------------------------------------------------------------------------


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


@outlined  # kernels count no references, as the entry does at every look into a tuple
def _play_arms(
    sides: Any, shown: Any, world_rng: Generator, choice_rng: Generator, privacy_rng: Generator
) -> int:
    """Play until the horizon, or pause at the first step at or after round ``until``.

    The arm is chosen once and stands for ``hold_rounds`` rounds; the environment answers with the
    sum of their rewards.  The cost is that of the releases, not of the rounds.  Only the horizon
    splits a hold, because two smaller binomial draws would use other random numbers.  For checks,
    ``max_hold`` = 1 takes every round by itself.  When a search for the best arm is over, its
    recommended arm is played, and nothing more is recorded or released.
    """
    params, raw, public, memo, wall = sides
    environment, tally, entering, horizon, max_hold, until = shown
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
        # Regret of a part of the hold is known in closed form, so marks need not split it.
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


@entry
def _arms(
    sides: Any, shown: Any, world_rng: Generator, choice_rng: Generator, privacy_rng: Generator
) -> int:
    drawn = generator_at(world_rng), generator_at(choice_rng), generator_at(privacy_rng)
    return play(sides, shown, *drawn)


@cache
def arms_loop(kernels: Kernels, crossing: Kernel, environment: ArmsKernels) -> Kernel:
    """The loop of one algorithm, with its release, in one kind of environment."""
    clipped = bind(_clipped, draw=environment.draw)
    inner = kernels.fill(
        _play_arms, *_OF_ARMS, release=crossing, clipped=clipped, regret=environment.regret
    )
    return bind(_arms, play=inner)


# Contexts and advice -------------------------------------------------------------------------


@kernel
def _distance_to(params: Any, public: Any, parameter: Vector) -> float:
    """The L2 distance of the estimate from the truth; nan where there is no estimate."""
    squared = 0.0
    for i in range(parameter.size):
        squared += (estimate(params, public, i) - parameter[i]) ** 2
    return np.sqrt(squared)


@outlined  # else the entry would be optimised with all of it once more
def _play(
    sides: Any, shown: Any, world_rng: Generator, choice_rng: Generator, privacy_rng: Generator
) -> int:
    """Play until the horizon, or pause at round ``until``.  Each round shows a row per arm, its
    features or its advice.  The algorithm chooses an arm, gets the answer, and learns.

    ``contexts`` holds the environment's contexts, ``seen`` the contexts as the algorithm takes
    them: the same array unless ``altered``.
    """
    params, raw, public, memo, wall = sides
    environment, parameter, tally, contexts, seen, altered, entering, horizon, until = shown
    cursor, marks, curve, sums, counts, distance, trace = tally
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
        hidden = show(environment, t, contexts, world_rng)
        if altered:
            preprocess_contexts(params, contexts, seen, choice_rng)
        prepare(params, public, seen, choice_rng)
        arm = choose(params, public, seen, choice_rng)[0]
        reward, regret = answer(environment, t, contexts, hidden, arm, world_rng)
        reward = entered(entering, reward)
        sums[0] += regret
        sums[1] += reward
        counts[arm] += 1
        if trace.size > 0:
            trace[t] = arm
        # A view that ``weigh`` may change: the environment has answered already.
        x = seen[arm]
        record_pull(params, public, arm, x, 1)
        weigh(params, public, arm, x)
        accumulate(params, raw, arm, x, reward, 1)
        t += 1
        if release_due(params, public) and not release(
            params, raw, public, memo, wall, t, privacy_rng
        ):
            status = BAD_SENSITIVITY
            break
        # After the release, so that the distance is that of the newest estimate.
        if mark < marks.size and marks[mark] == t:
            curve[mark] = sums[0]
            if distance.size > 0:
                distance[mark] = distance_to(params, public, parameter)
            mark += 1
    cursor[CURSOR.round], cursor[CURSOR.mark] = t, mark
    return status


@entry
def _contexts(
    sides: Any, shown: Any, world_rng: Generator, choice_rng: Generator, privacy_rng: Generator
) -> int:
    """``_play`` for Python: one call for all rounds, as handing arrays over costs time."""
    drawn = generator_at(world_rng), generator_at(choice_rng), generator_at(privacy_rng)
    return play(sides, shown, *drawn)


@cache
def context_loop(kernels: Kernels, crossing: Kernel, environment: ContextKernels) -> Kernel:
    """The loop of one algorithm, with its release, in one kind of environment."""
    steps = {name: inlined(getattr(kernels, name)) for name in _OF_CONTEXTS}
    world = {name: inlined(step) for name, step in environment._asdict().items()}
    distance_to = bind(_distance_to, estimate=kernels.estimate)
    rounds = bind(_play, **steps, **world, release=crossing, distance_to=distance_to)
    return bind(_contexts, play=rounds)
