"""Columns and tables of numbers, in the manner of a caller, and columns of names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..validation import numeric
from .entries import Entries, entries, nested
from .manners import LARGEST, Manner

_LISTED = 20  # names in a message
_TRUTH = {"true": 1.0, "false": 0.0}  # which readers of text files take for booleans
_NO_ROWS = (str, bytes, dict, set, np.ma.MaskedArray)

TableLike = ArrayLike | Sequence[object]
"""What is read as numbers: arrays, lists, columns and frames of pandas, Polars or Arrow.  Any entry
may be missing."""


class Frame(Protocol):
    """A table by its columns: a frame of pandas or Polars, a table of Arrow, or a dictionary."""

    def __getitem__(self, name: str, /) -> TableLike: ...


def column(frame: Frame, name: str, *, argument: str = "frame", by: str = "column") -> TableLike:
    """Find a column of a pandas or Arrow table, or of a dictionary.

    ``argument`` is the caller's name for the table, ``by`` that for the argument with the column's
    name.

    Raises:
        ArgumentError: the table has no such column; the message lists its columns.  Or the name is
            no text; the message does not show it, as it may be the column itself.
    """
    if not isinstance(name, str | int):
        raise ArgumentError(
            f"{by} must be the name of a column of {argument}, got {_shape(name)}", by
        )
    try:
        return frame[name]
    except (KeyError, IndexError, TypeError, ValueError):
        pass
    known = column_names(frame)
    has = f", and has {', '.join(map(repr, known[:20]))}" if known else ""
    got = f", got {_shape(frame)}" if known is None else has
    raise ArgumentError(f"{argument} must have a column {name!r}{got}", argument)


def column_names(frame: object) -> list[object] | None:
    """List the column names of a pandas or Arrow table, or of a dictionary.

    Returns:
        The names, in order; None for other objects.
    """
    if isinstance(frame, dict):
        return list(frame)
    known = getattr(frame, "column_names", None)
    known = getattr(frame, "columns", None) if known is None else known
    return None if known is None else list(known)


def flat(
    argument: str, given: TableLike, manner: Manner, *, at: str = "", rows: int | None = None
) -> np.ndarray:
    """Read a column of one number per row.

    Args:
        argument: as the caller knows it; errors begin with it.
        given: an array, a pandas or Arrow column, or a list.
        manner: which entries are refused.
        at: where the column stands, as in "column 'paid'".
        rows: how many there must be.

    Returns:
        Shape (n,), float64; NaN for missing and wrong entries that ``manner`` keeps.

    Raises:
        ArgumentError: the shape is wrong, or an entry is refused.  The message gives the row,
            counted from 0, and never the entry.
    """
    found = entries(given) or (nested(_in_rows(given), 1) if manner.takes_all else None)
    if found is not None and found.values.ndim == 2 and found.values.shape[1] == 1:
        found = found.column(0)
    if found is None or found.values.ndim != 1:
        shape = "rows of different lengths" if found is None else f"shape {found.values.shape}"
        raise ArgumentError(f"{_place(argument, at)} must be a column, got {shape}", argument)
    if rows is not None and found.values.size != rows:
        raise ArgumentError(
            f"{_place(argument, at)} must have {rows} rows, got {found.values.size}", argument
        )
    if manner.typed and found.all_absent and (manner.wrong == "keep" or not found.wrong.any()):
        _refuse_type(_place(argument, at), found, argument)
    return _accepted(argument, found, manner, at)


def _is_plain(array: np.ndarray) -> bool:
    """Whether an array is a matrix of floats already."""
    return array.dtype == np.float64 and array.ndim == 2 and array.size > 0


def table(
    argument: str, given: TableLike, manner: Manner, *, names: Sequence[str] | None = None
) -> np.ndarray:
    """Read a table of numbers; ``names`` are those of columns, for messages.

    Returns:
        Shape (n, d), n and d at least 1; NaN as of ``flat``.

    Raises:
        ArgumentError: as for ``flat``; or the table is sparse.
    """
    if manner.takes_all and type(given) is np.ndarray and _is_plain(given):
        return np.ascontiguousarray(given)  # in a microsecond, for predictions one at a time
    if hasattr(given, "tocsr"):
        raise ArgumentError(
            f"{argument} must be dense, got a sparse table: pass {argument}.toarray()", argument
        )
    given = _framed(given)
    found = entries(given) or (nested(given, 2) if manner.takes_all else None)
    if found is None or found.values.ndim != 2 or found.values.size == 0:
        shape = "rows of different lengths" if found is None else f"shape {found.values.shape}"
        raise ArgumentError(
            f"{argument} must be a table of shape (n, d), n and d at least 1, got {shape}", argument
        )
    names = _names(given) if names is None else names
    if manner.typed and not found.typed and (manner.wrong == "keep" or not found.wrong.any()):
        for j in range(found.values.shape[1]):
            if (one := found.column(j)).all_absent:
                place = f"column {j}" if names is None else f"column {names[j]!r}"
                _refuse_type(_place(argument, place), one, argument)
    return _accepted(argument, found, manner, "", names)


def blocks(
    argument: str, given: TableLike, manner: Manner, *, at: str = "", rows: int | None = None
) -> np.ndarray | list[np.ndarray]:
    """A vector or a matrix of numbers in each row.

    Args:
        argument, manner, at, rows: as for ``flat``.
        given: an array, a list of arrays, or a column of nested lists.

    Returns:
        One array, shape (n, ...), where all rows have one shape; otherwise an array for each row,
        without axes where a row that is kept holds none.

    Raises:
        ArgumentError: as for ``flat``; or a row has lines of several lengths.
    """
    given = _framed(given)
    plain = _nested(given.to_pylist() if hasattr(given, "to_pylist") else given)
    place = _place(argument, at)
    try:
        count = len(plain)
    except TypeError:
        raise ArgumentError(f"{place} must be a column, got {_shape(given)}", argument) from None
    if rows is not None and count != rows:
        raise ArgumentError(f"{place} must have {rows} rows, got {count}", argument)
    whole = entries(plain)
    if whole is not None and whole.values.ndim > 1:
        return _accepted(argument, whole, manner, at)
    found = []
    for i, one in enumerate(plain):
        block = None if one is None else entries(one)
        if block is None or block.values.ndim == 0:
            if manner.takes_all:
                found.append(np.array(np.nan))
                continue
            got = "is missing" if one is None else "holds something else"
            raise ArgumentError(
                f"{place} must hold arrays of numbers, but row {i} (from 0) {got}", argument
            )
        found.append(_accepted(argument, block, manner, at, within=(i,)))
    return found


def array(argument: str, given: TableLike, manner: Manner, *axes: str) -> np.ndarray:
    """Read numbers with named axes, as in "T, K, d"; several shapes may be allowed.

    Returns:
        An array of one of these shapes, with no empty axis.

    Raises:
        ArgumentError: as for ``table``.
    """
    found = entries(given := _framed(given))
    allowed = [one.count(",") + 1 for one in axes]
    if found is None or found.values.ndim not in allowed or found.values.size == 0:
        shape = "rows of different lengths" if found is None else f"shape {found.values.shape}"
        shape = "none" if shape == "shape ()" else shape
        wanted = " or ".join(f"({one})" for one in axes)
        raise ArgumentError(
            f"{argument} must be an array of numbers of shape {wanted}, and not empty, got {shape}",
            argument,
        )
    return _accepted(argument, found, manner, "", _names(given))


def refuse(argument: str, given: TableLike, manner: Manner) -> None:
    """Raise an error on the first entry of an array, of any shape, that the manner refuses.

    Raises:
        ArgumentError: there is such an entry; the message gives its place.
    """
    given = _framed(given)
    found = entries(given) or nested(given)
    if found is not None:
        _accepted(argument, found, manner, "", _names(given))


def features(argument: str, given: TableLike, largest: float = LARGEST) -> np.ndarray:
    """Read fixed public features of arms.

    Returns:
        Shape (K, d), K and d at least 1: a read-only copy of numbers in [-largest, largest].

    Raises:
        ArgumentError: as for ``table``.
    """
    return frozen(table(argument, given, Manner(low=-largest, high=largest)))


def frozen(values: np.ndarray) -> np.ndarray:
    """A read-only C-contiguous copy."""
    copy = np.array(values, order="C")
    copy.flags.writeable = False
    return copy


def listed(column: object) -> list[object]:
    """List the entries of an array, a pandas or Arrow column, or a list.

    Returns:
        The entries; empty if it has no rows.
    """
    if hasattr(column, "__array__"):  # in bulk, which Arrow's own lists are not
        array = column if isinstance(column, np.ma.MaskedArray) else np.asarray(column)
        return array.tolist() if array.ndim == 1 else []
    has_rows = hasattr(column, "__len__") and not isinstance(column, str | bytes)
    return list(column) if has_rows else []  # type: ignore[call-overload]


def numbered(
    argument: str, given: TableLike, names: Sequence[str], *, at: str = "", source: str = "names"
) -> np.ndarray | None:
    """Position in ``names`` of each row's text, shape (n,).

    Args:
        argument: as the caller knows it; errors begin with it.
        given: an array, a pandas or Arrow column, or a list.
        names: the allowed texts.
        at: where the column stands, as in "column 'group'".
        source: the caller's name for ``names``.

    Returns:
        The positions, or None if the column holds no text: then the caller reads numbers.

    Raises:
        ArgumentError: a row of a column of text holds none of the names; or no row holds text,
            and a name reads as the number of another.
    """
    rows = listed(given)
    place = _place(argument, at)
    if not any(isinstance(one, str) for one in rows):
        if rows and (odd := _misleading(names)) is not None:
            raise ArgumentError(
                f"{place} must hold names as text, got numbers: in {source}, the name"
                f" {names[odd]!r} belongs to arm {odd}",
                argument,
            )
        return None
    places = {name: place for place, name in enumerate(names)}
    found = np.array([places.get(one, -1) if isinstance(one, str) else -1 for one in rows])
    if (found < 0).any():
        first = int((found < 0).argmax())
        known = ", ".join(map(repr, names[:_LISTED])) + (", ..." if len(names) > _LISTED else "")
        others = int((found < 0).sum()) - 1
        more = f", and {others:,} more cell{'s hold' if others > 1 else ' holds'} none of them"
        raise ArgumentError(
            f"{place} must hold names of {source} ({known}); row {first} (from 0) holds"
            f" {_kind(rows[first])}{more if others else ''}",
            argument,
        )
    return found.astype(np.int64)


def is_missing(entry: object) -> bool:
    """Whether an entry is missing; lists and arrays are not."""
    if isinstance(entry, str | list | tuple | np.ndarray):
        return False
    found = numeric(entry)
    return not isinstance(found, str) and math.isnan(found)


def _framed(given: TableLike) -> TableLike:
    """A table of Arrow as a data frame; everything else as it is."""
    if hasattr(given, "to_pandas") and hasattr(given, "column_names"):
        frame: TableLike = given.to_pandas()
        return frame
    return given


def _in_rows(given: TableLike) -> TableLike:
    """A column without the rows of one entry in which some of it may stand."""
    if not isinstance(given, list | tuple):
        return given
    return [one[0] if isinstance(one, list | tuple) and len(one) == 1 else one for one in given]


def _nested(column: Any) -> Any:
    """Lists of lists of what stands in arrays of arrays, as a data frame holds them."""
    if hasattr(column, "columns") or (isinstance(column, np.ndarray) and column.dtype != object):
        return column
    if hasattr(column, "__len__") and not isinstance(column, _NO_ROWS):
        return [_nested(one) for one in column]
    return column


def _accepted(
    argument: str,
    found: Entries,
    manner: Manner,
    at: str,
    names: Sequence[str] | None = None,
    *,
    within: tuple[int, ...] = (),
) -> np.ndarray:
    values = found.values
    if manner.takes_all:
        return values
    with np.errstate(invalid="ignore"):
        infinite = np.isinf(values)
        below = values <= manner.low if manner.open_low else values < manner.low
        bad = (below | (values > manner.high)) & ~np.isnan(values)
        if manner.whole:
            bad |= np.isfinite(values) & (values != np.rint(values))
    troubles = [
        (found.wrong, manner.wrong, found.kind),
        (found.missing, manner.missing, "NaN or nothing"),
        (infinite, manner.infinite, "an infinite number"),
        (bad & ~infinite, "refuse", "another number"),
    ]
    for where, answer, got in troubles:
        if answer == "refuse" and where.any():
            if manner.shown and got == "another number":
                got = f"{values[where][0]:g}"
            raise ArgumentError(
                f"{_place(argument, at)} must hold {manner.wanted}, got {got} in"
                f" {_row((*within, *np.argwhere(where)[0]), names)}{_more(int(where.sum()))}",
                argument,
            )
    return values


def _refuse_type(place: str, found: Entries, argument: str) -> NoReturn:
    kind = f"{found.kind} only" if found.wrong.any() else "missing values only"
    raise ArgumentError(f"{place} must hold numbers, got {kind}", argument)


def _names(given: object) -> list[str] | None:
    return list(map(str, given.columns)) if hasattr(given, "columns") else None


def _shape(given: object) -> str:
    """Describe the type of an object, and never its contents."""
    shape = getattr(given, "shape", ())
    return type(given).__name__ + (f" of shape {shape}" if shape != () else "")


def _place(argument: str, at: str) -> str:
    return f"{argument} ({at})" if at else argument


def _row(index: Sequence[int], names: Sequence[str] | None) -> str:
    if len(index) < 2:
        return f"row {int(index[0])}" if len(index) else "it"
    row, *rest = map(int, index)
    if names is not None and len(rest) == 1:
        return f"row {row} of column {names[rest[0]]!r}"
    return f"row {row}, column {rest[0]}" if len(rest) == 1 else f"entry {(row, *rest)}"


def _more(count: int) -> str:
    cells = "cell" if count == 2 else "cells"
    return "" if count == 1 else f", and in {count - 1:,} more {cells}"


def _kind(entry: object) -> str:
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
