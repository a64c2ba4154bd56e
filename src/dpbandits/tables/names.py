"""Columns of names: which of some names stands in each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..validation import numeric

_LISTED = 20  # names in a message
_TRUTH = {"true": 1.0, "false": 0.0}  # which readers of text files take for booleans


def listed(column: Any) -> list[Any]:
    """The entries of an array, a pandas or Arrow column, or a list; none where it has no rows."""
    if hasattr(column, "__array__"):  # in bulk, which Arrow's own lists are not
        array = column if isinstance(column, np.ma.MaskedArray) else np.asarray(column)
        return array.tolist() if array.ndim == 1 else []
    flat = hasattr(column, "__len__") and not isinstance(column, str | bytes)
    return list(column) if flat else []


def numbered(
    argument: str, given: Any, names: Sequence[str], *, at: str = "", source: str = "names"
) -> np.ndarray | None:
    """The places in ``names`` of what stands in each row, shape (n,); None where a column holds no
    text: then the caller reads numbers.

    Errors begin with ``argument``; ``at`` says where the column stands, as in "column 'group'", and
    ``source`` what the caller calls ``names``.

    Raises:
        ArgumentError: a row of a column of text holds none of the names; or no row holds text,
            and a name reads as the number of another.
    """
    rows = listed(given)
    place = f"{argument} ({at})" if at else argument
    if not any(isinstance(one, str) for one in rows):
        if rows and (odd := _misleading(names)) is not None:
            raise ArgumentError(
                f"{place} must hold names as text, because {names[odd]!r} of {source} reads as"
                f" the number of another arm, while its own is {odd}; got numbers, which may be"
                " either",
                argument,
            )
        return None
    places = {name: place for place, name in enumerate(names)}
    found = np.array([places.get(one, -1) if isinstance(one, str) else -1 for one in rows])
    if (found < 0).any():
        first, more = int((found < 0).argmax()), int((found < 0).sum()) - 1
        known = ", ".join(map(repr, names[:_LISTED])) + (", ..." if len(names) > _LISTED else "")
        raise ArgumentError(
            f"{place} must hold one of {source}, {known}, got {_kind(rows[first])} in row {first}"
            + (f", and in {more:,} more" if more else ""),
            argument,
        )
    return found.astype(np.int64)


def is_missing(entry: Any) -> bool:
    """Whether nothing stands there; lists and arrays are something."""
    if isinstance(entry, str | list | tuple | np.ndarray):
        return False
    found = numeric(entry)
    return not isinstance(found, str) and math.isnan(found)


def _kind(entry: Any) -> str:
    if isinstance(entry, str):
        return "another name"
    return "nothing" if is_missing(entry) else "no text"


def _misleading(names: Sequence[str]) -> int | None:
    """The place of a name that readers of text files turn into the number of another place."""
    for place, name in enumerate(names):
        read = _TRUTH.get(name.strip().lower())
        try:
            read = float(name) if read is None else read
        except ValueError:
            continue
        if read != place and read in range(len(names)):
            return place
    return None
