"""A plain walk of bandits on information-weighted regression, through the table of
``linear_walks``: NumPy and SciPy alone, nothing of the package.

Widths are a fiftieth of what is proved, so that play follows estimates.  The link is logistic, |x|
<= 1 and |theta| <= 1, lambda = 1, rewards are 0 or 1, and every epoch is weighted, and looked at,
from what the one before has found.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from glm_walks import CURVATURE, FLATTEST, mean, slope
from linear_walks import DELTA, Problem, ensemble_norm
from scipy import linalg, stats

R, STEEPEST = float(mean(1.0)), 0.25
SCALE = 0.02


class Wall(NamedTuple):
    """Of one release, or of one report."""

    std: float
    vector_norm: float
    matrix_norm: float
    local: bool


def wall(rho: float | None, d: int, noises: int, *, local: bool = False) -> Wall:
    if rho is None:
        return Wall(0.0, 0.0, 0.0, local)
    std = math.sqrt((4 * R**2 + 2 * STEEPEST**2) / (2 * rho))
    norm = std * math.sqrt(stats.chi2.isf(0.8 * DELTA / noises, d))
    return Wall(std, norm, std * ensemble_norm(noises, 0.1 * DELTA), local)


def lens(b: np.ndarray, people: int, at: Wall) -> tuple[np.ndarray, float, float]:
    """A with A B A + ridge A = I, the damping, and k."""
    d = len(b)
    noise = at.std * (math.sqrt(people) if at.local else 1)
    pull = max(math.sqrt(d) * noise, 1.0)
    wanted, damping = max(pull / people, 1e-9), max(10 * noise / math.sqrt(people), 1e-9)
    # the root of y (y + damping) = wanted
    ridge = wanted if at.local else (math.sqrt(damping**2 + 4 * wanted) - damping) / 2
    turned = linalg.sqrtm(b + ridge**2 / 4 * np.eye(d)).real + ridge / 2 * np.eye(d)
    return np.linalg.inv(turned), damping, pull


def power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0) ** exponent) @ vectors.T


def walk(
    world: Problem, schedule: list[int], at: Wall, log_odds: float, rng: np.random.Generator
) -> np.ndarray:
    d = world.contexts.shape[2]
    ends = [*schedule, max(2 * schedule[-1], schedule[-1] + schedule[0])]
    estimate, point, turn = np.zeros(d), np.zeros(d), np.eye(d)
    width, miss, epoch, arms = SCALE, 1.0, 0, []
    a, damping, pull = lens(np.eye(d), ends[0], at)
    s, p = np.zeros(d), np.zeros((d, d))
    for t, x in enumerate(world.contexts):
        arm = int(np.argmax(x @ estimate + width * np.linalg.norm(x @ turn.T, axis=1)))
        arms.append(arm)
        z, largest = x[arm], np.linalg.eigvalsh(a)[-1]
        length = np.linalg.norm(a @ z)
        weight = 1 / length if at.local else 1 / (1 + damping * length)
        c = 1.0 if at.local else largest / (1 + damping * largest)
        q = math.sqrt(weight / c) * power(a, 0.5) @ z
        s += (world.rewards[t, arm] - mean(z @ point)) * weight / c * (a @ z)
        p += slope(z @ point) * np.outer(q, q)
        if epoch == len(schedule) or t + 1 < schedule[epoch]:
            continue
        people = ends[epoch] - (ends[epoch - 1] if epoch else 0)
        level = at.std * (math.sqrt(people) if at.local else 1)
        g = level * rng.standard_normal((d, d))
        s, p = s + level * rng.standard_normal(d), p + (g + g.T) / 2
        p = power(p, 1.0)
        root, inverse_root = power(a, 0.5), power(a, -0.5)
        turn = inverse_root @ np.linalg.inv(p + pull * np.eye(d)) @ root
        estimate = point + turn.T @ s
        reports = math.sqrt(people) if at.local else 1
        width = 0.5 * math.sqrt(people * (4 * log_odds + 2)) + people * min(
            CURVATURE * miss**2 / 2, (STEEPEST - FLATTEST) * miss
        )
        condition = np.linalg.norm(root) * np.linalg.norm(inverse_root)
        width += reports * at.vector_norm
        width += (pull + 2 * reports * at.matrix_norm * condition) * miss
        width *= SCALE
        point = estimate / max(1.0, np.linalg.norm(estimate))
        miss = min(width * np.linalg.norm(turn), 1 + np.linalg.norm(point))
        b, epoch = c / people * inverse_root @ p @ inverse_root, epoch + 1
        a, damping, pull = lens(b, ends[epoch] - ends[epoch - 1], at)
        s, p = np.zeros(d), np.zeros((d, d))
    return np.array(arms)
