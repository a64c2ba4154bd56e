"""Cells: the parts that a long study is computed in, each kept on disk when it is finished.

They are kept in a hidden folder beside the output.  A digest of all settings that decide their
numbers names the folder.  So the same command continues after a kill, and another one never finds
them.  Several processes may share the folder: each file appears complete or not at all, and the
last process to end removes the folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from .. import __version__
from ..environments import ArmsEnvironment, ContextEnvironment, LoggedTrial
from ..errors import ArgumentError
from ..policies import Policy
from ..simulation import ReplayResult, Result, replay, simulate
from ..simulation.deciding import Question
from ..simulation.results import environment_titles
from ..simulation.simulating import recorded_rounds
from ..source import code_digest
from .study import Study

try:
    import fcntl
except ImportError:  # Windows, where the folder goes with the first process that ends
    fcntl = None  # type: ignore[assignment]

Outcome = Result | ReplayResult

_PREFIX, _SUFFIX = ".dpbandits-", ".cells"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One policy in one environment, or replayed on one log, all runs: arguments of ``simulate``
    and ``replay``.  Cells of one key are instances of one setting, each with a seed of its own.
    """

    key: str  # the name by which claims ask for it
    stage: str  # what it is part of, in the display of progress
    policy: Policy
    environment: ArmsEnvironment | ContextEnvironment | LoggedTrial
    horizon: int | None
    runs: int
    seed: int
    first_run: int = 0
    record: tuple[int, ...] = ()  # none in a replay
    decided: Question | None = None

    @property
    def digest(self) -> str:
        """A name for all that decides the numbers."""
        world, policy = self.environment, self.policy
        met = (world.stream_key, world.delay, policy.stream_key, policy.label)
        numbers = (
            *met,
            self.horizon,
            self.runs,
            self.first_run,
            self.seed,
            self.record,
            self.decided,
        )
        return sha256(repr((__version__, code_digest(), *numbers)).encode()).hexdigest()[:24]

    @property
    def kind(self) -> type[Outcome]:
        """The class of its result."""
        return ReplayResult if isinstance(self.environment, LoggedTrial) else Result

    def split(self, parts: int) -> list[Cell]:
        """Its runs in at most so many cells, which differ by one run at most in length."""
        parts = min(parts, self.runs)
        ends = [self.runs * i // parts for i in range(parts + 1)]
        return [
            replace(self, first_run=self.first_run + begin, runs=end - begin)
            for begin, end in pairwise(ends)
        ]

    def compute(self, n_jobs: int, progress: Callable[[int, int], None]) -> Outcome:
        """Simulate it, or replay it on its log."""
        size: dict[str, Any] = {"horizon": self.horizon, "runs": self.runs, "seed": self.seed}
        common = {**size, "first_run": self.first_run, "n_jobs": n_jobs, "progress": progress}
        if isinstance(self.environment, LoggedTrial):
            return replay(self.policy, self.environment, **common)
        asked = None if self.decided is None else self.decided._asdict()
        common |= {"record": list(self.record), "decided": asked}
        return simulate(self.policy, self.environment, **common)


def cells_of(study: Study) -> list[Cell]:
    """The parts of a study: every policy in every environment, and on the log."""
    worlds = [*study.environments, *([study.log] if study.log is not None else [])]
    titles = environment_titles({repr(world): {"title": world.title} for world in worlds})
    return [
        Cell(
            key=f"{world!r}/{policy.stream_key}",
            stage=titles[repr(world)],
            policy=policy,
            environment=world,
            horizon=None if world is study.log else study.horizon,
            runs=study.runs,
            seed=study.seed,
            first_run=study.first_run,
            record=tuple(map(int, recorded_rounds(study.horizon, study.record))),
            decided=study.decided,
        )
        for world in worlds
        for policy in study.policies
    ]


def folder_for(cells: Sequence[Cell], beside: Path) -> Path:
    """The folder for the finished ones of these cells."""
    digest = sha256("".join(sorted(cell.digest for cell in cells)).encode()).hexdigest()[:16]
    return beside.resolve().parent / f"{_PREFIX}{digest}{_SUFFIX}"


@contextlib.contextmanager
def kept(cells: Sequence[Cell], beside: Path) -> Iterator[Path]:
    """The folder of finished cells.  It stays if the block fails, and is removed if the block
    succeeds and no other process uses it.

    Raises:
        ArgumentError: the folder cannot be made.
    """
    folder = folder_for(cells, beside)
    try:
        lock = _shared_lock(folder)
    except OSError as error:
        raise ArgumentError(
            f"output must be a folder that can be written; {folder.parent} cannot be written:"
            f" {error.strerror}"
        ) from None
    try:
        yield folder
        if _is_last(lock):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        if lock is not None:
            os.close(lock)
        with contextlib.suppress(OSError):  # where nothing was finished, nothing is to be kept
            folder.rmdir()


def _shared_lock(folder: Path) -> int | None:
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        if fcntl is None:
            return None
        try:
            lock = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # another process has ended in between
            continue
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock


def _is_last(lock: int | None) -> bool:
    if lock is None:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def stages(cells: Sequence[Cell]) -> dict[str, int]:
    """The number of runs of every stage."""
    totals: dict[str, int] = {}
    for cell in cells:
        totals[cell.stage] = totals.get(cell.stage, 0) + cell.runs
    return totals
