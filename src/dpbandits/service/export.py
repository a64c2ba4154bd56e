"""The export of decisions: Parquet files of one experiment, for ``dpb.evaluate`` and ``fit_logs``.

The operator asks for it with ``dpbandits serve --log``.  The files hold arms, propensities, rewards
and public contexts.  They are raw data of people, and no guarantee covers them.

A row is written after the commit that keeps its decision: a decision that was never kept may
have the number of a later one.  It is made at once, because an archived experiment destroys the key
of its tokens.  The clock alone says when rows are written, and no reward does.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..logs.decision_log import Rows, row_of
from ..logs.folders import schema
from ..policies import Policy
from ..session.decisions import Decision
from .log import log

EVERY = 10.0  # seconds between writings
MOST = 200_000  # rows that wait while the files cannot be written; later ones are left out
_ROWS = 10_000  # of a file


class Export:
    """Writes the decisions and rewards of one experiment.

    Attributes:
        name: of the experiment.
        folder: where its files are.

    Args:
        folder: where the folders of all experiments are.
        name: the name of its folder.
        policy: which makes the decisions.

    Raises:
        ArgumentError: the policy's contexts are private, or people's devices decide.
        OSError: the folder cannot be made.
    """

    def __init__(self, folder: Path, name: str, policy: Policy) -> None:
        if policy.card.hides_contexts:
            raise ArgumentError(
                "log must not be given with private contexts, because arms reveal contexts", "log"
            )
        if policy._serving:
            raise ArgumentError("log must not be given if people's devices choose arms", "log")
        self._features = policy.sees == "contexts"
        self.name, self.folder = name, folder / name
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        told = schema(rewards=True, max_rounds=policy.max_rounds)
        self._policy, self._rows = policy, Rows(self.folder, _ROWS, told)
        self._waiting: deque[dict[str, Any]] = deque()
        self._period = 0.0

    def add_decision(self, decision: Decision, contexts: Any, at: float) -> None:
        """Note a decision of the policy."""
        self._add(decision, contexts=contexts if self._features else None, at=at)

    def add_reward(self, token: str, reward: float, at: float) -> None:
        """Note the reward of a decision."""
        self._add(token, reward=reward, at=at)

    def add_cancelled(self, token: str, at: float) -> None:
        """Note that a decision was cancelled."""
        self._add(token, cancelled=True, at=at)

    def _add(self, decision: Decision | str, **given: Any) -> None:
        if len(self._waiting) >= MOST:
            return
        try:
            self._waiting.append(row_of(self._policy, decision, **given))
        except Exception as error:
            self._tell(error)

    def write(self, now: float) -> None:
        """Write all rows, if it is time; their decisions must have been kept."""
        if now // EVERY == self._period:
            return
        self._period = now // EVERY
        try:
            self._rows.flush()  # of the last time, if that failed
            while self._waiting:
                # Which stay there, also where they cannot be written.
                self._rows.add(self._waiting.popleft())
            self._rows.flush()
        except Exception as error:
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        """Requests are served, whatever becomes of these files."""
        waiting = len(self._waiting)
        log("export failed", experiment=self.name, error=type(error).__name__, rows=waiting)
