"""What secure noise costs: how much wider it is than simulated noise, and how long it takes, on a
server and on a person's device.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Iterator

import numpy as np

import dpbandits as dpb
from dpbandits.algorithms import Device
from dpbandits.parts import Divergence, Optimism, Sampling

from .timing import Row, best, scaled

DELTAS = (0.1, 1e-3, 1e-6)
STEPS = (64, 4096, None)  # of the grid, at least so many in a standard deviation; None: by default
ARMS, FEATURES = 10, 5
# The median of milliseconds, by Node's clock.
ON_A_DEVICE = """
const { config, rounds, arms, features } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const device = new dpbandits.Device(config), random = (n, f) => Array.from({ length: n }, f);
device.left = 2 * rounds;
const times = random(2 * rounds, () => {
  const contexts = random(arms, () => random(features, () => Math.random() - 0.5));
  const start = performance.now();
  device.choose(contexts);
  device.report(1);
  return performance.now() - start;
});
console.log(times.slice(rounds).sort((a, b) => a - b)[Math.floor(rounds / 2)]);
"""


def rows(size: float) -> Iterator[Row]:
    for delta in DELTAS:
        simulated = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ApproxDP(1.0, delta))
        for steps in STEPS:
            yield _width(simulated, steps, scaled(400_000, size, 1000))
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5), noise="secure")
    draws = scaled(100_000, size, 100)
    seconds = best(lambda: _drawn(policy, draws), 1)
    yield Row("a secure Gaussian draw, default grid", seconds / draws * 1e6, "us")
    for explore in (Divergence(), Sampling(), Optimism()):
        yield _answered(explore, scaled(500, size, 3))


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


def _answered(explore: Divergence | Sampling | Optimism, rounds: int) -> Row:
    """Choose and report on a device in JavaScript."""
    name = f"a device in JavaScript: {explore}, {ARMS} arms, {FEATURES} features"
    if shutil.which("node") is None:
        return Row(name, None, "", "", "skipped: there is no node")
    options = {"horizon": 10_000, "explore": explore, "reports": True, "noise": "secure"}
    server = dpb.HiddenLinearLocal(ARMS, FEATURES, budget=dpb.ZCDP(0.5), **options)
    for report in np.random.default_rng(1).normal(size=(5, server.statistic.size)):
        server.receive(report)
    shape = {"rounds": rounds, "arms": ARMS, "features": FEATURES}
    given = json.dumps({"config": server.device().to_json(), **shape})
    command = ["node", "-e", Device.javascript() + ON_A_DEVICE]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return Row(name, float(done.stdout), "ms", "<= 5", f"{server.statistic.size} numbers of noise")
