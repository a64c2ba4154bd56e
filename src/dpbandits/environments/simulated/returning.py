"""Users who come back, each in a state that changes from visit to visit, as in mobile health."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ...errors import ArgumentError
from ...kernel import Generator, Matrix, kernel
from ...tables import frozen
from ...validation import integer, real, shortest
from ..arrays import content, vector
from ..base import ContextEnvironment, ContextKernels
from .linear_rewards import unit_vectors


class ReturningUsersState(NamedTuple):
    attendance: np.ndarray  # (T,)
    states: np.ndarray  # (T, d), of length at most 1
    thetas: np.ndarray  # (U, K, d)


@kernel
def _show_user(state: ReturningUsersState, t: int, contexts: Matrix, rng: Generator) -> int:
    for a in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            contexts[a, i] = state.states[t, i]
    return state.attendance[t]


@kernel
def _answer_user(
    state: ReturningUsersState, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    best, played = -1.0, 0.0
    for a in range(contexts.shape[0]):
        mean = 0.0
        for i in range(state.states.shape[1]):
            mean += state.thetas[hidden, a, i] * state.states[t, i]
        # Cut before the comparison, as the best arm is that of the best real mean.
        mean = min(max(mean, -1.0), 1.0)
        best = max(best, mean)
        if a == arm:
            played = mean
    return (1.0 if 2.0 * rng.random() < 1.0 + played else -1.0), best - played


class ReturningUsers(ContextEnvironment):
    """Users who return: each round brings one of them, with a state s of their own.  The reward of
    arm a is 1 or -1, with the mean <theta_a, s> cut off at -1 and 1.

    A user's state changes from visit to visit: s' = persistence s + sqrt(1 - persistence^2) z, with
    z normal of variance 1 / d in each of its d coordinates.  A state longer than 1 is divided by
    its length.  It is shown as K equal rows, for policies with ``models="disjoint"``; to other
    policies all arms look alike.  Every theta_a is of length 1.

    ``seed`` draws users and states of all rounds once; they are the same in all runs.  Rounds end
    when no user may come.

    Args:
        n_arms: number of arms, K.
        dimension: coordinates of a state, d.
        users: number of users.
        visits: maximal number of visits of a user.
        gap: minimal number of rounds between two visits of a user.
        weights: relative frequency of each user, shape (users,), all positive; equal by default.
        persistence: correlation of the states of consecutive visits, from 0 to below 1.
        heterogeneity: standard deviation, times sqrt(d), of a user's coefficients around those of
            all users.  At 0 rewards are linear in the contexts, alike for all users.
        seed: of coefficients, attendance and states.

    Raises:
        ArgumentError: an argument is outside its range.

    >>> world = ReturningUsers(2, 3, users=50, visits=10, gap=20, seed=1)
    >>> world.dimension, world.horizon, world.attendance[:5].tolist()
    (3, 478, [19, 21, 27, 1, 34])
    """

    kernels = ContextKernels(_show_user, _answer_user)
    support, context_bound = (-1.0, 1.0), 1.0

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        users: int = 100,
        visits: int = 20,
        gap: int = 1,
        weights: Sequence[float] | None = None,
        persistence: float = 0.8,
        heterogeneity: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.n_arms = integer("n_arms", n_arms, 1)
        self.dimension = integer("dimension", dimension, 1)
        self.users, self.visits = integer("users", users, 1), integer("visits", visits, 1)
        self.gap = integer("gap", gap, 1)
        self.persistence = real("persistence", persistence, 0.0, 1.0 - 1e-9)
        self.heterogeneity = real("heterogeneity", heterogeneity, 0.0)
        eager = np.ones(self.users) if weights is None else vector("weights", weights, 1e-9, 1e9)
        if eager.size != self.users:
            raise ArgumentError(
                f"weights must hold {self.users} numbers, one per user, got {eager.size}", "weights"
            )
        # Not one stream for all three: more users leave the coefficients as they are.
        streams = np.random.SeedSequence(integer("seed", seed, 0)).spawn(4)
        shared, own, coming, changing = map(np.random.default_rng, streams)
        theta = unit_vectors(self.n_arms, self.dimension, shared)
        self.parameter = theta if self.heterogeneity == 0.0 else None
        shape = (self.users, self.n_arms, self.dimension)
        apart = self.heterogeneity / math.sqrt(self.dimension) * own.standard_normal(shape)
        self.attendance = frozen(_attendance(eager, self.visits, self.gap, coming))
        self.horizon = len(self.attendance)
        states = _states((self.visits, self.users, self.dimension), self.persistence, changing)
        earlier = pd.Series(self.attendance).groupby(self.attendance).cumcount().to_numpy()
        met = states[earlier, self.attendance]
        self.state = ReturningUsersState(self.attendance, met, theta + apart)
        same = "" if weights is None else f"weights {content(eager)}, "
        self.origin = f"{same}seed={seed}"

    def _arguments(self) -> str:
        return (
            f"{self.n_arms} arms, dimension {self.dimension}, {self.users} users,"
            f" visits={self.visits}, gap={self.gap}, persistence={shortest(self.persistence)},"
            f" heterogeneity={shortest(self.heterogeneity)}, {self._content}"
        )


def _attendance(weights: np.ndarray, visits: int, gap: int, rng: np.random.Generator) -> np.ndarray:
    """Who comes, round by round: of those who may, whose time comes first.

    Times that are exponential with the rates of the weights choose in proportion to weights, and
    forget how long somebody has waited.
    """
    waiting = [(rng.exponential() / weight, user) for user, weight in enumerate(weights)]
    heapq.heapify(waiting)
    resting: deque[tuple[int, int]] = deque()  # the round from which on a user may come
    left, order = np.full(weights.size, visits), []
    while waiting:
        time, user = heapq.heappop(waiting)
        order.append(user)
        left[user] -= 1
        if left[user]:
            resting.append((len(order) - 1 + gap, user))
        while resting and resting[0][0] <= len(order):
            user = resting.popleft()[1]
            heapq.heappush(waiting, (time + rng.exponential() / weights[user], user))
    return np.array(order)


def _states(
    shape: tuple[int, int, int], persistence: float, rng: np.random.Generator
) -> np.ndarray:
    """Of every visit of every user, shape (visits, users, d)."""
    states = rng.standard_normal(shape) / math.sqrt(shape[2])
    for visit in range(1, shape[0]):
        states[visit] *= math.sqrt(1.0 - persistence**2)
        states[visit] += persistence * states[visit - 1]
    return states / np.maximum(np.linalg.norm(states, axis=2, keepdims=True), 1.0)
