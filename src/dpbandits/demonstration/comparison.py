"""Regret of the parties beside that of the same people in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..door import bandit
from ..simulation import simulate
from .people import People

RUNS = 20
PARTIES, CHANCE = "shuffle trust, three processes", "chance"
_SIMULATED = {
    "central trust": {"trust": "central"},
    "shuffle trust, one process": {"trust": "shuffle"},
    "local trust": {"trust": "local"},
}


class Curve(NamedTuple):
    """Regret after each batch: arrays of shape (batches,).

    Attributes:
        mean: over runs, or of the only one.
        low, high: of runs; NaN for one.
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of_one(cls, regrets: np.ndarray, ends: np.ndarray) -> Curve:
        """The curve of one run, by the regret of each person."""
        nothing = np.full(len(ends), np.nan)
        return cls(np.cumsum(regrets)[ends - 1], nothing, nothing)

    @property
    def final(self) -> float:
        """The regret of all people."""
        return float(self.mean[-1])


def curves(
    people: People, arms: np.ndarray, ends: np.ndarray, words: Mapping[str, Any], seed: int
) -> dict[str, Curve]:
    """Regret of the parties' arms, of simulations, and of chance.

    Args:
        ends: the number of people at the end of each batch.
        words: the experiment, as ``bandit`` takes it, but for its trust.
    """
    own = {PARTIES: Curve.of_one(people.regrets(arms), ends)}
    drawn = {CHANCE: Curve.of_one(people.regrets_of_chance, ends)}
    return {**own, **_simulated(people, ends.tolist(), words, seed), **drawn}


def _simulated(
    people: People, ends: Sequence[int], words: Mapping[str, Any], seed: int
) -> dict[str, Curve]:
    found = {}
    for label, trust in _SIMULATED.items():
        given: dict[str, Any] = {**words, **trust, "seed": seed}
        options: dict[str, Any] = {"horizon": ends[-1], "record": ends, "seed": seed}
        played = simulate(bandit(**given), people.table, runs=RUNS, **options).frame
        of_runs = played.pivot(index="run", columns="round", values="regret").to_numpy()
        found[label] = Curve(of_runs.mean(axis=0), of_runs.min(axis=0), of_runs.max(axis=0))
    return found
