"""Folders of decision logs: which columns their files have, and how they become one table.

A decision may be written when it is made, and again, maybe into another file, when its reward is
known.  Rows of one ``life`` and ``number`` are one decision, and later rows complete earlier ones.
Rows with neither are records of another source: each is one of its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..policies.watch import LOGGER
from ..tables import Frame, column_names, flat, listed
from ..tables.manners import FLAGS, NUMBERS_OF_DECISIONS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FILE = "decisions-{}-{:08d}.parquet"  # by writer; names sort by the time of its beginning
_FILES = "decisions-*.parquet"  # not drafts, whose names begin with a dot
COLUMNS = (
    *("life", "number", "time", "arm", "name", "propensity", "recorded", "features", "reward"),
    *("answered", "episode", "held_out"),
)
_TELLING = {"life", "number", "time", "arm", "recorded"}  # by which a log of decisions is known
_NEEDED = {"number", "arm"}  # the columns of all versions of files without which no row is told

# In the metadata of a file: whether rewards may be in it, and how many rounds of one user.
_REWARDS, _MOST = b"rewards", b"max_rounds"


def schema(*, rewards: bool = False, max_rounds: int | None = None) -> pa.Schema:
    """The columns of every file, which do not depend on options."""
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
        "answered": pa.float64(),
        "episode": pa.string(),
        "held_out": pa.bool_(),
    }
    told = {_REWARDS: str(rewards), _MOST: str(max_rounds)}
    return pa.schema([(name, kinds[name]) for name in COLUMNS], told)


def as_folder(argument: str, given: object) -> Path:
    """The argument as a path; the folder need not exist yet."""
    if not isinstance(given, str | os.PathLike):
        raise ArgumentError(
            f"{argument} must be the path of a folder, got {type(given).__name__}", argument
        )
    return Path(given)


def read_logs(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the decisions that ``DecisionLog`` has written into a folder: one row for each.

    ``fit_logs`` takes the folder itself.  Other readers of Parquet find two rows of a decision that
    was written before and after its reward came.

    Args:
        folder: where ``DecisionLog`` wrote, also with an earlier version of this package.

    Returns:
        A table with the columns ``life`` (of the policy, from its construction or loading on),
        ``number`` (of the pull), ``time`` (of the first writing), ``arm``, ``name``,
        ``propensity``, ``recorded``, ``features``, ``reward``, ``answered`` (the time at which the
        reward was written), ``episode`` (alike for all rounds of one draw) and ``held_out``
        (whether the person is in the holdout).  Rows are ordered by life, then by pull.  Unwritten
        entries are missing.  Rewards without a written decision are left out; the operator's log
        gives their number.  ``attrs["max_rounds"]`` is how many rounds a person may have, unless
        it is 1: a private log must not have such people.

    Raises:
        ArgumentError: the folder holds no such files, or a damaged one.

    Example:
        >>> import tempfile
        >>> from dpbandits import ZCDP, DecisionLog
        >>> from dpbandits.algorithms import MergedIMED
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
    table = read_table("folder", folder)
    frame = table.to_pandas()
    if (most := _most_rounds(table)) > 1:
        frame.attrs[_MOST.decode()] = most
    return frame


def read_table(argument: str, folder: str | os.PathLike[str], *, fit: bool = False) -> pa.Table:
    """The log as an Arrow table; errors begin with the argument.

    To ``fit`` a policy, a log made without rewards is refused; this does not depend on any reward.
    """
    import pyarrow as pa

    paths = sorted(as_folder(argument, folder).glob(_FILES))
    if not paths:
        raise ArgumentError(
            f"{argument} must be a folder that DecisionLog wrote, with files {_FILES}, got"
            f" {os.fspath(folder)!r}, which has no such file",
            argument,
        )
    tables = [_read(argument, path) for path in paths]
    told = [table.schema.metadata for table in tables]
    if fit and all(one[_REWARDS] == b"False" for one in told):
        raise ArgumentError(
            f"{argument} must be a log with rewards, as DecisionLog(..., rewards=True) writes it,"
            f" got one without: {os.fspath(folder)!r}",
            argument,
        )
    most = {_MOST: str(max(map(_most_rounds, tables)))}
    table = pa.concat_tables(tables)
    which, keyed = _decisions(argument, table)
    if which.max(initial=-1) + 1 < which.size or table["arm"].null_count:
        table = _completed(table, which, keyed)
    lives = table["life"].combine_chunks().dictionary_encode().indices.to_numpy(False)
    ordered = table.take(np.lexsort((table["number"].to_numpy(), lives)))
    return ordered.replace_schema_metadata(most)


def refuse_returning(argument: str, frame: Frame) -> None:
    """Raise an error for the log of a policy that let people return, as far as the table tells."""
    if (most := _most_rounds(frame)) > 1:
        raise ArgumentError(
            f"{argument} must hold each person only once if it is private, got the log of a policy"
            f" with max_rounds={most}: take read_logs(folder), keep one record of each user, and"
            " delete attrs['max_rounds'] of that table",
            argument,
        )


def _most_rounds(frame: Frame) -> int:
    """How many rounds of a user a table says that it may have; 1 where it says nothing."""
    schema: Any = getattr(frame, "schema", None)
    told = (getattr(schema, "metadata", None) or {}).get(_MOST, b"None")
    most = getattr(frame, "attrs", {}).get(_MOST.decode(), None if told == b"None" else told)
    return 1 if most is None else int(most)


def one_row_each(frame: Frame) -> Frame:
    """A log of decisions with one row for each; any other table as it is."""
    import pandas as pd
    import pyarrow as pa

    if not is_of_decisions(frame):
        return frame
    names: list[Any] = column_names(frame) or []
    if twice := [name for name in names if names.count(name) > 1]:
        raise ArgumentError(
            f"frame must have columns of different names, got {twice[0]!r} more than once", "frame"
        )
    which, keyed = _decisions("frame", frame)
    if which.max(initial=-1) + 1 == which.size and pd.Series(listed(frame["arm"])).notna().all():
        return frame
    if not isinstance(frame, pa.Table | pd.DataFrame):
        frame = _in_columns({name: frame[name] for name in names})
    return _completed(frame, which, keyed)


def is_of_decisions(frame: Frame) -> bool:
    """Whether a table has the columns of a log of decisions."""
    return _TELLING.issubset(column_names(frame) or ())


def refuse_unrecorded(frame: Frame) -> None:
    """Raise an error for rounds that a policy did not record: a user may have had too many."""
    if not is_of_decisions(frame):
        return
    recorded = flat("frame", frame["recorded"], FLAGS, at="column 'recorded'")
    if (recorded == 0.0).any():
        first, more = int((recorded == 0.0).argmax()), int((recorded == 0.0).sum()) - 1
        raise ArgumentError(
            "frame (column 'recorded') must hold no False if the log is private, got False in row"
            f" {first}{f', and in {more:,} more' if more else ''}: such a round may belong to a"
            " person who is in the log already. Leave out these rows. If no person is in the log"
            " twice, you may leave out the column instead",
            "frame",
        )


# Files --------------------------------------------------------------------------------------------


def _read(argument: str, path: Path) -> pa.Table:
    """A file, with columns that earlier versions did not write: of each writer one life."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None):  # of the system, which names the file
            raise
        raise _foreign(argument, path, "a damaged one") from None
    names = table.column_names
    if missing := sorted(_NEEDED.difference(names)):
        raise _foreign(argument, path, f"one without the column {missing[0]!r}")
    if "life" not in names:
        writer = path.stem.removeprefix("decisions-").rpartition("-")[0]
        table = table.append_column("life", pa.array([writer] * len(table), pa.string()))
    told = table.schema.metadata or {}
    rewards = told.get(_REWARDS, b"True") == b"True" and "reward" in names
    there, rows = table.column_names, len(table)
    columns = [
        _cast(argument, path, table, one) if one.name in there else pa.nulls(rows, one.type)
        for one in schema()
    ]
    whole = pa.table(columns, schema=schema(rewards=rewards))
    if whole["life"].null_count or whole["number"].null_count:
        raise _foreign(argument, path, "one whose rows lack a life or number")
    return whole.replace_schema_metadata({_REWARDS: str(rewards), _MOST: told.get(_MOST, "None")})


