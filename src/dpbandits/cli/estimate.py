"""The command ``dpbandits estimate``: a private regression from a file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .inputs import (
    AsJson,
    Decimal,
    Header,
    Noise,
    Separator,
    Thousands,
    budget_of,
    clear_errors,
    pair,
)
from .tables import new_console, new_table, print_json

if TYPE_CHECKING:
    from ..glm import PrivateGLM
    from ..tables import TextTable
    from .private_tables import PrivateTable


def estimate(
    table: Annotated[
        Path, Argument(metavar="TABLE.csv", help="A text table with a row for each person.")
    ],
    outcome: Annotated[str, Option(help="The column of outcomes to predict.")],
    budget: Annotated[str, Option(help="A budget: zcdp=0.1, approx=1,1e-6, rdp=4,1 or gdp=0.5.")],
    link: Annotated[str, Option(help="The link: logistic, probit or identity.")] = "logistic",
    outcome_range: Annotated[
        tuple[str, str],
        Option(
            metavar="LO HI",
            help="The range of outcomes. Outcomes beyond it are clipped.",
            callback=pair,
            show_default="0 1",
        ),
    ] = ("0", "1"),
    context_bound: Annotated[
        float, Option(help="The largest length of a row of features. Longer rows are scaled down.")
    ] = 1.0,
    parameter_bound: Annotated[
        float, Option(help="The largest length of the parameter, the vector of coefficients.")
    ] = 1.0,
    positive: Annotated[
        list[str] | None,
        Option(
            help="A text that counts as outcome 1; all other texts count as 0. May be repeated."
        ),
    ] = None,
    features: Annotated[
        str | None,
        Option(help="Columns of features, separated by commas. Default: all but the outcome."),
    ] = None,
    ignore: Annotated[str | None, Option(help="Columns to leave out, separated by commas.")] = None,
    separator: Separator = ",",
    decimal: Decimal = ".",
    thousands: Thousands = "",
    header: Header = None,
    noise: Annotated[
        Noise,
        Option(metavar="NOISE", help="secure; or simulation: seeded noise, which protects nobody."),
    ] = Noise.secure,
    seed: Annotated[int | None, Option(help="The seed of simulated noise.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a generalised linear model to a table of private data, and print the guarantee.

    All columns except the outcome are features, unless --features or --ignore say otherwise.  Cells
    that are not numbers count as 0; a column without a number is refused.  The standard error
    stream tells how many cells were changed, for the operator only.  Do not look at the data to
    choose bounds.
    """
    from ..glm import PrivateGLM
    from ..tables import read_text_table
    from .private_tables import listed, private_table

    with clear_errors():
        model = PrivateGLM(
            link,
            budget=budget_of(budget),
            outcome_range=(float(outcome_range[0]), float(outcome_range[1])),
            context_bound=context_bound,
            parameter_bound=parameter_bound,
            noise=noise.value,
            seed=seed,
        )
        text = read_text_table(
            "TABLE", table, separator=separator, decimal=decimal, thousands=thousands, header=header
        )
        people = private_table(
            text,
            outcome,
            positive=positive or (),
            features=None if features is None else listed(features),
            ignore=listed(ignore or ""),
        )
        # What the operator's log hears of ``fit`` is said below, in words for this command.
        logging.getLogger("dpbandits").addHandler(logging.NullHandler())
        model.fit(people.features, people.outcomes)
        rows = _rows(model, people.names)
    _tell(text, people.said + _changed(people, model))
    if as_json:
        found = {"estimates": rows, "guarantee": model.guarantee.to_dict()}
        print_json(found)
        return
    _print(rows, model)


def _changed(people: PrivateTable, model: PrivateGLM) -> list[str]:
    """How many people the bounds of the model have changed."""
    from ..glm.estimator import changes

    said, n = [], len(people.outcomes)
    made = changes(model, people.features, people.outcomes)
    if scaled := made.scaled:
        said.append(
            f"the features of {scaled:,} of {n:,} people are longer than --context-bound"
            f" {model.context_bound:g}, and were shortened to it. Bring columns to one scale by"
            " public ranges, or leave out columns that are no measurements with --ignore"
        )
    lo, hi = model.outcome_range
    if clipped := made.clipped:
        said.append(
            f"{clipped:,} of {n:,} outcomes lie outside of --outcome-range {lo:g} {hi:g}, and were"
            " clipped to it"
        )
    return said


def _tell(text: TextTable, said: list[str]) -> None:
    if text.nameless:
        typer.echo(f"Note: {text.left_out}.", err=True)
    if said:
        typer.echo(
            "For the operator alone, since no guarantee covers these counts:\n  "
            + "\n  ".join(said),
            err=True,
        )


def _rows(model: PrivateGLM, names: list[str]) -> list[dict[str, Any]]:
    found = zip(names, model.coef_, model.confidence_intervals(), strict=True)
    return [
        {"feature": name, "estimate": float(value), "low": float(low), "high": float(high)}
        for name, value, (low, high) in found
    ]


def _print(rows: list[dict[str, Any]], model: PrivateGLM) -> None:
    console = new_console()
    shown = new_table("feature", numbers=["estimate", "95 % from", "to"])
    for row in rows:
        shown.add_row(row["feature"], *(f"{row[key]:.4g}" for key in ("estimate", "low", "high")))
    console.print(shown)
    console.print(f"\n{model.guarantee}", soft_wrap=True)
