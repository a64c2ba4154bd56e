"""Adversaries: they choose contexts and rewards round by round, from the arms played before.

One person, the canary, has different records in world 0 and in world 1.  All other records are the
same function of the played arms.  Such worlds are neighbours for any adversary.  So the choice of
an adversary makes an audit weaker or stronger, never wrong.

For all other people the arms tie, so noise and the canary's record decide. This amplifies the
canary.
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
    """An adversary that chooses contexts and rewards: two kernels, and a named tuple of arrays they
    read.

    ``arms`` are those played in the rounds before ``t``, which an adversary may use freely.  Where
    arms are private, the canary's is -1.  ``who`` is 0 or 1 for the canary in that world, and -1
    for everybody else.  Kernels are made with ``dpbandits.kernel.kernel``.

    Attributes:
        title: a description in a few words.
        answer: ``answer(state, t, arms, arm, who) -> float``: the reward of an arm in round t.
        show: ``show(state, t, arms, who, contexts)``: fills in the contexts before the choice of
            round t, shape (K, d): features, or advice with a row for each arm.
        state: the arrays that both kernels read.
        position: the first round in which the canary may come.
    """

    title: str
    answer: Kernel
    show: Kernel = shows_nothing
    state: Any = ()
    position: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.position, int) or self.position < 0:
            raise ArgumentError(
                f"position must be the number of a round, 0 or more, got {self.position!r}"
            )


class Rewards(NamedTuple):
    """Rewards, shape (3,): of the canary in world 0 and in world 1, and of others."""

    reward: np.ndarray


class Shown(NamedTuple):
    """Contexts and rewards of people: shapes (3, K, d) and (3,), in the order of ``Rewards``."""

    contexts: np.ndarray
    reward: np.ndarray
    early: int  # rounds in which others show what that person does in world 0


@kernel
def _answer(state: Any, t: int, arms: Vector, arm: int, who: int) -> float:
    return state.reward[who]  # that of everybody else is the last


@kernel
def _echo(state: Any, t: int, arms: Vector, arm: int, who: int) -> float:
    """People prefer the arm of the previous person, and most so in the world of the higher
    reward.
    """
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
    after = "other people like the arm that was played last" if echo else "for others the arms tie"
    if policy.sees == "advice":
        kinds, early = _advised(policy), position + getattr(policy, "batch_size", 1)
    elif policy.sees:
        kinds, early = _in_context(policy), 0
    else:
        lo, hi = policy.reward_range
        state = Rewards(np.array([lo, hi, (lo + hi) / 2]))
        title = f"the person's reward is {lo:g} or {hi:g}; {after}"
        yield Adversary(title, answer, state=state, position=position)
        return
    for title, contexts, rewards in kinds:
        shown = Shown(contexts, np.array(rewards), early)
        yield Adversary(f"{title}; {after}", answer, _show, shown, position)


_Kind = tuple[str, np.ndarray, tuple[float, float, float]]


def _advised(policy: Policy) -> Iterator[_Kind]:
    """All experts are certain of arm 0 for the canary and for everyone in the same release, because
    noise may be calibrated to the one who moves it farthest.  For later people each is certain of
    another arm.
    """
    lo, hi = policy.reward_range
    arms, experts = policy.n_arms, policy.dimension
    advice = np.zeros((3, arms, experts))
    advice[:2, 0] = 1.0
    advice[2, np.arange(experts) % arms, np.arange(experts)] = 1.0
    yield f"the person's reward is {lo:g} or {hi:g}", advice, (lo, hi, (lo + hi) / 2)


def _in_context(policy: Any) -> Iterator[_Kind]:
    """The canary's features are the same for all arms.  Those of others point along them, against
    them, or in the direction that the canary's features turn to.  All have the largest allowed
    length.
    """
    lo, hi = policy.reward_range
    rest = min(max(0.0, lo), hi)
    length, d = policy.context_bound, policy.dimension
    corner = np.full(d, length / math.sqrt(d))  # the longest in the L1 norm, too
    contexts = np.zeros((3, policy.n_arms, d))
    contexts[:2] = corner
    contexts[2] = -corner
    contexts[2, 0] *= -1.0
    yield f"the person's reward is {lo:g} or {hi:g}", contexts.copy(), (lo, hi, rest)
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
        yield (
            f"the person's features turn by arccos {cosine:.3g}",
            contexts.copy(),
            (far, far, rest),
        )
