"""Text tables as spreadsheets and databases export them: read as text first, then as numbers.

Every row must have as many cells as the header: a malformed row never moves another.  Cells
are read as numbers only where the whole cell is one: digits, a decimal mark, an exponent, and
thousands marks between groups of three.
"""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import ArgumentError
from .entries import Entries

MISSING = frozenset({"", ".", "?", "na", "n/a", "#n/a", "nan", "null", "none", "\\n", "<na>"})
_UNQUOTED = "a broken quotation: a cell that begins with a quotation mark must end with one"
_BOOLEANS = {"true": 1.0, "false": 0.0}
_SEPARATORS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}


@dataclass(frozen=True)
class TextTable:
    """The cells of a file.

    Attributes:
        path: of the file.
        names: of the columns; "0", "1", ... where the file has no header.
        cells: a list for each row, as long as ``names``.
        lines: on which line of the file each row begins, from 1.
        nameless: how many columns without a name were left out.
        decimal, thousands: the marks within numbers.
    """

    path: Path
    names: tuple[str, ...]
    cells: list[list[str]]
    lines: list[int]
    nameless: int
    decimal: str
    thousands: str

    @property
    def left_out(self) -> str:
        """A note on columns without a name; empty if there are none."""
        were = "s without a name were" if self.nameless > 1 else " without a name was"
        return f"{self.nameless} column{were} left out" if self.nameless else ""

    def texts(self, name: str) -> list[str]:
        """A column as text."""
        j = self.names.index(name)
        return [row[j] for row in self.cells]

    def entries(self, name: str) -> Entries:
        """A column as numbers; see ``tables.entries``.

        >>> cells = [["1.234,5"], ["NA"], ["none of it"]]
        >>> found = TextTable(Path("a.csv"), ("a",), cells, [2, 3, 4], 0, ",", ".").entries("a")
        >>> found.values.tolist(), found.missing.sum(), found.wrong.sum()
        ([1234.5, nan, nan], np.int64(1), np.int64(1))
        """
        texts, marks = self.texts(name), (self.decimal, self.thousands)
        shape = _shape_of_numbers(*marks)
        known = {cell: _parsed(cell, shape, *marks) for cell in set(texts)}  # cells repeat
        parsed = [known[cell] for cell in texts]
        values = np.array(parsed, np.float64)  # None becomes NaN
        wrong = np.array([one is None for one in parsed], bool)
        kind = "text" if wrong.any() else ""
        return Entries(values, np.isnan(values) & ~wrong, wrong, kind)


def read_text_table(
    argument: str,
    path: str | os.PathLike[str],
    *,
    separator: str = ",",
    decimal: str = ".",
    thousands: str = "",
    header: bool | None = None,
) -> TextTable:
    """The table in a file of text: UTF-8 with or without a mark, or UTF-16 with one.

    Args:
        argument: as the caller knows the file; errors begin with it.
        path: of the file.
        separator: one character between cells; "tab" is allowed.
        decimal: the mark before decimals.
        thousands: the mark between groups of three digits; empty for none.
        header: whether the first line names the columns.  By default it does, and is refused where
            a cell looks like a number, since it may be somebody's record.

    Raises:
        ArgumentError: the file cannot be read, has no header or no rows, names two columns alike,
            or has a row of another length, whose line the message names.
    """
    separator = "\t" if separator in ("tab", "\\t") else separator
    _check_marks(separator, decimal, thousands)
    text = _text(argument, path)
    first, _, rest = text.partition("\n")
    mark = re.fullmatch(r'"?sep=(.)"?\s*', first, re.I)  # as spreadsheets write it
    if mark is not None:
        separator, text = mark[1], rest
    skipped = int(mark is not None)
    rows, lines = _rows(argument, path, text, separator, skipped)
    if not rows:
        raise ArgumentError(f"{argument} must have rows, got an empty file: {path}", argument)
    if header is None:
        _refuse_record(argument, path, rows[0], decimal, thousands)
        header = True
    width = len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise ArgumentError(
                f"{argument} must have {width} cell{'s' * (width != 1)} in each row, as in the"
                f" first; line {line} of {path} has {len(row)}{_hint(rows[0], separator)}",
                argument,
            )
    names = rows.pop(0) if header else [str(j) for j in range(width)]
    lines = lines[1:] if header else lines
    if not rows:
        raise ArgumentError(
            f"{argument} must have rows below its header, got none: {path}", argument
        )
    kept = [j for j, name in enumerate(names) if name]
    _check_names(argument, path, [names[j] for j in kept], separator)
    cells = rows if len(kept) == width else [[row[j] for j in kept] for row in rows]
    found = tuple(names[j] for j in kept)
    return TextTable(Path(path), found, cells, lines, width - len(kept), decimal, thousands)


def read_numbers(argument: str, path: str | os.PathLike[str], **marks: str) -> np.ndarray:
    """Read a file of public numbers.  Its first line is a header if it holds text and no number.

    Args:
        argument, path, marks: as for ``read_text_table``.

    Returns:
        Shape (rows, columns), float64.  Columns without a name are left out, with a Python warning.

    Raises:
        ArgumentError: as for ``read_text_table``; or a cell is no finite number, whose line and
            column the message names.
    """
    text = read_text_table(argument, path, header=False, **marks)
    parts = [text.entries(name) for name in text.names]
    named = any(part.wrong[0] for part in parts) and all(np.isnan(part.values[0]) for part in parts)
    if named and len(text.lines) > 1:
        text = read_text_table(argument, path, header=True, **marks)
        if text.nameless:
            warnings.warn(f"{argument}: {text.left_out} ({path})", stacklevel=2)
        parts = [text.entries(name) for name in text.names]
    for name, part in zip(text.names, parts, strict=True):
        bad = np.flatnonzero(~np.isfinite(part.values))
        if bad.size:
            kind = "no number" if part.wrong[bad[0]] else "an infinite number"
            kind = "nothing" if part.missing[bad[0]] else kind
            raise ArgumentError(
                f"{argument} must hold numbers, got {kind} on line {text.lines[bad[0]]} of {path},"
                f" column {name!r}",
                argument,
            )
    return np.column_stack([part.values for part in parts])


