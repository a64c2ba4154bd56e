"""After how many people it is decided which arm is best, as a section of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..html import Html, table
from ..plotting.numbers import number, percent
from .intervals import share
from .means import CONFIDENCE
from .wording import Grouped, promise_cell

_WHO = {"": "of the bandit", "holdout_": "held out"}


def first_answers(runs: pd.DataFrame) -> dict[str, Any]:
    """The columns on first answers in a table of settings; empty where nobody could answer."""
    found: dict[str, Any] = {}
    for name in _WHO:
        rounds, wrong = f"{name}decided", f"{name}decided_wrong"
        if wrong in runs and runs[wrong].notna().all():
            # A run without an answer would have it later than all others.
            found[f"{rounds}_after"] = float(np.median(runs[rounds].fillna(np.inf)))
            found[rounds], found[wrong] = int(runs[rounds].notna().sum()), int(runs[wrong].sum())
    return found


def answers_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The settings of a table that were asked."""
    return rows[rows["decided"].notna()] if "decided" in rows else rows.iloc[:0]


def answers_table(rows: pd.DataFrame, asked: Mapping[str, float], grouped: Grouped) -> Html:
    """The table of first answers: of a policy's releases, and of those of its held-out people."""
    found = ("decided", "decided_after", "decided_wrong")
    listed = pd.concat(
        rows.assign(who=who, **{one: rows[f"{name}{one}"] for one in found})
        for name, who in _WHO.items()
        if f"{name}decided" in rows
    )
    listed = listed[listed["decided"].notna()].sort_index(kind="stable")

    def cells(row: pd.Series) -> list[str]:
        late = not np.isfinite(row["decided_after"])
        low, high = share(int(row["decided_wrong"]), row["runs"], CONFIDENCE)[1:]
        return [
            promise_cell(row),
            row["who"],
            f"{row['decided']:,.0f} of {row['runs']:,}",
            "–" if late else f"{row['decided_after']:,.0f}",
            f"{row['decided_wrong']:,.0f} ({percent(low, 2)} to {percent(high, 2)})",
        ]

    gap = f", with a gap of {number(asked['gap'])}" if asked["gap"] else ""
    caption = (
        f"Runs in which it was decided which arm is best, at {100 * asked['confidence']:g} %{gap};"
        " the median number of people until then, where half of the runs were decided; and the"
        " runs whose answer was wrong, with exact (Clopper-Pearson) 95 % intervals of their share."
    )
    heads = ["Policy", "Budget", "People", "Decided", "After", "Wrong"]
    return table(caption, heads, grouped(listed, cells))
