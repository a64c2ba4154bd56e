"""Tables on the terminal, or in a pipe, which has no width."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from ..report.record import StudyRecord
    from ..simulation.settings import SettingsByKey

_ROWS = 40
_PIPED_WIDTH = 240


def new_console(*, stderr: bool = False) -> Console:
    """A console, wide where nobody looks at it."""
    from rich.console import Console

    console = Console(stderr=stderr)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH  # a file has no edge to wrap at
    return console


def print_claims(record: StudyRecord) -> None:
    """The claims of a paper, and how many hold."""
    from rich.markup import escape
    from rich.table import Table

    from ..report.claims import tally

    console = new_console()
    for reading in dict.fromkeys(claim.reading for claim in record.claims):
        shown = Table(
            title=reading, title_justify="left", box=None, pad_edge=False, header_style="bold"
        )
        shown.add_column("claim")
        for head in ("measured", "expected"):
            shown.add_column(head, justify="right")
        shown.add_column("verdict", no_wrap=True)
        for claim in record.claims:
            if claim.reading == reading:
                measured = f"{claim.shown(claim.measured.mean)} {claim.range}"
                shown.add_row(
                    *map(escape, (claim.statement, measured, claim.wanted, claim.verdict))
                )
        console.print(shown)
        console.print()
    for note in record.notes:
        console.print(note, markup=False, highlight=False)
    typer.echo(tally(record.claims))


def print_tables(record: StudyRecord) -> None:
    """The first table of a study, and where the others are."""
    from rich.markup import escape
    from rich.table import Table

    if not record.tables:
        return
    first, *others = record.tables
    shown = Table(
        *map(escape, first.frame.columns),
        title=first.heading,
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for row in first.frame.itertuples(index=False):
        shown.add_row(*(escape(str(cell)) for cell in row))
    console = new_console()
    console.print(shown)
    console.print(f"... and {len(others)} more tables in the folder\n")


def print_results(record: StudyRecord, table: pd.DataFrame) -> None:
    """Mean regrets of a study, and success rates of its replay."""
    from ..plotting.numbers import percent, reward_amount

    result, replay = record.result, record.replay
    for environment, rows in table.groupby("environment", sort=False):
        title = (
            f"{result.titles[str(environment)]}: mean regret after {rows['rounds'].iloc[0]:,}"
            f" rounds, {rows['runs'].iloc[0]} runs"
        )
        means = rows.rename(columns={"regret": "mean"})
        _print_means(title, means, result.settings, "regret", reward_amount)
    if replay is not None:
        for environment, rows in replay.summary().groupby("environment", sort=False):
            title = (
                f"{replay.titles[str(environment)]}: mean success rate in the replay,"
                f" {rows['runs'].iloc[0]} runs"
            )
            _print_means(title, rows, replay.settings, "rate", partial(percent, places=1))


def _print_means(
    title: str, rows: pd.DataFrame, settings: SettingsByKey, what: str, show: Callable[[float], str]
) -> None:
    from rich.markup import escape
    from rich.table import Table

    from ..plotting.labels import promise
    from ..simulation.settings import policy_styles

    console, styles = new_console(), policy_styles(settings)
    console.print(title, style="italic", markup=False, highlight=False)
    shown = Table("policy", "budget", box=None, pad_edge=False, header_style="bold")
    shown.add_column(what, justify="right")
    shown.add_column("95 % band", justify="right")
    for row in rows.head(_ROWS).itertuples():
        setting = settings[row.policy, row.budget]
        shown.add_row(
            escape(styles[row.policy].label),
            str(promise(setting.budget, setting.holds)),
            show(row.mean),
            f"{show(row.low)} to {show(row.high)}",
        )
    console.print(shown)
    if len(rows) > _ROWS:
        console.print(f"... and {len(rows) - _ROWS} more in the folder")
    console.print()
