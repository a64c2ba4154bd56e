"""The command ``dpbandits merge``: results of different runs of one study, as jobs leave them."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from .inputs import AsJson, clear_errors, dated
from .tables import print_results


def merge(
    folders: Annotated[
        list[Path], Argument(metavar="FOLDER...", help="Folders that `dpbandits run` wrote.")
    ],
    output: Annotated[
        Path | None, Option(help="Folder to write. Default: a new folder here, merged-<time>.")
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Replace the results of an earlier run.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add up the runs of one study that several commands have played.

    The commands must have played different runs, such as `--first-run 0 --runs 50` and
    `--first-run 50 --runs 50`.  On machines of one kind, the data files equal those of one command
    with all runs, byte for byte.
    """
    from ..studies.output import final_table, merged, read_results, result_folder, write_results

    started = datetime.now(UTC)
    with clear_errors():
        read = [read_results(folder) for folder in folders]
        record, target = merged([one for one, _ in read]), output or dated("merged")
        if len(machines := {manifest["machine"] for _, manifest in read}) > 1:
            typer.echo(
                f"Warning: the runs were computed on {' and '.join(sorted(machines))}. Numbers from"
                " linear algebra may differ in their last bits",
                err=True,
            )
        runs = set(record.result.runs["run"])
        if missing := set(range(max(runs) + 1)) - runs:
            told = f"{len(missing)} of {max(runs) + 1}, the first of them {min(missing)}"
            typer.echo(f"Runs are missing: {told}.", err=True)
        with result_folder(target, force=force) as folder:
            command = ["dpbandits", *sys.argv[1:]]
            write_results(folder, record, started=started, n_jobs=1, command=command)
    print_results(record, final_table(record), target, as_json)
