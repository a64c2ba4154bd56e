"""Folders of decision logs: which columns their files have, and how they become one table.

A decision may be written more than once: when it is made, and when its reward is known, by then
maybe into another file.  Rows of one ``life`` and ``number`` are one decision, and later rows
complete earlier ones.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..policies.watch import LOGGER

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FILE = "decisions-{}-{:08d}.parquet"  # by writer; names sort by the time of its beginning
_FILES = "decisions-*.parquet"  # not drafts, whose names begin with a dot
COLUMNS = ("life", "number", "time", "arm", "name", "propensity", "recorded", "features", "reward")
_TELLING = {"life", "number", "time", "arm", "recorded"}  # by which a log of decisions is known


_REWARDS = b"rewards"  # in the metadata of a file: whether rewards may be in it


def schema(*, rewards: bool = False) -> pa.Schema:
    """The columns of every file, whatever was asked for."""
    import pyarrow as pa

    kinds = {
        "life": pa.string(),
        "number": pa.int64(),
        "time": pa.float64(),
        "arm": pa.int64(),
        "name": pa.string(),
        "propensity": pa.float64(),
        "recorded": pa.bool_(),
        "features": pa.list_(pa.list_(pa.float64())),
        "reward": pa.float64(),
    }
    return pa.schema([(name, kinds[name]) for name in COLUMNS], {_REWARDS: str(rewards)})


def read_logs(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The decisions that ``DecisionLog`` has written into a folder: one row for each.

    ``fit_logs`` takes the folder itself.  Other readers of Parquet find a decision twice that was
    written before and after its reward came.

    Args:
        folder: where ``DecisionLog`` wrote, also with an earlier version of this package.

    Returns:
        A table with the columns ``life`` (of the policy, from its construction or loading on),
        ``number`` (of the pull), ``time`` (of the first writing), ``arm``, ``name``,
        ``propensity``, ``recorded``, ``features`` and ``reward``; life by life, in the order of
        pulls.  Entries are missing that nobody wrote.  Rewards are left out whose decisions were
        never written; the operator's log says how many.

    Raises:
        ArgumentError: the folder holds no such files, or a damaged one.

    Example:
        >>> import tempfile
        >>> from dpbandits import ZCDP, DecisionLog, MergedIMED
        >>> policy, folder = MergedIMED(2, budget=ZCDP(0.5), seed=1), tempfile.mkdtemp()
        >>> log = DecisionLog(folder, policy, rewards=True)
        >>> decision = policy.pull()
        >>> log.write(decision)
        >>> log.flush()  # it is in a file
        >>> log.write(decision.token, reward=1.0)  # another request, later
        >>> log.flush()
        >>> read_logs(folder)[["number", "arm", "reward"]].to_numpy().tolist()
        [[0.0, 0.0, 1.0]]
    """
    return read_table("folder", folder).to_pandas()


def read_table(argument: str, folder: str | os.PathLike[str], *, rewards: bool = False) -> pa.Table:
    """The same as an Arrow table; errors begin with the argument.  With ``rewards`` a log that was
    made without them is refused, which owes nothing to any reward.
    """
    import pyarrow as pa

    paths = sorted(Path(folder).glob(_FILES))
    if not paths:
        raise ArgumentError(
            f"{argument} must be a folder into which DecisionLog wrote, got {os.fspath(folder)!r},"
            f" without files {_FILES}",
            argument,
        )
    tables = [_read(argument, path) for path in paths]
    if rewards and all(table.schema.metadata[_REWARDS] == b"False" for table in tables):
        raise ArgumentError(
            f"{argument} must be a log with rewards, as DecisionLog(..., rewards=True) writes it,"
            f" got one without: {os.fspath(folder)!r}",
            argument,
        )
    table = _completed(pa.concat_tables(tables))
    lives = _codes(table["life"])
    return table.take(np.lexsort((table["number"].to_numpy(), lives)))


def one_row_each(frame: Any) -> Any:
    """A log of decisions with one row for each; any other table as it is."""
    import pandas as pd
    import pyarrow as pa

    if not _TELLING.issubset(_names(frame)):
        return frame
    keys = pd.DataFrame({name: np.asarray(frame[name]) for name in ("life", "number", "arm")})
    if not keys.duplicated(["life", "number"]).any() and not keys["arm"].isna().any():
        return frame
    if isinstance(frame, pd.DataFrame):
        return _completed(pa.Table.from_pandas(frame, preserve_index=False))
    return _completed(frame if isinstance(frame, pa.Table) else pa.table(dict(frame)))


def _names(frame: Any) -> list[Any]:
    if isinstance(frame, dict):
        return list(frame)
    names = getattr(frame, "column_names", None)
    return list(getattr(frame, "columns", ()) if names is None else names)


def _read(argument: str, path: Path) -> pa.Table:
    """A file, with columns that earlier versions did not write: of each writer one life."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except pa.ArrowInvalid:
        raise ArgumentError(
            f"{argument} must hold files that DecisionLog wrote, got a damaged one: {path}",
            argument,
        ) from None
    if "life" not in table.column_names:
        writer = path.stem.removeprefix("decisions-").rpartition("-")[0]
        table = table.append_column("life", pa.array([writer] * len(table), pa.string()))
    asked = (table.schema.metadata or {}).get(_REWARDS, b"True")
    rewards = asked == b"True" and "reward" in table.column_names
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema()
    ]
    return pa.table(columns, schema=schema(rewards=rewards))


def _completed(table: pa.Table) -> pa.Table:
    """One row for each decision, where its first stands: with the first time, and of each other
    column the last entry.
    """
    import pandas as pd
    import pyarrow as pa

    keys = pd.DataFrame({"life": _codes(table["life"]), "number": table["number"].to_numpy()})
    which = keys.groupby(["life", "number"], sort=False, dropna=False).ngroup().to_numpy()
    columns = {}
    for name in table.column_names:
        told = np.flatnonzero(table[name].is_valid())
        told = told[::-1] if name == "time" else told
        entry = np.full(which.max(initial=-1) + 1, -1)
        entry[which[told]] = told  # of those of one decision the last stays
        columns[name] = table[name].take(pa.array(entry, mask=entry < 0))
    completed = pa.table(columns)
    if unknown := completed["arm"].null_count:
        LOGGER.warning(
            "%d rewards of a log of decisions were left out: they came with tokens, and their"
            " decisions were never written (docs/logs.md)",
            unknown,
        )
    return completed.filter(completed["arm"].is_valid())


def _codes(lives: pa.ChunkedArray) -> np.ndarray:
    """Lives as numbers, in the order in which they first appear."""
    codes: np.ndarray = lives.combine_chunks().dictionary_encode().indices.to_numpy(False)
    return codes
