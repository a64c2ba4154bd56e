"""Adversarial bandits and expert advice: whole runs in the compiled loops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpbandits as dpb
from dpbandits.environments import Advised, Bernoulli
from dpbandits.simulation.simulating import play

from .timing import Row, scaled

ROUNDS = 10**7
ADVISED = 10**6


def rows(size: float) -> Iterator[Row]:
    rounds, advised = scaled(ROUNDS, size, 100), scaled(ADVISED, size, 100)
    arms = Bernoulli([0.6] + [0.5] * 9)
    for cls, target in (
        (dpb.algorithms.EXP3, "<= 0.5"),
        (dpb.algorithms.HTINF, "<= 1"),
        (dpb.algorithms.FTPL, "<= 2"),
    ):
        policy = cls(10, budget=dpb.PureDP(0.1))
        name = f"{cls.__name__}, {policy.budget}, K = 10, T = {rounds:,}"
        yield _run(name, policy, arms, rounds, target)
    for n, target in ((100, ""), (1000, "<= 30")):
        world = Advised.constant(arms, n, horizon=advised)
        approx = dpb.ApproxDP(1.0, 1e-6)
        for policy in (
            dpb.algorithms.EXP4(10, n, budget=None, horizon=advised),
            dpb.algorithms.EXP4(10, n, budget=approx, horizon=advised),
            dpb.algorithms.BatchedEXP4(10, n, budget=approx, horizon=advised, variant="improved"),
            dpb.algorithms.FrozenEXP4(10, n, budget=dpb.PureDP(1.0), horizon=advised),
            dpb.algorithms.LocalEXP4(10, n, budget=dpb.PureDP(1.0), horizon=advised),
            dpb.algorithms.ExpertConversion(10, n, budget=dpb.PureDP(0.1)),
        ):
            kind = f"{policy.preset}, {policy.budget or 'open'}"
            name = f"{kind}, N = {n}, K = 10, T = {advised:,}"
            yield _run(name, policy, world, advised, target)


def _run(name: str, policy: Any, world: Any, horizon: int, target: str) -> Row:
    """One run, once everything is compiled."""
    play(policy, world, 100, 0, 1, np.array([100]))
    start = time.process_time()
    run = play(policy, world, horizon, 0, 1, np.array([horizon]))
    seconds = time.process_time() - start
    return Row(name, seconds, "s", target, f"{run.releases:,} releases")
