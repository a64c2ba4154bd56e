"""The compiled loop of an audit: one public side, and two private ones.

``raw`` collects the records of the played world.  ``twin`` collects those of the other world, along
the same decisions.  So both candidate statistics of every release are known, and its likelihood
ratio is exact.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..calls import generator_at
from ..kernel import Generator, Kernel, Vector, bind, entry, inlined, kernel, outlined, unbound
from ..privacy.continual import is_spent
from ..protocol import NO_ARM, Contexts, Kernels, Wall
from ..session.steps import ending_and_crossing
from .adversary import ANYBODY

prepare = choose = hold_rounds = preprocess_contexts = record_pull = weigh = unbound
accumulate = release_due = summarise = stop = recommend = unbound
end = cross = release = show = answer = look = play = unbound

DONE, RELEASE_DUE, BAD_SENSITIVITY = range(3)


class Slots(NamedTuple):
    """Slots of ``Taken.cursor``."""

    round: int = 0  # rounds played
    arm: int = 1  # that stands
    hold: int = 2  # rounds for which it does
    left: int = 3  # rounds of the canary to come
    waiting: int = 4  # whether one of them is in no release yet
    releases: int = 5  # so far
    repeats: int = 6  # planted: the person's record is in every later release, too
    delays: int = 7  # planted: a release with the person's record comes a round later in world 1


SLOTS = Slots()


class Taken(NamedTuple):
    """The record that an audit keeps of one run."""

    statistic: np.ndarray  # (R, n): what was released, without noise
    other: np.ndarray  # (R, n): what would have been, in the other world
    release: np.ndarray  # (R, n)
    bound: np.ndarray  # (R,): the sensitivity
    after: np.ndarray  # (R,) int64: the round after which it was made
    arms: np.ndarray  # (T,) int64
    cursor: np.ndarray  # (8,) int64
    again: np.ndarray  # (n,): planted, what the person's record adds to later statistics


class Game(NamedTuple):
    """The data that all runs share."""

    horizon: int
    position: int  # the first round in which the canary may come
    low: float  # the reward range
    high: float
    grid: float  # on which rewards are; 0 for any
    hides_arms: bool  # of the canary
    stops_at_releases: bool  # which are then made by Python


class Run(NamedTuple):
    """The arrays that one run is played with."""

    params: Any
    raw: Any  # of the world that is played
    twin: Any  # of the other one
    public: Any
    memo: np.ndarray
    wall: Wall
    taken: Taken
    game: Game
    adversary: Any
    shown: Contexts
    offered: Contexts  # what an algorithm chooses by: ``rows`` where it sees features, or 0
    rows: np.ndarray  # the features as it takes them
    others: np.ndarray  # the features of the canary in the other world


@kernel
def take_down(taken: Taken, statistic: Vector, bound: float, rounds: int, world: int) -> None:
    """Note a release before its noise is drawn."""
    cursor, k = taken.cursor, taken.cursor[SLOTS.releases]
    with_her = False
    for i in range(statistic.size):
        with_her |= statistic[i] != taken.other[k, i]
    late = 0
    if with_her and cursor[SLOTS.waiting]:
        cursor[SLOTS.waiting] = 0
        late = world * cursor[SLOTS.delays]
        for i in range(statistic.size):
            taken.again[i] = statistic[i] - taken.other[k, i]
    elif cursor[SLOTS.repeats]:
        for i in range(statistic.size):
            statistic[i] += taken.again[i]
    for i in range(statistic.size):
        taken.statistic[k, i] = statistic[i]
    taken.bound[k] = bound
    taken.after[k] = rounds + late


@entry
def _take_twin(run: Run, statistic: Vector, bound: float, rounds: int, world: int) -> None:
    """``take_down``, with the twin's statistic, for releases that Python makes."""
    taken = run.taken
    summarise(run.params, run.twin, run.public, run.memo, taken.other[taken.cursor[SLOTS.releases]])
    take_down(taken, statistic, bound, rounds, world)


@outlined
def _release_both(run: Run, rounds: int, world: int, rng: Generator) -> bool:
    """Release as ``session.steps`` does, and record the other world's statistic."""
    params, public, memo, wall, taken = run.params, run.public, run.memo, run.wall, run.taken
    if is_spent(wall.running):
        return True
    first, which, bound = end(params, run.raw, public, memo, wall, wall.statistic, rounds)
    if bound < 0.0:
        return False
    summarise(params, run.twin, public, memo, taken.other[taken.cursor[SLOTS.releases]])
    take_down(taken, wall.statistic, bound, rounds, world)
    cross(params, public, memo, wall, wall.statistic, first, rounds - 1, which, bound, rng)
    k = taken.cursor[SLOTS.releases]
    for i in range(wall.release.size):
        taken.release[k, i] = wall.release[i]
    taken.cursor[SLOTS.releases] = k + 1
    return True


