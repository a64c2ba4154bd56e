"""Contexts drawn from a pool of items: every round shows a few items as its arms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...kernel import Generator, Matrix, kernel
from ...validation import choice, integer, real
from ..arrays import content, finite_array, longest, require_equally_long, whole_numbers
from ..base import ContextEnvironment, ContextKernels
from .linear_rewards import REWARDS, answer_linear, linear_means, spread, support_of


@kernel
def draw_below(n: int, rng: Generator) -> int:
    """Uniform below n, but for a bias of n / 2^53; numba's own allocates an array."""
    return int(rng.random() * n)


@kernel
def draw_distinct(contexts: Matrix, count: int, n: int, rng: Generator) -> None:
    """Fill ``contexts[:count, 0]`` with a uniformly random sequence of different numbers below n
    (Floyd's sampling, shuffled).  They stand where features will: a kernel has no memory.
    """
    for i in range(count):
        number = draw_below(n - count + i + 1, rng)
        for a in range(i):
            if contexts[a, 0] == number:
                number = n - count + i
                break
        # To a random place: Floyd's sample is uniform, but not its order.
        place = draw_below(i + 1, rng)
        contexts[i, 0] = contexts[place, 0]
        contexts[place, 0] = number


@kernel
def fill_in(contexts: Matrix, features: Matrix) -> None:
    """Replace the item numbers in ``contexts[:, 0]`` by the features of the items."""
    for a in range(contexts.shape[0]):
        item = int(contexts[a, 0])
        for i in range(contexts.shape[1]):
            contexts[a, i] = features[item, i]


class PoolContextsState(NamedTuple):
    features: np.ndarray  # (N, d)
    theta: np.ndarray  # (d,)
    std: float
    bounded: bool


@kernel
def _show_pool(state: PoolContextsState, t: int, contexts: Matrix, rng: Generator) -> int:
    draw_distinct(contexts, contexts.shape[0], state.features.shape[0], rng)
    fill_in(contexts, state.features)
    return 0


class PoolContexts(ContextEnvironment):
    """Rounds that show some items of a pool, drawn without replacement and in random order.
    Rewards are linear in their features (the synthetic design of Wang, Zhao & Wang, 2022).

    Args:
        features: of the items of the pool, shape (N, d).
        theta: the parameter, shape (d,).
        per_round: how many items each round shows; they are its arms.
        std, rewards: as for ``LinearArms``.

    Raises:
        ArgumentError: an argument is outside its range, or shapes do not fit.

    >>> PoolContexts([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], [0.5, 0.5], per_round=2).context_bound
    1.0
    """

    kernels = ContextKernels(_show_pool, answer_linear)
    parameter: np.ndarray

    def __init__(
        self,
        features: ArrayLike,
        theta: ArrayLike,
        *,
        per_round: int = 10,
        std: float = 0.5,
        rewards: str = "gaussian",
    ) -> None:
        self.features = finite_array("features", features, "N, d")
        self.parameter = finite_array("theta", theta, "d")
        size, self.dimension = self.features.shape
        linear_means("features", self.features, self.parameter)  # for its errors
        self.n_arms = integer("per_round", per_round, 1, size)
        self.std = real("std", std, 0.0, strict=True)
        self.rewards = choice("rewards", rewards, REWARDS)
        self.support = support_of(self.rewards)
        self.context_bound = longest(self.features)
        self._digest = content(self.features, self.parameter)
        bounded = self.rewards == "bounded"
        self.state = PoolContextsState(self.features, self.parameter, self.std, bounded)

    @classmethod
    def uniform(
        cls,
        pool: int = 1000,
        dimension: int = 10,
        *,
        per_round: int = 10,
        seed: int = 0,
        std: float = 0.5,
        rewards: str = "gaussian",
    ) -> PoolContexts:
        """Features and theta with coordinates uniform in (0, 1), each vector divided by its length.
        This division is our choice: the paper assumes lengths of at most 1 and does not say how.

        Raises:
            ArgumentError: an argument is outside its range.

        >>> PoolContexts.uniform(seed=1).n_arms
        10
        """
        pool, dimension = integer("pool", pool, 1), integer("dimension", dimension, 1)
        rng = np.random.default_rng(integer("seed", seed, 0))
        vectors = rng.uniform(size=(pool + 1, dimension))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        made = cls(vectors[1:], vectors[0], per_round=per_round, std=std, rewards=rewards)
        return made._made(f"uniform, seed={seed}")

    def _arguments(self) -> str:
        shape = f"{self.n_arms} of {len(self.features)} items, dimension {self.dimension}"
        return f"{shape}, {spread(self.rewards, self.std)}, {self._content}"


