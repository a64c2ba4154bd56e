"""Cells: the parts that a long study is computed in, each kept on disk when it is finished.

They are kept in a hidden folder beside the output, which is named by a digest of all that decides
their numbers: the same command
continues after a kill, and another one never finds them.  Several processes may share the folder:
each file appears complete or not at all, and the last process to end removes the folder.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..environments import ArmsEnvironment, ContextEnvironment
from ..errors import ArgumentError, StateFileError
from ..policies import Policy
from ..simulation import Result, simulate

try:
    import fcntl
except ImportError:  # Windows, where the folder goes with the first process that ends
    fcntl = None  # type: ignore[assignment]

Progress = Callable[[str, int, int], None]

# whose code decides numbers
_ROOMS = (
    "privacy",
    "policies",
    "algorithms",
    "environments",
    "simulation",
)
_PREFIX, _SUFFIX = ".dpbandits-", ".cells"


@dataclass(frozen=True)
class Cell:
    """One policy in one environment, all runs.

    Attributes:
        key: the name by which claims ask for it.
        stage: what it is part of, in the display of progress.
        policy, environment, horizon, runs, seed: as ``simulate`` takes them.
        record: the rounds at which regret is recorded.
    """

    key: str
    stage: str
    policy: Policy
    environment: ArmsEnvironment | ContextEnvironment
    horizon: int
    runs: int
    seed: int
    record: tuple[int, ...]

    @property
    def digest(self) -> str:
        """A name for all that decides the numbers."""
        numbers = (
            repr(self.environment),
            self.policy.stream_key,
            self.policy.label,
            self.horizon,
            self.runs,
            self.seed,
            self.record,
        )
        return sha256(repr((__version__, code_digest(), *numbers)).encode()).hexdigest()[:24]

    def compute(self, n_jobs: int, progress: Callable[[int, int], None]) -> Result:
        """Simulate it."""
        return simulate(
            self.policy,
            self.environment,
            horizon=self.horizon,
            runs=self.runs,
            seed=self.seed,
            record=list(self.record),
            n_jobs=n_jobs,
            progress=progress,
        )


class Results(Mapping[str, Result]):
    """The results of cells by their keys, and the numbers that claims are made of."""

    def __init__(self, results: Mapping[str, Result]) -> None:
        self._results = dict(results)

    def __getitem__(self, key: str) -> Result:
        return self._results[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def final(self, key: str) -> np.ndarray:
        """Regret at the horizon, shape (runs,)."""
        return self[key].runs.sort_values("run")["regret"].to_numpy(float)

    def curves(self, key: str, column: str = "regret") -> np.ndarray:
        """Regret, or another column, at the recorded rounds, shape (runs, rounds)."""
        return self[key].frame.pivot(index="run", columns="round", values=column).to_numpy(float)

    def rounds(self, key: str) -> np.ndarray:
        """The recorded rounds."""
        return np.sort(self[key].frame["round"].unique())


def compute(
    cells: Sequence[Cell], beside: Path, *, n_jobs: int, progress: Progress | None = None
) -> Results:
    """Compute what is missing of the cells, and load what an earlier run has finished.

    Args:
        cells: with different keys.
        beside: a file or folder to be, beside which the finished ones are kept; see ``kept``.
        n_jobs: threads; -1 for one per core.
        progress: called with (stage, runs done, runs in all).
    """
    keys = [cell.key for cell in cells]
    if len(set(keys)) < len(keys):
        raise ArgumentError(f"cells must have different keys, got {keys}")
    folder = folder_for(cells, beside)
    told = _Stages(cells, progress)
    found = {}
    for cell in cells:
        path = folder / f"{cell.digest}.parquet"
        result = _loaded(path)
        if result is None:
            result = cell.compute(n_jobs, told.during(cell))
            _keep(result, path)
        told.finished(cell)
        found[cell.key] = result
    return Results(found)


def folder_for(cells: Sequence[Cell], beside: Path) -> Path:
    """Where the finished ones of these cells are kept."""
    digest = sha256("".join(sorted(cell.digest for cell in cells)).encode()).hexdigest()[:16]
    return beside.resolve().parent / f"{_PREFIX}{digest}{_SUFFIX}"


@contextlib.contextmanager
def kept(cells: Sequence[Cell], beside: Path) -> Iterator[Path]:
    """The folder of finished cells, which stays if the block fails, and is removed if it ends well
    and nobody else uses it.

    Raises:
        ArgumentError: the folder cannot be made.
    """
    folder = folder_for(cells, beside)
    try:
        lock = _shared_lock(folder)
    except OSError as error:
        raise ArgumentError(
            f"output must be in a folder that can be written, got {folder.parent}: {error.strerror}"
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


def _loaded(path: Path) -> Result | None:
    try:
        return Result.load(path)
    except (FileNotFoundError, StateFileError):
        return None


def _keep(result: Result, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)  # where locks are unknown, another process may have removed it
    result.save(path)


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
    """How many runs every stage has."""
    totals: dict[str, int] = {}
    for cell in cells:
        totals[cell.stage] = totals.get(cell.stage, 0) + cell.runs
    return totals


@functools.cache
def code_digest() -> str:
    """A digest of the code that decides numbers, and of the libraries below it: results of other
    code are no results.
    """
    package = Path(__file__).parents[1]
    digest = sha256((package / "kernel.py").read_bytes())
    for room in _ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            digest.update(path.read_bytes())
    digest.update(repr([_version(name) for name in ("numpy", "numba", "scipy")]).encode())
    return digest.hexdigest()


def _version(name: str) -> Any:
    from importlib.metadata import version

    return version(name)