@kernel
def _look_nowhere(run: Run, t: int, who: int, seen: Contexts, rng: Generator) -> None: ...


@kernel
def _look(run: Run, t: int, who: int, seen: Contexts, rng: Generator) -> None:
    show(run.adversary, t, run.taken.arms, who, run.shown)
    preprocess_contexts(run.params, run.shown, seen, rng)


@outlined  # else the entry would be optimised with all of it once more
def _rounds(run: Run, world: int, choice_rng: Generator, privacy_rng: Generator) -> int:
    """Play until the horizon, or until Python has to make a release."""
    params, raw, twin, public = run.params, run.raw, run.twin, run.public
    game, adversary, offered = run.game, run.adversary, run.offered
    rows, others = run.rows, run.others
    cursor, arms = run.taken.cursor, run.taken.arms
    horizon, low, high, grid = game.horizon, game.low, game.high, game.grid
    t = cursor[SLOTS.round]
    while t < horizon:
        involved = cursor[SLOTS.left] > 0 and cursor[SLOTS.waiting] == 0 and t >= game.position
        who = world if involved else ANYBODY
        if cursor[SLOTS.hold] == 0:
            look(run, t, who, rows, choice_rng)
            prepare(params, public, offered, choice_rng)
            cursor[SLOTS.arm] = choose(params, public, offered, choice_rng)[0]
            cursor[SLOTS.hold] = hold_rounds(params, public, cursor[SLOTS.arm])
        arm = cursor[SLOTS.arm]
        cursor[SLOTS.hold] -= 1
        reward = min(max(answer(adversary, t, arms, arm, who), low), high)
        other = reward
        if involved:
            other = min(max(answer(adversary, t, arms, arm, 1 - world), low), high)
            look(run, t, 1 - world, others, choice_rng)
            cursor[SLOTS.left] -= 1
            cursor[SLOTS.waiting] = 1
        if grid > 0.0:
            reward, other = grid * np.rint(reward / grid), grid * np.rint(other / grid)
        arms[t] = NO_ARM if involved and game.hides_arms else arm
        record_pull(params, public, arm, rows[arm], 1)
        weigh(params, public, arm, rows[arm])
        accumulate(params, raw, arm, rows[arm], reward, 1)
        if involved:
            weigh(params, public, arm, others[arm])
            accumulate(params, twin, arm, others[arm], other, 1)
        else:
            accumulate(params, twin, arm, rows[arm], reward, 1)
        t += 1
        if release_due(params, public):
            cursor[SLOTS.round] = t
            if game.stops_at_releases:
                return RELEASE_DUE
            if not release(run, t, world, privacy_rng):
                return BAD_SENSITIVITY
            if stop(params, public):
                for s in range(t, horizon):
                    arms[s] = recommend(params, public)
                t = horizon
    cursor[SLOTS.round] = t
    return DONE


@entry
def _play(run: Run, world: int, choice_rng: Any, privacy_rng: Any) -> int:
    """``play`` for Python, which hands over ``addresses_of`` generators."""
    return play(run, world, generator_at(choice_rng), generator_at(privacy_rng))


_STEPS = (
    *("prepare", "choose", "hold_rounds", "record_pull", "weigh"),
    *("accumulate", "release_due", "stop", "recommend"),
)


@cache
def loop_of(kernels: Kernels, mechanism: Kernel, answer: Kernel, show: Kernel | None) -> Kernel:
    """The loop against an adversary; ``show`` is None where nothing is seen before a choice."""
    end, cross = ending_and_crossing(kernels, mechanism)
    release = kernels.fill(_release_both, "summarise", end=end, cross=cross)
    look = kernels.fill(_look, "preprocess_contexts", show=show) if show else _look_nowhere
    steps = {name: inlined(getattr(kernels, name)) for name in _STEPS}
    steps["choose"] = outlined(kernels.choose)  # linear algebra is three times as slow inlined
    return bind(_play, play=bind(_rounds, **steps, look=look, answer=answer, release=release))


@cache
def twin_of(kernels: Kernels) -> Kernel:
    """A function that records a release made in Python."""
    return kernels.fill(_take_twin, "summarise")
