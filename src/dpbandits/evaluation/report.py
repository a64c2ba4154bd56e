"""Results of evaluations, and what they do not cover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..html import Html, glance, items

if TYPE_CHECKING:
    import pandas as pd

NOT_PRIVATE = (
    "This result is not private. It comes from raw rewards, without noise, and the budget of the"
    " bandit that wrote the log does not protect it. Show it only to people who may see the log."
)


class Diagnostics(NamedTuple):
    """How much a log tells about a target.

    Attributes:
        n: the number of rounds.
        episodes: the number of draws; rounds in which one draw stands are one episode.
        effective_sample_size: (sum w)^2 / sum w^2 over episodes, with w the sum of an episode's
            weights before clipping.
        largest_weight: of any round, before clipping.
        clipped: the share of rounds whose weight exceeds ``clip``.
        overlap: the mean weight, D/n.  It is about 1 if the log could play each arm of the target.
        overlap_low, overlap_high: its interval.
        support: the mean share of the target's probability on arms that the log could play: by
            ``propensities`` where they are known, and else on arms that occur in the log.
        left_out: why rows were left out, and how many.
    """

    n: int
    episodes: int
    effective_sample_size: float
    largest_weight: float
    clipped: float
    overlap: float
    overlap_low: float
    overlap_high: float
    support: float
    left_out: tuple[tuple[str, int], ...]

    @property
    def overlap_is_missing(self) -> bool:
        """Whether the interval of the mean weight excludes 1, or an arm has no support."""
        inside = self.overlap_low <= 1.0 <= self.overlap_high
        return not inside or self.support < 1.0 - 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The value of a target policy: the mean reward of a round, had it chosen in the place of the
    log's policy.

    It is not private: no budget covers it.

    Attributes:
        value: the estimate.
        low, high: the ends of its interval; nan where no value explains the log.
        estimator, interval, confidence: as ``evaluate`` was asked.
        diagnostics: how much the log tells.
        breaks: sentences on what the result does not cover.

    Example:
        >>> from dpbandits import evaluate
        >>> log = {"arm": [0, 1] * 50, "reward": [0.0, 1.0] * 50, "propensity": [0.5] * 100}
        >>> found = evaluate(log, 1)
        >>> found.value, found.low < 0.8, found.diagnostics.effective_sample_size
        (1.0, True, 50.0)
    """

    value: float
    low: float
    high: float
    estimator: str
    interval: str
    confidence: float
    diagnostics: Diagnostics
    breaks: Sequence[str]

    @property
    def frame(self) -> pd.DataFrame:
        """One row: ``value``, ``low``, ``high``, ``estimator``, ``interval``, ``confidence``, and
        the diagnostics.
        """
        import pandas as pd  # takes longer to import than all else here

        found = self.to_dict()
        told = {**found.pop("diagnostics")}
        told["left_out"] = sum(told["left_out"].values())
        del found["private"], found["breaks"]
        return pd.DataFrame([found | told])

    def to_dict(self) -> dict[str, Any]:
        """This evaluation as data.

        Returns:
            Attributes by name, with None for nan.  ``diagnostics`` is a dictionary, and so is its
            ``left_out``.  ``private`` is False.
        """
        told = {name: _known(one) for name, one in self.diagnostics._asdict().items()}
        told["left_out"] = dict(self.diagnostics.left_out)
        return {
            "value": _known(self.value),
            "low": _known(self.low),
            "high": _known(self.high),
            "estimator": self.estimator,
            "interval": self.interval,
            "confidence": self.confidence,
            "private": False,
            "diagnostics": told,
            "breaks": list(self.breaks),
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The diagnostics, in words.

        Returns:
            Heads, and a row for each diagnostic.
        """
        told = self.diagnostics
        overlap = f"{told.overlap:.4g}, interval {told.overlap_low:.4g} to {told.overlap_high:.4g}"
        rows = [
            ["rounds", f"{told.n:,}"],
            ["episodes", f"{told.episodes:,}"],
            ["effective sample size", f"{told.effective_sample_size:,.1f}"],
            ["largest weight", f"{told.largest_weight:.4g}"],
            ["share clipped", f"{100.0 * told.clipped:.4g} %"],
            ["mean weight (1 with full overlap)", overlap],
            ["support", f"{100.0 * told.support:.4g} %"],
            *([f"left out: {why}", f"{count:,}"] for why, count in told.left_out),
        ]
        return ["", ""], rows

    @property
    def title(self) -> str:
        """The value and its interval, in words."""
        share = f"{100.0 * self.confidence:.4g} % interval"
        ends = f"{share} {self.low:.4g} to {self.high:.4g} ({self.interval})"
        return f"{self.estimator} {self.value:.4g}, {ends}, not private"

    def __repr__(self) -> str:
        return f"<Evaluation: {self.title}>"

    def __str__(self) -> str:
        return "\n".join([f"{self.title}.", *(f"* {one}" for one in self.breaks)])

    def _repr_html_(self) -> Html:
        return Html(glance(self.title, *self.table()) + items(self.breaks))


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
