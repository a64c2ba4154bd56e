"""A log of decisions for the operator, as Parquet files: chosen arms and their probabilities.

It is raw data, and no guarantee covers it.  With rewards it holds data that the policy protects;
under private contexts even arms reveal contexts.  Protect it like the rewards themselves.
"""

from __future__ import annotations

import math
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from multiprocessing import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, UpdateError
from ..policies import Policy
from ..session import Decision
from ..tables import entries
from ..tables import table as numbers
from ..tables.manners import PUBLIC_FEATURES
from ..validation import flag, integer, real
from .folders import COLUMNS, FILE, as_folder, schema

if TYPE_CHECKING:
    import pyarrow as pa

_OF_DECISIONS = ("arm", "name", "propensity", "recorded", "held_out")


class DecisionLog:
    """Writes a row for each decision, to be read by ``read_logs`` and ``fit_logs``.

    Every file has all columns: ``life`` and ``number`` of the pull, ``time``, ``arm`` and its
    ``name``, ``propensity``, ``recorded``, ``features``, ``reward``, the time at which it was
    ``answered``, its ``episode``, which all rounds of one draw share, and whether its person is
    ``held_out``.  Entries are null if they were not written, or do not exist: no names, no closed
    form of the propensity.

    A decision has one row, even if it is written when it is made, and again when its reward is
    known.  If the first row is in a file by then, readers complete it.

    A folder holds one file for every ``rows`` rows; each appears complete or not at all.  The rest
    is written by ``flush``, at the end of a ``with`` block, when the log is no longer used, and
    when the process ends normally.  A crash loses the rows that were not yet written.  A forked
    process leaves its parent's rows to the parent.

    Args:
        folder: where to write; made if it is missing.  Existing files are kept.
        policy: the policy that makes the decisions.
        rewards: whether rewards may be written.
        features: whether features may be written, as ``pull`` takes them; only where contexts are
            public.
        rows: the number of rows of a file.

    Raises:
        ArgumentError: ``features`` is set for a policy that hides contexts, or ``folder`` is a
            file.

    See also: ``read_logs``, ``fit_logs``.

    Example:
        >>> import tempfile
        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> from dpbandits.logs import read_logs
        >>> policy, folder = MergedIMED(2, budget=ZCDP(0.5), seed=1), tempfile.mkdtemp()
        >>> with DecisionLog(folder, policy, rewards=True) as log:
        ...     for _ in range(3):
        ...         decision = policy.pull()
        ...         log.write(decision)
        ...         _ = policy.update(1.0, decision)
        ...         log.write(decision, reward=1.0)
        >>> read_logs(folder)[["number", "propensity", "reward"]].to_numpy().tolist()
        [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [2.0, 1.0, 1.0]]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        policy: Policy,
        *,
        rewards: bool = False,
        features: bool = False,
        rows: int = 10_000,
    ) -> None:
        if not isinstance(policy, Policy):
            raise ArgumentError(
                f"policy must be a Policy, such as dpb.Arms(...), got {type(policy).__name__}",
                "policy",
            )
        if flag("features", features) and policy.card.hides_contexts:
            raise ArgumentError(
                "features must be False where contexts are private, got True", "features"
            )
        self._with = {"reward": flag("rewards", rewards), "contexts": features}
        self._policy = weakref.ref(policy)  # which may be let go, and loaded again
        most = integer("rows", rows, 1)
        self.folder = as_folder("folder", folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ArgumentError(
                f"folder must be a folder or a new path, got a file: {os.fspath(folder)!r}",
                "folder",
            ) from None
        told = schema(rewards=rewards, max_rounds=policy.max_rounds)
        self._rows = Rows(self.folder, most, told)
        # When this log is no longer used, and at the end of the process.
        weakref.finalize(self, self._rows.flush)
        _flush_at_end(self)
        util.register_after_fork(self, _flush_at_end)
        self._own_from, self._fork = math.inf, ""  # the first pull that a fork has made itself
        _LOGS.add(self)

    def write(
        self,
        decision: Decision | str,
        *,
        reward: float | None = None,
        contexts: ArrayLike | None = None,
        at: float | None = None,
        cancelled: bool = False,
    ) -> None:
        """Write a decision, when it is made, when its reward is known, or both.

        Args:
            decision: what ``pull`` returned; or its token together with the reward, or with
                ``cancelled``, which completes the row of the decision.
            reward: as it was measured, for logs with rewards; None where none came yet.
            contexts: what ``pull`` was given, for logs with features.
            at: when, in seconds since 1970; by default now.  Of a decision the first time stays,
                and of its reward the last.
            cancelled: whether the policy's ``cancel`` took it back.  Then it is not ``recorded``.

        Raises:
            ArgumentError: rewards or contexts are given to a log without them; ``pull`` or
                ``update`` would refuse them; or a token is given with contexts, or without
                ``reward`` and ``cancelled``.
            UpdateError: the decision is another policy's, or the token has expired.
            OSError: a file cannot be written.  The rows wait for the next attempt.
        """
        for name, given in (("reward", reward), ("contexts", contexts)):
            if given is not None and not self._with[name]:
                raise ArgumentError(
                    f"{name} must not be given, because the log was made without {name}", name
                )
        policy = self._policy()
        if policy is None:
            raise UpdateError(
                "decision must come from the policy of this log, but that policy no longer exists"
                " in this process"
            )
        self._rows.add(row_of(policy, decision, reward, contexts, at, cancelled, self._forked))

    def _forked(self, number: int) -> str:
        """An ending for pulls after a fork: the parent's have the same numbers."""
        return self._fork if number >= self._own_from else ""

    def _begin_after_fork(self) -> None:
        """Forget the rows that the parent will write, and tell own pulls from the parent's."""
        policy = self._policy()
        if policy is not None:
            self._own_from = policy.session.rounds.pulls
        self._fork = f"-{uuid.uuid4().hex[:8]}"
        self._rows.begin()

    def flush(self) -> None:
        """Write all rows that are not yet written.

        Raises:
            OSError: the file cannot be written.  The rows wait for the next attempt.
        """
        self._rows.flush()

    def __enter__(self) -> DecisionLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()


