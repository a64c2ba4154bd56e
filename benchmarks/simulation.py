"""The compiled loop: AdaC-UCB's sweep, UCB1 against other libraries, exact sums against single
rewards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import ks_2samp

import dpbandits as dpb
from dpbandits.simulation.loops import arms_loop, new_tally
from dpbandits.simulation.seeding import stream
from dpbandits.simulation.simulating import recorded_rounds

from .timing import Row, best

MEANS = [0.75, 0.625, 0.5, 0.375, 0.25]
LONG = 10**7


def rows() -> Iterator[Row]:
    environment = dpb.environments.Bernoulli(MEANS)
    adac = dpb.AdaCUCB(5, budget=dpb.ZCDP(0.1))
    dpb.simulate([adac, dpb.UCB1(5)], environment, horizon=1000)
    kernel = min(_kernel_seconds(adac, environment) for _ in range(3))
    yield Row("AdaC-UCB, T = 1e7, K = 5: 100 runs in the warm kernel", 1e3 * kernel, "ms", "<= 20")
    sweep = [
        dpb.AdaCUCB(5, budget=budget) for budget in map(dpb.ZCDP, np.geomspace(1e-3, 10.0, 20))
    ]
    sweep += [dpb.AdaCUCB(5, budget=None)]
    seconds = best(
        lambda: [
            dpb.simulate(sweep[:20], environment, horizon=LONG, runs=100),
            _open_sweep(environment),
        ]
    )
    yield Row("20 budgets x 100 runs x (private, open), T = 1e7, to frames", seconds, "s", "<= 2")
    yield from _round_by_round(adac, environment, kernel / 100)
    yield from _against_peers(environment)


def _open_sweep(environment: Any) -> None:
    for seed in range(20):
        dpb.simulate(dpb.AdaCUCB(5, budget=None), environment, horizon=LONG, runs=100, seed=seed)


def _kernel_seconds(policy: Any, environment: Any) -> float:
    """100 runs inside the compiled loop, everything around it prepared."""
    loop = arms_loop(policy.kernels, environment.kernels)
    marks = recorded_rounds(LONG, 200)
    prepared = [
        (
            *policy.new_state(),
            new_tally(marks, 5),
            stream(1, "environment", 1, run),
            stream(1, "privacy", 1, run),
        )
        for run in range(100)
    ]

    def work() -> None:
        for raw, public, wall, tally, world, privacy in prepared:
            loop(
                policy.params,
                raw,
                public,
                wall,
                environment.state,
                tally,
                (False, 0.0, 1.0),
                LONG,
                1 << 62,
                1 << 62,
                world,
                None,
                privacy,
            )

    return best(work, repeats=1)


def _round_by_round(policy: Any, environment: Any, exact: float) -> Iterator[Row]:
    compiled = best(
        lambda: dpb.simulate(policy, environment, horizon=LONG, round_by_round=True), repeats=2
    )
    rounds = 200_000
    played = dpb.AdaCUCB(5, budget=dpb.ZCDP(0.1), seed=1)
    rewards = np.random.default_rng(1).random((rounds, 5)) < np.array(MEANS)
    played_seconds = (
        best(lambda: _play(played, rewards.astype(float).tolist()), repeats=1) / rounds * LONG
    )
    yield Row("one AdaC-UCB run, T = 1e7, by exact sums", 1e6 * exact, "us")
    yield Row(
        "exact sums against pull + update of every round",
        played_seconds / exact,
        "x",
        ">= 10,000",
        "pull + update scaled from 2e5 rounds",
    )
    yield Row(
        "exact sums against a compiled loop over every round",
        compiled / exact,
        "x",
        "",
        "that loop takes 5-10 ns a round",
    )
    sums = dpb.simulate(policy, environment, horizon=100_000, runs=1000, seed=1).runs["regret"]
    singles = dpb.simulate(
        policy, environment, horizon=100_000, runs=1000, seed=2, round_by_round=True
    ).runs["regret"]
    yield Row(
        "the two laws of regret: p-value (Kolmogorov-Smirnov, 1000 runs each)",
        ks_2samp(sums, singles).pvalue,
        "",
        ">= 1e-4",
    )


def _play(policy: Any, rewards: list[list[float]]) -> None:
    for row in rewards:
        policy.update(row[policy.pull().arm])


def _against_peers(environment: Any) -> Iterator[Row]:
    """UCB1, K = 5 Bernoulli arms, T = 100,000, 10 seeds, regret curve kept."""
    horizon, seeds = 100_000, 10
    ours = dpb.UCB1(5)
    seconds = best(lambda: dpb.simulate(ours, environment, horizon=horizon, runs=seeds), repeats=5)
    regret = (
        dpb.simulate(ours, environment, horizon=horizon, runs=300, seed=3).runs["regret"].to_numpy()
    )
    yield Row("UCB1, T = 100,000, 10 seeds, through simulate", seconds, "s", "<= 0.1")
    from .peers import PEERS

    for name, run in PEERS.items():
        try:
            runs, theirs, elapsed = run(MEANS, horizon, seeds)
        except ImportError:
            yield Row(f"  {name}", np.nan, "", "", "not installed")
            continue
        yield Row(
            f"  {name}, the same 10 seeds", elapsed * seeds / runs, "s", "", f"{runs} seeds run"
        )
        yield Row(
            f"  {name} against ours", elapsed * seeds / runs / seconds, "x", ">= 30 (fastest)"
        )
        yield Row(
            f"  {name}: same regret, p-value",
            ks_2samp(regret, theirs).pvalue,
            "",
            ">= 1e-4",
            f"mean {np.mean(theirs):.0f}, ours {regret.mean():.0f}",
        )
