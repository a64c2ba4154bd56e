"""Logs of several formats as rows: logs of decisions, tables, Open Bandit, Vowpal Wabbit."""

from __future__ import annotations

import numbers
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..logs.folders import is_of_decisions, one_row_each, read_table, refuse_returning
from ..tables import (
    Frame,
    blocks,
    column,
    column_names,
    flat,
    is_missing,
    listed,
    read_text_table,
)
from ..tables import manners as known
from . import dsjson
from .rows import Rows, chosen, padded, probability_table, refuse_propensities

_OPEN_BANDIT = {"item_id", "position", "click"}
_PROPENSITY = replace(known.PROPENSITIES, missing="keep", typed=False)
_DIFFERENT = 1e-4  # of a propensity and that in the table of all, which may have few digits


class Columns(NamedTuple):
    """The columns of a table, and what else is known of its rows: see ``evaluate``."""

    arm: str = "arm"
    reward: str = "reward"
    propensity: str = "propensity"
    episode: str | None = None
    features: Any = None
    propensities: Any = None
    user: str | None = None
    private: bool = False  # whether no reward may decide what is refused or left out
    held_out: bool = False  # whether only rows of a holdout count


def read_rows(log: str | os.PathLike[str] | Frame, columns: Columns) -> Rows:
    """The rows of a log to evaluate from."""
    table = _table(log, columns)
    names = set(column_names(table) or ())
    of_decisions = is_of_decisions(table)
    if of_decisions:
        table = one_row_each(table)
        columns = _of_decisions(table, columns)
    elif names >= _OPEN_BANDIT and columns.arm not in names:
        shown = "action_prob" if "action_prob" in names else "propensity_score"
        columns = columns._replace(arm="item_id", reward="click", propensity=shown)
    elif columns.episode is None and "episode" in names:
        columns = columns._replace(episode="episode")
    return _rows(table, columns, of_decisions)


def read_hidden(
    log: str | os.PathLike[str] | Frame, columns: Columns, chances: Sequence[str]
) -> tuple[Rows, np.ndarray]:
    """The rows of a log whose arms and contexts are private, too, and the columns ``chances``, of
    shape (n, q).  Arms are not read.  No entry of these columns, of rewards or of propensities is
    refused: wrong ones are NaN.
    """
    table = _table(log, columns)

    def read(name: str, by: str) -> np.ndarray:
        given = column(table, name, argument="log", by=by)
        return flat("log", given, known.PRIVATE_RECORD, at=f"column {name!r}", rows=total)

    total = len(listed(column(table, columns.reward, argument="log", by="reward")))
    kept, there = np.arange(total), column_names(table) or []
    if "recorded" in there:
        flags = column(table, "recorded", argument="log", by="recorded")
        kept = np.flatnonzero(flat("log", flags, known.FLAGS, at="column 'recorded'", rows=total))
    if kept.size == 0:
        raise ArgumentError("log must hold recorded decisions, got none", "log")
    episode = "episode" if columns.episode is None and "episode" in there else columns.episode
    rows = Rows(
        np.zeros(kept.size, np.int64),
        read(columns.reward, "reward")[kept],
        read(columns.propensity, "propensity")[kept],
        _episodes(table, episode, kept),
        kept,
        total,
        users=_users(table, columns.user, kept),
    )
    return rows, np.column_stack([read(name, "target")[kept] for name in chances])


def _table(log: str | os.PathLike[str] | Frame, columns: Columns) -> Frame:
    table = _opened(log, columns) if isinstance(log, str | os.PathLike) else log
    if column_names(table) is None:
        raise ArgumentError(
            "log must be a folder of DecisionLog, a file, a table or a dictionary of columns, got"
            f" {type(log).__name__}",
            "log",
        )
    if columns.private and columns.user is None:
        refuse_returning("log", table)
    return table


def _opened(path: str | os.PathLike[str], columns: Columns) -> Frame:
    where = Path(path)
    if not where.exists():
        raise ArgumentError(
            f"log must be an existing file or folder, got {os.fspath(path)!r}",
            "log",
        )
    if where.is_dir():
        folder: Frame = read_table("log", path, fit=True)
        return folder
    if where.suffix == ".parquet":
        return _parquet(where)
    if where.suffix in (".dsjson", ".json", ".jsonl"):
        if columns.private:  # which are read line by line, and may lack rewards
            raise ArgumentError(
                "log must be a table if its rewards are private, got lines of JSON", "log"
            )
        return dsjson.read(where)
    text = read_text_table("log", path)
    found: dict[str, Any] = {}
    for name in text.names:
        cells, shown = text.entries(name), text.texts(name)
        if name == columns.user:  # whose numbers may be longer than those of floats
            found[name] = shown
        elif not cells.wrong.any():
            found[name] = cells.values
        elif name == columns.arm:  # all of which are names
            found[name] = shown
        else:
            found[name] = np.where(cells.wrong, np.array(shown, object), cells.values).tolist()
    return found


