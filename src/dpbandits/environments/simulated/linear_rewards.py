"""Rewards whose means are linear in features: fixed arms, and fresh Gaussian contexts in every
round (Azize & Basu, 2024, section 7).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...kernel import Generator, Matrix, kernel
from ...validation import choice, flag, integer, real, shortest
from ..arrays import content, finite_array
from ..base import ArmsKernels, ContextEnvironment, ContextKernels, KnownMeans, stationary_regret
from .normals import fill_normal

REWARDS = ("gaussian", "bounded")

_ROUNDING = 1e-9  # by which <theta, x> of unit vectors may exceed 1


def support_of(rewards: str) -> tuple[float, float]:
    """The interval that holds every reward of the kind."""
    return (-math.inf, math.inf) if rewards == "gaussian" else (-1.0, 1.0)


def spread(rewards: str, std: float) -> str:
    """The kind of rewards in a ``repr``."""
    return f"std={shortest(std)}" if rewards == "gaussian" else "rewards='bounded'"


def unit_vectors(count: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Independent and uniform on the unit sphere, shape (count, d)."""
    vectors = rng.standard_normal((count, dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def linear_means(name: str, features: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """<theta, x> of every row x, where shapes fit and no product is too large for a float."""
    if features.shape[1] != theta.size:
        raise ArgumentError(
            f"theta must have shape ({features.shape[1]},), a number for each feature of the"
            f" {name}, got ({theta.size},)",
            "theta",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        means = (features * theta).sum(axis=1)  # in one order, which a product's kernel chooses
    if not np.all(np.isfinite(means)):
        raise ArgumentError(
            f"{name} must have finite inner products with theta, got {means.tolist()}", name
        )
    return means


class LinearArmsState(NamedTuple):
    means: np.ndarray  # (K,)
    gaps: np.ndarray  # (K,)
    std: float
    bounded: bool


@kernel
def _draw_linear(state: LinearArmsState, arm: int, start: int, n: int, rng: Generator) -> float:
    if state.bounded:
        # The sum of n rewards of 1 or -1, by how many are 1.
        return 2.0 * rng.binomial(n, 0.5 * (1.0 + state.means[arm])) - n
    return n * state.means[arm] + math.sqrt(n) * state.std * rng.standard_normal()


class LinearArms(KnownMeans):
    """Fixed arms with mean rewards <theta, a>; the sum of n rounds is one normal or one binomial
    draw.

    Args:
        arms: the features of the arms, shape (K, d), which the environment keeps as ``features``.
        theta: the parameter, shape (d,), which it keeps as ``parameter``.
        std: of the noise; used by Gaussian rewards only.
        rewards: ``"gaussian"``, <theta, a> plus normal noise, which is unbounded; or ``"bounded"``,
            1 or -1, which a policy can protect without clipping.

    Raises:
        ArgumentError: shapes that do not fit, numbers that are not finite, or a mean outside [-1,
            1] with bounded rewards.

    >>> LinearArms([[1.0, 0.0], [0.6, 0.8]], [0.5, 0.5]).means().tolist()
    [0.5, 0.7]
    """

    kernels = ArmsKernels(_draw_linear, stationary_regret)

    def __init__(
        self, arms: ArrayLike, theta: ArrayLike, *, std: float = 1.0, rewards: str = "gaussian"
    ) -> None:
        self.features = finite_array("arms", arms, "K, d")
        self.parameter = finite_array("theta", theta, "d")
        self.std = real("std", std, 0.0, strict=True)
        self.rewards = choice("rewards", rewards, REWARDS)
        self._digest = content(self.features, self.parameter)
        self.n_arms = len(self.features)
        self.support = support_of(self.rewards)
        self._means = linear_means("arms", self.features, self.parameter)
        if self.rewards == "bounded":
            if np.abs(self._means).max() > 1.0 + _ROUNDING:
                raise ArgumentError(
                    "arms must have means <theta, a> in [-1, 1] when rewards='bounded', got"
                    f" {self._means.tolist()}",
                    "arms",
                )
            self._means = np.clip(self._means, -1.0, 1.0)
        self._means.flags.writeable = False
        gaps, bounded = self._means.max() - self._means, self.rewards == "bounded"
        self.state = LinearArmsState(self._means, gaps, self.std, bounded)

    @classmethod
    def on_sphere(
        cls,
        n_arms: int,
        dimension: int,
        *,
        seed: int = 0,
        std: float = 1.0,
        rewards: str = "gaussian",
    ) -> LinearArms:
        """An environment with arms and theta uniform on the unit sphere; published figures have 10
        arms in dimension 3.

        Raises:
            ArgumentError: an argument is outside its range.

        >>> LinearArms.on_sphere(10, 3, seed=1).features.shape
        (10, 3)
        """
        n_arms, dimension = integer("n_arms", n_arms, 1), integer("dimension", dimension, 1)
        rng = np.random.default_rng(integer("seed", seed, 0))
        vectors = unit_vectors(n_arms + 1, dimension, rng)
        made = cls(vectors[1:], vectors[0], std=std, rewards=rewards)
        return made._made(f"on the sphere, seed={seed}")

    @property
    def title(self) -> str:
        return f"{super().title}, dimension {self.parameter.size}"

    def _arguments(self) -> str:
        shape = f"{self.n_arms} arms, dimension {self.parameter.size}"
        return f"{shape}, {spread(self.rewards, self.std)}, {self._content}"


class LinearRewards(NamedTuple):
    """Linear rewards of features: parameters for kernels."""

    theta: np.ndarray  # (d,)
    std: float  # of the noise; of no use where rewards are bounded
    bounded: bool


@kernel
def linear_mean(state: Any, contexts: Matrix, arm: int) -> float:
    """The mean reward of an arm: <theta, x>, cut off at -1 and 1 where rewards are bounded."""
    mean = 0.0
    for i in range(contexts.shape[1]):
        mean += state.theta[i] * contexts[arm, i]
    if state.bounded:
        return min(max(mean, -1.0), 1.0)
    return mean


@kernel
def best_linear_mean(state: Any, contexts: Matrix) -> float:
    """The highest mean reward; four arms at a time, as the sum of one waits for each term."""
    n_arms, d = contexts.shape
    rest = n_arms % 4
    best = -np.inf
    for a in range(rest):
        best = max(best, linear_mean(state, contexts, a))
    for a in range(rest, n_arms, 4):
        m0 = m1 = m2 = m3 = 0.0
        for i in range(d):
            weight = state.theta[i]
            m0 += weight * contexts[a, i]
            m1 += weight * contexts[a + 1, i]
            m2 += weight * contexts[a + 2, i]
            m3 += weight * contexts[a + 3, i]
        best = max(best, max(max(m0, m1), max(m2, m3)))
    return min(max(best, -1.0), 1.0) if state.bounded else best


@kernel
def answer_linear(
    state: Any, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    best, mean = best_linear_mean(state, contexts), linear_mean(state, contexts, arm)
    if state.bounded:
        return (1.0 if 2.0 * rng.random() < 1.0 + mean else -1.0), best - mean
    return mean + state.std * rng.standard_normal(), best - mean


class GaussianContextsState(NamedTuple):
    theta: np.ndarray  # (d,)
    mean: float
    context_std: float
    project: bool
    std: float
    bounded: bool


@kernel
def _project(contexts: Matrix) -> None:
    for a in range(contexts.shape[0]):
        square = 0.0
        for i in range(contexts.shape[1]):
            square += contexts[a, i] * contexts[a, i]
        # No branch on the length, because processors would guess it wrongly half the time.
        scale = 1.0 / math.sqrt(max(square, 1.0))
        for i in range(contexts.shape[1]):
            contexts[a, i] *= scale


@kernel
def _show_gaussian(state: GaussianContextsState, t: int, contexts: Matrix, rng: Generator) -> int:
    fill_normal(contexts, state.mean, state.context_std, rng)
    if state.project:
        _project(contexts)
    return 0


class GaussianContexts(ContextEnvironment):
    """Fresh features for every arm in every round, all coordinates independent N(mean, variance);
    rewards linear in them.

    Regret is counted by the means that rewards really have: <theta, x>, or with
    ``rewards="bounded"`` the nearest number in [-1, 1].  So bounded rewards are linear in the
    features where |<theta, x>| <= 1, which ``project=True`` ensures for theta on the unit sphere.

    Args:
        n_arms: number of arms, K.
        theta: the parameter, shape (d,).
        mean, variance: of every coordinate of the features; the mean is 1 / sqrt(d) by default.
        std, rewards: as for ``LinearArms``.
        project: scale features longer than 1 to length 1.  Guarantees for contexts in the unit ball
            then hold.

    Raises:
        ArgumentError: an argument is outside its range.

    >>> GaussianContexts(10, [0.6, 0.8], project=True).context_bound
    1.0
    """

    kernels = ContextKernels(_show_gaussian, answer_linear)
    parameter: np.ndarray

    def __init__(
        self,
        n_arms: int,
        theta: ArrayLike,
        *,
        mean: float | None = None,
        variance: float = 0.1,
        std: float = 1.0,
        rewards: str = "gaussian",
        project: bool = False,
    ) -> None:
        self.n_arms = integer("n_arms", n_arms, 1)
        self.parameter = finite_array("theta", theta, "d")
        self._digest = content(self.parameter)
        self.dimension = self.parameter.size
        usual = 1.0 / math.sqrt(self.dimension)
        self.mean = usual if mean is None else real("mean", mean, -1e6, 1e6)
        self.variance = real("variance", variance, 0.0, 1e12)
        self.std = real("std", std, 0.0, strict=True)
        self.rewards, self.project = choice("rewards", rewards, REWARDS), flag("project", project)
        self.support = support_of(self.rewards)
        self.context_bound = 1.0 if self.project else math.inf
        bounded, context_std = self.rewards == "bounded", math.sqrt(self.variance)
        self.state = GaussianContextsState(
            self.parameter, self.mean, context_std, self.project, self.std, bounded
        )

    @classmethod
    def on_sphere(
        cls, n_arms: int, dimension: int, *, seed: int = 0, **options: Any
    ) -> GaussianContexts:
        """An environment with theta uniform on the unit sphere; ``options`` as for the class.

        Raises:
            ArgumentError: an argument is outside its range.

        >>> GaussianContexts.on_sphere(10, 3, seed=1).dimension
        3
        """
        rng = np.random.default_rng(integer("seed", seed, 0))
        (theta,) = unit_vectors(1, integer("dimension", dimension, 1), rng)
        return cls(n_arms, theta, **options)._made(f"on the sphere, seed={seed}")

    def _arguments(self) -> str:
        law = f"mean={shortest(self.mean)}, variance={shortest(self.variance)}"
        law += ", project=True" if self.project else ""
        shape = f"{self.n_arms} arms, dimension {self.dimension}"
        return f"{shape}, {law}, {spread(self.rewards, self.std)}, {self._content}"
