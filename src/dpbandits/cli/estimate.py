"""The command ``dpbandits estimate``: a private regression from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ArgumentError
from .inputs import Noise, budget_of, clear_errors
from .tables import new_console

if TYPE_CHECKING:
    import pandas as pd

    from ..glm import PrivateGLM


def estimate(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE.csv", help="A row for each person.", show_default=False)
    ],
    outcome: Annotated[str, typer.Option(help="The column to explain.", show_default=False)],
    budget: Annotated[
        str, typer.Option(help="zcdp=0.1, approx=1,1e-6 or rdp=4,1.", show_default=False)
    ],
    link: Annotated[str, typer.Option(help="logistic, probit or identity.")] = "logistic",
    outcome_range: Annotated[
        tuple[float, float], typer.Option(help="Outcomes outside are clipped to it.")
    ] = (0.0, 1.0),
    context_bound: Annotated[
        float, typer.Option(help="Longer rows of features are scaled to this length.")
    ] = 1.0,
    parameter_bound: Annotated[float, typer.Option(help="On the length of the parameter.")] = 1.0,
    noise: Annotated[
        Noise, typer.Option(help="simulation is seeded, and protects nobody.")
    ] = Noise.secure,
    seed: Annotated[int | None, typer.Option(help="Of simulated noise.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fit a generalised linear model to a table of private data, and say what that promises.

    All other columns are features; entries that are no numbers count as 0.  Bounds must not be
    taken from the data.
    """
    from ..glm import PrivateGLM

    with clear_errors():
        model = PrivateGLM(
            link,
            budget=budget_of(budget),
            outcome_range=outcome_range,
            context_bound=context_bound,
            parameter_bound=parameter_bound,
            noise=noise.value,
            seed=seed,
        )
        features, outcomes = _read(table, outcome)
        model.fit(features.to_numpy(), outcomes.to_numpy())
        rows = _rows(model, list(map(str, features.columns)))
    if as_json:
        found = {"estimates": rows, "guarantee": model.guarantee.to_dict()}
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    _print(rows, model)


def _read(path: Path, outcome: str) -> tuple[pd.DataFrame, pd.Series]:
    """Features and outcomes as floats; nothing is said of what was in a cell."""
    import pandas as pd

    try:
        # As text: types that follow from all cells would raise errors that tell of one.
        frame = pd.read_csv(path, dtype=str, encoding="utf-8-sig", keep_default_na=False)
    except OSError as error:
        raise ArgumentError(
            f"TABLE must be a readable file, got {path}: {error.strerror}"
        ) from None
    except ValueError:  # whose words may quote a cell
        raise ArgumentError(f"TABLE must be a CSV file in UTF-8, got {path}") from None
    if outcome not in frame.columns:
        raise ArgumentError(
            f"--outcome must be one of the columns {', '.join(map(str, frame.columns))}, got"
            f" {outcome!r}"
        )
    if frame.shape[1] < 2:
        raise ArgumentError(f"TABLE must have a column beside {outcome!r}")
    numbers = frame.apply(pd.to_numeric, errors="coerce").astype("float64")
    return numbers.drop(columns=outcome), numbers[outcome]


def _rows(model: PrivateGLM, names: list[str]) -> list[dict[str, Any]]:
    found = zip(names, model.coef_, model.confidence_intervals(), strict=True)
    return [
        {"feature": name, "estimate": float(value), "low": float(low), "high": float(high)}
        for name, value, (low, high) in found
    ]


def _print(rows: list[dict[str, Any]], model: PrivateGLM) -> None:
    from rich.table import Table

    console = new_console()
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("feature")
    for head in ("estimate", "95 % from", "to"):
        shown.add_column(head, justify="right")
    for row in rows:
        shown.add_row(row["feature"], *(f"{row[key]:.4g}" for key in ("estimate", "low", "high")))
    console.print(shown)
    console.print(f"\n{model.guarantee}", highlight=False, markup=False, soft_wrap=True)
