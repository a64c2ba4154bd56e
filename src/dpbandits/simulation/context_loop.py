"""The compiled loop over contexts and advice: one source, one compiled copy per algorithm and kind
of environment.

Every round shows a row for each arm (its features, or what the experts make of it), asks for an
arm, answers it and lets the algorithm learn.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..environments.base import ContextKernels
from ..kernel import (
    Generator,
    Kernel,
    Matrix,
    Vector,
    bind,
    entry,
    inlined,
    kernel,
    outlined,
    unbound,
)
from ..privacy.ledger import is_full
from ..protocol import Kernels, Wall
from .arms_loop import LEARNING
from .clipping import Entering, entered
from .tally import BAD_SENSITIVITY, CURSOR, DONE, LEDGER_FULL, PAUSED, Tally

show = answer = preprocess_contexts = prepare = choose = record_pull = weigh = accumulate = unbound
release_due = release = estimate = play = distance_to = unbound

_STEPS = ("preprocess_contexts", "prepare", "choose", *LEARNING)


@kernel
def _distance_to(params: Any, public: Any, parameter: Vector) -> float:
    """How far the estimate is from the truth, in the L2 norm; nan where there is no estimate."""
    squared = 0.0
    for i in range(parameter.size):
        squared += (estimate(params, public, i) - parameter[i]) ** 2
    return np.sqrt(squared)


@outlined  # else the entry would be optimised with all of it once more
def _play(
    params: Any,
    raw: Any,
    public: Any,
    memo: Vector,
    wall: Wall,
    environment: Any,
    parameter: Vector,
    tally: Tally,
    contexts: Matrix,
    seen: Matrix,
    altered: bool,
    entering: Entering,
    horizon: int,
    until: int,
    world_rng: Generator,
    choice_rng: Generator,
    privacy_rng: Generator,
) -> int:
    """Play until the horizon, or pause at round ``until``.

    ``contexts`` holds what the environment shows, ``seen`` what the algorithm takes it for: the
    same array unless ``altered``.
    """
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
    """``_play`` for callers that hand over Python generators, with its first five arguments, and
    those up to ``until``.  All rounds are one call: each array that an entry hands over costs time.

    Generators stand alone: of a tuple that holds one numba asks Python for all types, which takes
    longer than a short run.
    """
    rngs = (world_rng, choice_rng, privacy_rng)
    return play(*sides, *shown, *rngs)


@cache
def context_loop(kernels: Kernels, crossing: Kernel, environment: ContextKernels) -> Kernel:
    """The loop of one algorithm, with its release, in one kind of environment."""
    steps = {name: inlined(getattr(kernels, name)) for name in _STEPS}
    world = {name: inlined(step) for name, step in environment._asdict().items()}
    distance_to = bind(_distance_to, estimate=kernels.estimate)
    rounds = bind(_play, **steps, **world, release=crossing, distance_to=distance_to)
    return bind(_contexts, play=rounds)
