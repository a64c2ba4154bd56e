"""A log of decisions for the operator, as Parquet files: what was chosen, with which probability.

It is raw data, and no guarantee covers it: with rewards it holds what the policy hides, and under
private contexts arms alone tell of them.  Keep it as you keep the rewards themselves.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..policies import Policy
from ..session import Decision
from ..validation import flag, integer, number

_NAME = "decisions-{}-{:08d}.parquet"  # by writer


class DecisionLog:
    """Writes a row for each decision: ``number`` of the pull, ``time``, ``arm``, ``propensity``
    (null where it has no closed form), ``recorded``, and if asked for ``features`` and ``reward``.

    A folder holds one file for every so many rows; each appears complete or not at all, and readers
    of Parquet take the folder for one table.  A crash loses the rows that were not yet written.

    Args:
        folder: where to write; made if it is missing.  Files that are there stay.
        policy: whose decisions they are.
        rewards: whether there is a column of rewards.
        features: whether there is one of features, as ``pull`` takes them, row by row; only where
            contexts are public.
        rows: of a file.

    Raises:
        ArgumentError: features of a policy that hides contexts are asked for.

    Example:
        >>> import tempfile, pandas
        >>> from dpbandits import ZCDP, MergedIMED
        >>> policy, folder = MergedIMED(2, budget=ZCDP(0.5), seed=1), tempfile.mkdtemp()
        >>> with DecisionLog(folder, policy, rewards=True) as log:
        ...     for _ in range(3):
        ...         decision = policy.pull()
        ...         _ = policy.update(1.0, decision)
        ...         log.write(decision, reward=1.0)
        >>> pandas.read_parquet(folder)[["number", "propensity", "reward"]].to_numpy().tolist()
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
        if flag("features", features) and policy.card.hides_contexts:
            raise ArgumentError("features must be False where contexts are private", "features")
        self._columns = ["number", "time", "arm", "propensity", "recorded"]
        self._columns += ["features"] * features + ["reward"] * flag("rewards", rewards)
        self._rows: list[tuple[Any, ...]] = []
        self._most = integer("rows", rows, 1)
        self._lock = threading.Lock()
        # Names sort by time; others may write into the folder, too.
        self._writer, self._written = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}", 0
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(
        self,
        decision: Decision,
        *,
        reward: float | None = None,
        contexts: Any = None,
        at: float | None = None,
    ) -> None:
        """Write a decision, when it is made or when its reward is known.

        Args:
            decision: what ``pull`` returned.
            reward: as it was measured, for logs with rewards; None where none came.
            contexts: what ``pull`` was given, for logs with features.
            at: when, in seconds since 1970; by default now.

        Raises:
            ArgumentError: a reward or contexts for a log without them, or something is no number.
        """
        row: list[Any] = [decision.number, time.time() if at is None else number("at", at)]
        row += [decision.arm, decision.propensity, decision.recorded]
        for name, given in (("features", contexts), ("reward", reward)):
            if name in self._columns:
                row.append(None if given is None else _written(name, given))
            elif given is not None:
                raise ArgumentError(f"{name} must not be given: the log was made without", name)
        with self._lock:
            self._rows.append(tuple(row))
            if len(self._rows) >= self._most:
                self._flush()

    def flush(self) -> None:
        """Write what has not been written."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        import pyarrow as pa
        from pyarrow import parquet

        kinds = {
            "number": pa.int64(),
            "time": pa.float64(),
            "arm": pa.int64(),
            "propensity": pa.float64(),
            "recorded": pa.bool_(),
            "features": pa.list_(pa.list_(pa.float64())),
            "reward": pa.float64(),
        }
        columns = [
            pa.array(values, kinds[name])
            for name, values in zip(self._columns, zip(*self._rows, strict=True), strict=True)
        ]
        path = self.folder / _NAME.format(self._writer, self._written)
        draft = path.with_name(f".{path.name}")  # which readers of the folder leave out
        parquet.write_table(pa.table(columns, names=self._columns), draft)
        draft.replace(path)
        self._written += 1
        self._rows.clear()

    def __enter__(self) -> DecisionLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.flush()


def _written(name: str, given: Any) -> Any:
    if name == "reward":
        return number("reward", given)
    try:
        array = np.array(given, dtype=np.float64)
        return (array if array.ndim > 1 else array[None]).tolist()
    except (TypeError, ValueError):
        raise ArgumentError(f"contexts must hold numbers, got {given!r}", "contexts") from None
