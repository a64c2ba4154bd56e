"""What secure noise costs: how much wider it is than simulated noise, and how long it takes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import dpbandits as dpb

from .timing import Row, best, scaled

DELTAS = (0.1, 1e-3, 1e-6)
STEPS = (64, 4096, None)  # of the grid, at least so many in a standard deviation; None: by default


def rows(size: float) -> Iterator[Row]:
    for delta in DELTAS:
        simulated = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ApproxDP(1.0, delta))
        for steps in STEPS:
            yield _width(simulated, steps, scaled(400_000, size, 1000))
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5), noise="secure")
    draws = scaled(100_000, size, 100)
    seconds = best(lambda: _drawn(policy, draws), 1)
    yield Row("a secure Gaussian draw, default grid", seconds / draws * 1e6, "us")


def _width(simulated: dpb.papers.concentrated.AdaCUCB, steps: int | None, draws: int) -> Row:
    """The ratio of the scales, and as a remark that of what was drawn."""
    scale, grid = simulated.noise_scale, None
    if steps is not None:
        grid = 2.0 ** math.floor(math.log2(scale / steps))
    secure = dpb.papers.concentrated.AdaCUCB(2, budget=simulated.budget, noise="secure", grid=grid)
    assert isinstance(simulated.budget, dpb.ApproxDP)
    name = f"secure over simulated noise at (1, {simulated.budget.delta:g})"
    name += ", default grid" if steps is None else f", {steps} steps"
    measured = float(np.std(_drawn(secure, draws))) / scale
    remark = f"drawn: {measured:.4f} ± {1 / math.sqrt(2 * draws):.4f}; grid {secure.grid:g}"
    return Row(name, secure.noise_scale / scale, "x", "<= 1.02", remark)


def _drawn(policy: dpb.papers.concentrated.AdaCUCB, draws: int) -> np.ndarray:
    release = np.empty(draws)
    scale = policy.channel.scale(1.0)
    policy.noise_source.add_noise(policy.channel, scale, np.zeros(draws), release, None)
    return release
