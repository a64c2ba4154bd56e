"""Features of people for regression, at most 1 long and ill-conditioned in several ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .weights import at_most_1

Features = Callable[[int, int, np.random.Generator], np.ndarray]


def narrow(people: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Normal features with standard deviations from 1 down to 0.01, cut to the unit ball: some
    directions are small for everybody.
    """
    features = rng.standard_normal((people, dimension)) * np.logspace(0.0, -2.0, dimension)
    return at_most_1(features)


def step(people: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Normal features with the standard deviation 0.5 in the first direction and 0.1 in others, cut
    to the unit ball: noise hides most directions.
    """
    return at_most_1(
        rng.standard_normal((people, dimension)) * np.append(0.5, np.full(dimension - 1, 0.1))
    )


def rare(people: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Axes as unit vectors, shares in proportion 1 to 0.003: directions large for few people."""
    shares = np.logspace(0.0, -2.5, dimension)
    return np.eye(dimension)[rng.choice(dimension, people, p=shares / shares.sum())]


def mixed(people: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """As ``narrow``, for four people of five 20 times shorter."""
    features = rng.standard_normal((people, dimension)) * np.logspace(0.0, -2.0, dimension)
    return at_most_1(features * np.where(rng.random((people, 1)) < 0.2, 1.0, 0.05))


def linear_outcomes(
    features: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes -1 and 1 with means <x, theta>, shape (n,), and theta, uniform on the sphere."""
    direction = np.asarray(rng.standard_normal(features.shape[1]))
    theta = direction / np.linalg.norm(direction)
    means = features @ theta
    return np.where(rng.random(len(features)) < 0.5 + 0.5 * means, 1.0, -1.0), theta


DESIGNS: dict[str, Features] = {"narrow": narrow, "step": step, "rare": rare, "mixed": mixed}
