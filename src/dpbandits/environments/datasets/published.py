"""Data sets that others publish and that users bring themselves: their files, checked and read."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from hashlib import sha256
from io import StringIO
from pathlib import Path

import pandas as pd

from ...errors import ArgumentError


def read_files(
    folder: str | os.PathLike[str], digests: Mapping[str, str], instructions: str, *, check: bool
) -> dict[str, bytes]:
    """The content of the files that ``digests`` names; with ``check``, only as published."""
    contents = {}
    for name, digest in digests.items():
        try:
            contents[name] = (Path(folder) / name).read_bytes()
        except (OSError, TypeError, ValueError) as error:
            given = str(folder) if isinstance(folder, Path) else folder
            raise ArgumentError(
                f"folder must hold {name}, got {given!r} ({error}).  {instructions}", "folder"
            ) from error
        found = sha256(contents[name]).hexdigest()
        if check and found != digest:
            raise ArgumentError(
                f"folder must hold {name} as published, got {len(contents[name]):,} bytes with"
                f" SHA-256 {found} instead of {digest}: the file is damaged, cut short or another"
                f" edition.  Get it again, or take it as it is with check=False.  {instructions}",
                "folder",
            )
    return contents


def checksum(files: Mapping[str, bytes]) -> str:
    """Eight digits that tell the contents of files from others."""
    digest = sha256()
    for name, content in files.items():
        digest.update(f"{name} {sha256(content).hexdigest()} ".encode())
    return digest.hexdigest()[:8]


def table(
    files: Mapping[str, bytes],
    name: str,
    columns: Mapping[str, type],
    *,
    separator: str = "\t",
    header: bool = False,
    encoding: str = "utf-8",
) -> pd.DataFrame:
    """A file of separated values without quoting, with just these columns in every line."""
    try:
        text = files[name].decode(encoding).replace("\r\n", "\n").rstrip("\n")
        lines = text.split("\n")
        # pandas would fill up what is missing and drop what is too much
        for number, line in enumerate(lines, 1):
            if (count := line.count(separator) + 1) != len(columns):
                raise _Malformed(f"line {number} has {count} values")
        if header and lines[0] != separator.join(columns):
            raise _Malformed("another first line")
        return pd.read_csv(
            StringIO(text),
            sep=separator,
            lineterminator="\n",
            quoting=csv.QUOTE_NONE,
            names=list(columns),
            header=0 if header else None,
            dtype=dict(columns),
            keep_default_na=False,
        )
    except (ValueError, OverflowError) as error:  # of which pandas' words may quote a cell
        got = str(error) if isinstance(error, _Malformed) else "an entry of another type"
        raise ArgumentError(
            f"folder must hold {name} with the columns {', '.join(columns)}, got: {got}", "folder"
        ) from None


class _Malformed(ValueError):
    """A table without its shape, in words that quote nothing."""


def require_known(name: str, values: pd.Series, known: pd.Series, source: str) -> None:
    """Refuse values that the other table does not list."""
    unknown = values[~values.isin(known)]
    if len(unknown):
        raise ArgumentError(
            f"folder must hold {name} with each {values.name} also in {source}, got"
            f" {len(unknown):,} that {source} lacks",
            "folder",
        )
