"""What a user waits for: a second process, the list of policies, the demo on a machine that has
compiled nothing yet.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .timing import Row

_FIRST_RESULT = """
import time
import dpbandits as dpb
from dpbandits.environments import Bernoulli
start = time.perf_counter()
policy = dpb.AdaCUCB(5, budget=dpb.ZCDP(0.1), seed=1)
policy.pull(); policy.update(1.0)
dpb.simulate(policy, Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25]), horizon=10**7)
print(time.perf_counter() - start)
"""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        cold = float(_run([sys.executable, "-c", _FIRST_RESULT], folder)[1])
        warm = min(float(_run([sys.executable, "-c", _FIRST_RESULT], folder)[1]) for _ in range(3))
    yield Row("first result after import, compiling", cold, "s")
    yield Row("first result after import, second process", warm, "s", "<= 0.5")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dpbandits", "list"]
        yield Row("dpbandits list", min(_run(command, folder)[0] for _ in range(3)), "s", "< 1")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "dpbandits",
            "demo",
            "--output",
            str(Path(folder) / "demo"),
        ]
        yield Row("dpbandits demo, cold kernels", _run(command, folder)[0], "s", "< 60")


def _run(command: list[str], cache: str) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run(
        command,
        env={**os.environ, "DPBANDITS_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - start, done.stdout
