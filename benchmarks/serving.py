"""``pull`` + ``update`` through the Python object, with simulated and with secure noise, and the
memory that it takes.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpbandits import AdaCUCB, PureDP
from dpbandits.policies import Policy, registered

from .timing import Row

ROUNDS = 20_000


def rows() -> Iterator[Row]:
    rewards = np.random.default_rng(1).random(ROUNDS).round().tolist()
    for cls in registered().values():
        budget = (*cls.example_budgets(), None)[0]
        policy = cls(**cls.example, budget=budget, seed=1)
        yield Row(
            f"pull + update, {cls.__name__}, {budget or 'open'}",
            _microseconds(policy, rewards),
            "us",
            "<= 20",
        )
    yield from _secure(rewards)
    yield from _memory(rewards)


def _microseconds(policy: Policy, rewards: list[float]) -> float:
    for reward in rewards:  # long enough for a release, which compiles
        policy.pull()
        policy.update(reward)
    start = time.perf_counter()
    for reward in rewards:
        policy.pull()
        policy.update(reward)
    return 1e6 * (time.perf_counter() - start) / len(rewards)


def _secure(rewards: list[float]) -> Iterator[Row]:
    """Rounds with and without a release, told apart by the ledger."""
    for cls, budget in (
        (registered()["AdaPUCB"], PureDP(1.0)),
        (AdaCUCB, AdaCUCB.example_budgets()[0]),
    ):
        policy: Any = cls(3, budget=budget, noise="secure")
        with_release, without = [], []
        for reward in rewards:
            before, start = policy.ledger.releases, time.perf_counter()
            policy.pull()
            policy.update(reward)
            elapsed = time.perf_counter() - start
            (with_release if policy.ledger.releases > before else without).append(elapsed)
        yield Row(
            f"pull + update, {cls.__name__}, secure noise, no release",
            1e6 * float(np.median(without)),
            "us",
            "<= 20",
            "median",
        )
        yield Row(
            f"pull + update, {cls.__name__}, secure noise, release",
            1e6 * float(np.median(with_release)),
            "us",
            "<= 150",
            "median",
        )


def _memory(rewards: list[float]) -> Iterator[Row]:
    policy = AdaCUCB(5, budget=AdaCUCB.example_budgets()[0], seed=1)
    _microseconds(policy, rewards)
    tracemalloc.start()
    _microseconds(policy, rewards * 5)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    yield Row(
        "memory kept by 100,000 more rounds of AdaC-UCB", grown / 1024, "KiB", "independent of T"
    )
