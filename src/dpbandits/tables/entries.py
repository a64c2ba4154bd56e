"""Find the numbers of an array entry by entry, by the rules of ``validation.numeric`` for one
number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeGuard

import numpy as np

from ..validation import numeric

_KINDS = {"c": "complex numbers", "M": "dates", "m": "durations", "S": "text", "U": "text"}


class Entries(NamedTuple):
    """An array of any shape, read entry by entry.

    Attributes:
        values: float64; NaN where an entry is no number.
        missing: which entries are missing.
        wrong: which entries are neither missing nor a number.
        kind: of the first wrong entry, in the plural, as in "text"; empty where there is none.
        typed: whether the type of the array says that it holds numbers, missing ones or not.
    """

    values: np.ndarray
    missing: np.ndarray
    wrong: np.ndarray
    kind: str = ""
    typed: bool = False

    @property
    def all_absent(self) -> bool:
        """Whether there are entries, but neither they nor their type are numbers."""
        if self.typed or self.values.size == 0:
            return False
        return bool(np.all(self.missing | self.wrong))

    def column(self, j: int) -> Entries:
        """One column of a table."""
        wrong = self.wrong[:, j]
        kind = self.kind if wrong.any() else ""
        return Entries(self.values[:, j], self.missing[:, j], wrong, kind, self.typed)


def entries(given: object) -> Entries | None:
    """Read an array, a pandas or Arrow column or frame, or a list (of lists).

    Returns:
        None where rows have several lengths.
    """
    if hasattr(given, "tocsr") and hasattr(given, "nnz"):  # sparse
        array = np.empty((), object)
        array[()] = given
        return _of_objects(array)
    masked = None
    try:
        if _is_masked(given):
            given = np.ma.stack(given) if isinstance(given, list | tuple) else given
            masked = np.ma.getmaskarray(given)
        array = np.asarray(_plain(given))
        if array.dtype.kind in "SUcmM" and isinstance(given, list | tuple):
            # NumPy makes one kind of all entries, so that one would decide what the others are.
            cells = _cells(given, array.ndim)
            array = array if cells is None else cells
        elif array.dtype.kind in "SUc" and not isinstance(given, np.ndarray):
            plain = given.astype(object) if hasattr(given, "astype") else given
            array = np.asarray(plain, dtype=object)
        if array.dtype.kind == "O" and array.ndim == 1 and any(map(_is_row, array)):
            return None
    except (ValueError, TypeError):  # the latter of kinds that NumPy cannot join
        return None
    found = _of_array(array)
    if masked is None:
        return found
    values, wrong = np.where(masked, np.nan, found.values), found.wrong & ~masked
    kind = found.kind if wrong.any() else ""
    return Entries(values, found.missing | masked, wrong, kind, found.typed)


def nested(given: object, axes: int | None = None) -> Entries | None:
    """Entries of cells or rows with any content, for a caller that may not refuse it.

    A cell that holds a list is no number, and a row that is none holds missing entries only.

    Args:
        given: lists, arrays or columns of cells (one axis) or of rows (two).
        axes: how many there are; by default one where a number stands beside the rest.

    Returns:
        None where rows have several lengths, or none of them is a row.
    """
    if axes is None:
        top = _cells(given, 1)
        found = [] if top is None else map(numeric, top)
        axes = 1 if any(isinstance(one, float) and one == one for one in found) else 2
    cells = _cells(given, axes)
    return None if cells is None else _of_objects(cells)


def as_numbers(given: object) -> np.ndarray:
    """Read numbers of any shape, for a caller that may not refuse an entry.

    Returns:
        The numbers, with NaN for other entries.  If rows differ in length, an array of objects
        without axes.  Lists in cells are no numbers.
    """
    if not _is_masked(given):
        try:
            array = np.asarray(given)
        except (ValueError, TypeError):
            array = np.array(None)
        if array.dtype.kind in "biuf":
            return array
    found = entries(given) or nested(given)
    return np.array(None) if found is None else found.values


def _is_masked(given: object) -> TypeGuard[list[object] | tuple[object, ...] | np.ma.MaskedArray]:
    """Whether an array or a row of a list is masked, which NumPy would overlook."""
    if isinstance(given, list | tuple):
        return any(isinstance(one, np.ma.MaskedArray) for one in given)
    return isinstance(given, np.ma.MaskedArray)


def _of_array(array: np.ndarray) -> Entries:
    if array.dtype.kind in "biuf":
        values = np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
        return Entries(values, np.isnan(values), np.zeros(array.shape, bool), typed=True)
    if array.dtype.kind != "O":
        absent = np.isnat(array) if array.dtype.kind in "mM" else np.zeros(array.shape, bool)
        kind = _KINDS.get(array.dtype.kind, "other things")
        return Entries(np.full(array.shape, np.nan), absent, ~absent, kind)
    return _of_objects(array)


def _of_objects(array: np.ndarray) -> Entries:
    flat = [numeric(entry) for entry in array.ravel().tolist()]
    numbers = [np.nan if isinstance(one, str) else one for one in flat]
    values = np.array(numbers, np.float64).reshape(array.shape)
    wrong = np.array([isinstance(one, str) for one in flat], bool).reshape(array.shape)
    kind = next((one for one in flat if isinstance(one, str)), "")
    return Entries(values, np.isnan(values) & ~wrong, wrong, kind)


def _plain(given: object) -> object:
    """Arrow chunks and scalars in lists as Python objects; everything else as it is."""
    if hasattr(given, "to_pylist"):
        kind = str(getattr(given, "type", ""))
        return given.to_pylist() if "list" in kind or "decimal" in kind else given
    return given


def _cells(given: object, axes: int) -> np.ndarray | None:
    """An array of objects with the given number of axes; its cells may hold nested objects."""
    if not _is_listed(given):
        return None
    rows = [*given]
    if axes == 1:
        cells = np.empty(len(rows), dtype=object)
        for i, one in enumerate(rows):
            cells[i] = one
        return cells
    inner = [_cells(row, axes - 1) for row in rows]
    shapes = {part.shape for part in inner if part is not None}
    if len(shapes) != 1:
        return None
    blank = np.full(shapes.pop(), None)
    return np.stack([blank if part is None else part for part in inner])


def _is_listed(given: object) -> TypeGuard[Iterable[object]]:
    """Whether this holds entries in an order; a frame holds columns, and no rows."""
    if isinstance(given, str | bytes | dict | set | frozenset) or hasattr(given, "columns"):
        return False
    in_order = hasattr(given, "__len__") and hasattr(given, "__iter__")
    return in_order and getattr(given, "ndim", 1) > 0


def _is_row(entry: object) -> bool:
    return isinstance(entry, list | tuple | np.ndarray) and getattr(entry, "ndim", 1) > 0