# Rows ---------------------------------------------------------------------------------------------


def row_of(
    policy: Policy,
    decision: Decision | str,
    reward: float | None = None,
    contexts: ArrayLike | None = None,
    at: float | None = None,
    cancelled: bool = False,
    ending: Callable[[int], str] = lambda number: "",
) -> dict[str, Any]:
    """The row of what ``DecisionLog.write`` is given.  ``ending`` tells pulls of equal numbers
    apart.
    """
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row["time"] = time.time() if at is None else real("at", at)
    if reward is not None:
        row["reward"], row["answered"] = _reward(policy, reward), row["time"]
    if not isinstance(decision, Decision | str):
        got = type(decision).__name__
        raise ArgumentError(
            f"decision must be a decision of pull(), or its token, got {got}", "decision"
        )
    own = policy.session.own(decision)
    row |= {"life": own.life + ending(own.number), "number": own.number}
    if isinstance(decision, Decision):
        row |= {name: getattr(own, name) for name in _OF_DECISIONS}
        row["features"] = None if contexts is None else _features(policy, contexts, own.arm)
        if own.drawn is not None:
            row["episode"] = f"{policy._first_life}-{own.drawn}{ending(own.drawn)}"
    elif (reward is None and not cancelled) or contexts is not None:
        raise ArgumentError(
            "decision must be an object from pull(), got a token: a token does not name the arm."
            " A token is enough for a reward without contexts, and for cancelled=True",
            "decision",
        )
    if cancelled:
        row["recorded"] = False
    return row


def _reward(policy: Policy, reward: Any) -> float:
    try:
        return policy.checked_reward(reward)
    except ArgumentError:  # whose words hold the reward
        raise ArgumentError(
            f"reward must be a number that update() takes, got {type(reward).__name__}", "reward"
        ) from None


def _features(policy: Policy, contexts: ArrayLike, arm: int) -> list[list[float]]:
    """Row by row; one vector is one row."""
    if isinstance(contexts, np.ndarray):
        single = contexts.ndim == 1
    else:
        found = entries(contexts)
        single = found is not None and found.values.ndim == 1
    array = numbers("contexts", [contexts] if single else contexts, PUBLIC_FEATURES)
    shape = array.shape[1:] if single else array.shape
    if not policy.takes_shape(shape, arm):
        raise ArgumentError(
            f"contexts must have the shape that pull() was given for this decision, got {shape}",
            "contexts",
        )
    lines: list[list[float]] = array.tolist()
    return lines


# Rows that wait -----------------------------------------------------------------------------------


class Rows:
    """Rows that wait for their file, of which each decision has one."""

    def __init__(self, folder: Path, most: int, schema: pa.Schema) -> None:
        # Arrow asks for pandas when it makes a table; the end of a process is too late to import.
        import pandas  # noqa: F401
        import pyarrow.parquet  # noqa: F401

        self._folder, self._most, self._schema = folder, most, schema
        self.begin()

    def begin(self) -> None:
        """Start without rows.  After a fork the lock is new: a thread of the parent may hold the
        old one.
        """
        self._lock = threading.RLock()  # a signal may come, and write, while a row is written
        self._rows: dict[tuple[str, int], dict[str, Any]] = {}
        # Names sort by time; others may write into the folder, too.
        self._writer, self._written = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}", 0

    def add(self, row: dict[str, Any]) -> None:
        with self._lock:
            self._complete(row)
            if len(self._rows) >= self._most:
                self._flush()

    def flush(self) -> None:
        with self._lock:
            self._flush()

    def _complete(self, row: dict[str, Any]) -> None:
        known = self._rows.setdefault((row["life"], row["number"]), row)
        if known is not row:
            new = {name: one for name, one in row.items() if one is not None and name != "time"}
            known.update(new)

    def _flush(self) -> None:
        if not self._rows:
            return
        path = self._folder / FILE.format(self._writer, self._written)
        self._written += 1
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        try:
            rows, self._rows = self._rows, {}
            _write_whole(path, list(rows.values()), self._schema)
        except BaseException:
            later, self._rows = self._rows, rows
            for row in later.values():
                self._complete(row)
            raise


def _for_the_owner(path: str, flags: int) -> int:
    """Open a file that nobody else may read."""
    return os.open(path, flags, 0o600)


def _write_whole(path: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    """Write a file that appears complete or not at all, and outlasts a loss of power."""
    import pyarrow as pa
    from pyarrow import parquet

    draft = path.with_name(f".{path.name}")  # which readers of the folder leave out
    try:
        with open(draft, "wb", opener=_for_the_owner) as file:
            table = pa.Table.from_pylist(rows, schema)
            parquet.write_table(table, file, write_page_checksum=True)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


# Ends and forks of processes ----------------------------------------------------------------------

_LOGS: weakref.WeakSet[DecisionLog] = weakref.WeakSet()


def _flush_at_end(log: DecisionLog) -> None:
    """Processes of ``multiprocessing`` end without what ``weakref`` and ``atexit`` have noted."""
    util.Finalize(log, log._rows.flush, exitpriority=0)


def _begin_after_fork() -> None:
    for log in list(_LOGS):
        log._begin_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_after_fork)
