"""The findings of replays of logged trials, in one paragraph."""

from __future__ import annotations

import pandas as pd

from ..plotting.labels import OWN_ALLOCATION
from ..plotting.numbers import percent
from ..plotting.styles import Styles
from ..simulation.replaying import ReplayedTrial
from .findings import enumeration
from .means import estimate_of, interval_in_words


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
    sentences.append(
        f"{OWN_ALLOCATION[:1].upper()}{OWN_ALLOCATION[1:]} had {percent(trial.own_rate, 1)}."
    )
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
