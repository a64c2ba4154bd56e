"""The command ``dpbandits inspect``: a saved policy, from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .inputs import clear_errors
from .tables import new_console


def inspect(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="What `Policy.save` wrote.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ],
) -> None:
    """Show what a saved policy promises, has spent and has released, be it alive or not.

    Nothing is loaded, claimed or written.
    """
    from rich.markup import escape
    from rich.table import Table

    from ..inspection import inspect as look

    with clear_errors():
        seen = look(file)
    console = new_console()
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in seen.facts.items():
        facts.add_row(name, escape(text))
    console.print(facts)
    heads, rows = seen.estimates.table()
    console.print(f"\n{seen.estimates!r}", markup=False, highlight=False)
    if rows:
        shown = Table(*map(escape, heads), box=None, pad_edge=False, header_style="bold")
        for row in rows:
            shown.add_row(*map(escape, row))
        console.print(shown)
