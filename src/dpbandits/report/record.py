"""The data that a report is written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..simulation.replaying import ReplayResult
from ..simulation.results import Result
from .claims import Claim
from .exhibits import Exhibit, Table


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
        claims: measured claims of a paper, first on the page.
        exhibits: figures that follow them.
        tables: that stand between the two.
        notes: further facts for readers of the claims or of the findings.
        bounds: proved bounds, from ``theory.bound_curves``; None where they were not requested.
        shown: environments whose results the page shows by themselves; None for all.
    """

    title: str
    description: str
    result: Result
    replay: ReplayResult | None = None
    seed: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    elapsed: float = 0.0
    claims: Sequence[Claim] = ()
    exhibits: Sequence[Exhibit] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    bounds: pd.DataFrame | None = None
    shown: Sequence[str] | None = None

    @property
    def detailed(self) -> Result:
        """The result in the environments that the page shows."""
        if self.shown is None:
            return self.result
        runs, frame = (
            table[table["environment"].isin(self.shown)].reset_index(drop=True)
            for table in (self.result.runs, self.result.frame)
        )
        played = set(zip(runs["policy"], runs["budget"], strict=True))
        settings = {key: one for key, one in self.result.settings.items() if key in played}
        environments = self.result.info["environments"]
        seen = {key: facts for key, facts in environments.items() if key in self.shown}
        return Result(frame, runs, settings, {**self.result.info, "environments": seen})
