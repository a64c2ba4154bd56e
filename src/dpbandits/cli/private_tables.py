"""A private table in a file, for ``dpbandits estimate``: which columns count, and as what.

Cells are private, names of columns are not.  No message quotes a cell.  A column in which no cell
is a number is refused, since it would count as 0 for everybody; the guarantee lists the assumption.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..tables import Entries, TextTable
from ..tables.manners import LARGEST
from ..tables.text_tables import MISSING

_MARKS = "For decimal commas or thousands marks, use --decimal or --thousands"


class PrivateTable(NamedTuple):
    """Features and outcomes, with notes for the operator."""

    names: list[str]  # of the d features
    features: np.ndarray  # (n, d); NaN where a cell is no number
    outcomes: np.ndarray  # (n,), likewise
    said: list[str]  # sentences on cells; they depend on private data


def private_table(
    table: TextTable,
    outcome: str,
    *,
    positive: Sequence[str] = (),
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
) -> PrivateTable:
    """Select the columns of features and outcome.

    Args:
        table: all columns, as text.
        outcome: the column to explain.
        positive: texts of the outcome that count as 1, others as 0; empty where it holds numbers.
        features: the columns that explain; None for all others.
        ignore: columns to leave out.

    Raises:
        ArgumentError: a named column is missing, or a column holds no number.
    """
    _check_names(table, "--outcome", [outcome])
    _check_names(table, "--features", features or ())
    _check_names(table, "--ignore", ignore)
    others = [name for name in table.names if name not in {outcome, *ignore}]
    chosen = others if features is None else list(dict.fromkeys(features))
    if outcome in chosen or set(chosen) & set(ignore):
        raise ArgumentError("--features must name neither the outcome nor an ignored column")
    if not chosen and features is not None:
        raise ArgumentError(
            "--features must name a column, got none. Without --features all columns count, except"
            " the outcome and ignored ones"
        )
    if not chosen:
        raise ArgumentError(f"TABLE must have a column of features besides {outcome!r}")
    said: list[str] = []
    y = _positive(table, outcome, positive, said) if positive else _numbers(table, outcome, said)
    if missing := int(np.isnan(y).sum()):
        said.append(f"{missing:,} of {y.size:,} people have no outcome, and add nothing")
    columns = {name: table.entries(name) for name in chosen}
    _refuse_without_numbers(columns)
    for name, found in columns.items():
        _say(said, found.wrong, f"cells of column {name!r} are no numbers, and count as 0")
        _say(said, found.missing, f"cells of column {name!r} are empty, and count as 0")
    values = np.column_stack([found.values for found in columns.values()])
    beyond = np.abs(values) > LARGEST
    _say(said, beyond, f"cells are beyond {LARGEST:g}, and count as 0")
    values[beyond] = np.nan
    return PrivateTable(chosen, values, y, said)


def listed(names: str) -> list[str]:
    """Names separated by commas; put a name with a comma in quotes.

    >>> listed('age, "dose, in mg"')
    ['age', 'dose, in mg']
    """
    rows = csv.reader([names], skipinitialspace=True)
    return [name.strip() for row in rows for name in row]


def _in_a_list(name: str) -> str:
    """A name as ``listed`` reads it."""
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow([name])
    return written.getvalue()


def _check_names(table: TextTable, option: str, names: Sequence[str]) -> None:
    for name in names:
        if name not in table.names:
            from ..validation import close_name

            near = close_name(name, table.names)
            hint = f"; {near}" if near.startswith("did") else ""
            if len(table.names) == 1:
                hint += "; is --separator right?"
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


def _numbers(table: TextTable, outcome: str, said: list[str]) -> np.ndarray:
    found = table.entries(outcome)
    if found.all_absent:
        got = "text" if found.wrong.any() else "empty cells"
        raise ArgumentError(
            f"--outcome must name a column of numbers, got only {got} in {outcome!r}. Use"
            f" --positive to name the text that counts as 1. {_MARKS}"
        )
    _say(said, found.wrong, f"cells of column {outcome!r} are no numbers, and add nothing")
    return found.values


def _refuse_without_numbers(columns: dict[str, Entries]) -> None:
    bad = [name for name, found in columns.items() if found.all_absent]
    if not bad:
        return
    several = len(bad) > 1
    named = ", ".join(map(_in_a_list, bad))
    raise ArgumentError(
        f"TABLE must hold numbers, got text or only empty cells in the column{'s' * several}"
        f" {named}. Leave {'them' if several else 'it'} out with --ignore, or name"
        f" other columns with --features. {_MARKS}"
    )


def _say(said: list[str], where: np.ndarray, words: str) -> None:
    if count := int(where.sum()):
        said.append(f"{count:,} of {where.size:,} {words}")
