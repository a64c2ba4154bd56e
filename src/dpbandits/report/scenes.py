"""What a report says in numbers: one table per environment, and paired comparisons, all with
bootstrap intervals over runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..simulation.clipping import clipped
from ..simulation.results import Result, bootstrap_band
from .labels import level

CONFIDENCE = 0.95
_RESAMPLES = 2000


class Estimate(NamedTuple):
    """A mean over runs with its interval; both ends are NaN where there is one run only."""

    mean: float
    low: float
    high: float


class Scene(NamedTuple):
    """One environment of a study, made ready for figures and tables.

    Attributes:
        name: as in the result.
        title: for headings: shorter, and no other environment's.
        arms: their names.
        means: mean reward per arm; None where the environment does not say.
        reference: name and shares of the allocation to compare with; None where there is none.
        horizon: rounds of a run.
        runs: the result's rows of this environment, with ``helped``: the expected successes per
            1,000 people, given which arms were played.
        curves: the result's summary of this environment.
        table: one row per policy and budget, in the order of the study, budgets from strict to
            loose.
        distances: a summary as ``curves``, of how far estimates of the parameter are from it; None
            where there are none.
        clipped: policy -> what becomes of rewards outside of its range, for those that do not see
            all rewards as they are.
        named: whether arms are the same in every round, so that their shares mean something; fresh
            contexts have numbers only.
    """

    name: str
    title: str
    arms: list[str]
    means: np.ndarray | None
    reference: tuple[str, np.ndarray] | None
    horizon: int
    runs: pd.DataFrame
    curves: pd.DataFrame
    table: pd.DataFrame
    distances: pd.DataFrame | None = None
    clipped: Mapping[str, str] = MappingProxyType({})
    named: bool = True

    @property
    def baseline(self) -> tuple[str, float] | None:
        """What ``helped`` is compared with: the reference's, or that of equal shares."""
        if self.means is None:
            return None
        name, shares = self.reference or (
            "equal shares",
            np.full(len(self.arms), 1 / len(self.arms)),
        )
        return name, 1000 * float(shares @ self.means)

    @property
    def gained(self) -> str:
        """What a mean counts: successes, in a trial with an allocation of its own."""
        return "successes" if self.reference else "reward"

    @property
    def best(self) -> int | None:
        """The arm of the highest mean."""
        return None if self.means is None else int(self.means.argmax())

    def paired(self, column: str, one: pd.Series, other: pd.Series) -> Estimate:
        """The mean difference in a column between two rows of the table, run by run."""
        a, b = self._column(column, one), self._column(column, other)
        return estimate((a - b).dropna().to_numpy())

    def open_row(self, row: pd.Series) -> pd.Series | None:
        """The same policy without privacy."""
        found = self.table[
            (self.table["policy"] == row["policy"]) & (self.table["budget"] == "none")
        ]
        return None if found.empty else found.iloc[0]

    def _column(self, column: str, row: pd.Series) -> pd.Series:
        chosen = (self.runs["policy"] == row["policy"]) & (self.runs["budget"] == row["budget"])
        return self.runs[chosen].set_index("run")[column]


def estimate(values: np.ndarray) -> Estimate:
    """Mean and percentile bootstrap interval of one number per run."""
    if values.size < 2:
        return Estimate(float(values.mean()) if values.size else np.nan, np.nan, np.nan)
    low, high = bootstrap_band(values[:, None], CONFIDENCE, _RESAMPLES, np.random.default_rng(0))
    return Estimate(float(values.mean()), float(low[0]), float(high[0]))


def scenes(result: Result) -> list[Scene]:
    """Every environment of a result."""
    summary = result.summary(CONFIDENCE, _RESAMPLES)
    distances = _distances(result)
    return [
        _scene(
            result, str(name), summary[summary["environment"] == name], _of(distances, str(name))
        )
        for name in result.runs["environment"].drop_duplicates()
    ]


def _distances(result: Result) -> pd.DataFrame | None:
    """The summary of distances, of the policies that have an estimate."""
    if "distance" not in result.frame:
        return None
    known = result.frame[result.frame["distance"].notna()]
    frame = known.assign(regret=known["distance"])
    return None if frame.empty else replace(result, frame=frame).summary(CONFIDENCE, _RESAMPLES)


