"""The commands ``dpbandits inspect`` and ``restore``: policies that a place keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from typer import Argument

from ..errors import ArgumentError
from .inputs import clear_errors
from .tables import new_console, new_table, with_rows

Where = Annotated[
    str,
    Argument(
        metavar="PLACE",
        help=(
            "A file that `Policy.save` wrote, or a place in a database:"
            " sqlite:///policies.db#KEY, postgresql://user@host/database#KEY."
        ),
    ),
]


def inspect(place: Where) -> None:
    """Show the guarantee, spending and releases of a saved policy, which may be running elsewhere.

    The command only reads the place; the policy can still be loaded.
    """
    from ..inspection import inspect as look

    with clear_errors(), _something_saved():
        seen = look(place)
    console = new_console()
    facts = new_table(show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    console.print(with_rows(facts, seen.facts.items()))
    heads, rows = seen.estimates.table()
    console.print(f"\n{seen.estimates!r}")
    if rows:
        console.print(with_rows(new_table(*heads), rows))


def restore(place: Where) -> None:
    """Go on from a backup of a policy whose newest state is lost.

    The policy keeps its releases, ledger and estimates. It drops all records of the backup that
    were not released, and counts their cost as spent. It refuses tokens of earlier decisions.
    """
    from ..policies import restore as revive

    with clear_errors(), _something_saved():
        policy = revive(place)
    typer.echo(policy.heading)
    typer.echo(f"Restored in {place}. Load it there.")
    typer.echo(f"Guarantee: {policy.guarantee}")


@contextmanager
def _something_saved() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ArgumentError(f"PLACE must hold a policy: {error}") from None
