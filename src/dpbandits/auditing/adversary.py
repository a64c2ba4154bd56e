"""Adversaries: they choose what the policy meets, round by round, from what was played before.

One person, the canary, is told apart.  In world 0 and world 1 she differs; all others are the same
function of what has been played.  Two worlds that differ in one person are neighbours, whatever
else an adversary does, so that one of any kind makes an audit weaker or stronger, never wrong.

What amplifies a canary: for all others the arms tie, so that noise and she tip a decision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..kernel import Kernel, Matrix, Vector, kernel
from ..policies import Policy

ANYBODY = -1  # ``who``, of everybody but the canary


@kernel
def shows_nothing(state: Any, t: int, arms: Vector, who: int, contexts: Matrix) -> None:
    """``show`` of an adversary for policies that see nothing before they choose."""


@dataclass(frozen=True)
class Adversary:
    """Who chooses what the policy meets: two kernels, and a named tuple of arrays they read.

    ``arms`` are those that were played in the rounds before ``t``, of which an adversary may make
    what it likes; where arms are private, -1 in the place of the canary's.  ``who`` is 0 or 1 for
    the canary in that world, and -1 for everybody else.  Kernels are made with
    ``dpbandits.kernel.kernel``.

    Attributes:
        title: what it does, in a few words.
        answer: ``answer(state, t, arms, arm, who) -> float``: the reward of an arm in round t.
        show: ``show(state, t, arms, who, contexts)``: fills in what is seen before the choice of
            round t, shape (K, d): features, or advice with a row for each arm.
        state: what both kernels read.
        position: the first round in which the canary may come.
    """

    title: str
    answer: Kernel
    show: Kernel = shows_nothing
    state: Any = ()
    position: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.position, int) or self.position < 0:
            raise ArgumentError(f"position must be a round, from 0, got {self.position!r}")


class Rewards(NamedTuple):
    """What people answer: shape (3,), of the canary in world 0 and in world 1, and of others."""

    reward: np.ndarray


class Shown(NamedTuple):
    """What people show and answer: shapes (3, K, d) and (3,), in the same order."""

    contexts: np.ndarray
    reward: np.ndarray
    early: int  # rounds in which others show what she does in world 0


@kernel
def _answer(state: Any, t: int, arms: Vector, arm: int, who: int) -> float:
    return state.reward[who]  # that of everybody else is the last


@kernel
def _echo(state: Any, t: int, arms: Vector, arm: int, who: int) -> float:
    """People like what the last one was given, best in the world of the higher reward."""
    if who != ANYBODY or t == 0:
        return state.reward[who]
    return max(state.reward[0], state.reward[1]) if arm == arms[t - 1] else state.reward[who]


@kernel
def _show(state: Any, t: int, arms: Vector, who: int, contexts: Matrix) -> None:
    kind = 0 if who == ANYBODY and t < state.early else who
    for a in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            contexts[a, i] = state.contexts[kind, a, i]


def canaries(policy: Policy, *, echo: bool = False, position: int = 0) -> Iterator[Adversary]:
    """Adversaries that fit a policy, one for each way in which a person can differ most."""
    answer = _echo if echo else _answer
    after = "others like what the last one was given" if echo else "for others the arms tie"
    if policy.sees == "advice":
        kinds, early = _advised(policy), position + getattr(policy, "batch", 1)
    elif policy.sees:
        kinds, early = _in_context(policy), 0
    else:
        lo, hi = policy.reward_range
        state = Rewards(np.array([lo, hi, (lo + hi) / 2]))
        title = f"her reward is {lo:g} or {hi:g}; {after}"
        yield Adversary(title, answer, state=state, position=position)
        return
    for title, contexts, rewards in kinds:
        shown = Shown(contexts, np.array(rewards), early)
        yield Adversary(f"{title}; {after}", answer, _show, shown, position)


_Kind = tuple[str, np.ndarray, tuple[float, float, float]]


def _advised(policy: Policy) -> Iterator[_Kind]:
    """All experts are certain of arm 0 for her and whoever is in a release with her: noise may be
    for the one of them who moves it farthest.  For later people each is certain of another arm.
    """
    lo, hi = policy.reward_range
    arms, experts = policy.n_arms, policy.dimension
    advice = np.zeros((3, arms, experts))
    advice[:2, 0] = 1.0
    advice[2, np.arange(experts) % arms, np.arange(experts)] = 1.0
    yield f"her reward is {lo:g} or {hi:g}", advice, (lo, hi, (lo + hi) / 2)


def _in_context(policy: Any) -> Iterator[_Kind]:
    """Her features are the same for all arms; those of others lie along hers, or against them, or
    where hers turn to.  All are as long as they may be.
    """
    lo, hi = policy.reward_range
    rest = min(max(0.0, lo), hi)
    length, d = policy.context_bound, policy.dimension
    corner = np.full(d, length / math.sqrt(d))  # the longest in the L1 norm, too
    contexts = np.zeros((3, policy.n_arms, d))
    contexts[:2] = corner
    contexts[2] = -corner
    contexts[2, 0] *= -1.0
    yield f"her reward is {lo:g} or {hi:g}", contexts.copy(), (lo, hi, rest)
    if not policy.card.hides_contexts:
        return
    far = max(lo, hi, key=abs)
    axis = np.eye(d)[0] * length
    for cosine in sorted({-1.0, max(-1.0, -far * far / (2 * length * length))}):
        turned = cosine * axis
        if d > 1:
            turned = turned + math.sqrt(1.0 - cosine * cosine) * length * np.eye(d)[1]
        contexts[0], contexts[1] = axis, turned
        contexts[2], contexts[2, 0] = turned, axis
        yield f"her features turn by arccos {cosine:.3g}", contexts.copy(), (far, far, rest)
