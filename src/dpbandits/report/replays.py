"""The replay of logged trials, ready for figures and tables, and what it shows in one paragraph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from .findings import interval, listed, of_row
from .labels import Look, level, percent
from .record import Replay
from .scenes import Scene


class Trial(NamedTuple):
    """One replayed trial.

    Attributes:
        name: of the log.
        rates: ``policy``, ``budget``, ``holds``, ``level``, ``rate``, ``rate_low``, ``rate_high``,
            mean ``rounds`` and ``releases``; rows of one policy together, budgets from strict to
            loose.
        own: name and success rate of the trial itself; None where it is not known.
    """

    name: str
    rates: pd.DataFrame
    own: tuple[str, float] | None


def trials(replay: Replay, scenes: Sequence[Scene]) -> Iterator[Trial]:
    """Every log that was replayed."""
    runs, summary = replay.runs, replay.summary()
    if "environment" not in summary:
        summary = summary.assign(environment=runs["environment"].iloc[0])
    for name, found in summary.groupby("environment", sort=False):
        counts = (
            runs[runs["environment"] == name]
            .groupby(["policy", "budget", "holds"])[["rounds", "releases"]]
            .mean()
            .reset_index()
        )
        rates = found.rename(columns={"mean": "rate", "low": "rate_low", "high": "rate_high"})
        rates = rates[["policy", "budget", "rate", "rate_low", "rate_high"]].merge(
            counts, on=["policy", "budget"]
        )
        rates["level"] = rates["budget"].map(level)
        places = {policy: i for i, policy in enumerate(rates["policy"].drop_duplicates())}
        rates["order"] = [(places[row.policy], row.level.order) for row in rates.itertuples()]
        yield Trial(
            str(name), rates.sort_values("order", ignore_index=True), _own_rate(str(name), scenes)
        )


def _own_rate(name: str, scenes: Sequence[Scene]) -> tuple[str, float] | None:
    known = [
        scene for scene in scenes if scene.reference is not None and scene.baseline is not None
    ]
    known.sort(key=lambda scene: scene.name != name)
    return (
        (known[0].baseline[0], known[0].baseline[1] / 1000) if known and known[0].baseline else None
    )


def in_words(trial: Trial, looks_of: Mapping[str, Look]) -> str:
    """Between which rates the policies lie that learned anything, and how sure that is."""
    rates = trial.rates[trial.rates["releases"] > 0]
    idle = _idle(trial.rates, looks_of)
    sentences = []
    if len(rates):
        low, high = rates.loc[rates["rate"].idxmin()], rates.loc[rates["rate"].idxmax()]
        sentences.append(
            f"Success rates run from {_told(low, looks_of)} to {_told(high, looks_of)}."
        )
    if trial.own is not None:
        sentences.append(
            f"{trial.own[0][:1].upper()}{trial.own[0][1:]} had {percent(trial.own[1], 1)}."
        )
    if idle:
        sentences.append(
            f"Left out: {listed(idle)} made no release in the replay and so only played the first"
            " arm."
        )
    if len(rates):
        people, mean = float(rates["rounds"].mean()), float(rates["rate"].mean())
        chance = 1.96 * (mean * (1 - mean) / people) ** 0.5
        sentences.append(
            "The intervals cover the order of the people and the policies' chance only: with some"
            f" {people:,.0f} people counted, who happened to take part moves a rate by"
            f" {100 * chance:.1f} points either way."
        )
    return " ".join(sentences)


def _idle(rates: pd.DataFrame, looks_of: Mapping[str, Look]) -> list[str]:
    """Who made no release: whole policies, and single budgets of others."""
    found: dict[str, None] = {}
    for policy, rows in rates.groupby("policy", sort=False):
        label, idle = looks_of[str(policy)].label, rows[rows["releases"] == 0]
        found |= dict.fromkeys(
            [label]
            if len(idle) == len(rows)
            else [f"{label}, {kind.shown}" for kind in idle["level"]]
        )
    return list(found)


def _told(row: pd.Series, looks_of: Mapping[str, Look]) -> str:
    label = f"{looks_of[row['policy']].label}, {row['level'].shown}"
    return (
        f"{percent(row['rate'], 1)}{interval(of_row(row, 'rate'), lambda rate: percent(rate, 1))}"
        f" for {label}"
    )
