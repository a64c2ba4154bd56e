"""Devices in JavaScript, in Node, with one model for each of ten arms."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator

import numpy as np

import dpbandits as dpb
from dpbandits.algorithms import Device
from dpbandits.parts import Divergence, Optimism, Sampling

from .timing import Row, scaled

ARMS, FEATURES, CHOICES = 10, 20, 200
SIZE = ARMS * (FEATURES + FEATURES * (FEATURES + 1) // 2)  # of a report
TIMED = """
const { config, shown } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const device = new dpbandits.Device(config);
const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];
const timed = (work) => {
  const begun = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1e3;
};
const [choices, reports] = [[], []];
for (const contexts of shown) {
  choices.push(timed(() => device.choose(contexts)));
  reports.push(timed(() => device.report(1)));
}
console.log(JSON.stringify([median(choices), median(reports)]));
"""


def rows(size: float) -> Iterator[Row]:
    if shutil.which("node") is None:
        yield Row.skipped("devices in JavaScript", ImportError("there is no node"))
        return
    for explore in (Optimism(), Sampling(), Divergence()):
        choice, report = _milliseconds(explore, scaled(CHOICES, size, 3))
        name = f"{type(explore).__name__}, {ARMS} models of {FEATURES} features"
        yield Row(f"{name}, a choice", choice, "ms", "<= 5")
        yield Row(f"{name}, a report", report, "ms", "", f"{SIZE:,} noisy numbers")


def _milliseconds(explore: Optimism | Sampling | Divergence, choices: int) -> tuple[float, float]:
    """Of a choice and of a report: medians of processor times."""
    words = {"reports": True, "budget": dpb.ZCDP(0.5), "horizon": 1000, "noise": "secure"}
    server = dpb.HiddenLinearLocal(ARMS, FEATURES, explore=explore, models="disjoint", **words)
    rng = np.random.default_rng(1)
    for _ in range(30):
        server.receive(rng.normal(scale=server.noise_scale, size=SIZE))
    shown = rng.normal(size=(choices, ARMS, FEATURES)) / 5.0
    given = json.dumps({"config": server.device().to_json(), "shown": shown.tolist()})
    command = ["node", "-e", Device.javascript() + TIMED]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    choice, report = json.loads(done.stdout)
    return choice, report
