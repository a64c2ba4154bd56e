"""Rewards of generalised linear models: E[reward] = nu(<x, theta>), with the link nu by its name.

The link is that of the world: a policy that assumes another one is misspecified here.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...glm.links import Link, link_of
from ...kernel import Generator, Kernel, Matrix, bind, kernel, unbound
from ...tables import frozen
from ...validation import choice, integer, real, shortest
from ..arrays import content, finite_array, vector
from ..base import ContextEnvironment, ContextKernels
from .linear_rewards import unit_vectors
from .normals import fill_normal

_ROUNDING = 1e-9  # by which |theta| may exceed its bound


class GLMContextsState(NamedTuple):
    theta: np.ndarray  # (M, d): M is 1, or K where every arm has a parameter of its own
    low: float  # the other reward than 1: 0, or -1
    stretch: np.ndarray  # (d,): of the axes of the unit sphere


mean_of = unbound  # nu


@kernel
def _product(state: Any, contexts: Matrix, arm: int) -> float:
    theta = state.theta[min(arm, state.theta.shape[0] - 1)]
    product = 0.0
    for i in range(contexts.shape[1]):
        product += theta[i] * contexts[arm, i]
    return product


@kernel
def _answer(
    state: Any, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    best, mean = -np.inf, mean_of(_product(state, contexts, arm))
    for a in range(contexts.shape[0]):
        best = max(best, mean_of(_product(state, contexts, a)))
    # The probability of 1 is (mean - low) / (1 - low), for a reward of 1 or ``low``.
    above = (1.0 - state.low) * rng.random() < mean - state.low
    return (1.0 if above else state.low), best - mean


@cache
def glm_kernels(show: Kernel, link: Link) -> ContextKernels:
    """``show`` with answers by a link, for states with ``theta``, shape (M, d), and ``low``."""
    return ContextKernels(show, bind(_answer, mean_of=link.mean))


@kernel
def repeat_first(contexts: Matrix) -> None:
    """Show the features of arm 0 for every arm."""
    for a in range(1, contexts.shape[0]):
        for i in range(contexts.shape[1]):
            contexts[a, i] = contexts[0, i]


@kernel
def _show_ellipsoid(state: GLMContextsState, t: int, contexts: Matrix, rng: Generator) -> int:
    # A parameter for each arm: the features are those of one person.
    alike = state.theta.shape[0] > 1
    drawn = contexts[:1] if alike else contexts
    fill_normal(drawn, 0.0, 1.0, rng)
    for a in range(drawn.shape[0]):
        square = 0.0
        for i in range(drawn.shape[1]):
            square += drawn[a, i] * drawn[a, i]
        scale = 1.0 / np.sqrt(square)
        for i in range(drawn.shape[1]):
            drawn[a, i] *= scale * state.stretch[i]
    if alike:
        repeat_first(contexts)
    return 0


def lowest_reward(link: Link, name: str, theta: np.ndarray) -> float:
    """0 where all means of features of length 1 are probabilities, -1 where they lie in [-1, 1];
    ``name`` is that of theta, shape (..., d), in messages.
    """
    reach = float(np.linalg.norm(theta, axis=-1).max())
    farthest = 1.0 if link.name == "identity" else link.farthest
    if reach > farthest * (1.0 + _ROUNDING):
        raise ArgumentError(
            f"{name} must have a length of at most {farthest:g} for the link {link.name!r}, got"
            f" {reach:g}. Features have a length of at most 1",
            name,
        )
    reach = min(reach, farthest)
    least, largest = link.mean(-reach), link.mean(reach)
    if not (least >= -1.0 and largest <= 1.0):
        raise ArgumentError(
            f"link must have means in [-1, 1], got {link.name!r} with means in [{least:g},"
            f" {largest:g}]",
            "link",
        )
    return 0.0 if least >= 0.0 else -1.0


class GLMContexts(ContextEnvironment):
    """Fresh features with a given covariance in every round, and rewards of a generalised linear
    model: E[reward] = nu(<x, theta>).

    Features are ``sqrt(d) * sqrt(eigenvalues) * u`` with u uniform on the unit sphere.  None is
    longer than 1, coordinates are uncorrelated with mean 0, and E[x x^T] has exactly these
    eigenvalues.  A direction with an eigenvalue near 0 teaches little and affects rewards little.
    Rewards are 1 or 0 where all means are probabilities, else 1 or -1: with the identity link they
    are -1 or 1 with the mean <x, theta>.

    With one parameter, every arm shows features of its own.  With one per arm, each round shows one
    person's features alike to all arms, for policies with ``models="disjoint"``.

    Args:
        n_arms: number of arms, K.
        theta: the parameter, shape (d,), or those of the arms, shape (K, d); none longer than the
            link allows: 1 for "identity" and links of your own, 60 for "logistic", 8 for "probit".
        link: nu, by its name; see ``dpbandits.glm.register_link``.
        decay: the i-th eigenvalue of E[x x^T] is ``i**-decay / d``; 0 is the unit sphere.
        eigenvalues: instead of ``decay``, shape (d,), each in [0, 1 / d].

    Attributes:
        parameter: theta, as given.
        link: the function that maps <x, theta> to means.
        eigenvalues: of E[x x^T], shape (d,).

    Raises:
        ArgumentError: an argument is outside its range, or shapes do not fit.

    Example:
        >>> world = GLMContexts(5, [0.6, 0.0, -0.8], link="logistic", decay=2.0)
        >>> world.eigenvalues.round(4).tolist(), world.support
        ([0.3333, 0.0833, 0.037], (0.0, 1.0))
    """

    context_bound = 1.0
    parameter: np.ndarray

    def __init__(
        self,
        n_arms: int,
        theta: ArrayLike,
        *,
        link: str = "logistic",
        decay: float = 0.0,
        eigenvalues: ArrayLike | None = None,
    ) -> None:
        self.n_arms, self.link = integer("n_arms", n_arms, 1), link_of(link)
        self.parameter = finite_array("theta", theta, "d", "K, d")
        if self.parameter.ndim == 2 and len(self.parameter) != self.n_arms:
            raise ArgumentError(
                f"theta must have shape (d,) or ({self.n_arms}, d), one row per arm, got"
                f" {self.parameter.shape}",
                "theta",
            )
        self.dimension = self.parameter.shape[-1]
        self.decay = real("decay", decay, 0.0, 100.0)
        self.eigenvalues = _eigenvalues(self.dimension, self.decay, eigenvalues)
        low = lowest_reward(self.link, "theta", self.parameter)
        self.support = (low, 1.0)
        self._given = eigenvalues is not None
        self._digest = content(self.parameter)
        self.kernels = glm_kernels(_show_ellipsoid, self.link)
        stretch = np.minimum(np.sqrt(self.dimension * self.eigenvalues), 1.0)
        self.state = GLMContextsState(self.parameter.reshape(-1, self.dimension), low, stretch)

    @classmethod
    def random(
        cls,
        n_arms: int,
        dimension: int,
        *,
        models: str = "shared",
        norm: float = 1.0,
        seed: int = 0,
        **options: Any,
    ) -> GLMContexts:
        """An environment with theta uniform on the sphere of radius ``norm``; with
        ``models="disjoint"`` one for every arm.  ``options`` as for the class.

        Raises:
            ArgumentError: an argument is outside its range.

        >>> GLMContexts.random(3, 4, models="disjoint", norm=5.0).parameter.shape
        (3, 4)
        """
        n_arms, dimension = integer("n_arms", n_arms, 1), integer("dimension", dimension, 1)
        one = choice("models", models, ("shared", "disjoint")) == "shared"
        radius = real("norm", norm, 0.0, 1e12)
        rng = np.random.default_rng(integer("seed", seed, 0))
        theta = radius * unit_vectors(1 if one else n_arms, dimension, rng)
        made = cls(n_arms, theta[0] if one else theta, **options)
        return made._made(f"random, norm={shortest(radius)}, seed={seed}")

    def _arguments(self) -> str:
        spectrum = f"decay={shortest(self.decay)}"
        if self._given:
            spectrum = f"eigenvalues={self.eigenvalues.tolist()}"
        models = ", a parameter per arm" if self.parameter.ndim == 2 else ""
        shape = f"{self.n_arms} arms, dimension {self.dimension}{models}"
        return f"{shape}, link={self.link.name!r}, {spectrum}, {self._content}"


def _eigenvalues(dimension: int, decay: float, given: Any) -> np.ndarray:
    if given is None:
        return frozen(np.array([float(i) ** -decay / dimension for i in range(1, dimension + 1)]))
    values = vector("eigenvalues", given, 0.0, 1.0 / dimension)
    if decay != 0.0 or values.size != dimension:
        raise ArgumentError(
            f"eigenvalues must be {dimension} numbers, one per feature, and decay must be 0, got"
            f" {values.size} numbers and decay={decay:g}",
            "eigenvalues",
        )
    return values
