"""The numbers of a report: tables, and paired comparisons, with bootstrap intervals over runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..simulation.clipping import clipping_in_words
from ..simulation.results import Result
from ..simulation.settings import PolicySetting, SettingsByKey, with_budget_labels
from .deciding import first_answers
from .means import CONFIDENCE, RESAMPLES, Estimate, estimate
from .searches import ended

_SLACK = 1e-9  # by rounding, an exactly spent budget may be exceeded by so much of itself


class Reference(NamedTuple):
    """An allocation to compare with."""

    name: str
    shares: np.ndarray  # (K,): of every arm


class Baseline(NamedTuple):
    """The successes of an allocation per 1,000 people."""

    name: str
    helped: float


@dataclass(frozen=True)
class EnvironmentSummary:
    """One environment of a study, made ready for figures and tables.

    ``runs`` are the result's, with ``helped``: the expected successes per 1,000 people, given the
    played arms.  ``table`` has a row per policy and budget, in the order of the study with strict
    budgets first.  Its columns are keys, ``setting``, ``budget_label``, and means with their
    intervals.  For searches for the best arm there are columns on how they ended, and columns on
    first answers where it was asked whether it is decided which arm is best.
    """

    key: str  # in the tables of the result
    title: str  # for headings; no other environment's
    arms: list[str]  # their names
    means: np.ndarray | None  # mean reward per arm, where the environment says it
    reference: Reference | None  # the allocation to compare with
    baseline: Baseline | None  # the reference's, or that of equal shares; None without ``means``
    horizon: int  # rounds of a run
    runs: pd.DataFrame
    curves: pd.DataFrame  # the result's summary, with a ``budget_label``
    table: pd.DataFrame
    distances: pd.DataFrame | None  # as ``curves``: how far estimates of the parameter are from it
    clipping: dict[str, str]  # policy -> what becomes of rewards that it does not see as they are
    asked: Mapping[str, float] | None  # arguments of ``Policy.decided``; None where nobody asked
    fixed_arms: bool  # whether they are the same in every round, and not numbers of fresh contexts

    @property
    def gained(self) -> str:
        """Whether means count successes, as in a trial with an allocation of its own."""
        return "successes" if self.reference else "reward"

    @property
    def best(self) -> int | None:
        """The arm of the highest mean."""
        return None if self.means is None else int(self.means.argmax())

    def paired_difference(self, column: str, one: pd.Series, other: pd.Series) -> Estimate:
        """The mean difference in a column of ``runs`` between two rows of the table, run by run."""
        a, b = self._column(column, one), self._column(column, other)
        return estimate((a - b).dropna().to_numpy())

    def without_privacy(self, row: pd.Series) -> pd.Series | None:
        """The row of the same policy without privacy; None where it was not played so."""
        private = self.table["budget_label"].map(lambda label: label.private)
        found = self.table[(self.table["policy"] == row["policy"]) & ~private]
        return None if found.empty else found.iloc[0]

    def _column(self, column: str, row: pd.Series) -> pd.Series:
        chosen = (self.runs["policy"] == row["policy"]) & (self.runs["budget"] == row["budget"])
        return self.runs[chosen].set_index("run")[column]


def environment_summaries(result: Result) -> list[EnvironmentSummary]:
    """Every environment of a result."""
    curves = with_budget_labels(result.summary(CONFIDENCE, RESAMPLES), result.settings)
    distances = _distances(result)
    return [
        _environment_summary(result, key, _in_environment(curves, key), distances)
        for key in result.runs["environment"].drop_duplicates()
    ]


def _distances(result: Result) -> pd.DataFrame | None:
    """The summary of distances, of the policies that have an estimate."""
    if "distance" not in result.frame:
        return None
    known = result.frame[result.frame["distance"].notna()]
    if known.empty:
        return None
    measured = replace(result, frame=known.assign(regret=known["distance"]))
    return with_budget_labels(measured.summary(CONFIDENCE, RESAMPLES), result.settings)


def _in_environment(table: pd.DataFrame, key: str) -> pd.DataFrame:
    return table[table["environment"] == key].reset_index(drop=True)


def _environment_summary(
    result: Result, key: str, curves: pd.DataFrame, distances: pd.DataFrame | None
) -> EnvironmentSummary:
    facts: dict[str, Any] = result.info["environments"][key]
    arms, n_arms = facts["arm_names"], len(facts["arm_names"])
    means = None if facts["means"] is None else np.asarray(facts["means"], float)
    given = facts["reference"]
    reference = None if given is None else Reference(given["name"], np.asarray(given["shares"]))
    baseline = None if means is None else _baseline(means, reference)
    runs = _with_shares(_in_environment(result.runs, key), n_arms, means)
    near = None if distances is None else _in_environment(distances, key)
    return EnvironmentSummary(
        key=key,
        title=result.titles[key],
        arms=arms,
        means=means,
        reference=reference,
        baseline=baseline,
        horizon=int(curves["round"].max()),
        runs=runs,
        curves=curves,
        table=_table(runs, curves, baseline, result.settings),
        distances=None if near is None or near.empty else near,
        clipping=_clipping(result.settings, facts["support"]),
        asked=result.info.get("decided"),
        fixed_arms=means is not None or arms != [f"arm {a}" for a in range(n_arms)],
    )


def _baseline(means: np.ndarray, reference: Reference | None) -> Baseline:
    if reference is None:
        return Baseline("equal shares", 1000 * float(means.mean()))
    return Baseline(reference.name, 1000 * float(reference.shares @ means))


def _with_shares(runs: pd.DataFrame, n_arms: int, means: np.ndarray | None) -> pd.DataFrame:
    pulls = runs[[f"pulls_{a}" for a in range(n_arms)]].to_numpy(float)
    shares = pulls / pulls.sum(axis=1, keepdims=True)
    columns = {f"share_{a}": shares[:, a] for a in range(n_arms)}
    columns["helped"] = np.full(len(runs), np.nan) if means is None else 1000 * shares @ means
    return pd.concat([runs, pd.DataFrame(columns, index=runs.index)], axis=1)


def _clipping(settings: SettingsByKey, support: list[float | None]) -> dict[str, str]:
    told = ((one.policy, clipping_in_words(one.reward_range, support)) for one in settings.values())
    return {policy: effect for policy, effect in told if effect is not None}


def _table(
    runs: pd.DataFrame, curves: pd.DataFrame, baseline: Baseline | None, settings: SettingsByKey
) -> pd.DataFrame:
    final = curves[curves["round"] == curves["round"].max()].set_index(["policy", "budget"])
    order = {policy: i for i, policy in enumerate(runs["policy"].drop_duplicates())}
    rows = [
        _row(settings[keys], group, final.loc[keys], baseline)
        for keys, group in runs.groupby(["policy", "budget"], sort=False)
    ]
    rows.sort(key=lambda row: (order[row["policy"]], row["budget_label"].order))
    return pd.DataFrame(rows)


def _row(
    setting: PolicySetting, runs: pd.DataFrame, at_end: pd.Series, baseline: Baseline | None
) -> dict[str, Any]:
    single = len(runs) < 2
    limit = np.inf if setting.limit is None else setting.limit
    row = {
        **setting.keys,
        "setting": setting,
        "budget_label": at_end["budget_label"],
        "runs": len(runs),
        "regret": at_end["mean"],
        "regret_low": np.nan if single else at_end["low"],
        "regret_high": np.nan if single else at_end["high"],
        "spent": runs["spent"].max(),
        "over": int((runs["spent"] > limit * (1 + _SLACK)).sum()),
        **{name: runs[name].mean() for name in ("releases", "draws")},
        **{name: runs[name].mean() for name in runs if str(name).startswith("share_")},
    }
    usual = np.nan if baseline is None else baseline.helped
    for name, values in {"helped": runs["helped"], "gain": runs["helped"] - usual}.items():
        row[name], row[f"{name}_low"], row[f"{name}_high"] = estimate(values.to_numpy())
    return row | ended(runs) | first_answers(runs)
