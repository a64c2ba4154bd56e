"""Adversarial bandits and expert advice: whole runs in the compiled loops, and regret with advice
over that of EXP4.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpbandits as dpb
from dpbandits.algorithms.maths.simplex import exponential_weights
from dpbandits.environments import Advised, Bernoulli
from dpbandits.simulation.simulating import play

from .timing import Row, best, scaled

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
    yield _exponentials(scaled(1000, size, 10))
    yield from against_exp4(scaled(100_000, size, 100), scaled(20, size, 2))


def _exponentials(n: int) -> Row:
    """The weights of n experts from their losses, which is most of a round of EXP4."""
    losses, out = np.random.default_rng(0).exponential(10.0, n), np.empty(n)
    exponential_weights(losses, 0.1, out)
    calls = range(1000)  # of some microseconds
    weights = best(lambda: [exponential_weights(losses, 0.1, out) for _ in calls])
    anchor = best(lambda: [np.exp(-0.1 * losses) for _ in calls])
    return Row(f"weights of {n} experts, against exp by NumPy", weights / anchor, "x", "<= 1")


def against_exp4(horizon: int, runs: int) -> Iterator[Row]:
    """Mean regret of the other policies with advice, at the same budget.

    Advice stands for ever, or changes every ten rounds.  One expert names the best of five arms.
    """
    arms = Bernoulli([0.5, 0.4, 0.7, 0.4, 0.5])
    for budget in (dpb.ApproxDP(1.0, 1e-6), dpb.ZCDP(1.0), dpb.ZCDP(0.01)):
        for n in (4, 32, 256):
            for kind, world in (
                ("standing", Advised.constant(arms, n, horizon=horizon)),
                ("changing", Advised.shifted(arms, n, period=10, horizon=horizon)),
            ):
                shape: dict[str, Any] = {"budget": budget, "horizon": horizon}
                entrants = (
                    dpb.algorithms.EXP4(5, n, **shape),
                    dpb.algorithms.FrozenEXP4(5, n, **shape),
                    dpb.algorithms.LocalEXP4(5, n, **shape),
                    dpb.algorithms.ExpertConversion(5, n, budget=budget, learner="htinf"),
                )
                means = [_regret(policy, world, horizon, runs) for policy in entrants]
                for policy, mean in zip(entrants[1:], means[1:], strict=True):
                    name = f"{policy.preset} over EXP4, {budget}, N = {n}, {kind} advice"
                    yield Row(name, mean / means[0], "x", "", f"{mean:,.0f} and {means[0]:,.0f}")


def _regret(policy: Any, world: Any, horizon: int, runs: int) -> float:
    last = np.array([horizon])
    played = [play(policy, world, horizon, run, 1, last).tally.sums[0] for run in range(runs)]
    return float(np.mean(played))


def _run(name: str, policy: Any, world: Any, horizon: int, target: str) -> Row:
    """One run, once everything is compiled."""
    play(policy, world, 100, 0, 1, np.array([100]))
    start = time.process_time()
    run = play(policy, world, horizon, 0, 1, np.array([horizon]))
    seconds = time.process_time() - start
    return Row(name, seconds, "s", target, f"{run.releases:,} releases")