class RecommendationsState(NamedTuple):
    features: np.ndarray  # (M, d)
    starts: np.ndarray  # (U + 1,): the likes of user u are liked[starts[u] : starts[u + 1]]
    liked: np.ndarray  # (N,): item numbers, rising within each user


@kernel
def _passed_over(state: RecommendationsState, start: int, end: int, rank: int) -> int:
    """The item of the given rank among those that are not in ``liked[start:end]``."""
    low, high = start, end
    # liked[i] comes before it iff no more than rank items that are not liked come before liked[i]
    while low < high:
        middle = (low + high) // 2
        if state.liked[middle] - (middle - start) <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + (low - start)


@kernel
def _show_candidates(state: RecommendationsState, t: int, contexts: Matrix, rng: Generator) -> int:
    user = draw_below(state.starts.size - 1, rng)
    start, end = state.starts[user], state.starts[user + 1]
    last = contexts.shape[0] - 1
    draw_distinct(contexts, last, state.features.shape[0] - (end - start), rng)
    for a in range(last):
        # From a number among all items that were not liked to the item itself.
        contexts[a, 0] = _passed_over(state, start, end, int(contexts[a, 0]))
    place = draw_below(last + 1, rng)
    contexts[last, 0] = contexts[place, 0]
    contexts[place, 0] = state.liked[start + draw_below(end - start, rng)]
    fill_in(contexts, state.features)
    return place


@kernel
def answer_hidden(
    state: Any, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    reward = 1.0 if arm == hidden else 0.0
    return reward, 1.0 - reward


class Recommendations(ContextEnvironment):
    """Rounds that show one item that a random user liked and others that they did not, in random
    order; the reward is 1 for the liked item.

    The user is drawn uniformly from those who liked anything, and the liked item from theirs.  The
    others are drawn without replacement from all items that the user did not like.  A policy sees
    features of items only, and learns which are liked in general.  Regret is against the choice of
    the liked item, which no policy can know: ratios of rewards say more.

    Args:
        features: of the items, shape (M, d).
        users: the user of each pair of user and liked item, shape (N,), numbers from 0.
        items: the item of each pair, shape (N,), rows of ``features``; repeated pairs count once.
        per_round: how many items each round shows; they are its arms.

    Raises:
        ArgumentError: an argument is outside its range, shapes do not fit, or a user liked so many
            items that too few others are left.

    >>> features = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
    >>> Recommendations(features, users=[0, 0, 1], items=[0, 2, 1], per_round=2)
    Recommendations(2 of 3 items, dimension 2, 2 users, content e3489c70)
    """

    kernels = ContextKernels(_show_candidates, answer_hidden)
    holds_data = True

    def __init__(
        self, features: ArrayLike, users: ArrayLike, items: ArrayLike, *, per_round: int = 25
    ) -> None:
        self.features = finite_array("features", features, "M, d")
        size, self.dimension = self.features.shape
        self.n_arms = integer("per_round", per_round, 1, size)
        users, items = whole_numbers("users", users), whole_numbers("items", items)
        require_equally_long("users and items", users, items)
        if items.max() >= size:
            raise ArgumentError(
                f"items must be row numbers of features, from 0 to {size - 1}, got another number"
                f" in row {int(items.argmax())}",
                "items",
            )
        likes = np.unique(np.column_stack([users, items]), axis=0)  # sorted by user, then by item
        _, counts = np.unique(likes[:, 0], return_counts=True)
        if size - counts.max() < self.n_arms - 1:
            raise ArgumentError(
                f"per_round must be at most {size - counts.max() + 1}, got {per_round}: a user"
                f" liked {counts.max()} of the {size} items",
                "per_round",
            )
        self.support, self.context_bound = (0.0, 1.0), longest(self.features)
        starts = np.concatenate([[0], np.cumsum(counts)])
        self.state = RecommendationsState(self.features, starts, np.ascontiguousarray(likes[:, 1]))
        self._digest = content(*self.state)

    def _arguments(self) -> str:
        items = f"{self.n_arms} of {len(self.features)} items, dimension {self.dimension}"
        return f"{items}, {self.state.starts.size - 1} users, {self._content}"
