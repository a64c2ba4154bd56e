"""What it costs to keep a policy: batches of calls in a file or database beside calls in memory,
the synchronised writes of a call, and how long it takes to load and to add up what many decisions
have left.
"""

from __future__ import annotations

import os
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np

from dpbandits import ZCDP, PureDP, load
from dpbandits.algorithms import HTINF, MergedIMED, PrivateLinUCB
from dpbandits.policies import Policy
from dpbandits.privacy.channels import GAUSSIAN
from dpbandits.privacy.ledger import Ledger, Meter, empty_arrays, write

from .timing import Row, best, scaled

BATCH = 32
BATCHES = 100
DECISIONS = 1_000_000
LINES = 100_000  # of a ledger
_SHOWN = np.random.default_rng(1).uniform(-0.4, 0.4, (5, 5))


def rows(size: float) -> Iterator[Row]:
    with (
        tempfile.TemporaryDirectory() as name,
        mock.patch.dict(os.environ, DPBANDITS_STATE_DIR=f"{name}/state"),
    ):
        folder = Path(name)
        try:
            yield from _in_batches(folder, scaled(BATCHES, size, 5))
        except ImportError as error:
            yield Row.skipped("batches in SQLite", error)
        yield from _synchronised(folder)
        yield from _loaded(folder, scaled(DECISIONS, size, 1_000))
    yield _added_up(scaled(LINES, size, 100))


def play(policy: Policy, rounds: int) -> None:
    """Pull and update so many times."""
    shown = [_SHOWN] if policy.sees else []
    for _ in range(rounds):
        policy.update(0.5, policy.pull(*shown))


def _in_batches(folder: Path, batches: int) -> Iterator[Row]:
    makers = {
        "HTINF": lambda: HTINF(5, budget=PureDP(1.0), seed=1),
        "PrivateLinUCB, d = 5": lambda: PrivateLinUCB(
            5, 5, horizon=10**6, budget=ZCDP(1.0), seed=1
        ),
    }
    for number, (name, make) in enumerate(makers.items()):
        alone = make()
        play(alone, BATCH)
        in_memory = best(lambda policy=alone: play(policy, batches * BATCH))  # type: ignore[misc]
        each = 1e6 * in_memory / (batches * BATCH)
        remark = f"{BATCH} rounds a batch, each with releases; {each:.1f} us a round in memory"
        places = {"a file": f"{folder}/{number}.dpb", "SQLite": f"sqlite:///{folder}/{number}.db#1"}
        for place, path in places.items():
            kept = make()
            kept.save(path)

            def in_batches(policy: Policy = kept) -> None:
                for _ in range(batches):
                    with policy.batch():
                        play(policy, BATCH)

            ratio = best(in_batches) / in_memory
            yield Row(f"{name}, batches in {place}", ratio, "x in memory", "<= 1.5", remark)


def _synchronised(folder: Path) -> Iterator[Row]:
    """Writes that wait for the disk: the median over calls on a file."""
    policy = MergedIMED(3, budget=ZCDP(1.0), seed=1)
    policy.save(folder / "synchronised.dpb")
    counts: dict[bool, list[int]] = {False: [], True: []}
    real = os.fsync

    def counted(handle: int) -> None:
        nonlocal made
        made += 1
        real(handle)

    made = 0
    with mock.patch("os.fsync", counted):
        for _ in range(200):
            before, made = policy.ledger.releases, 0
            decision = policy.pull()
            released = policy.ledger.releases > before
            counts[released].append(made)
            policy.update(0.5, decision)
    yield Row("fsyncs of a call, without a release", float(np.median(counts[False])), "", "<= 1")
    yield Row("fsyncs of a call that releases", float(np.median(counts[True])), "", "<= 4")


def _loaded(folder: Path, decisions: int) -> Iterator[Row]:
    policy = MergedIMED(5, budget=ZCDP(1.0), seed=1)
    path = policy.save(folder / "loaded.dpb")
    for _ in range(decisions // 1_000):
        with policy.batch():
            play(policy, 1_000)
    del policy
    tracemalloc.start()
    start = time.perf_counter()
    loaded = load(path)
    took = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    remark = f"{loaded.rounds:,} recorded rounds"
    yield Row("load, after many decisions", took, "s", "<= 10", remark)
    yield Row("memory of that load", peak, "MB", "<= 100", remark)


def _added_up(lines: int) -> Row:
    """The total of a ledger with a line for each release, of ten arms in turn."""
    arrays = empty_arrays(lines)
    for line in range(lines):
        write(arrays, line, line, line % 10, GAUSSIAN, 1.0, 1.0, 1)
    seconds = best(Ledger(arrays, Meter.of(ZCDP(0.5))).spent)
    least = best(lambda: np.random.default_rng(1).random(lines).argsort())
    name = f"spent() after {lines:,} releases, against one sort"
    return Row(name, seconds / least, "x", "<= 4", f"{1e3 * seconds:.2g} ms")
