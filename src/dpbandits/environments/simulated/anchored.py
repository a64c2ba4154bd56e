"""Fresh features with one fixed coordinate, which makes linear means probabilities (Vaswani,
Mehrabian, Durand & Kveton 2020; Chowdhury & Zhou 2022, Section 5).  Features belong to every arm,
or to the person; then every arm has a parameter of its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...glm.links import link_of
from ...kernel import Generator, Matrix, kernel
from ...validation import integer
from ..arrays import content, finite_array
from ..base import ContextEnvironment, ContextKernels
from .generalised import glm_kernels, lowest_reward, repeat_first
from .linear_rewards import LinearRewards, best_linear_mean, linear_mean, unit_vectors
from .normals import fill_normal

_ANCHOR = math.sqrt(0.5)  # the fixed coordinate, and the length of the others


@kernel
def _draw_anchored(contexts: Matrix, rng: Generator) -> None:
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


@kernel
def _show_anchored(state: LinearRewards, t: int, contexts: Matrix, rng: Generator) -> int:
    _draw_anchored(contexts, rng)
    return 0


@kernel
def _answer_coin(
    state: LinearRewards, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    best, mean = best_linear_mean(state, contexts), linear_mean(state, contexts, arm)
    return (1.0 if rng.random() < mean else 0.0), best - mean


class AnchoredContexts(ContextEnvironment):
    """Features of length 1 with a random direction and a fixed last coordinate, 1 / sqrt(2).  They
    are fresh for every arm in every round; rewards are 0 or 1 with the mean <theta, x>.

    Args:
        n_arms: number of arms, K.
        theta: the parameter, shape (d,), d at least 2; <theta, x> must always be a probability.

    Raises:
        ArgumentError: an argument is outside its range.

    >>> AnchoredContexts.random(100, 5, seed=1).support
    (0.0, 1.0)
    """

    kernels = ContextKernels(_show_anchored, _answer_coin)
    support, context_bound = (0.0, 1.0), 1.0
    parameter: np.ndarray

    def __init__(self, n_arms: int, theta: ArrayLike) -> None:
        self.n_arms = integer("n_arms", n_arms, 1)
        self.parameter = finite_array("theta", theta, "d")
        self._digest = content(self.parameter)
        self.dimension = self.parameter.size
        _check_means("theta", self.parameter)
        self.state = LinearRewards(self.parameter, 0.0, False)  # means need no cutting off

    @classmethod
    def random(cls, n_arms: int, dimension: int, *, seed: int = 0) -> AnchoredContexts:
        """An environment with theta drawn as features are."""
        return cls(n_arms, _parameters(1, dimension, seed)[0])._made(f"random, seed={seed}")

    def _arguments(self) -> str:
        return f"{self.n_arms} arms, dimension {self.dimension}, {self._content}"


def _check_means(name: str, parameters: np.ndarray) -> None:
    """That all means are probabilities."""
    swing = _ANCHOR * np.linalg.norm(parameters[..., :-1], axis=-1)
    middle = _ANCHOR * parameters[..., -1]
    if parameters.shape[-1] < 2 or np.any(np.minimum(middle, 1.0 - middle) - swing < -1e-12):
        raise ArgumentError(
            f"{name} must have at least 2 coordinates, with s <= t and s + t <= sqrt(2) for the"
            " last coordinate t and the length s of the others, got"
            f" {parameters.tolist()}: means are probabilities",
            name,
        )


def _parameters(count: int, dimension: int, seed: int) -> np.ndarray:
    """Drawn as features are, shape (count, d)."""
    rng = np.random.default_rng(integer("seed", seed, 0))
    others = unit_vectors(count, integer("dimension", dimension, 2) - 1, rng)
    return _ANCHOR * np.column_stack([others, np.ones(count)])


class CovariateArmsState(NamedTuple):
    theta: np.ndarray  # (K, d)
    low: float  # the other reward than 1: 0, or -1


@kernel
def _show_covariates(state: CovariateArmsState, t: int, contexts: Matrix, rng: Generator) -> int:
    _draw_anchored(contexts[:1], rng)
    repeat_first(contexts)
    return 0


class CovariateArms(ContextEnvironment):
    """People with one feature vector each, and arms with a parameter each: rewards are 0 or 1
    with the mean nu(<theta_a, x>).

    Features are of length 1, their last coordinate is 1 / sqrt(2), and the others point in a random
    direction, fresh in every round.  The environment shows them as K equal rows, for policies with
    ``models="disjoint"``; to other policies all arms look alike.

    Args:
        parameters: theta of every arm, shape (K, d), d at least 2; with the identity link <theta,
            x> must always be a probability.
        link: nu, by its name; ``GLMContexts`` says how long parameters may be, and when rewards are
            1 or -1 instead.

    Attributes:
        parameter: ``parameters``, as given.
        link: the function that maps <theta_a, x> to means.

    Raises:
        ArgumentError: an argument is outside its range.

    >>> CovariateArms.random(4, 5, seed=1).parameter.shape
    (4, 5)
    """

    context_bound = 1.0
    parameter: np.ndarray

    def __init__(self, parameters: ArrayLike, *, link: str = "identity") -> None:
        self.parameter = finite_array("parameters", parameters, "K, d")
        self.link = link_of(link)
        self._digest = content(self.parameter)
        self.n_arms, self.dimension = self.parameter.shape
        low = 0.0
        if self.link.name == "identity":
            _check_means("parameters", self.parameter)
        elif self.dimension < 2:
            raise ArgumentError("parameters must have at least 2 coordinates, got 1", "parameters")
        else:
            low = lowest_reward(self.link, "parameters", self.parameter)
        self.support = (low, 1.0)
        self.kernels = glm_kernels(_show_covariates, self.link)
        self.state = CovariateArmsState(self.parameter, low)

    @classmethod
    def random(
        cls, n_arms: int, dimension: int, *, link: str = "identity", seed: int = 0
    ) -> CovariateArms:
        """An environment with parameters drawn as features are: over people, all arms are about
        equally good.

        Raises:
            ArgumentError: an argument is outside its range.
        """
        parameters = _parameters(integer("n_arms", n_arms, 1), dimension, seed)
        return cls(parameters, link=link)._made(f"random, seed={seed}")

    def _arguments(self) -> str:
        link = "" if self.link.name == "identity" else f"link={self.link.name!r}, "
        return f"{self.n_arms} arms, dimension {self.dimension}, {link}{self._content}"