def _parquet(path: Path) -> Frame:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table: Frame = parquet.read_table(path)
    except pa.ArrowException:  # whose words may hold an entry
        raise ArgumentError(
            f"log must be a Parquet file, got a file of another format: {path}", "log"
        ) from None
    return table


def _of_decisions(table: Frame, columns: Columns) -> Columns:
    """A log of decisions knows its draws; without them rounds of one draw would count as many."""
    if columns.features is None and not all(map(is_missing, listed(table["features"]))):
        columns = columns._replace(features="features")
    if columns.episode is not None:
        return columns
    if "episode" not in (column_names(table) or ()):
        raise ArgumentError(
            "episode must be given: this log, of an earlier version, has no column 'episode'. If"
            " the policy draws anew in each round, give episode='number'",
            "episode",
        )
    return columns._replace(episode="episode")


def _rows(table: Frame, columns: Columns, of_decisions: bool) -> Rows:
    arms, names = _arms(table, columns.arm, of_decisions)
    total = arms.size

    def read(name: str, by: str, manner: known.Manner) -> np.ndarray:
        given = column(table, name, argument="log", by=by)
        return flat("log", given, manner, at=f"column {name!r}", rows=total)

    kind = known.PRIVATE_RECORD if columns.private else known.UNCLIPPED_REWARDS
    rewards = read(columns.reward, "reward", kind)
    everyone = np.ones(total, bool)
    recorded, there = everyone, column_names(table) or []
    if "recorded" in there:
        recorded = read("recorded", "recorded", known.FLAGS) != 0.0
    asked = everyone
    if columns.held_out:
        # Of an earlier version's files it is unknown, and no row counts.
        asked = read("held_out", "held_out", known.FLAGS) == 1.0
        if not asked.any():
            raise ArgumentError(
                "held_out must be False, got True: the log has no held-out people",
                "held_out",
            )
    answered = everyone if columns.private else ~np.isnan(rewards)
    kept = np.flatnonzero(asked & recorded & answered)
    left_out = (
        ("not recorded", int((asked & ~recorded).sum())),
        ("without a reward", int((asked & recorded & ~answered).sum())),
    )
    if kept.size == 0:
        raise ArgumentError("log must hold recorded decisions with rewards, got none", "log")
    contexts = _contexts(table, columns, total, read)
    positions = None
    if columns.arm == "item_id" and "position" in there:
        positions = read("position", "position", known.WHOLE_NUMBERS).astype(np.int64)[kept]
        positions -= positions.min()
    rows = Rows(
        arms[kept],
        rewards[kept],
        np.full(kept.size, np.nan),
        _episodes(table, columns.episode, kept),
        kept,
        total,
        names,
        None if contexts is None else _of_kept(contexts, kept),
        None,
        positions,
        tuple(one for one in left_out if one[1]),
        of_decisions,
        _users(table, columns.user, kept),
    )
    rows = replace(rows, propensities=_all_propensities(table, columns, rows))
    return replace(rows, propensity=_propensity(rows, there, columns.propensity, read))


def _of_kept(contexts: Any, kept: np.ndarray) -> Any:
    return contexts[kept] if isinstance(contexts, np.ndarray) else [contexts[i] for i in kept]


def _propensity(rows: Rows, there: Sequence[object], name: str, read: Any) -> np.ndarray:
    """From its column, or from the table of all arms' propensities; both must agree."""
    every = None if rows.propensities is None else chosen(rows.propensities, rows.arms)
    if name not in there and every is not None:
        found = np.where(every > 0.0, every, np.nan)
    else:
        found = read(name, "propensity", _PROPENSITY)[rows.kept]
    refuse_propensities(found)
    if every is not None and (np.abs(found - every) > _DIFFERENT).any():
        raise ArgumentError(
            f"propensities must agree with column {name!r} for the arm of each row, got another"
            f" value in row {rows.kept[(np.abs(found - every) > _DIFFERENT).argmax()]}",
            "propensities",
        )
    return found


