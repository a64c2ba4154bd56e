"""What theory promises, beside what was measured."""

from __future__ import annotations

import pandas as pd

from ..plotting.numbers import number
from ..simulation.settings import SettingsByKey, with_budget_labels
from .summaries import EnvironmentSummary
from .wording import promise_cell


def promises_in(
    bounds: pd.DataFrame | None, summary: EnvironmentSummary, settings: SettingsByKey
) -> pd.DataFrame:
    """The bounds of one environment, with a ``budget_label``."""
    if bounds is None:
        return pd.DataFrame()
    own = bounds[bounds["environment"] == summary.key]
    return with_budget_labels(own, settings)


def at_the_end(promised: pd.DataFrame, summary: EnvironmentSummary) -> pd.DataFrame:
    """Their values at the horizon, with what the table of the environment has."""
    last = promised[promised["round"] == summary.horizon]
    measured = summary.table[["policy", "budget", "setting", "regret"]]
    return measured.merge(last, on=["policy", "budget"])


def promised_cells(row: pd.Series) -> list[str]:
    """A row of the table of bounds."""
    return [promise_cell(row), row["label"], row["of"], number(row["value"]), number(row["regret"])]