def _text(argument: str, path: str | os.PathLike[str]) -> str:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ArgumentError(
            f"{argument} must be a readable file, got {path}: {error.strerror}", argument
        ) from None
    marked = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        text = content.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError:
        raise ArgumentError(
            f"{argument} must be a text file in UTF-8, got {path}: export a spreadsheet as 'CSV"
            " UTF-8'",
            argument,
        ) from None
    if (before := text.find("\0")) >= 0:
        raise ArgumentError(
            f"{argument} must be a text file, got a NUL character on line"
            f" {1 + text.count(chr(10), 0, before)} of {path}",
            argument,
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _rows(
    argument: str, path: str | os.PathLike[str], text: str, separator: str, skipped: int
) -> tuple[list[list[str]], list[int]]:
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True, strict=True)
    rows, lines, begins = [], [], 1 + skipped
    try:
        for row in reader:
            rows.append(list(map(str.strip, row)))
            lines.append(begins)
            begins = reader.line_num + 1 + skipped
    except csv.Error as error:  # whose words may quote a cell
        long = "field limit" in str(error)
        got = f"a cell of more than {csv.field_size_limit():,} characters" if long else _UNQUOTED
        raise ArgumentError(
            f"{argument} must be a table of cells, got {got}; the row begins on line {begins} of"
            f" {path}",
            argument,
        ) from None
    return _without_empty_lines(rows, lines)


def _without_empty_lines(
    rows: list[list[str]], lines: list[int]
) -> tuple[list[list[str]], list[int]]:
    """Rows but for empty lines; among rows of one column such a line is a missing cell."""
    full = [i for i, row in enumerate(rows) if any(row) or len(row) > 1]
    if not full or len(rows[full[0]]) > 1:
        return [rows[i] for i in full], [lines[i] for i in full]
    given = [i for i, row in enumerate(rows) if row]  # a cell in quotation marks is there
    kept = slice(given[0], given[-1] + 1)
    return [row or [""] for row in rows[kept]], lines[kept]


def _refuse_record(
    argument: str, path: str | os.PathLike[str], first: list[str], decimal: str, thousands: str
) -> None:
    """Refuse a first line that may be somebody's record, and quote nothing of it."""
    shape = _shape_of_numbers(decimal, thousands)
    for cell in first:
        # Dates, amounts and marks that were not given are no names, either.
        signs_only = any(map(str.isdigit, cell)) and not any(map(str.isalpha, cell))
        if signs_only or shape.fullmatch(cell) or cell.lower() in _BOOLEANS:
            raise ArgumentError(
                f"{argument} must have a header that names its columns, got a number in the"
                f" first line of {path}. Give --no-header if that line is a record. Give --header"
                " if a name is a number",
                argument,
            )


def _check_marks(separator: str, decimal: str, thousands: str) -> None:
    if len(separator) != 1 or separator in '"\r\n':
        raise ArgumentError(
            f"separator must be one character or 'tab', got {separator!r}", "separator"
        )
    if decimal not in (".", ","):
        raise ArgumentError(f"decimal must be '.' or ',', got {decimal!r}", "decimal")
    if thousands not in ("", ",", ".", "'", "\u2019", " ", "\u00a0", "\u202f", "_"):
        raise ArgumentError(
            f"thousands must be one of , . ' _ or a space, got {thousands!r}", "thousands"
        )
    if thousands == decimal:
        raise ArgumentError(f"thousands must differ from decimal, got {thousands!r}", "thousands")


def _check_names(
    argument: str, path: str | os.PathLike[str], names: Sequence[str], separator: str
) -> None:
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise ArgumentError(
            f"{argument} must give each column its own name; {path} has two columns called"
            f" {twice[0]!r}",
            argument,
        )
    if not names:
        raise ArgumentError(f"{argument} must have a header that names columns: {path}", argument)


def _hint(header: Sequence[str], separator: str) -> str:
    others = [other for other in _SEPARATORS if other != separator]
    likely = next((one for one in others if any(one in name for name in header)), None)
    return "" if likely is None else f"; is {_SEPARATORS[likely]} the separator?"


def _shape_of_numbers(decimal: str, thousands: str) -> re.Pattern[str]:
    mark = re.escape(decimal)
    grouped = rf"|\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+" if thousands else ""
    return re.compile(rf"[+-]?(?:(?:\d+{grouped})(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?", re.A)


def _parsed(cell: str, shape: re.Pattern[str], decimal: str, thousands: str) -> float | None:
    """The number in a cell, NaN where it is missing, None where it is something else."""
    if shape.fullmatch(cell):
        plain = cell.replace(thousands, "") if thousands else cell
        return float(plain.replace(decimal, "."))
    lower = cell.lower()
    return np.nan if lower in MISSING else _BOOLEANS.get(lower)