def _all_propensities(table: Frame, columns: Columns, rows: Rows) -> np.ndarray | None:
    given = columns.propensities
    if given is None:
        if dsjson.PROPENSITIES not in (column_names(table) or ()):
            return None
        given = table[dsjson.PROPENSITIES]
    elif isinstance(given, str):
        given = listed(column(table, given, argument="log", by="propensities"))
    found = rows.of_each("propensities", probability_table("propensities", given, "K", "n, K"))
    return padded(found, rows.n_arms)


def _arms(table: Frame, name: str, of_decisions: bool) -> tuple[np.ndarray, list[str] | None]:
    """The arms' numbers, and their names: of text, in the order of the alphabet."""
    given, at = column(table, name, argument="log", by="arm"), f"column {name!r}"
    cells = listed(given)
    if any(isinstance(one, str) for one in cells):
        if not all(isinstance(one, str) for one in cells):
            raise ArgumentError(f"log ({at}) must hold the name of an arm in each row", "log")
        names, numbers = np.unique(np.array(cells, str), return_inverse=True)
        return numbers.astype(np.int64), names.tolist()
    arms = flat("log", given, known.arms(2**31), at=at).astype(np.int64)
    if not of_decisions or name != "arm":
        return arms, None
    named = dict(zip(arms.tolist(), listed(table["name"]), strict=True))
    if not all(isinstance(one, str) for one in named.values()):
        return arms, None
    return arms, [str(named.get(a, a)) for a in range(max(named) + 1)]


def _episodes(table: Frame, name: str | None, kept: np.ndarray) -> np.ndarray:
    """The draw of each round, numbered in order of appearance."""
    if name is None:
        return np.arange(kept.size)
    codes = _codes(table, name, "episode", kept)
    if (codes < 0).any():
        raise ArgumentError(
            f"log (column {name!r}) must hold an episode in each recorded row, got a row without"
            " one. Earlier versions did not log episodes: if the policy draws anew in each round,"
            " give episode='number'",
            "log",
        )
    return codes


def _users(table: Frame, name: str | None, kept: np.ndarray) -> np.ndarray | None:
    """The number of the person of each round; who has which is public."""
    if name is None:
        return None
    codes = _codes(table, name, "user", kept)
    if (codes < 0).any():
        raise ArgumentError(f"log (column {name!r}) must name the user of each record", "log")
    return codes


def _codes(table: Frame, name: str, by: str, kept: np.ndarray) -> np.ndarray:
    """Numbers for the entries of a column, in order of appearance; -1 where there is none."""
    import pandas as pd

    cells = listed(column(table, name, argument="log", by=by))
    try:
        codes, _ = pd.factorize(pd.Series([cells[i] for i in kept], dtype=object))
    except (TypeError, IndexError):
        return np.array([-1])
    return np.asarray(codes, np.int64)


def _contexts(table: Frame, columns: Columns, rows: int, read: Any) -> Any:
    given, manner = columns.features, known.PUBLIC_FEATURES
    if given is None:
        if dsjson.CONTEXTS in (column_names(table) or ()):
            return table[dsjson.CONTEXTS]
        return _people(table, read) if columns.arm == "item_id" else None
    if isinstance(given, str):
        entries = listed(column(table, given, argument="log", by="features"))
        if entries and isinstance(entries[0], numbers.Real):  # one feature
            return read(given, "features", manner)[:, None]
        return blocks("features", entries, manner, at=f"column {given!r}", rows=rows)
    if _are_names(given):
        return np.column_stack([read(name, "features", manner) for name in given])
    return blocks("features", given, manner, rows=rows)


def _are_names(given: Any) -> bool:
    listing = isinstance(given, list | tuple) and len(given) > 0
    return listing and all(isinstance(one, str) for one in given)


def _people(table: Frame, read: Any) -> np.ndarray:
    """Open Bandit: the position, and an indicator for each value of each feature of a user."""
    import pandas as pd

    parts = [read("position", "position", known.WHOLE_NUMBERS)[:, None]]
    for name in sorted(str(one) for one in column_names(table) or ()):
        if name.startswith("user_feature"):
            parts.append(pd.get_dummies(pd.Series(listed(table[name])), dtype=float).to_numpy())
    return np.column_stack(parts)
