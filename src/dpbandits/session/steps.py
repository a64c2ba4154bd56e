"""The compiled steps between a policy and its algorithm: templates that are filled with kernels.

Simulation loops use these steps, too, so simulations measure the deployed code.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..calls import called, generator_at
from ..kernel import (
    Generator,
    Kernel,
    Matrix,
    Vector,
    bind,
    entry,
    inlined,
    interpreted,
    kernel,
    outlined,
    plain,
    unbound,
)
from ..privacy.continual import draws_of, is_spent
from ..privacy.ledger import write
from ..protocol import Contexts, Kernels, Row, Wall

prepare = choose = hold_rounds = preprocess_contexts = record_pull = weigh = unbound
accumulate = release_due = partition = sensitivity = close = summarise = publish = unbound
announce = mechanism = let_through = release = end = cross = unbound


@kernel
def _end(
    params: Any, raw: Any, public: Any, memo: Vector, wall: Wall, statistic: Vector, rounds: int
) -> tuple[int, int, float]:
    """End an episode after ``rounds`` rounds.  Fills in its statistic.  Returns the first round
    that its release covers, the part of its records, and its sensitivity.  The last is -1 if the
    sensitivity is no bound; then nothing has changed.
    """
    # Before ``close``, which may clear what the bound depends on.
    bound = sensitivity(params, public, wall.norm)
    scale = wall.multiplier * bound
    if not (0.0 <= bound < np.inf and scale < np.inf):
        return 0, 0, -1.0
    if scale == 0.0 and bound > 0.0 and wall.multiplier > 0.0:  # underflow
        return 0, 0, -1.0
    # Likewise: ``close`` may begin the next episode.
    which = partition(params, public)
    first = wall.first_unreleased[which]
    wall.first_unreleased[which] = rounds
    close(params, public, memo)
    summarise(params, raw, public, memo, statistic)
    return first, which, bound


@outlined
def _let_through(
    wall: Wall, statistic: Vector, first: int, last: int, which: int, bound: float, rng: Generator
) -> None:
    """Make ``wall.release`` of a statistic: the only place where one crosses the wall.

    A release is announced and written into the ledger before the noise is drawn.  Simulated and
    secure releases differ only in ``announce`` and ``mechanism``.
    """
    draws = statistic.size * draws_of(wall.running) if wall.family > 0 else 0
    # What fails after this line is charged.
    announce(first, last, which, wall.ledger_family, bound, wall.multiplier, draws)
    write(wall.ledger, first, last, which, wall.ledger_family, bound, wall.multiplier, draws)
    mechanism(wall.running, wall.family, wall.multiplier * bound, statistic, wall.release, rng)
    statistic[:] = 0.0  # no exact sum outlasts its release
    for i in range(wall.earlier.size):
        wall.release[i] += wall.earlier[i]


@kernel
def _cross(
    params: Any,
    public: Any,
    memo: Vector,
    wall: Wall,
    statistic: Vector,
    first: int,
    last: int,
    which: int,
    bound: float,
    rng: Generator,
) -> None:
    """Release the statistic of an episode that has ended."""
    let_through(wall, statistic, first, last, which, bound, rng)
    publish(params, public, memo, wall.release)


@outlined
def _release(
    params: Any, raw: Any, public: Any, memo: Vector, wall: Wall, rounds: int, rng: Generator
) -> bool:
    """End an episode and release it at once; False, and no release, if its sensitivity is no bound.

    A running sum that has made all its planned releases makes no more, and the public side stays as
    it is.
    """
    if is_spent(wall.running):
        return True
    first, which, bound = end(params, raw, public, memo, wall, wall.statistic, rounds)
    if bound < 0.0:
        return False
    cross(params, public, memo, wall, wall.statistic, first, rounds - 1, which, bound, rng)
    return True


@kernel
def nothing_announced(
    first: int, last: int, part: int, family: int, sensitivity: float, multiplier: float, draws: int
) -> None:
    """``announce`` of a release whose failure nobody has to know of."""


_ENDS = ("sensitivity", "partition", "close", "summarise")
_SILENT = {"announce": nothing_announced}


@entry
def _decide(params: Any, public: Any, contexts: Contexts, rng: Generator) -> tuple[int, float, int]:
    """The next arm, its propensity, and for how many rounds it stands."""
    drawn = generator_at(rng)
    prepare(params, public, contexts, drawn)
    arm, propensity = choose(params, public, contexts, drawn)
    return arm, propensity, hold_rounds(params, public, arm)


@entry
def _advance(params: Any, public: Any, arm: int, x: Row, n: int) -> bool:
    """Book n rounds of an arm; tell whether a release is due."""
    record_pull(params, public, arm, x, n)
    # A round that is taken back has no reward whose weight could matter.
    if n > 0:
        weigh(params, public, arm, x)
    return release_due(params, public)


@entry
def _answer(params: Any, raw: Any, arm: int, x: Row, reward: float, n: int) -> None:
    """Take in the rewards of booked rounds."""
    accumulate(params, raw, arm, x, reward, n)


@entry
def _absorb(params: Any, raw: Any, public: Any, arm: int, x: Row, reward: float) -> bool:
    """Book one round and take in its reward at once; tell whether a release is due."""
    record_pull(params, public, arm, x, 1)
    weigh(params, public, arm, x)
    accumulate(params, raw, arm, x, reward, 1)
    return release_due(params, public)


@entry
def _absorb_and_release(
    params: Any,
    raw: Any,
    public: Any,
    memo: Vector,
    wall: Wall,
    arm: int,
    x: Row,
    reward: float,
    rounds: int,
    rng: Generator,
) -> bool:
    """``absorb``, and the release where one is due; False if its sensitivity is no bound."""
    record_pull(params, public, arm, x, 1)
    weigh(params, public, arm, x)
    accumulate(params, raw, arm, x, reward, 1)
    if release_due(params, public):
        return release(params, raw, public, memo, wall, rounds, generator_at(rng))
    return True


@entry
def _release_from_python(
    params: Any, raw: Any, public: Any, memo: Vector, wall: Wall, rounds: int, rng: Generator
) -> bool:
    return release(params, raw, public, memo, wall, rounds, generator_at(rng))


@entry
def _cross_from_python(
    params: Any,
    public: Any,
    memo: Vector,
    wall: Wall,
    statistic: Vector,
    first: int,
    last: int,
    which: int,
    bound: float,
    rng: Generator,
) -> None:
    drawn = generator_at(rng)
    cross(params, public, memo, wall, statistic, first, last, which, bound, drawn)


@entry
def _answer_late(
    params: Any,
    raw: Any,
    public: Any,
    memo: Vector,
    statistic: Vector,
    alone: Vector,
    arm: int,
    x: Row,
    reward: float,
    n: int,
) -> None:
    """Take the rewards of n rounds into an ended episode's statistic, through an empty ``raw``."""
    accumulate(params, raw, arm, x, reward, n)
    summarise(params, raw, public, memo, alone)
    for i in range(statistic.size):
        statistic[i] += alone[i]
    # This vector lives as long as the policy, and an answer must not.
    alone[:] = 0.0


