"""What a report is written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pandas as pd

from ..simulation.results import Result
from .claims import Claim
from .exhibits import Exhibit


class Replay(Protocol):
    """The replay of a logged trial: a round counts when the policy picks the arm that the person
    really got.

    ``runs`` has one row per (environment, policy, budget, run) with ``holds``, ``rounds``,
    ``successes``, ``rate``, ``releases`` and ``spent``; ``summary()`` the mean rate with ``low``
    and ``high`` per environment, policy and budget.
    """

    @property
    def runs(self) -> pd.DataFrame: ...

    def summary(self) -> pd.DataFrame: ...


@dataclass(frozen=True)
class StudyRecord:
    """One finished study.

    Attributes:
        title, description: in the words of the study's author.
        result: of the simulation.
        replay: of a logged trial; None where there is none.
        seed: of everything.
        config: the study as it was declared; JSON data.
        versions: package -> version.
        elapsed: seconds that the simulation took.
        claims: what was measured of a paper, first on the page.
        exhibits: figures that follow them.
        notes: what a reader of the claims, or of the findings, has to know besides.
        shown: environments whose results the page shows by themselves; None for all.
    """

    title: str
    description: str
    result: Result
    replay: Replay | None = None
    seed: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    elapsed: float = 0.0
    claims: Sequence[Claim] = ()
    exhibits: Sequence[Exhibit] = ()
    notes: Sequence[str] = ()
    shown: Sequence[str] | None = None

    @property
    def detailed(self) -> Result:
        """The result in the environments that the page shows."""
        if self.shown is None:
            return self.result
        runs, frame = (
            table[table["environment"].isin(self.shown)]
            for table in (self.result.runs, self.result.frame)
        )
        played = set(zip(runs["policy"], runs["budget"], strict=True))
        policies = [
            entry
            for entry in self.result.info["policies"]
            if (entry["policy"], entry["budget"]) in played
        ]
        return Result(
            frame.reset_index(drop=True),
            runs.reset_index(drop=True),
            {**self.result.info, "policies": policies},
        )
