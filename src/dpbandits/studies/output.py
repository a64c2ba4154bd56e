"""The folder that a study leaves behind: complete, or not there at all.

Everything is written into a hidden folder beside the target, which gets its name at the very end.
The process holds a lock on the hidden folder, which the system releases when the process ends.  A
hidden folder without a lock belongs to a dead run, and the next run removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import ArgumentError
from ..report.claims import claims_table
from ..report.record import StudyRecord
from ..simulation import ReplayResult, Result
from ..simulation.results import KEYS
from ..source import code_digest
from .orders import machine

try:
    import fcntl
except ImportError:  # Windows, where dead runs' folders stay
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"
_TABLES = {
    *("results.parquet", "replay.parquet"),
    *("summary.csv", "replay.csv", "claims.csv", "bounds.csv"),
}
_WRITTEN = {MANIFEST, "report.html", "figures", "tables", *_TABLES}
_FOLDERS = {"figures": {".svg", ".png", ".csv", ".dat"}, "tables": {".csv"}}
_NAMED = 5
_PREFIX, _SUFFIX = ".dpbandits-", ".partial"


@contextlib.contextmanager
def result_folder(target: Path, *, force: bool = False) -> Iterator[Path]:
    """A hidden folder to write into, which becomes ``target`` if the block ends well and vanishes
    if not.

    With ``force``, ``target`` may hold earlier results and nothing else; they are replaced.

    Raises:
        ArgumentError: ``target`` is in the way.
    """
    target = target.resolve()
    _check_free(target, force)
    _remove_abandoned(target.parent)
    with _locked_folder(target.parent) as folder:
        yield folder
        _check_free(target, force)
        with _locked_folder(target.parent) as aside:
            if target.exists():
                target.rename(aside / target.name)
            folder.rename(target)


def write_results(
    folder: Path, record: StudyRecord, *, started: datetime, n_jobs: int, command: Sequence[str]
) -> None:
    """Write report, figures, tables and manifest into ``folder``."""
    from ..report import write

    record.result.save(folder / "results.parquet")
    final_table(record).to_csv(folder / "summary.csv", index=False)
    if record.replay is not None:
        record.replay.save(folder / "replay.parquet")
        record.replay.summary().to_csv(folder / "replay.csv", index=False)
    if record.claims:
        claims_table(record.claims).to_csv(folder / "claims.csv", index=False)
    if record.bounds is not None:
        record.bounds.to_csv(folder / "bounds.csv", index=False)
    for table in record.tables:
        (folder / "tables").mkdir(exist_ok=True)
        table.frame.to_csv(folder / "tables" / f"{table.name}.csv", index=False)
    write(folder, record, n_jobs)
    ended = datetime.now(UTC)
    manifest = {
        "title": record.title,
        "study": dict(record.config),
        "seed": record.seed,
        "versions": dict(record.versions),
        "code": code_digest(),
        "machine": machine(),
        "notes": list(record.notes),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "started": started.isoformat(timespec="seconds"),
        "ended": ended.isoformat(timespec="seconds"),
        "elapsed_seconds": round((ended - started).total_seconds(), 3),
        "simulation_seconds": round(record.elapsed, 3),
        "n_jobs": n_jobs,
        "command": list(command),
    }
    written = json.dumps(manifest, indent=2, ensure_ascii=False, default=str)
    (folder / MANIFEST).write_text(f"{written}\n", encoding="utf-8")


def read_results(folder: Path) -> tuple[StudyRecord, dict[str, Any]]:
    """The record of a study that ``write_results`` wrote, and its manifest.

    Raises:
        ArgumentError: the folder holds no results of a study by this code.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        config = manifest["study"]
        if "environments" not in config:
            raise ArgumentError(
                f"folders must have results of a study, got other results in {folder}"
            )
        if manifest["code"] != code_digest():
            raise ArgumentError(
                "folders must have results of this version of the code, got those of another"
                f" version in {folder}"
            )
        replay, bounds = folder / "replay.parquet", folder / "bounds.csv"
        record = StudyRecord(
            title=manifest["title"],
            description=config["description"],
            result=Result.load(folder / "results.parquet"),
            replay=ReplayResult.load(replay) if replay.exists() else None,
            seed=manifest["seed"],
            config=config,
            versions=manifest["versions"],
            elapsed=manifest["simulation_seconds"],
            notes=manifest["notes"],
            bounds=pd.read_csv(bounds, float_precision="round_trip") if bounds.exists() else None,
        )
    except (FileNotFoundError, KeyError, TypeError, json.JSONDecodeError):
        raise ArgumentError(
            f"folders must be folders that `dpbandits run` wrote, got {folder}"
        ) from None
    return record, manifest


