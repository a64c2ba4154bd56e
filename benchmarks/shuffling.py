"""Sums through a shuffler: the messages of many people in batches of twenty, and what the parties
do with them.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator

import numpy as np

import dpbandits as dpb
from dpbandits.shuffle import Analyzer, BitSum, GaussianReports, ModularSum, Randomizer, Shuffler

from .timing import Row, best, scaled

PEOPLE, BATCH, FEATURES = 100_000, 20, 5
SIZE = FEATURES + FEATURES * (FEATURES + 1) // 2
LIMITS = {"bound": 2.0**0.5, "sensitivity": 4.5**0.5, "largest": 1.0}  # of regression


def rows(size: float) -> Iterator[Row]:
    people = scaled(PEOPLE, size, BATCH)
    yield from _bits()
    for kind in (BitSum, ModularSum, GaussianReports):
        for epsilon in (1.0, 0.2):
            budget = dpb.ApproxDP(epsilon, 0.1)
            protocol = kind.calibrated(budget, batch=BATCH, dimension=SIZE, **LIMITS)
            seconds = best(lambda one=protocol: _streamed(one, people), 1)
            name = f"{kind.__name__}, epsilon = {epsilon:g}, {people} people, batch by batch"
            yield Row(name, seconds, "s", "<= 10", f"noise {protocol.noise}")
    yield Row("memory so far, at its peak", _peak(), "MiB", "<= 1024")


def _bits() -> Iterator[Row]:
    """Noise on a sum, with that of rounding, over the least that a curator would add."""
    budget = dpb.ApproxDP(1.0, 1e-5)
    for batch in (20, 100):
        for size in (5, 20, 230):  # for 2, 5 and 20 features
            protocol = BitSum.calibrated(budget, batch=batch, dimension=size, **LIMITS)
            noise = np.hypot(protocol.noise_std, 0.5 * protocol.step * batch**0.5)
            bits = 2 * protocol.levels + protocol.noise
            name = f"noise of bits over the ideal, {size} numbers, batches of {batch}"
            ideal = LIMITS["sensitivity"] / budget.mu
            yield Row(name, noise / ideal, "x", "<= 1.1", f"{bits:,} bits a number")


def _streamed(protocol: BitSum | ModularSum | GaussianReports, people: int) -> None:
    randomizer = Randomizer(protocol, noise="simulation", seed=1)
    shuffler = Shuffler(protocol, noise="simulation", seed=2)
    analyzer, vectors = Analyzer(protocol), np.full((BATCH, SIZE), 0.2)
    for _ in range(people // BATCH):
        mixed = shuffler.shuffle([randomizer.encode_many(vectors)])
        assert mixed is not None
        analyzer.aggregate(mixed)


def _peak() -> float:
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
