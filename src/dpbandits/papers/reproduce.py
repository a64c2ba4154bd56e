"""Running the experiments of a paper again, and measuring its claims."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ..report.record import StudyRecord
from ..simulation import Result
from ..studies.cautions import cautions
from ..studies.engines import PROCESSES, Engine, Progress, compute
from ..studies.run import versions
from .adversarial import plan as adversarial
from .concentrated import plan as concentrated
from .dgs import plan as dgs
from .equal_budget import plan as equal_budget
from .glm import plan as glm
from .plans import Plan, Results, Size
from .shuffle import plan as shuffle

# What can be measured again with one command: experiments of papers, and the table of defaults.
PAPERS: dict[str, Callable[[Size], Plan]] = {
    "adversarial": adversarial.plan,
    "concentrated": concentrated.plan,
    "dgs": dgs.plan,
    "equal-budget": equal_budget.plan,
    "glm": glm.plan,
    "shuffle": shuffle.plan,
}

_QUICK = (
    "This is the small version (--quick): fewer rounds, runs and budgets than in full. Verdicts"
    " at full size may differ."
)


def reproduce(
    plan: Plan,
    size: Size,
    *,
    beside: Path | None = None,
    engine: Engine = PROCESSES,
    progress: Progress | None = None,
) -> StudyRecord:
    """Compute a plan's cells, continuing an earlier run that was cut short, and measure its claims.

    The plan is of this size; ``beside``, ``engine`` and ``progress`` are as for ``run_study``.
    """
    start = time.perf_counter()
    results = compute(plan.cells, beside, engine=engine, progress=progress)
    findings = plan.assess(Results(plan.cells, results))
    config = {name: getattr(size, name) for name in ("quick", "full", "runs", "horizon", "seed")}
    longest = max(cell.horizon or 0 for cell in plan.cells)
    warned = cautions([cell.policy.budget for cell in plan.cells], longest)
    return StudyRecord(
        title=plan.title,
        description=plan.description,
        result=Result.combined(results),
        seed=size.seed,
        config={**config, "data": None if size.data is None else str(size.data)},
        versions=versions(),
        elapsed=time.perf_counter() - start,
        claims=findings.claims,
        exhibits=findings.exhibits,
        tables=findings.tables,
        notes=[*([_QUICK] if size.quick else []), *plan.notes, *warned],
        shown=plan.shown,
    )
