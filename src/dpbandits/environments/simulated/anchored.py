"""Fresh features with one fixed coordinate, so that linear means are probabilities (Vaswani,
Mehrabian, Durand & Kveton 2020; Chowdhury & Zhou 2022, Section 5).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...kernel import Generator, Matrix, kernel
from ...validation import integer
from ..arrays import content, finite_array
from ..base import ContextEnvironment, ContextKernels
from .linear_rewards import best_linear_mean, linear_mean, unit_vectors
from .normals import fill_normal

_ANCHOR = math.sqrt(0.5)  # the fixed coordinate, and the length of the others


class AnchoredContextsState(NamedTuple):
    """What features are worth."""

    theta: np.ndarray  # (d,)
    bounded: bool  # False: means need no cutting off


@kernel
def _show_anchored(state: AnchoredContextsState, t: int, contexts: Matrix, rng: Generator) -> int:
    fill_normal(contexts, 0.0, 1.0, rng)
    last = contexts.shape[1] - 1
    for a in range(contexts.shape[0]):
        square = 0.0
        for i in range(last):
            square += contexts[a, i] * contexts[a, i]
        scale = _ANCHOR / math.sqrt(square)
        for i in range(last):
            contexts[a, i] *= scale
        contexts[a, last] = _ANCHOR
    return 0


@kernel
def _answer_coin(
    state: AnchoredContextsState, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    best, mean = best_linear_mean(state, contexts), linear_mean(state, contexts, arm)
    return (1.0 if rng.random() < mean else 0.0), best - mean


class AnchoredContexts(ContextEnvironment):
    """Features of length 1 whose last coordinate is 1 / sqrt(2) and whose others point in a random
    direction, fresh for every arm in every round; rewards are 1 with probability <theta, x>, else
    0.

    Args:
        n_arms: number of arms, K.
        theta: the parameter, shape (d,), d at least 2, for which <theta, x> always is a
            probability.

    Raises:
        ArgumentError: an argument is outside its range.

    >>> AnchoredContexts.random(100, 5, seed=1).support
    (0.0, 1.0)
    """

    kernels = ContextKernels(_show_anchored, _answer_coin)
    support, context_bound = (0.0, 1.0), 1.0
    parameter: np.ndarray

    def __init__(self, n_arms: int, theta: Any) -> None:
        self.n_arms, self.parameter = (
            integer("n_arms", n_arms, 1),
            finite_array("theta", theta, "d"),
        )
        self._digest = content(self.parameter)
        self.dimension = self.parameter.size
        swing = _ANCHOR * float(np.linalg.norm(self.parameter[:-1]))
        middle = _ANCHOR * float(self.parameter[-1])
        if self.dimension < 2 or min(middle - swing, 1.0 - middle - swing) < -1e-12:
            raise ArgumentError(
                "theta must have at least 2 coordinates, the last t and the others of length s with"
                f" s <= t and s + t <= sqrt(2), so that means are probabilities, got {theta!r}",
                "theta",
            )
        self.state = AnchoredContextsState(self.parameter, False)

    @classmethod
    def random(cls, n_arms: int, dimension: int, *, seed: int = 0) -> AnchoredContexts:
        """Theta drawn as features are."""
        rng = np.random.default_rng(integer("seed", seed, 0))
        others = unit_vectors(1, integer("dimension", dimension, 2) - 1, rng)[0]
        made = cls(n_arms, _ANCHOR * np.append(others, 1.0))
        made.origin = f"random, seed={seed}"
        return made

    def _arguments(self) -> str:
        return f"{self.n_arms} arms, dimension {self.dimension}, {self._content}"