def _cast(argument: str, path: Path, table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """A column in today's type.  Dates and digits are no numbers, although Arrow casts them."""
    import pyarrow as pa

    if table.column_names.count(field.name) == 1:
        column, kinds = table[field.name], pa.types
        number = kinds.is_primitive(field.type) and not kinds.is_temporal(field.type)
        bare = kinds.is_primitive(column.type) or kinds.is_decimal(column.type)
        bare = (bare or kinds.is_null(column.type)) and not kinds.is_temporal(column.type)
        try:
            if bare or not number:
                return column.cast(field.type)
        except pa.ArrowException:  # whose words hold an entry
            pass
    raise _foreign(
        argument, path, f"one whose column {field.name!r} is not as DecisionLog writes it"
    )


def _foreign(argument: str, path: Path, got: str) -> ArgumentError:
    return ArgumentError(
        f"{argument} must hold files that DecisionLog wrote, got {got}: {path}", argument
    )


# Decisions ----------------------------------------------------------------------------------------


def _decisions(argument: str, table: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The decision of each row, numbered in order of appearance, and whether it has a key."""
    import pandas as pd

    try:
        codes, lives = pd.factorize(pd.Series(listed(table["life"]), dtype=object))
    except TypeError:  # of lists, of which no two can be compared
        codes, lives = np.zeros(0, int), [None]
    if not all(isinstance(life, str) for life in lives):
        raise ArgumentError(
            f"{argument} (column 'life') must hold text, got something else", argument
        )
    manner, place = NUMBERS_OF_DECISIONS, "column 'number'"
    numbers = flat(argument, table["number"], manner, at=place, rows=codes.size)
    keyed = codes >= 0
    if (half := keyed == np.isnan(numbers)).any():
        raise ArgumentError(
            f"{argument} must hold both life and number of a decision in each row, or neither, got"
            f" only one of them in row {half.argmax()}",
            argument,
        )
    numbers = np.where(keyed, numbers, np.arange(codes.size))
    keys = pd.DataFrame({"life": codes, "number": numbers})
    return keys.groupby(["life", "number"], sort=False).ngroup().to_numpy(), keyed


def _completed(table: Any, which: np.ndarray, keyed: np.ndarray) -> Any:
    """One row for each decision: the first time, and of each other column the last entry."""
    import pyarrow as pa

    first = np.unique(which, return_index=True)[1]
    columns = {}
    for name in column_names(table) or ():
        told = np.flatnonzero(_is_told(table[name]))
        told = told[::-1] if name == "time" else told
        entry = np.full(first.size, -1)
        entry[which[told]] = told  # of those of one decision the last stays
        columns[name] = _taken(table[name], entry)
    lost = keyed[first] & ~_is_told(columns["arm"])
    if lost.any():
        LOGGER.warning(
            "%d rewards of a log of decisions were left out: they came with tokens of decisions"
            " that were never written (docs/logs.md)",
            lost.sum(),
        )
    if isinstance(table, pa.Table):
        return pa.table(columns).filter(pa.array(~lost))
    import pandas as pd

    return pd.DataFrame(columns)[~lost]


def _is_told(column: Any) -> np.ndarray:
    told = column.is_valid() if hasattr(column, "is_valid") else column.notna()
    return np.asarray(told, bool)


def _taken(column: Any, entry: np.ndarray) -> Any:
    """These entries of a column, and nothing where -1 is."""
    import pyarrow as pa

    if hasattr(column, "is_valid"):
        return column.take(pa.array(entry, mask=entry < 0))
    return column.reset_index(drop=True).reindex(entry).reset_index(drop=True)


def _in_columns(frame: dict[str, Any]) -> pd.DataFrame:
    """A data frame from rows with any entries."""
    import pandas as pd

    columns, rows = {}, len(listed(frame["life"]))
    for name, column in frame.items():
        plain = column.to_pylist() if hasattr(column, "to_pylist") else column
        if not hasattr(plain, "__len__") or len(plain) != rows:
            raise ArgumentError(f"frame (column {name!r}) must have {rows} rows", "frame")
        cells = np.empty(rows, object)
        for i, one in enumerate(plain):  # at once, NumPy would take rows apart
            cells[i] = None if one is np.ma.masked else one
        columns[name] = pd.Series(cells)
    return pd.DataFrame(columns)
