"""The replay of logged trials, ready for figures and tables, and its findings in one paragraph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from ..plotting.numbers import percent
from ..plotting.styles import Styles
from ..simulation.replaying import ReplayResult
from ..simulation.settings import with_budget_labels
from .findings import enumeration
from .means import estimate_of, interval_in_words

OWN = "the trial's own allocation"


class ReplayedTrial(NamedTuple):
    """One replayed trial.

    Columns of ``rates``: ``policy``, ``budget``, ``setting``, ``budget_label``, ``rate``,
    ``rate_low``, ``rate_high``, mean ``rounds`` and ``releases``; rows of one policy stand
    together, budgets from strict to loose.
    """

    title: str  # of the log
    rates: pd.DataFrame
    own_rate: float  # the success rate under the trial's own allocation


def replayed_trials(replay: ReplayResult) -> Iterator[ReplayedTrial]:
    """Every log that was replayed."""
    renamed = {"mean": "rate", "low": "rate_low", "high": "rate_high"}
    summary = with_budget_labels(replay.summary(), replay.settings).rename(columns=renamed)
    keys = zip(summary["policy"], summary["budget"], strict=True)
    summary["setting"] = [replay.settings[key] for key in keys]
    for key, rates in summary.groupby("environment", sort=False):
        places = list(rates["policy"].drop_duplicates())
        order = [(places.index(row.policy), row.budget_label.order) for row in rates.itertuples()]
        yield ReplayedTrial(
            replay.titles[str(key)],
            rates.assign(order=order).sort_values("order", ignore_index=True),
            float(rates["trial"].iloc[0]),
        )


def replay_in_words(trial: ReplayedTrial, styles: Styles) -> str:
    """Between which rates the policies lie that learned anything, and how sure that is."""
    rates = trial.rates[trial.rates["releases"] > 0]
    idle = _idle(trial.rates, styles)
    sentences = []
    if len(rates):
        low, high = rates.loc[rates["rate"].idxmin()], rates.loc[rates["rate"].idxmax()]
        sentences.append(
            f"Success rates run from {_rate_in_words(low, styles)} to"
            f" {_rate_in_words(high, styles)}."
        )
    sentences.append(f"{OWN[:1].upper()}{OWN[1:]} had {percent(trial.own_rate, 1)}.")
    if idle:
        sentences.append(
            f"Left out: {enumeration(idle)} made no release in the replay and so only played the"
            " first arm."
        )
    if len(rates):
        people, mean = float(rates["rounds"].mean()), float(rates["rate"].mean())
        chance = 1.96 * (mean * (1 - mean) / people) ** 0.5
        sentences.append(
            "The intervals cover only the order of the people and the policies' chance. With"
            f" some {people:,.0f} people counted, another choice of people may move a rate by"
            f" {100 * chance:.1f} points either way."
        )
    return " ".join(sentences)


def _idle(rates: pd.DataFrame, styles: Styles) -> list[str]:
    """Policies without a release: whole policies, and single budgets of others."""
    found: dict[str, None] = {}
    for policy, rows in rates.groupby("policy", sort=False):
        name, idle = styles[str(policy)].phrase, rows[rows["releases"] == 0]
        each = [f"{name}, {label.text}" for label in idle["budget_label"]]
        found |= dict.fromkeys([name] if len(idle) == len(rows) else each)
    return list(found)


def _rate_in_words(row: pd.Series, styles: Styles) -> str:
    def show(rate: float) -> str:
        return percent(rate, 1)

    rate = f"{show(row['rate'])}{interval_in_words(estimate_of(row, 'rate'), show)}"
    return f"{rate} for {styles[row['policy']].phrase}, {row['budget_label'].text}"
