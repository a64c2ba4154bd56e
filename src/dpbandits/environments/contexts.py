"""What answers a pull in the loop over contexts.

In every round the environment shows one feature vector per arm, the policy chooses an arm, and its
reward comes.  Two kernels:

* ``show(state, t, contexts, rng) -> hidden``: fill in the features of round t, shape (K, d);
* ``answer(state, t, contexts, hidden, arm, rng) -> (reward, regret)``: the reward of the arm, and
  what it costs in expectation against the best.

Rounds count from 0.  Neither changes the state, which threads share; what an answer has to know of
its round besides the features, such as a label, is the integer ``hidden``, which no policy sees.
Both draw as many random numbers whatever the arm, so that all policies of a study meet the same
contexts and the same noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from hashlib import sha256
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..kernel import Kernel, kernel
from .base import count_of_arms


class ContextKernels(NamedTuple):
    """The two kernels of a kind of environment."""

    show: Kernel
    answer: Kernel


class ContextEnvironment(ABC):
    """The base of the environments with contexts.

    Attributes:
        n_arms: number of arms in every round, K.
        dimension: of the features, d.
        state: what the kernels see.
        support: (lo, hi), which holds every reward; infinite where rewards are not bounded.
        context_bound: no feature vector is longer; infinite where they are not bounded.
        horizon: how many rounds there are; None for any number.
        parameter: theta, shape (d,), where mean rewards are linear in the features; otherwise None.
    """

    kernels: ClassVar[ContextKernels]
    state: Any
    n_arms: int
    dimension: int
    support: tuple[float, float]
    context_bound: float
    horizon: int | None = None
    parameter: np.ndarray | None = None

    @property
    def arm_names(self) -> list[str]:
        return [f"arm {a}" for a in range(self.n_arms)]

    @property
    def title(self) -> str:
        """What it is called in headings; ``repr`` is what tells it from others."""
        return f"{type(self).__name__}, {count_of_arms(self.n_arms)}, dimension {self.dimension}"

    @abstractmethod
    def _arguments(self) -> str:
        """What tells two environments of the class apart."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._arguments()})"


def finite_array(name: str, values: Any, shape: str) -> np.ndarray:
    """``values`` as a read-only C-contiguous array of finite numbers with the axes that ``shape``
    names, none of them empty.
    """
    axes = shape.count(",") + 1
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must be an array of numbers of shape ({shape}), got {values!r}", name
        ) from None
    if array.ndim != axes or 0 in array.shape or not np.all(np.isfinite(array)):
        raise ArgumentError(
            f"{name} must be an array of finite numbers of shape ({shape}), got shape"
            f" {array.shape}",
            name,
        )
    array.flags.writeable = False
    return array


def content(*arrays: np.ndarray) -> str:
    """Eight digits that tell arrays apart in a ``repr``."""
    digest = sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:8]


class ContextTableState(NamedTuple):
    """Fixed contexts, rewards and mean rewards."""

    contexts: np.ndarray  # (T, K, d)
    rewards: np.ndarray  # (T, K)
    means: np.ndarray  # (T, K)


@kernel
def _show_table(state, t, contexts, rng):
    for a in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            contexts[a, i] = state.contexts[t, a, i]
    return 0


@kernel
def _answer_table(state, t, contexts, hidden, arm, rng):
    best = state.means[t, 0]
    for a in range(1, state.means.shape[1]):
        best = max(best, state.means[t, a])
    return state.rewards[t, arm], best - state.means[t, arm]


class ContextTable(ContextEnvironment):
    """Contexts and potential rewards fixed in advance: for tests, audits and adversarial sequences.

    Args:
        contexts: shape (T, K, d).
        rewards: shape (T, K).
        means: shape (T, K), by which regret is counted; by default the rewards themselves.

    >>> ContextTable(np.ones((5, 2, 3)), np.zeros((5, 2))).dimension
    3
    """

    kernels = ContextKernels(_show_table, _answer_table)

    def __init__(self, contexts: Any, rewards: Any, means: Any = None) -> None:
        contexts, rewards = (
            finite_array("contexts", contexts, "T, K, d"),
            finite_array("rewards", rewards, "T, K"),
        )
        means = rewards if means is None else finite_array("means", means, "T, K")
        for name, table in (("rewards", rewards), ("means", means)):
            if table.shape != contexts.shape[:2]:
                raise ArgumentError(
                    f"{name} must have shape {contexts.shape[:2]} as the contexts have, got"
                    f" {table.shape}",
                    name,
                )
        self.horizon, self.n_arms, self.dimension = contexts.shape
        self.support = (float(rewards.min()), float(rewards.max()))
        self.context_bound = float(np.linalg.norm(contexts, axis=2).max())
        self.state = ContextTableState(contexts, rewards, means)

    def _arguments(self) -> str:
        return f"{self.horizon} rounds, {self.n_arms} arms, content {content(*self.state)}"
