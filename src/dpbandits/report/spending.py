"""The section of a report on the budgets that its runs spent."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ..html import Html, table, tag, text
from ..privacy.meaning import percent_up
from ..validation import upward
from .summaries import EnvironmentSummary
from .wording import Grouped, mean_count, promise_cell

_CURRENCIES = {"pure": "ε", "zcdp": "ρ", "rdp": "ε", "gdp": "μ²"}


def spending(summary: EnvironmentSummary, grouped: Grouped) -> Iterator[Html]:
    """The section on spent budgets."""
    limited = summary.table[summary.table["setting"].map(lambda one: one.limit is not None)]
    limits = [one.limit for one in limited["setting"]]
    exhausted = len(limits) > 0 and limited["spent"].tolist() == limits

    def cells(row: pd.Series) -> list[str]:
        counts = [mean_count(row["releases"]), mean_count(row["draws"])]
        if row.name not in limited.index:
            spending = ["no limit", "not counted", "–"]
        else:
            unit, limit = _CURRENCIES[row["setting"].currency], row["setting"].limit
            # Runs were told what they spent as ``Meter.shown`` says: upward, and to the limit.
            told = (f"{unit} {upward(value):.6g}" for value in (limit, row["spent"]))
            spending = [*told, _bar(row)]
        return [promise_cell(row), *(spending[:2] if exhausted else spending), *counts]

    yield tag("h3", "Privacy spent")
    yield tag(
        "p",
        "Every noisy number that leaves the private side is written in a ledger. 'Spent' is the"
        " most that was paid for any one person's record, in the run that paid most.",
        (" Every private policy spent all of its limit, and none spent more." if exhausted else ""),
    )
    heads = ["Policy", "Budget", "Limit", "Most spent in any run"]
    heads += [*([] if exhausted else ["Of the limit"]), "Releases per run", "Noise draws per run"]
    squares = "(ε, δ) and GDP budgets are counted in μ², in which Gaussian noise adds up."
    has_squares = "gdp" in {one.currency for one in limited["setting"]}
    caption = f"Privacy spent against the budget.{f' {squares}' if has_squares else ''}"
    yield table(caption, heads, grouped(summary.table, cells))


def _bar(row: pd.Series) -> Html:
    """The share of its limit that a row spent, drawn and in percent."""
    share = row["spent"] / row["setting"].limit
    kind, over = ("bar over", f", over in {row['over']:,} runs") if row["over"] else ("bar", "")
    fill = tag("i", style=f"width:{min(100 * share, 100):.1f}%")
    return Html(tag("span", fill, class_=kind) + text(percent_up(share) + over))
