"""A Dask cluster of two processes on this machine: what a part of a study costs beside its runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from dpbandits.studies.cells import cells_of
from dpbandits.studies.engines import Dask, compute
from dpbandits.studies.orders import of_study
from dpbandits.studies.study import parse

from .timing import Row, scaled

PARTS = 400
SHORT = {
    "title": "runs that take no time",
    "horizon": 10,
    "environments": [{"kind": "Bernoulli", "means": [0.9, 0.1]}],
    "policies": [{"kind": "UCB1"}],
}


def rows(size: float) -> Iterator[Row]:
    try:
        from distributed import LocalCluster
    except ImportError as missing:
        yield Row.skipped("a part on a Dask cluster", missing)
        return
    study = parse({**SHORT, "runs": scaled(PARTS, size, 4)}, "the benchmark", Path())
    here = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(n_workers=2, **here) as cluster:
        parts = Dask(cluster.scheduler_address, of_study(study), study.runs)
        compute(cells_of(study), engine=parts)  # workers import and compile
        start = time.perf_counter()
        compute(cells_of(study), engine=parts)
        seconds = time.perf_counter() - start
    name = f"a part on a Dask cluster, of {study.runs} whose runs take no time"
    yield Row(name, 1e3 * seconds / study.runs, "ms", "<= 20", "by the clock, 2 processes")
