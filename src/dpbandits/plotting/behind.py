"""The numbers behind a figure, as files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ..errors import ArgumentError


def slug(name: str) -> str:
    """A name as part of that of a file, or of a column.

    >>> slug("Finite arms: 1-zCDP")
    'finite-arms-1-zcdp'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


class Behind(NamedTuple):
    """The numbers of a figure: columns of words say which series a row is of."""

    table: pd.DataFrame
    x: str = ""  # the column along the horizontal axis; empty where rows have names alone

    def save(self, path: Path) -> Path:
        """Write them: ``.csv`` has a row for each point, ``.dat`` is for pgfplots.

        A ``.dat`` has a column for each series, and for each end of its band or bar.

        Raises:
            ArgumentError: the path ends in neither.
        """
        if path.suffix == ".csv":
            self.table.to_csv(path, index=False)
        elif path.suffix == ".dat":
            path.write_text(self._pgfplots(), "utf-8")
        else:
            raise ArgumentError(f"path must end in .csv or .dat, got {path.name!r}")
        return path

    def _pgfplots(self) -> str:
        numbers = list(self.table.select_dtypes("number").columns)
        words = [name for name in self.table if name not in numbers and name != self.x]
        if not self.x:
            named = self.table[words].astype(str).agg(", ".join, axis=1)
            rows = self.table[numbers].set_axis([slug(str(one)) for one in numbers], axis=1)
            rows.insert(0, "name", [f"{{{_plain(one)}}}" for one in named])
            return _written(rows)
        numbers.remove(self.x)
        first, parts = numbers[0], []
        for key, rows in self.table.groupby(words, sort=False, observed=True):
            series = slug(" ".join(map(str, key))) or "y"
            ends = [name.removeprefix(f"{first}_") for name in numbers[1:]]
            names = [series, *(f"{series}-{slug(end)}" for end in ends)]
            again = rows.groupby(self.x).cumcount().rename("")  # series of one name share columns
            at = rows.set_index([self.x, again])
            parts.append(at[numbers].set_axis(names, axis=1))
        found = pd.concat(parts, axis=1).sort_index()
        return _written(found.reset_index(level=1, drop=True).reset_index())


def _plain(words: str) -> str:
    """Words that TeX takes as they are."""
    return re.sub(r"[\\{}$&#^_%~]", " ", words)


def _written(table: pd.DataFrame) -> str:
    rows = [list(map(str, table.columns))]
    rows += [[str(cell) for cell in row] for row in table.itertuples(index=False)]
    return "".join(" ".join(row) + "\n" for row in rows)
