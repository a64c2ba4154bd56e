"""Results of simulations: tidy tables that can be saved, summarised and compared."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import ArgumentError, StateFileError
from ..validation import integer, real

KEYS = ["environment", "policy", "budget"]


@dataclass(frozen=True)
class Result:
    """What ``simulate`` returns.

    Attributes:
        frame: one row per (environment, policy, budget, run, round) with the cumulative expected
            ``regret``, and ``holds``: what really holds where ``budget`` was asked for, "none"
            where nothing does.  With contexts and a linear truth also ``distance``, how far the
            policy's estimate of the parameter is from it in the L2 norm.
        runs: one row per (environment, policy, budget, run): ``holds``, final ``regret``,
            ``reward``, ``releases``, ``draws``, ``spent`` (in the currency of the budget) and
            ``pulls_0``, ``pulls_1``, ... .
        info: JSON data: ``horizon``, ``runs``, ``seed``; ``environments``: name -> ``title``,
            ``support`` of rewards, ``means``, ``arm_names``, ``reference``; ``policies``: one entry
            per policy and budget with ``policy``, ``budget``, ``holds``, ``reward_range`` (None
            where nothing is clipped), ``class``, ``currency``, ``limit`` of what ``spent`` counts,
            ``guarantee`` and ``sentence``.
    """

    frame: pd.DataFrame
    runs: pd.DataFrame
    info: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def combined(cls, results: Sequence[Result]) -> Result:
        """Several results as one: of the same or other policies, in the same or other environments.

        ``info`` names every environment and every policy with its budget once; ``horizon`` and
        ``runs`` are the largest.

        Raises:
            ArgumentError: there are none, or two hold the same policy and budget in the same
                environment.
        """
        if not results:
            raise ArgumentError("results must hold at least one result")
        held = pd.concat([result.runs[KEYS].drop_duplicates() for result in results])
        if held.duplicated().any():
            twice = held[held.duplicated()].iloc[0]
            raise ArgumentError(
                f"results must hold every policy once per environment, got {twice.to_dict()} twice"
            )
        infos = [result.info for result in results]
        info = {
            **infos[0],
            **{name: max(info[name] for info in infos) for name in ("horizon", "runs")},
            "environments": {
                name: facts for info in infos for name, facts in info["environments"].items()
            },
            "policies": described_once(infos),
        }
        frame = pd.concat([result.frame for result in results], ignore_index=True)
        return cls(frame, pd.concat([result.runs for result in results], ignore_index=True), info)

    def summary(
        self, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> pd.DataFrame:
        """Mean regret with a bootstrap confidence band, per policy and recorded round.

        Columns: environment, policy, budget, holds, round, mean, low, high, runs.  The band is the
        percentile bootstrap over runs.
        """
        confidence = real("confidence", confidence, 0.0, 1.0, strict=True)
        resamples = integer("resamples", resamples, 1)
        rng = np.random.default_rng(integer("seed", seed, 0))
        names, rows = [*KEYS, "holds"], []
        for keys, group in self.frame.groupby(names, sort=False, dropna=False, observed=True):
            curves = group.pivot(index="run", columns="round", values="regret")
            low, high = bootstrap_band(curves.to_numpy(), confidence, resamples, rng)
            table = pd.DataFrame(
                {
                    "round": curves.columns,
                    "mean": curves.mean().to_numpy(),
                    "low": low,
                    "high": high,
                    "runs": len(curves),
                }
            )
            rows.append(table.assign(**{str(k): v for k, v in zip(names, keys, strict=True)}))
        summary = pd.concat(rows, ignore_index=True)
        return summary[[*names, "round", "mean", "low", "high", "runs"]]

    def plot(self, **options: Any) -> Any:
        """Mean regret curves with bands, as a matplotlib figure."""
        from ..report.figures import regret_curves
        from ..report.guarantees import marks
        from ..report.labels import looks

        looks_of = looks(
            self.frame["policy"].drop_duplicates(), marks(self.info.get("policies", []))
        )
        return regret_curves(self.summary(), **{"looks_of": looks_of, **options})

    def save(self, path: str | Path) -> Path:
        """Write everything to one Parquet file; the file appears complete or not at all."""
        return save_table(path, self.frame, {"runs": self.runs.to_dict("list"), "info": self.info})

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read what ``save`` wrote.

        Raises:
            StateFileError: the file is no saved result.
        """
        frame, extra = load_table(path, "runs", "info")
        return cls(frame, pd.DataFrame(extra["runs"]), extra["info"])


def described_once(infos: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What several ``info`` say of policies, each policy with its budget once."""
    described = {
        (entry["policy"], entry["budget"]): entry for info in infos for entry in info["policies"]
    }
    return list(described.values())


def save_table(path: str | Path, table: pd.DataFrame, extra: dict[str, Any]) -> Path:
    """Write a table with JSON data to one Parquet file, which appears complete or not at all."""
    path, written = Path(path), pa.Table.from_pandas(table, preserve_index=False)
    metadata = {**(written.schema.metadata or {}), "dpbandits": json.dumps(extra)}
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        pq.write_table(written.replace_schema_metadata(metadata), temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def load_table(path: str | Path, *keys: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read what ``save_table`` wrote with these keys.

    Raises:
        StateFileError: the file is nothing of the kind.
    """
    try:
        table = pq.read_table(path)
        extra = json.loads(table.schema.metadata[b"dpbandits"])
        if set(extra) != set(keys):
            raise ValueError(f"it holds {sorted(extra)}")
    except FileNotFoundError:
        raise
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise StateFileError(f"{path} is not a saved result: {error}") from error
    return table.to_pandas(), extra


def bootstrap_band(
    curves: np.ndarray, confidence: float, resamples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap of the mean over rows; ``curves`` has shape (runs, points)."""
    runs = curves.shape[0]
    # Resampling rows is multinomial weighting of them: one matrix product instead of a gather per
    # resample.
    weights = rng.multinomial(runs, np.full(runs, 1.0 / runs), size=resamples) / runs
    means = weights @ curves
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail], axis=0)
    return low, high
