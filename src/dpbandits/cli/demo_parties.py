"""The command ``dpbandits demo-parties``."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ..errors import ArgumentError
from .first_run import announce_compilation
from .inputs import AsJson, clear_errors, dated
from .shuffle import needs_extras
from .tables import new_console, new_table, with_rows

if TYPE_CHECKING:
    from ..demonstration.record import Record

FAILED = 1


def demo_parties(
    output: Annotated[
        Path | None, Option(help="Folder to write. Default: dpbandits-demo-parties-<time>.")
    ] = None,
    people: Annotated[
        int,
        Option(
            min=40, help="The number of people: a multiple of 20, because they come in 20 batches."
        ),
    ] = 2000,
    seed: Annotated[
        int,
        Option(
            min=0, help="The seed of people and simulations. The noise is secure, and has no seed."
        ),
    ] = 1,
    keep: Annotated[
        bool, Option("--keep", help="Keep what the parties stored, in the folder `parties`.")
    ] = False,
    as_json: AsJson = False,
    force: Annotated[bool, Option("--force", help="Replace the report of an earlier run.")] = False,
) -> None:
    """Run a service, a shuffler and people's devices on this machine, and search what they stored.

    The people are simulated.  The report compares regret under shuffle, central and local trust,
    and says what each party sees.  The exit code is 1 if the search found anything
    that a party must not know.
    """
    with clear_errors(), _ended_by_sigterm():
        needs_extras("demo-parties")
        from ..demonstration.page import write
        from ..demonstration.record import demonstrate
        from ..studies.output import MANIFEST, result_folder

        _check(people)
        announce_compilation()
        target, talk = output or dated("dpbandits-demo-parties"), new_console(stderr=True)
        with result_folder(target, force=force) as folder:
            own = folder / "parties"
            own.mkdir(mode=0o700)
            record = demonstrate(own, people, seed, talk.print)
            if not keep:
                shutil.rmtree(own)
            write(folder, record)
            told = json.dumps(record.to_dict(), indent=2, ensure_ascii=False)
            (folder / MANIFEST).write_text(f"{told}\n", "utf-8")
    if as_json:
        typer.echo(told)
    else:
        _print(record)
        typer.echo(f"Report: {target / 'report.html'}")
    if record.leaks or record.blind:
        raise typer.Exit(FAILED)


def _check(people: int) -> None:
    from ..demonstration.parties import BATCHES

    if people % BATCHES:
        raise ArgumentError(f"people must be a multiple of {BATCHES}, got {people}", "people")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl+C does: no process and no folder is left."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print(record: Record) -> None:
    from ..demonstration import page

    console = new_console()
    for title, (heads, rows) in {
        "Regret of all people": page.regrets(record),
        "People whose data the search has found": page.findings(record),
    }.items():
        console.print(title, style="italic")
        console.print(with_rows(new_table(heads[0], numbers=heads[1:]), rows))
        console.print()
    for sentence in page.verdict(record):
        console.print(sentence)