@entry
def _preprocess(params: Any, contexts: Matrix, seen: Matrix, rng: Generator) -> None:
    preprocess_contexts(params, contexts, seen, generator_at(rng))


@entry
def _partition(params: Any, public: Any) -> int:
    return partition(params, public)


class Steps(NamedTuple):
    """The steps of one algorithm."""

    decide: Kernel
    decide_among: Kernel
    partition: Kernel
    advance: Kernel
    answer: Kernel
    absorb: Kernel
    absorb_and_release: Kernel
    release: Kernel
    end: Kernel
    cross: Kernel
    answer_late: Kernel
    preprocess_contexts: Kernel


@cache
def steps_of(kernels: Kernels, channel: Kernel) -> Steps:
    """The steps around a channel of ``privacy.continual``: once per pair, compiled when called."""
    fill, booked = kernels.fill, ("record_pull", "weigh", "accumulate", "release_due")
    crossing = release_of(kernels, channel)
    return Steps(
        decide=(decide := fill(_decide, "prepare", "choose", "hold_rounds")),
        decide_among=decide,  # called with a mask, which is another type
        partition=fill(_partition, "partition"),
        advance=fill(_advance, "record_pull", "weigh", "release_due"),
        answer=fill(_answer, "accumulate"),
        absorb=fill(_absorb, *booked),
        absorb_and_release=fill(_absorb_and_release, *booked, release=crossing),
        release=bind(_release_from_python, release=crossing),
        end=fill(entry(plain(_end)), *_ENDS),
        cross=bind(_cross_from_python, cross=_cross_of(kernels, channel)),
        answer_late=fill(_answer_late, "accumulate", "summarise"),
        preprocess_contexts=fill(_preprocess, "preprocess_contexts"),
    )


def called_from_python(steps: Steps) -> Steps:
    """The steps compiled for one policy, which calls them from Python in every round."""
    exact = {"partition", "advance", "answer", "absorb", "end", "answer_late"}  # draw nothing
    return Steps(*(called(one, draws=name not in exact) for name, one in steps._asdict().items()))


_releases: dict[tuple[Kernels, Kernel, bool], Kernel] = {}


def release_of(kernels: Kernels, channel: Kernel, *, inside: bool = False) -> Kernel:
    """A release, compiled once; ``inside``: copied into callers that release in every round."""
    key = (kernels, channel, inside)
    if key not in _releases:
        # All is copied into one function, because each call would hand over all arrays.
        own = {name: getattr(kernels, name) for name in (*_ENDS, "publish")}
        parts = {name: inlined(part) for name, part in own.items()} if inside else own
        ending = bind(inlined(_end), **{name: parts[name] for name in _ENDS})
        through = bind(inlined(_let_through), **_SILENT, mechanism=channel)
        crossing = bind(inlined(_cross), publish=parts["publish"], let_through=through)
        _releases[key] = bind(inlined(_release) if inside else _release, end=ending, cross=crossing)
    return _releases[key]


def ending_and_crossing(kernels: Kernels, channel: Kernel) -> tuple[Kernel, Kernel]:
    """The two halves of a release, for drivers that look at the statistic between them."""
    return kernels.fill(_end, *_ENDS), _cross_of(kernels, channel)


def _cross_of(kernels: Kernels, channel: Kernel) -> Kernel:
    return kernels.fill(_cross, "publish", let_through=_through(channel))


@cache
def _through(channel: Kernel) -> Kernel:
    """The common part of all algorithms, compiled once and called, where no loop waits for it."""
    return bind(_let_through, **_SILENT, mechanism=channel)


def cross_by(kernels: Kernels, channel: Kernel, tell: Kernel) -> Kernel:
    """A crossing of the wall in Python, around a channel.  It calls ``tell`` with the ledger line
    before anything is drawn.
    """
    through = interpreted(_let_through, announce=tell, mechanism=channel)
    return interpreted(_cross, publish=kernels.publish, let_through=through)


def release_by(ending: Kernel, crossing: Kernel) -> Kernel:
    """A release in Python, made of an ``ending`` and a ``crossing``."""
    return interpreted(_release, end=ending, cross=crossing)
