"""Running a study."""

from __future__ import annotations

import importlib.metadata
import time
from pathlib import Path

from ..report.record import StudyRecord
from ..simulation import ReplayResult, Result
from ..simulation.simulating import recorded_rounds
from ..theory import bound_curves
from .cells import cells_of
from .engines import PROCESSES, Engine, Progress, compute
from .study import Study

_PACKAGES = (
    *("numpy", "scipy", "numba", "pandas", "pyarrow"),
    *("matplotlib", "dp-accounting", "joblib", "pydantic"),
)


def run_study(
    study: Study,
    *,
    beside: Path | None = None,
    engine: Engine = PROCESSES,
    progress: Progress | None = None,
) -> StudyRecord:
    """Simulate every policy in every environment, and replay it on the log where there is one.

    Args:
        study: see ``load_study``.
        beside: the future output.  Finished cells are kept beside it, and the same study continues
            from them after an interruption.  Then call this within ``studies.cells.kept``.  None
            keeps nothing.
        engine: ``Processes`` of this machine, by default one per core, or ``Dask``.  The numbers
            are the same for any.
        progress: called with (name of the simulation, runs done, runs in all) now and then.

    Returns:
        The record that a report is written from.
    """
    start = time.perf_counter()
    results = compute(cells_of(study), beside, engine=engine, progress=progress)
    simulated = [one for one in results if isinstance(one, Result)]
    rounds = recorded_rounds(study.horizon, study.record).tolist()
    replayed = [one for one in results if isinstance(one, ReplayResult)]
    return StudyRecord(
        title=study.title,
        description=study.description,
        result=Result.combined(simulated),
        replay=ReplayResult.combined(replayed) if replayed else None,
        seed=study.seed,
        config=study.config,
        versions=versions(),
        elapsed=time.perf_counter() - start,
        notes=study.cautions,
        bounds=bound_curves(study.policies, study.environments, rounds) if study.bounds else None,
    )


def versions() -> dict[str, str]:
    """This package's version and those of the packages that decide its numbers and figures."""
    from .. import __version__

    others = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"dpbandits": __version__, **others}
