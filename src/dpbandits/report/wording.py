"""Fixed words of the report: the terms it explains, and the cells of its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from ..html import Html, tag, text
from ..plotting.labels import promise
from .means import Estimate

# Makes rows of cells, a group for each policy.
Grouped = Callable[[pd.DataFrame, Callable[[pd.Series], list[str]]], Any]

REPLAY = (
    "Here nothing is simulated but the noise: real people come in random order. A person counts"
    " only if the policy picks the arm that they really got. So the people who count are an"
    " unbiased sample of those whom the policy would have met. Few people count, so a replay is"
    " shorter than the trial, and the policies are still learning through most of it."
)
WORDS = {
    "Round": "One person: the policy picks an arm, the person's answer is the reward.",
    "Regret": (
        "The expected reward of always playing the best arm, minus that of the arms that were"
        " played. It counts expectations, not luck: two runs that play the same arms have the same"
        " regret."
    ),
    "Bands and intervals": (
        "95 % percentile bootstrap of the mean over runs, 2,000 resamples. Differences"
        " between policies are paired run by run, as both then meet the same random numbers"
        " of the environment. No correction was made for looking at many numbers."
    ),
    "Privacy budget": (
        "The most that all releases of a policy together may reveal about one person's reward."
        " Smaller is stricter. The numbers of different notions (zCDP ρ, pure ε, approximate ε"
        " with δ) must not be compared as they stand; the table beside the findings translates"
        " them."
    ),
    "Local": (
        "Rewards are randomised before anyone sees them. Policies marked local promise more at the"
        " same number than the others, whose operator is trusted with the true rewards."
    ),
    "No guarantee": (
        "The noise was made for the budget that was asked for, but no proof holds: rewards have to"
        " be taken as unprotected, and regret at that budget is not comparable with that of"
        " policies whose budget holds."
    ),
    "No privacy": (
        "The same policy with an open channel, without noise. The price of privacy is the"
        " difference to it."
    ),
    "Releases and noise draws": (
        "How many times something left the private side, and how many random numbers were"
        " added to it. Both are means over runs."
    ),
}


def ranged(value: Estimate, show: Callable[[float], str]) -> Html:
    """A mean in a cell, its interval below."""
    if pd.isna(value.low):
        return text(show(value.mean))
    low, high = show(value.low), show(value.high)
    interval = tag("span", "–" if low == high else f"{low} to {high}", class_="range")
    return Html(text(show(value.mean)) + interval)


def promise_cell(row: pd.Series) -> Html:
    """A cell with the requested budget, and below it the one that holds instead."""
    asked, instead = promise(row["setting"].budget, row["setting"].holds)
    return Html(text(asked) + (tag("span", instead, class_="range") if instead else ""))


def mean_count(value: float) -> str:
    """A mean of counts in a cell."""
    return f"{value:,.1f}"


def span_of(low: int, high: int) -> str:
    """A range of counts."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