def merged(records: Sequence[StudyRecord]) -> StudyRecord:
    """Records of the same study with different runs as one.

    Raises:
        ArgumentError: they are of different studies, or two have the same run.
    """
    first = records[0]
    fixed = [{**one.config, "runs": 0, "first_run": 0} for one in records]
    if any(one != fixed[0] for one in fixed):
        raise ArgumentError("folders must have results of one study and seed")
    result = Result.merge([one.result for one in records])
    replays = [one.replay for one in records if one.replay is not None]
    start = min(one.config["first_run"] for one in records)
    return replace(
        first,
        result=result,
        replay=ReplayResult.merge(replays) if replays else None,
        config={**first.config, "runs": result.info["runs"], "first_run": start},
        elapsed=sum(one.elapsed for one in records),
    )


def final_table(record: StudyRecord) -> pd.DataFrame:
    """One row per environment, policy and budget, at the horizon.

    Columns: environment, policy, budget, holds, rounds, runs, mean ``regret`` with its 95 % band
    ``low`` and ``high``, mean ``reward``, ``releases`` and ``spent``, which is the largest of all
    runs.  Where the study asks, ``decided`` is the share of runs in which it was decided which arm
    is best; empty for policies that cannot tell.
    """
    keys = [*KEYS, "holds"]
    result = record.result
    horizons = result.frame.groupby("environment", observed=True)["round"].transform("max")
    # The bands of the other rounds cost most of the time of a summary; leaving them out does not
    # change this one.
    summary = replace(result, frame=result.frame[result.frame["round"] == horizons]).summary()
    last = summary.rename(columns={"mean": "regret", "round": "rounds"})
    runs = result.runs.groupby(keys, sort=False)
    extra = runs.agg({"reward": "mean", "releases": "mean", "spent": "max"}).reset_index()
    table = last.merge(extra, on=keys, how="left")
    columns = [*keys, "rounds", "runs", "regret", "low", "high", "reward", "releases", "spent"]
    if "decided" in result.runs:
        told = result.runs[result.runs["decided_wrong"].notna()]
        share = told["decided"].notna().groupby([told[one] for one in keys], sort=False).mean()
        table, columns = (
            table.merge(share.reset_index(), on=keys, how="left"),
            [*columns, "decided"],
        )
    return table[columns]


def _check_free(target: Path, force: bool) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise ArgumentError(f"output must be a folder, got the file {target}")
    if Path.cwd().is_relative_to(target):
        raise ArgumentError(f"output must not be the folder that the command runs in, got {target}")
    if not any(target.iterdir()):
        return
    if not force:
        raise ArgumentError(
            f"output must be a new or empty folder, got {target}; --force replaces earlier results"
        )
    if not (target / MANIFEST).is_file():
        raise ArgumentError(
            f"output must hold earlier results if --force is given, got {target} with no {MANIFEST}"
        )
    held = (path.relative_to(target) for path in target.rglob("*"))
    strangers = [path.as_posix() for path in held if not _is_ours(path)]
    if strangers:
        named = ", ".join(sorted(strangers)[:_NAMED]) + (", ..." if len(strangers) > _NAMED else "")
        raise ArgumentError(f"output must hold earlier results only, got {target} with {named}")


def _is_ours(path: Path) -> bool:
    """Whether a run writes something of this name, relative to its folder."""
    if path.parts[0] in _FOLDERS and len(path.parts) > 1:
        return len(path.parts) == 2 and path.suffix in _FOLDERS[path.parts[0]]
    return path.as_posix() in _WRITTEN


@contextlib.contextmanager
def _locked_folder(parent: Path) -> Iterator[Path]:
    while True:
        folder = parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise ArgumentError(
                f"output must be a folder that can be written; {parent} cannot be written:"
                f" {error.strerror}"
            ) from None
        lock = _lock(folder)
        if lock is not None or fcntl is None:
            break  # else another run took it for a dead one's before it was locked
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*{_SUFFIX}"):
        lock = _lock(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """A descriptor that holds the lock of the folder; None where we cannot have it."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if folder.exists():
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
