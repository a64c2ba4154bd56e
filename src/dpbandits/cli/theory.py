"""``dpbandits theory``: the bounds there are, and their values."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from ..errors import ArgumentError
from .inputs import AsJson, clear_errors
from .tables import new_console, new_table, print_json, with_rows

if TYPE_CHECKING:
    from ..theory import Bound

_WORDS = {"true": True, "false": False}


def theory(
    name: Annotated[
        str | None, Argument(help="The name of a bound. Default: list all bounds.")
    ] = None,
    arguments: Annotated[
        list[str] | None,
        Argument(
            metavar="KEY=VALUE...",
            help="Parameters of the bound, such as horizon=1e5 or gaps=0.1,0.2. Default:"
            " describe the bound.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the published bounds and those derived here; compute the bound that you name."""
    import numpy as np

    from ..theory import BOUNDS
    from ..validation import close_name

    with clear_errors():
        if name is None:
            _list(list(BOUNDS.values()), as_json)
            return
        if name not in BOUNDS:
            raise ArgumentError(f"there is no bound {name!r}; {close_name(name, BOUNDS)}", "name")
        bound = BOUNDS[name]
        if not arguments:
            _describe(bound)
            return
        given = dict(map(_argument, arguments))
        unknown = given.keys() - set(bound.parameters)
        if unknown or bound.required - given.keys():
            raise ArgumentError(
                f"arguments must include {', '.join(sorted(bound.required))} for {name}, and only"
                f" {', '.join(bound.parameters)} are allowed; got {', '.join(given)}",
                "arguments",
            )
        try:
            value = bound(**given)
        except (ArithmeticError, TypeError, ValueError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise ArgumentError(
                f"{name} has no value at these arguments: {error}", "arguments"
            ) from None
        if as_json:
            print_json(_facts(bound) | {"value": np.asarray(value).tolist()})
        else:
            typer.echo(", ".join(f"{one:.6g}" for one in np.atleast_1d(value)))


def _list(bounds: list[Bound], as_json: bool) -> None:
    if as_json:
        print_json(list(map(_facts, bounds)))
        return
    table = new_table("name", "kind", "constants", "holds", "on", "source")
    table.columns[0].no_wrap = True
    rows = ((one.name, one.kind, one.constants, one.holds, one.of, one.source) for one in bounds)
    new_console().print(with_rows(table, rows))


def _describe(bound: Bound) -> None:
    console = new_console()
    console.print(f"[bold]{bound.name}[/bold]({', '.join(bound.parameters)})", markup=True)
    lines = [bound.summary, f"Source: {bound.source}.", f"{bound.kind} bound on {bound.of}."]
    if bound.assumes:
        lines.append(f"Assumes {bound.assumes}.")
    if bound.constants != "explicit":
        lines.append(f"Constants: {bound.constants}.")
    if bound.because:
        lines.append(f"{bound.holds.capitalize()}: {bound.because}.")
    for line in lines:
        console.print(textwrap.fill(line, 100))


def _facts(bound: Bound) -> dict[str, Any]:
    names = ("name", "source", "kind", "of", "constants", "holds", "because", "assumes", "summary")
    return {**{name: getattr(bound, name) for name in names}, "parameters": bound.parameters}


def _number(text: str) -> int | float:
    """Whole numbers as such: sizes must be, and others may."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2.0**53 else number


def _argument(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    try:
        numbers = [_WORDS[one] if one in _WORDS else _number(one) for one in value.split(",")]
    except ValueError:
        equals = ""
    if not equals:
        raise ArgumentError(
            f"arguments must have the form key=1.5 or key=0.1,0.2, got {text!r}", "arguments"
        )
    return key, numbers if len(numbers) > 1 else numbers[0]
