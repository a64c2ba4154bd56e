"""Engines compute the cells of a study: processes of this machine, or workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import logging
import math
import re
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from ..compiling import COMPILING
from ..errors import (
    ArgumentError,
    ClusterWarning,
    DPBanditsError,
    MissingExtra,
    StateFileError,
)
from ..simulation.clipping import warn_of_clipping
from ..simulation.processes import ELSEWHERE, shared
from ..simulation.tasks import Piece
from ..source import code_digest
from .cells import Cell, Outcome, folder_for, stages
from .orders import Answer, Origin, files_of, machine, order, play_piece, work

Progress = Callable[[str, int, int], None]
Told = Callable[[Cell], Callable[[int, int], None]]  # to be called with (runs done, runs in all)

_FAILURES = 10  # so often may a worker die beside a part; Dask gives up after 3
_PATIENCE = "30s"  # for a scheduler to answer
_SHORT = 2.0  # seconds of a cell: sharing its runs would take longer than it saves
_AT_ONCE = 32  # cells, until it is asked again whether they are short
_USUAL = 0.25  # seconds expected of a cell: a few slow policies take most of the time
_LOCAL = {
    "threads_per_worker": 1,
    "protocol": "tls://",  # or other users of this machine could take it over
    "dashboard_address": "127.0.0.1:0",
    "silence_logs": logging.CRITICAL,  # processes that end tell of connections that are gone
}


class Engine(Protocol):
    """What computes cells."""

    def parts(self, cell: Cell) -> list[Cell]:
        """The cell, or its runs in several cells, each of which is computed and kept by itself."""

    def results(
        self, cells: Iterable[tuple[int, Cell]], told: Told
    ) -> Iterator[tuple[int, Outcome]]:
        """The results of numbered cells with their numbers, as they come."""


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, which share the runs of each cell, or cells while these are short.

    Args:
        n_jobs: number of processes; -1 for one per core.
    """

    n_jobs: int = -1

    def parts(self, cell: Cell) -> list[Cell]:
        return [cell]

    def results(
        self, cells: Iterable[tuple[int, Cell]], told: Told
    ) -> Iterator[tuple[int, Outcome]]:
        waiting, seconds = deque(cells), math.inf  # that the last cell took
        while waiting:
            started, compiled = time.perf_counter(), COMPILING.seconds
            if self.n_jobs == 1 or seconds > _SHORT:
                number, cell = waiting.popleft()
                result = cell.compute(self.n_jobs, told(cell))
                seconds = time.perf_counter() - started - (COMPILING.seconds - compiled)
                yield number, result
                continue
            several = [waiting.popleft() for _ in range(min(_AT_ONCE, len(waiting)))]
            whole = _Whole([cell for _, cell in several])
            for piece, (result,) in shared(whole, [1] * len(several), self.n_jobs, _USUAL):
                yield several[piece.group][0], result
            seconds = (time.perf_counter() - started) / len(several)


@dataclass(frozen=True)
class _Whole:
    """Cells as a task, each of which is computed in one process."""

    cells: Sequence[Cell]

    def __call__(self, group: int, number: int) -> Outcome:
        return self.cells[group].compute(1, lambda done, of: None)


PROCESSES = Processes()


@dataclass(frozen=True)
class Dask:
    """Workers of a Dask cluster (extra ``distributed``).  A worker that dies is replaced by others,
    and workers may come and go.

    Args:
        cluster: the scheduler, as ``tcp://host:8786`` or ``tls://host:8786``; or ``local:4``, which
            starts four processes on this machine and ends them.  Certificates for TLS are those of
            Dask's configuration.
        origin: where the cells come from; see ``orders.of_study``.
        most_parts: into how many parts the runs of a cell are split at most.

    Raises:
        ArgumentError: ``cluster`` is no such address.

    Warns:
        ClusterWarning: others on the network can take the cluster over.
    """

    cluster: str
    origin: Origin
    most_parts: int = 16

    def __post_init__(self) -> None:
        if not re.fullmatch(r"(tcp|tls)://\S+:\d+|local:[1-9]\d{0,2}", self.cluster):
            raise ArgumentError(
                "cluster must be tcp://host:port, tls://host:port or local:number, got"
                f" {self.cluster!r}",
                "cluster",
            )
        if not re.match(r"tls:|local:|tcp://(localhost|127\.[\d.]+|\[::1\]):", self.cluster):
            _warn(
                f"{self.cluster} is not encrypted: all who reach the scheduler can run code on"
                " all its machines. Use tls://, or a network of your own"
            )

    def parts(self, cell: Cell) -> list[Cell]:
        return cell.split(self.most_parts)

    def results(
        self, cells: Iterable[tuple[int, Cell]], told: Told
    ) -> Iterator[tuple[int, Outcome]]:
        """As of ``Engine``.

        Raises:
            DPBanditsError: the scheduler cannot be reached or is gone, a worker has other code or
                data, or too many workers have died.

        Warns:
            ClusterWarning: there are no workers yet, or their machines differ.
        """
        asked = dict(cells)
        if not asked:
            return
        for cell in asked.values():  # of which workers would warn in their own logs
            warn_of_clipping([cell.policy], cell.environment, stacklevel=2)
        names = {
            number: f"{cell.policy.label} in {cell.environment.title}, runs {cell.first_run} to"
            f" {cell.first_run + cell.runs - 1}"
            for number, cell in asked.items()
        }
        with self._ready() as client:
            texts = {number: order(cell, self.origin) for number, cell in asked.items()}
            for number, answer in self._answers(client, work, texts, names):
                yield number, answer.result

    @contextlib.contextmanager
    def playing(self) -> Iterator[None]:
        """Within it, ``plan`` and ``audit`` have the cluster play their runs.

        Raises:
            DPBanditsError: as of ``results``.
        """
        with self._ready() as client:

            def elsewhere(
                task: bytes, pieces: Sequence[Piece]
            ) -> Iterator[tuple[Piece, list[Any]]]:
                texts = {i: (code_digest(), task, *piece) for i, piece in enumerate(pieces)}
                names = {i: f"a task, units {piece.units}" for i, piece in enumerate(pieces)}
                for i, answer in self._answers(client, play_piece, texts, names):
                    yield pieces[i], answer.result

            token = ELSEWHERE.set(elsewhere)
            try:
                yield
            finally:
                ELSEWHERE.reset(token)

    @contextlib.contextmanager
    def _ready(self) -> Iterator[Any]:
        """A client of the cluster, whose workers have the modules of the study."""
        with self._client() as client:
            for file in files_of(self.origin):
                _upload(client, file)
            if not client.nthreads():
                _warn("the cluster has no workers yet, and the study waits for them")
            yield client

    def _answers(
        self,
        client: Any,
        ask: Callable[[Any], Answer],
        texts: dict[int, Any],
        names: dict[int, str],
    ) -> Iterator[tuple[int, Answer]]:
        """Answers to numbered texts, as they come."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker, as_completed
        from distributed.comm import CommClosedError

        machines = {machine(): "this machine"}
        keys = [f"dpbandits-{sha256(repr(text).encode()).hexdigest()}" for text in texts.values()]
        futures = client.map(ask, list(texts.values()), key=keys, pure=False)
        numbers = dict(zip(futures, texts, strict=True))
        del futures
        for future in as_completed(list(numbers), loop=client.loop):
            number = numbers.pop(future)
            try:
                answer = future.result()
            except KilledWorker:
                raise DPBanditsError(
                    f"workers died again and again with {names[number]}: they may have too little"
                    " memory"
                ) from None
            except (CancelledError, CommClosedError):
                raise DPBanditsError(
                    f"the scheduler {self.cluster} does not answer any more"
                ) from None
            _compare(machines, answer)
            yield number, answer

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        """A client of the cluster, which ``local`` starts."""
        try:
            import dask
            from distributed import Client, LocalCluster, Security
        except ImportError as error:
            raise MissingExtra(
                "a cluster needs Dask: pip install 'dpbandits[distributed]'"
            ) from error
        if self.cluster.startswith("local:"):
            count = int(self.cluster.partition(":")[2])
            with (
                dask.config.set({"distributed.scheduler.allowed-failures": _FAILURES}),
                LocalCluster(n_workers=count, security=Security.temporary(), **_LOCAL) as local,
                Client(local, set_as_default=False) as client,
            ):
                yield client
            return
        try:
            client = Client(self.cluster, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TypeError, ValueError) as error:  # TypeError: there are no certificates
            raise ArgumentError(
                f"cluster must be a Dask scheduler that answers, got {self.cluster}: {error}",
                "cluster",
            ) from None
        with client:
            yield client


def compute(
    cells: Sequence[Cell],
    beside: Path | None = None,
    *,
    engine: Engine = PROCESSES,
    progress: Progress | None = None,
) -> list[Any]:
    """The results of the cells, in their order: computed, or loaded where an earlier run has
    finished them.

    Args:
        cells: no two with the same key and seed.
        beside: a file or folder to be, beside which the finished ones are kept; see ``kept``.  None
            keeps nothing.
        engine: see ``Engine``.
        progress: called with (stage, runs done, runs in all).
    """
    keys = [(cell.key, cell.seed) for cell in cells]
    if len(set(keys)) < len(keys):
        raise ArgumentError(f"cells must have different keys, got {keys}")
    folder = None if beside is None else folder_for(cells, beside)
    told = _Stages(cells, progress)
    parts = [(i, part) for i, cell in enumerate(cells) for part in engine.parts(cell)]
    found: dict[int, Outcome] = {}

    def missing() -> Iterator[tuple[int, Cell]]:
        for number, (_, part) in enumerate(parts):
            if (result := _kept(part, folder)) is None:
                yield number, part
            else:
                found[number] = result
                told.finished(part)

    for number, result in engine.results(missing(), told.during):
        part = parts[number][1]
        _keep(part, result, folder)
        found[number] = result
        told.finished(part)
    of_cell: list[list[Any]] = [[] for _ in cells]
    for number, (i, _) in enumerate(parts):
        of_cell[i].append(found.pop(number))
    return [
        cell.kind.merge(several) if len(several) > 1 else several[0]
        for cell, several in zip(cells, of_cell, strict=True)
    ]


def _kept(cell: Cell, folder: Path | None) -> Outcome | None:
    """The result of an earlier run; None where there is none."""
    if folder is not None:
        with contextlib.suppress(FileNotFoundError, StateFileError):
            return cell.kind.load(folder / f"{cell.digest}.parquet")
    return None


def _keep(cell: Cell, result: Outcome, folder: Path | None) -> None:
    if folder is not None:
        folder.mkdir(exist_ok=True)  # where locks are unknown, another process may have removed it
        result.save(folder / f"{cell.digest}.parquet")


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


# The cluster -----------------------------------------------------------------------------------


def _upload(client: Any, file: Path) -> None:
    """Give a module to the workers, also to those that come later."""
    from distributed.diagnostics.plugin import UploadFile

    digest = sha256(file.read_bytes()).hexdigest()
    client.register_plugin(UploadFile(str(file), load=False), name=f"dpbandits-{digest}")


def _compare(machines: dict[str, str], answer: Answer) -> None:
    """Warn of every new kind of machine."""
    if answer.machine not in machines:
        known = "; ".join(f"{who} has {what}" for what, who in machines.items())
        machines[answer.machine] = f"worker {answer.worker}"
        _warn(
            f"worker {answer.worker} has {answer.machine}, but {known}. Numbers from linear algebra"
            " may differ in their last bits. So verdicts may differ, too"
        )


def _warn(message: str) -> None:
    warnings.warn(message, ClusterWarning, stacklevel=3)
