"""The ridge of linear IMED with public features, by which its rule was set.

Regret with the rule, and with factors of it, over that with ridge 1, on the same seeds.  A run is
lost if its regret is above 8 times the median with ridge 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

import dpbandits as dpb
from dpbandits.environments import GLMContexts, PoolContexts
from dpbandits.environments.base import World

from .timing import Row, scaled

SEED = 3701  # of runs; the seeds of worlds are not those of the comparison at equal budgets either
LOST = 8.0


class Task(NamedTuple):
    name: str
    worlds: Sequence[World]
    horizon: int
    runs: int  # of each world


def uneven(dimension: int, decay: float, seed: int) -> World:
    """Fresh features, i**-decay times as large in the i-th direction as in the first."""
    return GLMContexts.random(20, dimension, link="identity", decay=decay, seed=seed)


def correlated(dimension: int, seed: int) -> World:
    """20 of 4,000 feature vectors of length 1, with correlations .9**|i - j|."""
    rng = np.random.default_rng(seed)
    apart = np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    drawn = rng.standard_normal((4000, dimension)) @ np.linalg.cholesky(0.9**apart).T
    theta = rng.standard_normal(dimension)
    features = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return PoolContexts(features, theta / np.linalg.norm(theta), per_round=20, rewards="bounded")


def axes(*means: float) -> World:
    """Unit vectors, all of them in every round."""
    return PoolContexts(np.eye(len(means)), means, per_round=len(means), rewards="bounded")


def tasks(size: float) -> list[Task]:
    worlds = range(40, 40 + scaled(10, size, 1))
    few = scaled(10, size, 2)
    eight = axes(0.2, 0.4, 0.0, 0.5, -0.2, 0.1, 0.3, 0.3)
    return [
        Task("sphere, d = 5", [uneven(5, 0.0, seed) for seed in worlds], 30_000, few),
        Task("uneven, d = 5", [uneven(5, 2.0, seed) for seed in worlds], 30_000, few),
        Task("correlated, d = 20", [correlated(20, seed) for seed in worlds], 30_000, few // 2),
        Task("eight axes", [eight], 30_000, scaled(200, size, 2)),
        Task("two axes", [axes(0.25, 0.45)], 30_000, scaled(1000, size, 2)),
        Task("close pair", [axes(0.05, 0.0)], 300_000, scaled(1000, size, 2)),
    ]
