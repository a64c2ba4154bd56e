"""A private table in a file, for ``dpbandits estimate``: which columns count, and as what.

Cells are private, names of columns are not.  No message quotes a cell.  A column in which no cell
is a number is refused, since it would count as 0 for everybody; the guarantee lists the assumption.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from ..errors import ArgumentError
from ..tables import TextTable
from ..tables.files import MISSING


class PrivateTable(NamedTuple):
    """Features and outcomes, with what the operator should know of them.

    Attributes:
        names: of the d features.
        features: (n, d); NaN where a cell is no number.
        outcomes: (n,), likewise.
        said: sentences on cells; they depend on private data.
    """

    names: list[str]
    features: np.ndarray
    outcomes: np.ndarray
    said: list[str]


def private_table(
    table: TextTable,
    outcome: str,
    *,
    positive: Sequence[str] = (),
    features: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> PrivateTable:
    """The columns that count.

    Args:
        table: all columns, as text.
        outcome: the column to explain.
        positive: texts of the outcome that count as 1; all others count as 0.  Empty where outcomes
            are numbers.
        features: the columns that explain; empty for all others.
        ignore: columns that are left out.

    Raises:
        ArgumentError: there is no such column, or a column holds no number.
    """
    _check_names(table, "--outcome", [outcome])
    _check_names(table, "--features", features)
    _check_names(table, "--ignore", ignore)
    chosen = list(features) or [name for name in table.names if name not in {outcome, *ignore}]
    if outcome in chosen or set(chosen) & set(ignore):
        raise ArgumentError("--features must name neither the outcome nor an ignored column")
    if not chosen:
        raise ArgumentError(f"TABLE must have a column beside {outcome!r}")
    said: list[str] = []
    y = (
        _positive(table, outcome, positive, said)
        if positive
        else _numbers(table, outcome, said, True)
    )
    if missing := int(np.isnan(y).sum()):
        said.append(f"{missing:,} of {y.size:,} people have no outcome, and add nothing")
    columns = [_numbers(table, name, said, False) for name in chosen]
    return PrivateTable(chosen, np.column_stack(columns), y, said)


def _check_names(table: TextTable, option: str, names: Sequence[str]) -> None:
    from ..studies.schema import close_name

    for name in names:
        if name not in table.names:
            near = close_name(name, table.names)
            hint = f"; {near}" if near.startswith("did") else ""
            raise ArgumentError(
                f"{option} must be one of the columns {', '.join(table.names)}, got {name!r}{hint}"
            )


def _positive(
    table: TextTable, outcome: str, positive: Sequence[str], said: list[str]
) -> np.ndarray:
    texts, counting = table.texts(outcome), {one.strip().casefold() for one in positive}
    found = np.array([float(text.casefold() in counting) for text in texts])
    absent = [text.lower() in MISSING and text.casefold() not in counting for text in texts]
    found[np.array(absent)] = np.nan
    if not np.any(found == 1.0):  # an error would tell of the one person who has it
        named = " or ".join(map(repr, positive))
        said.append(f"no cell of column {outcome!r} is {named}: all outcomes count as 0")
    return found


def _numbers(table: TextTable, name: str, said: list[str], is_outcome: bool) -> np.ndarray:
    found = table.entries(name)
    if found.all_absent:
        _refuse(name, bool(found.wrong.any()), is_outcome)
    if wrong := int(found.wrong.sum()):
        becomes = "add nothing" if is_outcome else "count as 0"
        said.append(
            f"{wrong:,} of {found.wrong.size:,} cells of column {name!r} are no numbers, and"
            f" {becomes}"
        )
    if not is_outcome and (missing := int(found.missing.sum())):
        said.append(
            f"{missing:,} of {found.missing.size:,} cells of column {name!r} are empty, and count"
            " as 0"
        )
    return found.values


def _refuse(name: str, text: bool, is_outcome: bool) -> NoReturn:
    if not text:
        way = "name another --outcome" if is_outcome else f"leave it out with --ignore {name}"
        raise ArgumentError(
            f"TABLE's column {name!r} must hold numbers, got empty cells only: {way}"
        )
    way = "say which text counts as 1 with --positive" if is_outcome else "--ignore leaves it out"
    raise ArgumentError(
        f"TABLE's column {name!r} must hold numbers, got text only: {way}; numbers with a decimal"
        " comma, or with thousands marks, need --decimal or --thousands"
    )
