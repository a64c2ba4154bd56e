"""IMED with a horizon: the search for its constants, by regret and lost runs beside IMED without.

A run is lost if its regret is above 8 times the median without a horizon.  Of the candidates whose
lost runs are no more than without a horizon, up to chance, the one with the least median ratio of
mean regret is taken.  Rounds are played a batch at a time with the kernels of the package; the
choice is written again, for any constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dpbandits.algorithms.arms.batches import GROWTH, GROWTH_IN_NOISE, batch_rounds, weight_of
from dpbandits.algorithms.arms.law import MERGED, divergence_of, merge
from dpbandits.algorithms.bases.horizon import KNOTS, SHARE
from dpbandits.kernel import entry, kernel

from .timing import Row, scaled

SEED = 20_240_917  # of no panel
LOST = 8.0
WORLDS = {  # means, horizon, runs
    "pair, 3e4": ((0.5, 0.52), 30_000, 200_000),
    "pair, 1e5": ((0.5, 0.52), 100_000, 40_000),
    "pair, 3e5": ((0.5, 0.52), 300_000, 20_000),
    "two arms, 500": ((0.4, 0.6), 500, 20_000),
    "two arms, 2,000": ((0.4, 0.6), 2_000, 20_000),
    "four arms, 500": ((0.4, 0.5, 0.5, 0.6), 500, 20_000),
    "four near, 5e4": ((0.44, 0.65, 0.56, 0.56), 50_000, 10_000),
    "high, 1e5": ((0.8, 0.9), 100_000, 10_000),
}
_X = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
CANDIDATES = {  # c, and h at _X
    "none": (math.inf, _X),
    "c = .5": (0.5, _X),
    "c = 1": (1.0, _X),
    "c = 2": (2.0, _X),
    "c = 4": (4.0, _X),
    "low up to 2": (4.0, (0.0, 0.6, 1.6, 3.0, 4.1, 5.1, 6.0)),
    "high from 2": (2.0, (0.0, 0.75, 1.8, 2.9, 4.5, 5.2, 5.8)),
    "higher from 2": (3.0, (0.0, 0.6, 1.7, 3.2, 4.5, 5.4, 6.1)),
    "highest from 2": (3.0, (0.0, 0.6, 2.0, 3.5, 4.4, 5.1, 5.9)),
    "taken": (SHARE, tuple(h for _, h in KNOTS)),
}


class Sums(NamedTuple):  # the parameters that batches and the law of noise look at
    growth: float = GROWTH
    growth_in_noise: float = GROWTH_IN_NOISE
    first: int = 1
    noise_scale: float = math.sqrt(0.5)  # of 1-zCDP
    laplace: bool = False
    curved: bool = False


@kernel
def _doubt(knots: Any, heights: Any, distance: float) -> float:
    for i in range(1, knots.size):
        if distance < heights[i]:
            slope = (knots[i] - knots[i - 1]) / (heights[i] - heights[i - 1])
            return knots[i - 1] + (distance - heights[i - 1]) * slope
    return knots[-1] + distance - heights[-1]


@kernel
def _next(sums: Any, share: float, knots: Any, heights: Any, left: float, merged: Any) -> int:
    """The arm of least index; arms without a batch come first."""
    arms, target = merged.shape[1], 0.0
    for a in range(arms):
        if merged[MERGED.weight, a] == 0.0:
            return a
        target = max(target, merged[MERGED.value, a])
    most = weight_of(sums, share * left) if share < np.inf else np.inf
    least, arm = np.inf, 0
    for a in range(arms):
        own = merged[:, a]
        distance = divergence_of(sums, own, own, own[MERGED.value], min(target, 1.0))
        found = _doubt(knots, heights, distance) + np.log(min(own[MERGED.weight], most))
        if found < least:
            least, arm = found, a
    return arm


@entry
def _play(
    sums: Any,
    share: float,
    knots: Any,
    heights: Any,
    means: Any,
    horizon: int,
    found: Any,
    rng: Any,
) -> None:
    merged, pulls = np.zeros((10, means.size)), np.zeros(means.size, np.int64)
    for run in range(found.size):
        merged[:], pulls[:] = 0.0, 0
        t = 0
        while t < horizon:
            arm = _next(sums, share, knots, heights, float(horizon - t), merged)
            n = batch_rounds(sums, pulls[arm])
            pulls[arm] += min(n, horizon - t)
            t += n
            total = rng.binomial(n, means[arm]) + sums.noise_scale * rng.standard_normal()
            merge(merged[:, arm], float(n), total / n, weight_of(sums, float(n)))
        found[run] = (pulls * (means.max() - means)).sum()


def regrets(candidate: str, world: str, runs: int) -> np.ndarray:
    """The regret of every run at 1-zCDP."""
    (share, heights), (means, horizon, _) = CANDIDATES[candidate], WORLDS[world]
    found, rng = np.empty(runs), np.random.default_rng(SEED)
    shape = np.array(_X), np.array(heights, float)
    _play(Sums(), share, *shape, np.array(means), horizon, found, rng)
    return found


def rows(size: float) -> Iterator[Row]:
    runs = {world: scaled(most, size, 20) for world, (_, _, most) in WORLDS.items()}
    without = {world: regrets("none", world, n) for world, n in runs.items()}
    for candidate in CANDIDATES:
        if candidate == "none":
            continue
        ratios = []
        for world, before in without.items():
            after = regrets(candidate, world, runs[world])
            ratios.append(float(after.mean() / before.mean()))
            limit = LOST * np.median(before)
            own, theirs = (1000 * float((one > limit).mean()) for one in (after, before))
            remark = f"lost of 1,000 runs: {own:.2f}, {theirs:.2f} without a horizon"
            yield Row(f"{candidate}: {world}", ratios[-1], "x", "", remark)
        yield Row(f"{candidate}: median", float(np.median(ratios)), "x")
