"""Logs: what a policy needs to learn from one of many arms, and to write and read decisions.

The log has as many records and arms as a fifth of MovieLens 100k, which are about as popular.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpbandits import ZCDP, DecisionLog, fit_logs
from dpbandits.algorithms import DiscountedIMED, LinUCB, MergedIMED
from dpbandits.logs import read_logs
from dpbandits.policies import Policy

from .timing import Row, best, scaled

RECORDS, ARMS = 20_000, 1_682
DECISIONS = 20_000


def rows(size: float) -> Iterator[Row]:
    yield from _learning(scaled(RECORDS, size, 100))
    yield from _writing(scaled(DECISIONS, size, 100))


def _learning(n: int) -> Iterator[Row]:
    rng = np.random.default_rng(1)
    shares = 1.0 / np.arange(30, 30 + ARMS)
    log = {"arm": rng.choice(ARMS, n, p=shares / shares.sum()), "reward": rng.random(n)}
    for cls, given in ((MergedIMED, {}), (DiscountedIMED, {"rounds_per_change": 1000})):
        few = {"arm": [0, 1] * 5, "reward": [0.5] * 10}
        for private in (True, False):
            fit_logs(cls(2, budget=ZCDP(0.5), seed=1, **given), few, private=private)  # compiled
            policy = cls(ARMS, budget=ZCDP(0.5), seed=1, **given)
            begun = time.process_time()
            used = fit_logs(policy, log, private=private).used.sum()
            kind = "private" if private else "public"
            yield Row(
                f"fit_logs, {cls.__name__}, {kind} log",
                time.process_time() - begun,
                "s",
                "<= 3",
                f"{n:,} records of {ARMS:,} arms, of which {used:,} enter",
            )


def _writing(n: int) -> Iterator[Row]:
    shown = np.full((3, 2), 0.5)
    for policy, contexts in ((MergedIMED(3, budget=None), None), (LinUCB(3, 2), shown)):
        decisions = [policy.pull(*([] if contexts is None else [contexts])) for _ in range(n)]
        kind = "features and rewards" if contexts is not None else "rewards"
        seconds = best(lambda: _write(policy, decisions, contexts))  # noqa: B023
        yield Row(f"DecisionLog.write, {kind}", 1e6 * seconds / n, "us", "<= 20", "files included")
    with tempfile.TemporaryDirectory() as folder:
        _write(policy, decisions, contexts, folder)
        seconds = best(lambda: read_logs(folder))
    yield Row(f"read_logs, {n:,} decisions", seconds, "s", "<= 1", "features and rewards")


def _write(policy: Policy, decisions: list[Any], contexts: Any, folder: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as other:
        options = {"rewards": True, "features": contexts is not None}
        with DecisionLog(folder or other, policy, **options) as log:
            for decision in decisions:
                log.write(decision, reward=0.5, contexts=contexts)
