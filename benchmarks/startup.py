"""What a user waits for, in processes of their own: first results, the list of policies, and the
demo, on a machine that has compiled nothing yet and on one that has.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import dpbandits

from .timing import Row, scaled

REPEATS = 3

# What is timed after the import: what it is called, how it is prepared, and what is done.
FIRST = {
    "simulation of AdaC-UCB": (
        "policy = dpb.papers.concentrated.AdaCUCB(5, budget=dpb.ZCDP(0.1))",
        "dpb.simulate(policy, Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25]), horizon=10**7)",
    ),
    "simulation of the default": (
        "policy = dpb.bandit(5, budget=dpb.ZCDP(0.1))",
        "dpb.simulate(policy, Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25]), horizon=10**7)",
    ),
    "pull and update of AdaC-UCB": (
        "policy = dpb.papers.concentrated.AdaCUCB(5, budget=dpb.ZCDP(0.1), seed=1)",
        "policy.pull(); policy.update(1.0)",
    ),
    "pull and update of PrivateLinUCB, contexts": (
        "policy = dpb.algorithms.PrivateLinUCB(5, 3, budget=dpb.ZCDP(0.1), horizon=1000, seed=1)",
        "policy.pull([[0.5] * 3] * 5); policy.update(1.0)",
    ),
    "pull and update of EXP4, advice": (
        "policy = dpb.algorithms.EXP4(5, 3, budget=dpb.ZCDP(0.1), horizon=1000, seed=1)",
        "policy.pull([[0.2] * 5] * 3); policy.update(1.0)",
    ),
}

_SCRIPT = """
import time
import dpbandits as dpb
from dpbandits.environments import Bernoulli
clock, processor = time.perf_counter(), time.process_time()
{prepare}
{work}
print(time.perf_counter() - clock, time.process_time() - processor)
"""


nothing_compiled = tempfile.TemporaryDirectory  # a folder for kernels


class Waited(NamedTuple):
    """Seconds by the clock, and of processor time."""

    clock: float
    processor: float

    def row(self, name: str, target: str = "") -> Row:
        return Row(name, self.clock, "s", target, f"{self.processor:.2f} s of processor time")


def rows(size: float) -> Iterator[Row]:
    repeats = scaled(REPEATS, size)
    first: dict[str, float] = {}
    for name, (prepare, work) in FIRST.items():
        script = [sys.executable, "-c", _SCRIPT.format(prepare=prepare, work=work)]
        with nothing_compiled() as cache:
            cold, *warm = (_after_import(script, cache) for _ in range(1 + repeats))
        first[name] = cold.processor
        yield cold.row(f"first {name}, cold kernels")
        yield min(warm).row(f"first {name}, second process", "<= 0.5")
        yield Row(f"  first {name}, cold against second", cold.clock / min(warm).clock, "x")
    ratio = first["simulation of the default"] / first["pull and update of AdaC-UCB"]
    yield Row("cold: the default's simulation against AdaC-UCB's pull", ratio, "x", "<= 1.33")
    command = [sys.executable, "-m", "dpbandits"]
    with nothing_compiled() as cache:
        listed = min(_whole([*command, "list"], cache) for _ in range(repeats))
    yield listed.row("dpbandits list", "< 1")
    with nothing_compiled() as cache, tempfile.TemporaryDirectory() as folder:
        demo = [*command, "demo", "--output", str(Path(folder) / "demo")]
        yield _whole(demo, cache).row("dpbandits demo, cold kernels", "< 60")


def _after_import(script: list[str], cache: str) -> Waited:
    """What a script says of itself."""
    return Waited(*map(float, _run(script, cache).split()))


def _whole(command: list[str], cache: str) -> Waited:
    """A command with its start and its imports."""
    before, start = os.times(), time.perf_counter()
    _run(command, cache)
    clock, after = time.perf_counter() - start, os.times()
    spent = after.children_user + after.children_system
    return Waited(clock, spent - before.children_user - before.children_system)


def _run(command: list[str], cache: str) -> str:
    """What a command prints that finds this package, and its kernels in ``cache``."""
    package = str(Path(dpbandits.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": package, "DPBANDITS_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout
