"""Orders: cells as JSON, for workers on other machines.

Cells and policies are not sent.  An order names where the cells come from, and the worker makes
them anew.  It refuses an order if its cell has another digest, as from other code or other data.
"""

from __future__ import annotations

import functools
import importlib
import json
import pickle
import platform
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from ..errors import ArgumentError, DPBanditsError
from ..rooms import papers
from ..simulation.tasks import Piece, played
from ..source import code_digest
from .cells import Cell, Outcome, cells_of
from .study import Study, parse
from .worlds import environment_kinds

Origin = Mapping[str, Any]  # where cells come from; JSON

_building = threading.Lock()
_imported: dict[str, str] = {}  # digests of modules, as this process has imported them


class Answer(NamedTuple):
    """A result, and the machine that has computed it."""

    result: Any
    worker: str
    machine: str


def of_study(study: Study) -> Origin:
    """The origin of a study's cells.

    Raises:
        ArgumentError: the study's file holds real data itself.  They would be sent to the cluster;
            files of data are only named, and every worker reads its own.
    """
    kinds = environment_kinds(study.folder)
    for i, entry in enumerate(study.config["environments"]):
        listed = {name for name, value in entry.items() if isinstance(value, list)}
        if getattr(kinds[entry["kind"]], "holds_data", False) and listed - {"arm_names"}:
            raise ArgumentError(
                f"environments[{i}] must name a file of data, as LoggedTrial.read does: data are"
                " not sent to a cluster"
            )
    return {"study": study.config, **of_modules(study.config["imports"], study.folder)}


def of_modules(names: Sequence[str], folder: Path) -> Origin:
    """Modules that have been imported, of a folder or of the Python path."""
    modules = {name: _digest_of(name) for name in names}
    return {"folder": str(folder.resolve()), "modules": modules}


def of_paper(name: str, size: Any) -> Origin:
    """The origin of the cells that reproduce a paper at a ``Size``."""
    data = None if size.data is None else str(size.data.resolve())
    return {"paper": name, "size": {**asdict(size), "data": data}, "modules": {}}


def files_of(origin: Origin) -> list[Path]:
    """The files of the modules that are imported from a study's own folder."""
    files, folder = map(_file_of, origin["modules"]), Path(origin.get("folder", "/"))
    return [file for file in files if file.is_relative_to(folder)]


def order(cell: Cell, origin: Origin) -> str:
    """The order of a cell, or of some of its runs."""
    asked = {"code": code_digest(), "origin": origin, "key": cell.key}
    numbers = {"seed": cell.seed, "first_run": cell.first_run, "runs": cell.runs}
    return json.dumps({**asked, **numbers, "digest": cell.digest})


def carry_out(order: str) -> Outcome:
    """Compute a cell.

    Raises:
        DPBanditsError: this process has other code, or finds other data.
    """
    asked = json.loads(order)
    _refuse_other(asked["code"])
    with _building:  # modules are imported, and policies registered, once
        if (cell := _found(asked)) is None:  # as after a change of data
            _cells.cache_clear()
            cell = _found(asked)
    if cell is None:
        raise DPBanditsError(
            "its data or features differ from those of the study. Put the same files in the same"
            f" place, and use equal processors; the worker has {machine()}"
        )
    return cell.compute(1, lambda done, total: None)


def work(order: str) -> Answer:
    """Compute a cell on a Dask worker.

    Raises:
        ArgumentError: the worker cannot; the message names it.
    """
    from distributed import get_worker

    worker = get_worker().address
    try:
        return Answer(carry_out(order), worker, machine())
    except DPBanditsError as error:
        raise ArgumentError(f"worker {worker} refuses: {error}") from None


def play_piece(asked: tuple[str, bytes, int, range]) -> Answer:
    """Play a piece of a task on a Dask worker: the digest of its code, the task, the piece.

    Raises:
        ArgumentError: the worker cannot; the message names it.
    """
    from distributed import get_worker

    worker, (code, task, group, units) = get_worker().address, asked
    try:
        _refuse_other(code)
        with _building:
            found = _task(task)
    except (DPBanditsError, ImportError) as error:
        raise ArgumentError(f"worker {worker} refuses: {error}") from None
    return Answer(played(found, Piece(group, units)), worker, machine())


@functools.lru_cache(maxsize=4)
def _task(text: bytes) -> Any:
    return pickle.loads(text)


def _refuse_other(theirs: str) -> None:
    if theirs != (ours := code_digest()):
        raise DPBanditsError(
            f"it has dpbandits {__version__} with code {ours[:8]}, and the study asks for code"
            f" {theirs[:8]}: install the same versions of dpbandits, NumPy, SciPy, numba and"
            " scikit-learn"
        )


def _found(asked: dict[str, Any]) -> Cell | None:
    """The cell that an order means; None where there is none with all that decides its numbers."""
    whole = _cells(json.dumps(asked["origin"])).get((asked["key"], asked["seed"]))
    if whole is None:
        return None
    cell = replace(whole, first_run=asked["first_run"], runs=asked["runs"])
    return cell if cell.digest == asked["digest"] else None


@functools.lru_cache(maxsize=4)
def _cells(origin: str) -> dict[tuple[str, int], Cell]:
    return {(cell.key, cell.seed): cell for cell in _made(json.loads(origin))}


def _made(origin: Origin) -> Sequence[Cell]:
    if "paper" in origin:
        data = origin["size"]["data"]
        given = {**origin["size"], "data": None if data is None else Path(data)}
        plan = papers("reproduce").PAPERS[origin["paper"]]
        cells: Sequence[Cell] = plan(papers("plans").Size(**given)).cells
        return cells
    for name, digest in origin["modules"].items():
        if _imported.get(name, digest) != digest:
            raise DPBanditsError(
                f"it has imported another version of {name}: start the worker again"
            )
    study = parse(dict(origin["study"]), "the study", Path(origin["folder"]))
    for name, digest in origin["modules"].items():
        if (found := _imported.setdefault(name, _digest_of(name))) != digest:
            raise DPBanditsError(f"it has another version of {name}, of digest {found[:8]}")
    return cells_of(study)


def _file_of(module: str) -> Path:
    return Path(str(importlib.import_module(module).__file__)).resolve()


def _digest_of(module: str) -> str:
    return sha256(_file_of(module).read_bytes()).hexdigest()


@functools.cache
def machine() -> str:
    """The processor and the library of linear algebra, on which last bits of numbers depend."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{_processor()} with {blas['name']} {blas['version']}"


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
