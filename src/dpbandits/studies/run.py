"""Running a study."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable
from functools import partial

from ..report.record import StudyRecord
from ..simulation import Result, replay, simulate
from .study import Study

Progress = Callable[[str, int, int], None]

_PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "pyarrow",
    "matplotlib",
    "dp-accounting",
    "joblib",
    "pydantic",
)


def run_study(study: Study, *, n_jobs: int = -1, progress: Progress | None = None) -> StudyRecord:
    """Simulate every policy in every environment, and replay it on the log where there is one.

    Args:
        study: see ``load_study``.
        n_jobs: threads; -1 for one per core.  The numbers are the same for any.
        progress: called with (what is being simulated, runs done, runs in all) now and then.

    Returns:
        What a report is written from.
    """

    def tell(what: object) -> Callable[[int, int], None] | bool:
        return False if progress is None else partial(progress, repr(what))

    start = time.perf_counter()
    results = [
        simulate(
            study.policies,
            environment,
            horizon=study.horizon,
            runs=study.runs,
            seed=study.seed,
            record=study.record,
            n_jobs=n_jobs,
            progress=tell(environment),
        )
        for environment in study.environments
    ]
    replayed = None
    if study.log is not None:
        replayed = replay(
            study.policies,
            study.log,
            runs=study.runs,
            seed=study.seed,
            n_jobs=n_jobs,
            progress=tell(study.log),
        )
    return StudyRecord(
        title=study.title,
        description=study.description,
        result=Result.combined(results),
        replay=replayed,
        seed=study.seed,
        config=study.config,
        versions=versions(),
        elapsed=time.perf_counter() - start,
    )


def versions() -> dict[str, str]:
    """This package's version and those of the packages that decide its numbers and figures."""
    from .. import __version__

    return {
        "dpbandits": __version__,
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
    }
