"""The ends of searches for the best arm, as a section of the report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..html import Html, table
from ..plotting.numbers import number, percent
from .intervals import share
from .means import CONFIDENCE, estimate, estimate_of
from .wording import Grouped, promise_cell, ranged

CAPTION = (
    "Rounds until the search ended: means over the runs that ended, with 95 % bootstrap"
    " intervals. Error rate: the share of all runs that recommended another arm than the best,"
    " with exact (Clopper-Pearson) 95 % intervals, beside the failure probability that was"
    " asked for."
)


def ended(runs: pd.DataFrame) -> dict[str, Any]:
    """The columns on searches in a table of settings; empty where these runs are no searches."""
    if "stopped" not in runs or runs["recommended"].isna().all():
        return {}
    over = runs["stopped"].notna()
    rounds = estimate(runs["stopped"][over].to_numpy())
    errors = int((runs["wrong"] * over).sum())
    found: dict[str, Any] = {"ended": int(over.sum()), "errors": errors}
    named = {"stopped": rounds, "error": share(errors, len(runs), CONFIDENCE)}
    for name, (mean, low, high) in named.items():
        found |= {name: mean, f"{name}_low": low, f"{name}_high": high}
    return found


def searches_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The settings of a table that search for the best arm."""
    return rows[rows["ended"].notna()] if "ended" in rows else rows.iloc[:0]


def asked_for(row: pd.Series) -> float:
    """The failure probability that a search was given; NaN where it takes none."""
    return float(row["setting"].arguments.get("failure_probability", np.nan))


def searches_table(rows: pd.DataFrame, grouped: Grouped) -> Html:
    """The table of searches."""

    def cells(row: pd.Series) -> list[str]:
        asked = asked_for(row)
        none = row["ended"] == 0
        return [
            promise_cell(row),
            "–" if none else ranged(estimate_of(row, "stopped"), lambda rounds: f"{rounds:,.0f}"),
            f"{row['ended']:,.0f} of {row['runs']:,}",
            f"{row['errors']:,.0f}",
            ranged(estimate_of(row, "error"), lambda rate: percent(rate, 2)),
            "–" if np.isnan(asked) else f"{number(100 * asked)} %",
        ]

    heads = ["Policy", "Budget", "Rounds", "Runs that ended", "Wrong arm", "Error rate"]
    return table(CAPTION, [*heads, "Asked for"], grouped(rows, cells))


def searches_in_words(rows: pd.DataFrame) -> str:
    """A sentence on whether searches kept their promise."""
    asked = rows.apply(asked_for, axis=1)
    promised = rows[asked.notna()]
    if promised.empty:
        return "No policy promises how often it errs."
    broken, count = int((promised["error_low"] > asked[promised.index]).sum()), len(promised)
    if broken:
        return f"{broken:,} of {count:,} settings erred more often than was asked for."
    return f"No setting of {count:,} erred more often than was asked for, as far as the runs tell."
