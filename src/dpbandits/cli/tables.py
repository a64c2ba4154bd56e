"""Text and tables on the terminal, or in a pipe, which has no width."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import IO, TYPE_CHECKING, Any, cast

import typer

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from ..html import Section
    from ..report.claims import Claim
    from ..report.record import StudyRecord
    from ..simulation.settings import SettingsByKey

_ROWS = 40
_PIPED_WIDTH = 240


def new_console(*, stderr: bool = False) -> Console:
    """A console that prints text as it is; wide, and without spaces at the ends of lines, if the
    output is no terminal.
    """
    from rich.console import Console

    console = Console(stderr=stderr, markup=False, highlight=False)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH  # a file has no edge to wrap at
        console.file = cast("IO[str]", _Trimmed(console.file))
    return console


class _Trimmed:
    """A file that leaves out spaces at the ends of lines, with which tables fill their columns."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(re.sub(r" +(?=\n)", "", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def print_json(found: object) -> None:
    """Facts as JSON, for programs.  Numbers without a value are null."""
    typer.echo(json.dumps(_finite(found), indent=2, ensure_ascii=False))


def _finite(found: object) -> object:
    """JSON has no word for nan and infinity."""
    if isinstance(found, Mapping):
        return {str(key): _finite(one) for key, one in found.items()}
    if isinstance(found, list | tuple):
        return [_finite(one) for one in found]
    if isinstance(found, Real) and not isinstance(found, bool | int):
        number = float(found)
        return number if math.isfinite(number) else None
    return found


def table_rows(table: pd.DataFrame | None) -> list[dict[str, Any]]:
    """The rows of a table, for JSON."""
    if table is None:
        return []
    rows: list[dict[str, Any]] = table.to_dict("records")
    return rows


def new_table(*heads: str, numbers: Sequence[str] = (), **options: Any) -> Table:
    """A ``rich`` table without lines: columns of text, then of ``numbers``, aligned right."""
    from rich.table import Table

    looks: dict[str, Any] = {"title_justify": "left", "header_style": "bold"}
    table = Table(*heads, box=None, pad_edge=False, **{**looks, **options})
    for head in numbers:
        table.add_column(head, justify="right")
    return table


def with_rows(table: Table, rows: Iterable[Iterable[Any]]) -> Table:
    """The table with these rows below."""
    for row in rows:
        table.add_row(*map(str, row))
    return table


def print_sections(console: Console, sections: Iterable[Section]) -> None:
    """The parts of a page, as text."""
    for one in sections:
        console.print(f"\n{one.title}", style="bold")
        for point in one.points:
            console.print(f"* {point}", soft_wrap=True)
        if one.rows:
            heads = one.heads or ["", ""]
            table = new_table(*heads, show_header=bool(one.heads), header_style="italic")
            console.print(with_rows(table, one.rows))
    console.print()


def print_claims(record: StudyRecord, folder: Path, as_json: bool = False) -> None:
    """The tables of a study of a paper, its claims, how many hold, and where its report is."""
    from ..report.claims import tally

    report = folder / "report.html"
    if as_json:
        claims = [_claim(one) for one in record.claims]
        print_json({"title": record.title, "report": str(report), "claims": claims})
        return
    print_tables(record)
    console = new_console()
    for reading in dict.fromkeys(claim.reading for claim in record.claims):
        shown = new_table("claim", numbers=["measured", "expected"], title=reading)
        shown.add_column("verdict", no_wrap=True)
        for claim in record.claims:
            if claim.reading == reading:
                measured = f"{claim.shown(claim.measured.mean)} {claim.range}"
                shown.add_row(claim.statement, measured, claim.wanted, claim.verdict)
        console.print(shown)
        console.print()
    for note in record.notes:
        console.print(note)
    typer.echo(tally(record.claims))
    typer.echo(f"Report: {report}")


def _claim(claim: Claim) -> dict[str, Any]:
    words = {name: getattr(claim, name) for name in ("statement", "source", "reading", "verdict")}
    return {**words, **claim.measured._asdict(), "expected": claim.wanted}


def print_tables(record: StudyRecord) -> None:
    """The first table of a study, and where the others are."""
    if not record.tables:
        return
    first, *others = record.tables
    shown = new_table(*first.frame.columns, title=first.heading)
    console = new_console()
    console.print(with_rows(shown, first.frame.itertuples(index=False)))
    console.print(f"... and {len(others)} more tables in the folder\n")


def print_results(
    record: StudyRecord, table: pd.DataFrame, folder: Path, as_json: bool = False
) -> None:
    """Mean regrets of a study, success rates of its replay, and where its report is."""
    from ..plotting.numbers import percent, reward_amount

    result, replay = record.result, record.replay
    report = folder / "report.html"
    if as_json:
        rates = None if replay is None else replay.summary()
        rows = {"results": table_rows(table), "replay": table_rows(rates)}
        print_json({"title": record.title, "report": str(report), **rows})
        return
    for environment, rows in table.groupby("environment", sort=False):
        size = f"{rows['rounds'].iloc[0]:,} rounds, {rows['runs'].iloc[0]} runs"
        title = f"{result.titles[str(environment)]}: mean regret after {size}"
        means = rows.rename(columns={"regret": "mean"})
        _print_means(title, means, result.settings, "regret", reward_amount)
    if replay is not None:
        for environment, rows in replay.summary().groupby("environment", sort=False):
            size = f"{rows['runs'].iloc[0]} runs"
            title = f"{replay.titles[str(environment)]}: mean success rate in the replay, {size}"
            _print_means(title, rows, replay.settings, "rate", partial(percent, places=1))
    typer.echo(f"Report: {report}")


def _print_means(
    title: str, rows: pd.DataFrame, settings: SettingsByKey, what: str, show: Callable[[float], str]
) -> None:
    from ..plotting.labels import promise
    from ..simulation.settings import policy_styles

    console, styles = new_console(), policy_styles(settings)
    console.print(title, style="italic")
    shown = new_table("policy", "budget", numbers=[what, "95 % band"])
    for row in rows.head(_ROWS).itertuples():
        setting = settings[row.policy, row.budget]
        held = str(promise(setting.budget, setting.holds))
        band = f"{show(row.low)} to {show(row.high)}"
        shown.add_row(styles[row.policy].label, held, show(row.mean), band)
    console.print(shown)
    if len(rows) > _ROWS:
        console.print(f"... and {len(rows) - _ROWS} more in the folder")
    console.print()
