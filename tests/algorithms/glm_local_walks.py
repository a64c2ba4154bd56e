"""Plain walks of generalised linear bandits on randomised reports, through the table of
``linear_walks``: NumPy and SciPy alone, nothing of the package.

The link is logistic, |x| <= 1 and |theta| <= 1, rewards are 0 or 1, and every report is a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from glm_walks import FLATTEST, farthest, mean
from linear_walks import DELTA, Problem, ensemble_norm, shift_of
from scipy import special

R = float(mean(1.0))  # the largest |nu - r|
Randomiser = Callable[[np.ndarray], np.ndarray]


class Report(NamedTuple):
    randomise: Randomiser  # of a gradient
    size: float  # the root of its mean square, at most


def in_the_clear() -> Report:
    return Report(lambda g: g, R)


def gaussian(d: int, rho: float, rng: np.random.Generator) -> Report:
    """Two gradients of one person differ by at most ``farthest``."""
    std = farthest("none") / math.sqrt(2 * rho)
    return Report(lambda g: g + std * rng.standard_normal(d), math.hypot(R, std * math.sqrt(d)))


def ball(d: int, epsilon: float, rng: np.random.Generator) -> Report:
    """Duchi, Jordan & Wainwright (2018), step by step, with the constant as Han et al. write it."""
    odds = math.exp(-epsilon)
    constant = (
        math.sqrt(math.pi) / 2 * d * special.gamma((d - 1) / 2 + 1) / special.gamma(d / 2 + 1)
    )
    b = R * (1 + odds) / (1 - odds) * constant

    def randomise(g: np.ndarray) -> np.ndarray:
        length = np.linalg.norm(g)
        center = g / length if rng.random() < 0.5 + length / (2 * R) else -g / length
        toward = rng.random() < 1 / (1 + odds)
        while True:
            z = rng.standard_normal(d)
            if (z @ center > 0) == toward:
                return b * z / np.linalg.norm(z)

    return Report(randomise, b)


def inside(point: np.ndarray) -> np.ndarray:
    return point / max(1.0, float(np.linalg.norm(point)))


def descent(world: Problem, report: Report) -> np.ndarray:
    """Greedy play on stochastic gradients with steps 1 / (2 G sqrt(t))."""
    point, arms = np.zeros(world.contexts.shape[2]), []
    for t, x in enumerate(world.contexts):
        arm = int(np.argmax(x @ point))
        arms.append(arm)
        row = x[arm]
        g = report.randomise((mean(row @ point) - world.rewards[t, arm]) * row)
        point = inside(point - g / (2 * report.size * math.sqrt(t + 1)))
    return np.array(arms)


def to_confidence_sets(
    world: Problem, rho: float | None, rng: np.random.Generator | None
) -> np.ndarray:
    """Optimism on the regression of what the points of the descent say, drawn to their mean."""
    horizon, _, d = world.contexts.shape
    std = 0.0 if rho is None else farthest("one") / math.sqrt(2 * rho)
    top = 0.0 if rho is None else std * ensemble_norm(horizon, 0.1 * DELTA)
    base = 1 + top * math.sqrt(horizon / 2)
    size, odds = math.hypot(R, std * math.sqrt(d)), math.log(1 / (0.3 * DELTA))
    point, points, v, z = np.zeros(d), [], np.zeros((d, d)), np.zeros(d)
    squares, arms, estimate = 0.0, [], np.zeros(d)
    for t, x in enumerate(world.contexts):
        norm = top * math.sqrt(max(t, 1))
        shift = shift_of(v, norm)
        inverse = np.linalg.inv(v + shift * np.eye(d))
        center = np.mean(points, axis=0) if points else np.zeros(d)
        estimate = center + inverse @ (z - v @ center)
        gap, bias = max(base + norm - shift, 0), shift * (1 + np.linalg.norm(center))
        radius = 0.0
        if t:

            def within(width: float, n: int, t: int = t) -> float:
                return width * math.sqrt((1 + 1 / t) * (2 * odds + n * math.log1p(t)))

            bias += within(2 * math.sqrt(t) * std, d)
            known = 4 * size * math.sqrt(t) + squares + within(2 * math.sqrt(t) * std, 1)
            # mu y^2 - scatter y - (known + 4 mu) <= 0
            scatter = 0.5 * math.sqrt(2 * odds + math.log1p(t))
            y = np.roots([FLATTEST, -scatter, -(known + 4 * FLATTEST)]).max()
            radius = math.sqrt(min(y * y - 4, 4 * t))
        turned = x @ inverse
        squared = (turned**2).sum(axis=1)
        width = radius * np.sqrt((turned * x).sum(axis=1) + gap * squared)
        arm = int(np.argmax(x @ estimate + width + bias * np.sqrt(squared)))
        arms.append(arm)
        row = x[arm]
        g, m = (mean(row @ point) - world.rewards[t, arm]) * row, np.outer(row, row)
        if rng is not None:
            g = g + std * rng.standard_normal(d)
            noise = std * rng.standard_normal((d, d))
            m = m + (noise + noise.T) / 2
        points.append(point)
        v, z = v + m, z + m @ point
        step = 1 / (2 * size * math.sqrt(t + 1))
        squares += step * float(g @ g) / 2
        point = inside(point - step * g)
    return np.array(arms)
