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
from ..logs import DecisionLog
from ..policies import Policy
from ..session.decisions import Decision
from .log import log

EVERY = 10.0  # seconds between writings
MOST = 200_000  # rows that wait while the files cannot be written; later ones are left out


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
            raise ArgumentError("contexts are private, and arms reveal contexts", "log")
        if policy._serving:
            raise ArgumentError("people's devices decide", "log")
        self._features = policy.sees == "contexts"
        self.name, self.folder = name, folder / name
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._log = DecisionLog(self.folder, policy, rewards=True, features=self._features)
        self._waiting: deque[dict[str, Any]] = deque()
        self._period = 0.0

    def add_decision(self, decision: Decision, contexts: Any, at: float) -> None:
        """Note a decision of the policy."""
        self._add(decision, None, contexts if self._features else None, at)

    def add_reward(self, token: str, reward: float, at: float) -> None:
        """Note the reward of a decision."""
        self._add(token, reward, None, at)

    def _add(
        self, decision: Decision | str, reward: float | None, contexts: Any, at: float
    ) -> None:
        if len(self._waiting) >= MOST:
            return
        try:
            self._waiting.append(self._log._row(decision, reward, contexts, at))
        except Exception as error:
            self._tell(error)

    def write(self, now: float) -> None:
        """Write all rows, if it is time; their decisions must have been kept."""
        if now // EVERY == self._period:
            return
        self._period = now // EVERY
        try:
            self._log.flush()  # of the last time, if that failed
            while self._waiting:
                # Which the log keeps, also where it cannot write.
                self._log._rows.add(self._waiting.popleft())
            self._log.flush()
        except Exception as error:
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        """Requests are served, whatever becomes of these files."""
        waiting = len(self._waiting)
        log("export failed", experiment=self.name, error=type(error).__name__, rows=waiting)
