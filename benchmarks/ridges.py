"""The ridge of linear IMED: regret with other values over that with ridge 1.

With public features the factor of its rule was set by this.  A run is lost if its regret is above 8
times the median with ridge 1.  With private contexts the batch is varied, too: regret is divided by
that of ridge 1 and batches of 50.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import dpbandits as dpb
from dpbandits.environments import GLMContexts, PoolContexts
from dpbandits.simulation.simulating import play

from .timing import Row, scaled

SEED = 3701  # of runs; the seeds of worlds are not those of the comparison at equal budgets either
LOST = 8.0


class Task(NamedTuple):
    name: str
    worlds: Sequence[Any]
    horizon: int
    runs: int  # of each world


def uneven(dimension: int, decay: float, seed: int) -> Any:
    """Fresh features, i**-decay times as large in the i-th direction as in the first."""
    return GLMContexts.random(20, dimension, link="identity", decay=decay, seed=seed)


def correlated(dimension: int, seed: int) -> Any:
    """20 of 4,000 feature vectors of length 1, with correlations .9**|i - j|."""
    rng = np.random.default_rng(seed)
    apart = np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    drawn = rng.standard_normal((4000, dimension)) @ np.linalg.cholesky(0.9**apart).T
    theta = rng.standard_normal(dimension)
    features = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return PoolContexts(features, theta / np.linalg.norm(theta), per_round=20, rewards="bounded")


def axes(*means: float) -> Any:
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


def rows(size: float) -> Iterator[Row]:
    for task in tasks(size):
        for budget in (dpb.ZCDP(0.1), dpb.ZCDP(1.0), None):
            plain = regrets(task, budget, 1.0)
            rule = _policy(task, budget, None).params.ridge
            for factor in (0.5, 1.0, 2.0):
                regret = regrets(task, budget, factor * rule)
                lost = int((regret > LOST * np.median(plain)).sum())
                name = f"{task.name}, {budget or 'open'}, {factor:g} times the rule"
                remark = f"regret {regret.mean():,.0f}, {lost} of {regret.size} runs lost"
                target = "<= 1.03" if factor == 1.0 else ""
                yield Row(name, regret.mean() / plain.mean(), "x", target, remark)
    yield from _private(size)


def _private(size: float) -> Iterator[Row]:
    """Private contexts at 1-zCDP, over up to 10,000 rounds."""
    horizon = scaled(10_000, size, 1_000)
    for d, runs in ((5, 200), (20, 60), (50, 10)):
        world, most = uneven(d, 0.0, 50), scaled(runs, size, 2)
        regret = {
            (batch, ridge): _hidden(world, batch, ridge, horizon, most)
            for batch in (50, 200, 500)
            for ridge in (1.0, float(d))
        }
        plain = regret[50, 1.0]
        for (batch, ridge), one in regret.items():
            change = (one - plain) / plain.mean()
            spread = 1.96 * change.std() / np.sqrt(one.size)
            name = f"private contexts, d = {d}, batch {batch}, ridge {ridge:g}"
            yield Row(name, one.mean() / plain.mean(), "x", "", f"+- {spread:.2f}")


def _hidden(world: Any, batch: int, ridge: float, horizon: int, runs: int) -> np.ndarray:
    shape, own = (20, world.dimension), {"batch": batch, "ridge": ridge, "horizon": horizon}
    options: dict[str, Any] = {"budget": dpb.ZCDP(1.0), "reward_range": (-1.0, 1.0), **own}
    policy, last = dpb.algorithms.LinearIMEDJDP(*shape, **options), np.array([horizon])
    played = (play(policy, world, horizon, run, SEED, last) for run in range(runs))
    return np.array([one.tally.sums[0] for one in played])


def regrets(task: Task, budget: dpb.Budget | None, ridge: float) -> np.ndarray:
    """Of every run in every world."""
    policy, last = _policy(task, budget, ridge), np.array([task.horizon])
    return np.array(
        [
            play(policy, world, task.horizon, run, SEED + i, last).tally.sums[0]
            for i, world in enumerate(task.worlds)
            for run in range(task.runs)
        ]
    )


def _policy(task: Task, budget: dpb.Budget | None, ridge: float | None) -> Any:
    shape = task.worlds[0].n_arms, task.worlds[0].dimension
    own: dict[str, Any] = {"reward_range": (-1.0, 1.0), "horizon": task.horizon, "ridge": ridge}
    return dpb.algorithms.RSLinearIMED(*shape, budget=budget, **own)
