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
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from .. import __version__
from ..environments import ArmsEnvironment, ContextEnvironment, LoggedTrial
from ..errors import ArgumentError, StateFileError
from ..policies import Policy
from ..simulation import ReplayResult, Result, replay, simulate
from ..source import code_digest

try:
    import fcntl
except ImportError:  # Windows, where the folder goes with the first process that ends
    fcntl = None  # type: ignore[assignment]

Progress = Callable[[str, int, int], None]

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
    record: tuple[int, ...] = ()  # none in a replay

    @property
    def digest(self) -> str:
        """A name for all that decides the numbers."""
        world, policy = self.environment, self.policy
        met = (world.stream_key, world.delay, policy.stream_key, policy.label)
        numbers = (*met, self.horizon, self.runs, self.seed, self.record)
        return sha256(repr((__version__, code_digest(), *numbers)).encode()).hexdigest()[:24]

    def compute(self, n_jobs: int, progress: Callable[[int, int], None]) -> Result | ReplayResult:
        """Simulate it, or replay it on its log."""
        size: dict[str, Any] = {"horizon": self.horizon, "runs": self.runs, "seed": self.seed}
        common = {**size, "n_jobs": n_jobs, "progress": progress}
        if isinstance(self.environment, LoggedTrial):
            return replay(self.policy, self.environment, **common)
        return simulate(self.policy, self.environment, record=list(self.record), **common)


def compute(
    cells: Sequence[Cell],
    beside: Path | None = None,
    *,
    n_jobs: int = -1,
    progress: Progress | None = None,
) -> list[Any]:
    """The results of the cells, in their order: computed, or loaded where an earlier run has
    finished them.

    Args:
        cells: no two with the same key and seed.
        beside: a file or folder to be, beside which the finished ones are kept; see ``kept``.  None
            keeps nothing.
        n_jobs: threads; -1 for one per core.
        progress: called with (stage, runs done, runs in all).
    """
    keys = [(cell.key, cell.seed) for cell in cells]
    if len(set(keys)) < len(keys):
        raise ArgumentError(f"cells must have different keys, got {keys}")
    folder = None if beside is None else folder_for(cells, beside)
    told, found = _Stages(cells, progress), []
    for cell in cells:
        found.append(_result_of(cell, folder, n_jobs, told.during(cell)))
        told.finished(cell)
    return found


def _result_of(
    cell: Cell, folder: Path | None, n_jobs: int, progress: Callable[[int, int], None]
) -> Result | ReplayResult:
    if folder is None:
        return cell.compute(n_jobs, progress)
    path = folder / f"{cell.digest}.parquet"
    kind = ReplayResult if isinstance(cell.environment, LoggedTrial) else Result
    with contextlib.suppress(FileNotFoundError, StateFileError):
        return kind.load(path)
    result = cell.compute(n_jobs, progress)
    folder.mkdir(exist_ok=True)  # where locks are unknown, another process may have removed it
    result.save(path)
    return result


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
            f"output must be a folder that can be written; {folder.parent} cannot: {error.strerror}"
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


class _Stages:
    """Turns the progress of cells into that of the stages they belong to."""

    def __init__(self, cells: Sequence[Cell], progress: Progress | None) -> None:
        self._progress = progress
        self._total = stages(cells)
        self._done = dict.fromkeys(self._total, 0)
        self._told: tuple[str, int] | None = None

    def during(self, cell: Cell) -> Callable[[int, int], None]:
        return lambda done, total: self._tell(cell.stage, self._done[cell.stage] + done)

    def finished(self, cell: Cell) -> None:
        self._done[cell.stage] += cell.runs
        self._tell(cell.stage, self._done[cell.stage])

    def _tell(self, stage: str, done: int) -> None:
        if self._progress is not None and self._told != (stage, done):
            self._told = stage, done
            self._progress(stage, done, self._total[stage])


def stages(cells: Sequence[Cell]) -> dict[str, int]:
    """The number of runs of every stage."""
    totals: dict[str, int] = {}
    for cell in cells:
        totals[cell.stage] = totals.get(cell.stage, 0) + cell.runs
    return totals
