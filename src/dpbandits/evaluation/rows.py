"""The rounds of a log that an evaluation uses, and refusals of logs that cannot show a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..tables import TableLike, array
from ..tables.manners import Manner

_ROUNDING = 1e-6  # of probabilities, which some formats write with few digits
_PROBABILITIES = Manner(low=0.0, high=1.0 + _ROUNDING)


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Recorded rounds with rewards and known propensities.

    Attributes:
        arms: shape (n,) int64, from 0.
        rewards: shape (n,).
        propensity: the probability with which each arm was drawn, shape (n,).
        episodes: the number of the draw of each round, shape (n,), from 0 in order of appearance.
        kept: which rows of the log they are, shape (n,); ``total`` counts its rows.
        names: of the arms; None without.
        contexts: an array or a list with an entry for each round; None without.
        propensities: those of all arms, shape (n, K); None where they are unknown.
        positions: of each round within a slate, from 0, shape (n,); None without.
        left_out: why rows were left out, and how many.
        of_decisions: whether a policy of this package made the decisions.
        users: the number of each round's person, shape (n,); None without.
    """

    arms: np.ndarray
    rewards: np.ndarray
    propensity: np.ndarray
    episodes: np.ndarray
    kept: np.ndarray
    total: int
    names: Sequence[str] | None = None
    contexts: Any = None
    propensities: np.ndarray | None = None
    positions: np.ndarray | None = None
    left_out: tuple[tuple[str, int], ...] = ()
    of_decisions: bool = False
    users: np.ndarray | None = None

    def __len__(self) -> int:
        return self.arms.size

    @property
    def n_arms(self) -> int:
        """How many arms there are, as far as the log tells."""
        known = 0 if self.propensities is None else self.propensities.shape[1]
        return max(int(self.arms.max()) + 1, len(self.names or ()), known)

    def with_arms(self, n_arms: int) -> Rows:
        """These rows where there are more arms, which the log never drew."""
        if self.propensities is None:
            return self
        return replace(self, propensities=padded(self.propensities, n_arms))

    def sums(self, terms: np.ndarray) -> np.ndarray:
        """The sum of terms in each episode."""
        return np.bincount(self.episodes, terms)

    def of_each(self, argument: str, given: np.ndarray) -> np.ndarray:
        """A table of one line, or of one for each row of the log, as shape (n, ...)."""
        if given.ndim == 1:
            return np.broadcast_to(given, (len(self), given.size))
        if len(given) == self.total:
            return given[self.kept]
        raise ArgumentError(
            f"{argument} must have a row for each of the {self.total:,} rows of the log, got"
            f" {len(given):,}",
            argument,
        )


def probability_table(argument: str, given: TableLike, *axes: str) -> np.ndarray:
    """An array of probabilities of arms, which are along its axis K, and add up to 1 there."""
    found = array(argument, given, _PROBABILITIES, *axes)
    at = 0 if found.ndim == 1 else 1
    if (np.abs(found.sum(axis=at) - 1.0) > _ROUNDING).any():
        raise ArgumentError(
            f"{argument} must hold probabilities of arms that add up to 1", argument
        )
    return found


def padded(table: np.ndarray, width: int) -> np.ndarray:
    """A table with columns of 0 for further arms."""
    missing = max(width - table.shape[1], 0)
    return np.pad(table, ((0, 0), (0, missing))) if missing else table


def chosen(table: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """The entry of each row for its arm."""
    return np.asarray(table[np.arange(arms.size), arms])


def refuse_propensities(propensity: np.ndarray) -> None:
    """Refuse a log with unknown propensities."""
    if unknown := int(np.isnan(propensity).sum()):
        raise ArgumentError(
            f"log must hold the propensity of each decision, got none in {unknown:,} of"
            f" {propensity.size:,} rows: Thompson sampling and FTPL have no formula for"
            " propensities. Use decisions with known propensities, such as those of a holdout",
            "log",
        )


def refuse_missing_overlap(rows: Rows, target: np.ndarray) -> None:
    """Refuse a log that shows nothing of what the target would do: weights look valid there."""
    certain = (rows.propensity >= 1.0 - _ROUNDING) & (chosen(target, rows.arms) < 1.0 - _ROUNDING)
    if count := int(certain.sum()):
        raise ArgumentError(
            "log must hold random choices where the target may choose another arm, got propensity"
            f" 1 in {count:,} of {len(rows):,} rows. Arms and Linear draw no arm at random: use"
            " random decisions, such as those of a holdout (held_out=True)",
            "log",
        )
    if not (chosen(target, rows.arms) > 0.0).any():
        raise ArgumentError(
            "target must choose the log's arm in at least one row, got none",
            "target",
        )
