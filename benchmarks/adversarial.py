"""Adversarial bandits and expert advice: whole runs, in processor time of this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpbandits as dpb
from dpbandits.environments import Advised, Bernoulli
from dpbandits.simulation.simulating import play

from .timing import Row

ROUNDS = 10**7
ADVISED = 10**6


def rows() -> Iterator[Row]:
    arms = Bernoulli([0.6] + [0.5] * 9)
    for cls, target in ((dpb.EXP3, "<= 0.5"), (dpb.HTINF, "<= 1"), (dpb.FTPL, "<= 2")):
        policy = cls(10, budget=dpb.PureDP(0.1))
        yield Row(
            f"{cls.__name__}, T = 1e7, K = 10, epsilon = 0.1",
            _seconds(policy, arms, ROUNDS),
            "s",
            target,
            "10^6 batches",
        )
    for n, target in ((100, ""), (1000, "<= 30")):
        world = Advised.constant(arms, n, horizon=ADVISED)
        approx = dpb.ApproxDP(1.0, 1e-6)
        for policy in (
            dpb.EXP4(10, n, budget=None, horizon=ADVISED),
            dpb.EXP4(10, n, budget=approx, horizon=ADVISED),
            dpb.BatchedEXP4(10, n, budget=approx, horizon=ADVISED, variant="improved"),
            dpb.FrozenEXP4(10, n, budget=dpb.PureDP(1.0), horizon=ADVISED),
            dpb.LocalEXP4(10, n, budget=dpb.PureDP(1.0), horizon=ADVISED),
            dpb.ExpertConversion(10, n, budget=dpb.PureDP(0.1)),
        ):
            name = f"{type(policy).__name__}, {policy.budget or 'open'}, N = {n}, K = 10, T = 1e6"
            yield Row(name, _seconds(policy, world, ADVISED), "s", target)


def _seconds(policy: Any, world: Any, horizon: int) -> float:
    """Processor time of one run, once everything is compiled."""
    play(policy, world, 100, 0, 1, np.array([100]))
    start = time.process_time()
    play(policy, world, horizon, 0, 1, np.array([horizon]))
    return time.process_time() - start
