"""Logs: what a policy needs to learn from one of many arms, to write and read decisions, and to
evaluate another policy.

The first log has as many records and arms as a fifth of MovieLens 100k, which are about as popular.
The last one has the sizes of a campaign of the small Open Bandit Dataset, as a file of CSV.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpbandits import ZCDP, DecisionLog, evaluate, evaluate_privately, fit_logs
from dpbandits.algorithms import DiscountedIMED, LinUCB, MergedIMED
from dpbandits.logs import read_logs
from dpbandits.policies import Policy

from .timing import Row, best, scaled

RECORDS, ARMS = 20_000, 1_682
DECISIONS = 20_000
IMPRESSIONS, ITEMS = 10_000, 34


def rows(size: float) -> Iterator[Row]:
    yield from _learning(scaled(RECORDS, size, 100))
    yield from _writing(scaled(DECISIONS, size, 100))
    yield from _evaluating(scaled(IMPRESSIONS, size, 500))
    yield _published(10_000)


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


def _evaluating(n: int) -> Iterator[Row]:
    """Each interval, in seconds and against reading the file."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.random((n, ITEMS)), columns=[f"affinity_{i}" for i in range(ITEMS)])
    table = table.assign(item_id=rng.integers(0, ITEMS, n), position=rng.integers(1, 4, n))
    table = table.assign(click=rng.random(n) < 0.05, propensity_score=1.0 / ITEMS)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few records in a small run
        path = f"{folder}/men.csv"
        table.to_csv(path)
        anchor = best(lambda: pd.read_csv(path))
        for interval in ("bernstein", "betting", "bootstrap"):
            seconds = best(lambda: evaluate(path, 3, interval=interval))  # noqa: B023
            yield Row(f"evaluate, {interval}", seconds, "s", "<= 2", f"{n:,} rows of Open Bandit")
            ratio = seconds / anchor
            yield Row(f"  {interval}, against pandas.read_csv of the file", ratio, "x", "<= 40")


def _published(n: int) -> Row:
    """How much wider noise makes intervals."""
    rng = np.random.default_rng(1)
    log = {"arm": rng.integers(0, 5, n), "reward": rng.random(n), "propensity": np.full(n, 0.2)}

    def width(rho: float) -> float:
        asked = {"budget": ZCDP(rho), "largest_weight": 5.0, "seed": 1}
        return float(np.ptp(evaluate_privately(log, 3, **asked).intervals()))

    return Row("evaluate_privately, width", width(0.1) / width(1e9), "x", "<= 1.1", "0.1-zCDP")
