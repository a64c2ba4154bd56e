"""The compiled loop: AdaC-UCB's sweep, exact sums against single rewards, indices of many arms,
UCB1 against other libraries.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ks_2samp

import dpbandits as dpb
from dpbandits.simulation.simulating import play, recorded_rounds

from .peers import PEERS
from .timing import Row, best, scaled

MEANS = [0.75, 0.625, 0.5, 0.375, 0.25]
LONG, RUNS = 10**7, 100
ARMS = 10_000
SERVED = 200_000  # rounds by pull and update, which LONG would take minutes for
HORIZON, SEEDS = 100_000, 10  # for peers
SAMPLE = 1000  # runs to compare laws of regret by
MANY = 10_000  # runs whose memory is measured
SHARED = 70_000  # runs that take one process about 30 seconds
MEASURE = """
import re
from pathlib import Path
import dpbandits as dpb
policy, world = dpb.algorithms.UCB1(5), dpb.environments.Bernoulli({means})
peaks = []
for runs in (2, {runs}):
    dpb.simulate(policy, world, horizon=1000, runs=runs).summary()
    peaks.append(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]))
print((peaks[1] - peaks[0]) / 1024)
"""


def rows(size: float) -> Iterator[Row]:
    environment = dpb.environments.Bernoulli(MEANS)
    adac = dpb.papers.concentrated.AdaCUCB(5, budget=dpb.ZCDP(0.1))
    horizon, runs = scaled(LONG, size, 1000), scaled(RUNS, size, 2)
    seconds = _played(adac, environment, horizon, runs)
    name = f"AdaC-UCB, K = 5, T = {horizon:,}: {runs} runs, warm"
    yield Row(name, 1e3 * seconds, "ms", "<= 20")
    yield _sweep(environment, horizon, runs, scaled(20, size, 2))
    yield from _round_by_round(adac, environment, seconds / runs, horizon, size)
    yield from _many(scaled(MANY, size, 500))
    yield _summary(environment, scaled(MANY, size, 500))
    yield from _many_arms(scaled(ARMS, size, 10))
    yield from _shared_out(environment, size)
    yield from against_peers(environment, size)


def _many(runs: int) -> Iterator[Row]:
    """Memory of many runs and of their summary, in a process of its own."""
    name = f"peak memory of {runs:,} runs with summary"
    if not Path("/proc/self/status").exists():
        yield Row.skipped(name, ImportError("this system has no /proc"))
        return
    code = MEASURE.format(means=MEANS, runs=runs)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak = float(done.stdout)
    yield Row(name, peak, "MB", "<= 300")
    regrets = 8e-6 * runs * len(recorded_rounds(1000, 200))
    yield Row("  against the recorded regrets alone", peak / regrets, "x", "<= 20")


def _summary(environment: Any, runs: int) -> Row:
    """The bands of many runs against the draws of their bootstrap."""
    result = dpb.simulate(dpb.algorithms.UCB1(5), environment, horizon=1000, runs=runs)
    rng = np.random.default_rng(1)
    seconds = best(result.summary)
    least = best(lambda: [rng.integers(runs, size=runs) for _ in range(2000)])
    name = f"summary of {runs:,} runs, against the draws of its bootstrap"
    return Row(name, seconds / least, "x", "<= 8", f"{seconds:.2g} s")


def _shared_out(environment: Any, size: float) -> Iterator[Row]:
    """Short runs, which Python takes most of the time of, in one process and in two."""
    policy = dpb.algorithms.MergedIMED(5, budget=dpb.ZCDP(0.1))

    def seconds(runs: int, n_jobs: int) -> float:
        start = time.perf_counter()
        dpb.simulate(policy, environment, horizon=HORIZON, runs=runs, record=1, n_jobs=n_jobs)
        return time.perf_counter() - start

    seconds(2, 1)
    for runs, target in ((scaled(SHARED, size, 60), ">= 1.8"), (50, ">= 0.9")):
        one = seconds(runs, 1)
        two = seconds(runs, 2)
        name = f"MergedIMED, {runs:,} runs: two processes against one"
        yield Row(name, one / two, "x", target, f"by the clock; one takes {one:.1f} s")


def _many_arms(k: int) -> Iterator[Row]:
    """A release with the choice that follows; most indices stay as they are."""
    environment = dpb.environments.Bernoulli(np.random.default_rng(0).uniform(0.1, 0.9, k))
    anchor, *others = (
        dpb.papers.concentrated.AdaCUCB,
        dpb.algorithms.MergedIMED,
        dpb.algorithms.MergedKLUCB,
        dpb.algorithms.DiscountedIMED,
    )
    least = _release(anchor, environment)
    yield Row(f"AdaC-UCB, K = {k:,}, a release", 1e6 * least, "us")
    for cls in others:
        seconds = _release(cls, environment)
        target = "" if cls is dpb.algorithms.DiscountedIMED else "<= 3"
        yield Row(f"  {cls.name} against AdaC-UCB, K = {k:,}", seconds / least, "x", target)
    by_hand = [_served_release(cls, k) for cls in (anchor, dpb.algorithms.MergedIMED)]
    name = f"  MergedIMED against AdaC-UCB, K = {k:,}, by pull and update"
    yield Row(name, by_hand[1] / by_hand[0], "x", "<= 3", f"{1e6 * by_hand[0]:,.0f} us AdaC-UCB")


def _release(cls: Any, environment: Any) -> float:
    """Seconds of a release, in a run of ten rounds an arm."""
    policy, horizon = cls(environment.n_arms, budget=dpb.ZCDP(0.5)), 10 * environment.n_arms
    releases = play(policy, environment, horizon, 0, 1, np.array([horizon])).releases
    return _played(policy, environment, horizon, 1) / releases


def _served_release(cls: Any, k: int) -> float:
    """Seconds of a release by pull and update, once every arm was played."""
    policy, coins = cls(k, budget=dpb.ZCDP(0.5), seed=1), np.random.default_rng(1)

    def serve(rounds: int) -> None:
        for coin in coins.random(rounds):
            policy.update(float(coin < 0.5), policy.pull())

    serve(k)
    before = policy.ledger.releases
    seconds = best(lambda: serve(k // 3), repeats=1)
    return seconds / (policy.ledger.releases - before)


def _played(policy: Any, environment: Any, horizon: int, runs: int) -> float:
    """Seconds of some runs in the compiled loop."""
    marks = recorded_rounds(horizon, 200)

    def work() -> None:
        for run in range(runs):
            play(policy, environment, horizon, run, 1, marks)

    work()
    return best(work)


def _sweep(environment: Any, horizon: int, runs: int, budgets: int) -> Row:
    """To frames: private policies, and as often their open counterpart."""
    sweep = [
        dpb.papers.concentrated.AdaCUCB(5, budget=dpb.ZCDP(rho))
        for rho in np.geomspace(1e-3, 10.0, budgets)
    ]
    open_one = dpb.papers.concentrated.AdaCUCB(5, budget=None)

    def work() -> None:
        dpb.simulate(sweep, environment, horizon=horizon, runs=runs)
        for seed in range(budgets):
            dpb.simulate(open_one, environment, horizon=horizon, runs=runs, seed=seed)

    name = f"{budgets} budgets x {runs} runs x (private, open), T = {horizon:,}, to frames"
    return Row(name, best(work), "s", "<= 2")


def _round_by_round(
    policy: Any, environment: Any, exact: float, horizon: int, size: float
) -> Iterator[Row]:
    def single() -> None:
        dpb.simulate(policy, environment, horizon=horizon, round_by_round=True)

    single()
    compiled = best(single, repeats=2)
    rounds = scaled(SERVED, size, 100)
    rewards = (np.random.default_rng(1).random((rounds, 5)) < MEANS).astype(float).tolist()
    served = dpb.papers.concentrated.AdaCUCB(5, budget=dpb.ZCDP(0.1), seed=1)
    _serve(served, rewards)
    by_hand = best(lambda: _serve(served, rewards), repeats=1) / rounds * horizon
    yield Row(f"one AdaC-UCB run, T = {horizon:,}, by exact sums", 1e6 * exact, "us")
    yield Row(
        "exact sums against pull + update of every round",
        by_hand / exact,
        "x",
        ">= 10,000",
        f"pull + update scaled from {rounds:,} rounds",
    )
    yield Row(
        "exact sums against a compiled loop over every round",
        compiled / exact,
        "x",
        "",
        f"that loop takes {1e9 * compiled / horizon:.1f} ns a round",
    )
    yield _same_law(policy, environment, scaled(HORIZON, size, 100), scaled(SAMPLE, size, 20))


def _serve(policy: Any, rewards: list[list[float]]) -> None:
    for row in rewards:
        policy.update(row[policy.pull().arm])


def _same_law(policy: Any, environment: Any, horizon: int, runs: int) -> Row:
    sums, singles = (
        dpb.simulate(
            policy, environment, horizon=horizon, runs=runs, seed=seed, round_by_round=each
        ).runs["regret"]
        for seed, each in ((1, False), (2, True))
    )
    name = f"the two laws of regret: p-value (Kolmogorov-Smirnov, {runs} runs each)"
    return Row(name, float(ks_2samp(sums, singles).pvalue), "", ">= 1e-4")


def against_peers(environment: Any, size: float) -> Iterator[Row]:
    """UCB1 on Bernoulli arms, regret curve kept; the same law of regret as evidence that it is the
    same work.
    """
    horizon, seeds = scaled(HORIZON, size, 100), scaled(SEEDS, size, 2)
    policy = dpb.algorithms.UCB1(5)

    def ours(runs: int, seed: int) -> np.ndarray:
        result = dpb.simulate(policy, environment, horizon=horizon, runs=runs, seed=seed)
        return result.runs["regret"].to_numpy()

    regret = ours(scaled(300, size, 20), 3)
    rate = horizon * seeds / best(lambda: ours(seeds, 0), repeats=5)
    name = f"UCB1, K = 5, T = {horizon:,}, {seeds} seeds, through simulate"
    yield Row(name, rate, "rounds/s", ">= 10,000,000")
    for name, run in PEERS.items():
        try:
            runs, theirs, elapsed = run(MEANS, horizon, seeds)
        except ImportError as missing:
            yield Row.skipped(f"  {name}", missing)
            continue
        their_rate = horizon * runs / elapsed
        yield Row(f"  {name}, the same", their_rate, "rounds/s", "", f"{runs} seeds run")
        yield Row(f"  ours against {name}", rate / their_rate, "x", ">= 30 (fastest)")
        yield Row(
            f"  {name}: same regret, p-value",
            float(ks_2samp(regret, theirs).pvalue),
            "",
            ">= 1e-4",
            f"mean {np.mean(theirs):.0f}, ours {regret.mean():.0f}",
        )