def _of(summary: pd.DataFrame | None, environment: str) -> pd.DataFrame | None:
    if summary is None:
        return None
    chosen = summary[summary["environment"] == environment]
    return None if chosen.empty else chosen


def _scene(
    result: Result, name: str, curves: pd.DataFrame, distances: pd.DataFrame | None
) -> Scene:
    facts: dict[str, Any] = result.info.get("environments", {}).get(name) or {}
    runs = result.runs[result.runs["environment"] == name].reset_index(drop=True)
    # Environments of one study may have different numbers of arms: the columns of the others are
    # empty here.
    pulls = runs[[c for c in runs if c.startswith("pulls_") and runs[c].notna().any()]].to_numpy(
        float
    )
    shares = pulls / pulls.sum(axis=1, keepdims=True)
    means = None if facts.get("means") is None else np.asarray(facts["means"], float)
    reference = facts.get("reference")
    runs["helped"] = np.nan if means is None else 1000 * shares @ means
    for a in range(shares.shape[1]):
        runs[f"share_{a}"] = shares[:, a]
    scene = Scene(
        name=name,
        title=_title(result, name),
        arms=[
            str(arm)
            for arm in facts.get("arm_names") or [f"arm {a}" for a in range(shares.shape[1])]
        ],
        means=means,
        reference=(
            None
            if reference is None
            else (str(reference["name"]), np.asarray(reference["shares"], float))
        ),
        horizon=int(curves["round"].max()),
        runs=runs,
        curves=curves,
        table=pd.DataFrame(),
        distances=distances,
        clipped=_clipped(result, facts),
        named=not facts
        or means is not None
        or facts.get("arm_names") != [f"arm {a}" for a in range(shares.shape[1])],
    )
    return scene._replace(table=_table(scene, _policies(result)))


def _title(result: Result, name: str) -> str:
    """The environment's own title where that tells it from the others of the result."""
    titles = {
        other: str(facts.get("title", other))
        for other, facts in result.info.get("environments", {}).items()
    }
    title = titles.get(name, name)
    return title if list(titles.values()).count(title) < 2 else name


def _clipped(result: Result, facts: Mapping[str, Any]) -> dict[str, str]:
    told = {
        entry["policy"]: clipped(entry["reward_range"], facts.get("support"))
        for entry in result.info.get("policies", [])
    }
    return {policy: what for policy, what in told.items() if what is not None}


def _policies(result: Result) -> dict[tuple[str, str], dict[str, Any]]:
    return {(entry["policy"], entry["budget"]): entry for entry in result.info.get("policies", [])}


def _table(scene: Scene, policies: dict[tuple[str, str], dict[str, Any]]) -> pd.DataFrame:
    final = scene.curves[scene.curves["round"] == scene.horizon].set_index(["policy", "budget"])
    order = {policy: i for i, policy in enumerate(scene.runs["policy"].drop_duplicates())}
    rows = []
    for (policy, budget), group in scene.runs.groupby(["policy", "budget"], sort=False):
        at_end, entry = final.loc[(policy, budget)], policies.get((policy, budget), {})
        single = len(group) < 2
        row = {
            "policy": policy,
            "budget": budget,
            "holds": group["holds"].iloc[0],
            "level": level(budget),
            "runs": len(group),
            "currency": entry.get("currency"),
            "limit": entry.get("limit"),
            "regret": at_end["mean"],
            "regret_low": np.nan if single else at_end["low"],
            "regret_high": np.nan if single else at_end["high"],
            "spent": group["spent"].max(),
            "over": int((group["spent"] > (entry.get("limit") or np.inf) * (1 + 1e-9)).sum()),
            **{name: group[name].mean() for name in ("releases", "draws")},
            **{name: group[name].mean() for name in group if name.startswith("share_")},
        }
        for name, values in {
            "helped": group["helped"],
            "gain": group["helped"] - (scene.baseline or ("", np.nan))[1],
        }.items():
            row[name], row[f"{name}_low"], row[f"{name}_high"] = estimate(values.to_numpy())
        rows.append(row)
    rows.sort(key=lambda row: (order[row["policy"]], row["level"].order))
    return pd.DataFrame(rows)
