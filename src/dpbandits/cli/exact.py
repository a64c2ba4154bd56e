"""The command ``dpbandits exact``: the exact privacy of a small policy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ..errors import ArgumentError
from .inputs import AsJson, clear_errors
from .tables import new_console, new_table, print_json

if TYPE_CHECKING:
    from ..finite import FinitePolicy

_ROUNDING = 1e-12  # what is less, relative to large numbers, may be rounding alone


def exact(
    file: Annotated[
        Path | None,
        Argument(
            metavar="POLICY.json",
            help="A file with tables of probabilities. Do not give it with --example.",
        ),
    ] = None,
    example: Annotated[
        str | None,
        Option(
            help=(
                "An example that comes with the package, in place of a file. view-not-table:"
                " private for observed rewards, not for all rewards that arms could have brought."
                " table-not-interactive: private until the adversary overrides an arm."
                " interactive-not-adaptive: less private if the adversary also chooses rewards"
                " during the run."
            )
        ),
    ] = None,
    epsilon: Annotated[float, Option(help="The epsilon for which to find delta.")] = 1.0,
    delta: Annotated[float, Option(help="The delta for which to find epsilon.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Compute the exact privacy loss of a policy that is given as tables of probabilities.

    The file has the arguments of `FinitePolicy`: {"probabilities": [[[0.5, 0.5]], ...], "rewards":
    [0, 1]}.  "probabilities" has a table for each round. A table has a row for each history before
    that round, and a row has a probability for each arm. Results are rounded up.
    """
    with clear_errors():
        policy = _read(file, example)
        rows = _rows(policy, epsilon, delta)
    if as_json:
        # JSON has no infinity.
        written = [{k: "inf" if v == math.inf else v for k, v in row.items()} for row in rows]
        print_json(written)
        return
    heads = [f"delta at epsilon {epsilon:g}", f"epsilon at delta {delta:g}", "rho"]
    table = new_table("view", numbers=heads, title=repr(policy), header_style=None)
    for row in rows:
        table.add_row(row["view"], *(_shown(row[name]) for name in ("delta", "epsilon", "rho")))
    console = new_console()
    console.print(table)
    for complaint in dict.fromkeys(row["refused"] for row in rows if row["refused"]):
        console.print(f"– {complaint}")


def _read(file: Path | None, example: str | None) -> FinitePolicy:
    from ..finite import EXAMPLES, FinitePolicy
    from ..validation import choice

    if (file is None) == (example is None):
        raise ArgumentError("POLICY.json or --example must be given, and not both")
    if example is not None:
        return EXAMPLES[choice("--example", example, EXAMPLES)]()
    try:
        text = Path(str(file)).read_text(encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{file} must be a readable file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ArgumentError(f"{file} must be JSON in UTF-8") from None
    try:
        return FinitePolicy.from_json(text)
    except ArgumentError as error:
        if error.argument != "text":
            raise
        raise ArgumentError(str(error).replace("text", str(file), 1)) from None


def _rows(policy: FinitePolicy, epsilon: float, delta: float) -> list[dict[str, Any]]:
    """Numbers of every view; None for those of a view that is too large, and why."""
    from ..finite.views import JOINT_VIEWS, VIEWS

    asked = [(view, False) for view in VIEWS]
    if policy.sizes.contexts > 1:
        asked += [(view, True) for view in JOINT_VIEWS]
    rows = []
    for view, joint in asked:
        row: dict[str, Any] = dict.fromkeys(("view", "refused", "delta", "epsilon", "rho"))
        row["view"] = f"joint {view}" if joint else view
        try:
            row["delta"] = policy.delta(epsilon, view, joint=joint)
            row["epsilon"] = policy.epsilon(delta, view, joint=joint)
            row["rho"] = policy.rho(view, joint=joint)
        except ArgumentError as error:
            if error.argument != "view":
                raise
            row["refused"] = str(error)
        rows.append(row)
    return rows


def _shown(value: float | None) -> str:
    """Six digits, the last one rounded up: a smaller number would not be enough."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞"
    from ..validation import upward

    return "0" if value < _ROUNDING else f"{upward(value):.6g}"
