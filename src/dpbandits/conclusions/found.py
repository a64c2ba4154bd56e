"""Intervals of a report, and how wide they would be without noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..html import NONE, Section, plot, written
from ..inference import Differences, Intervals, ReleasedSums
from ..inference.intervals import known


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """Intervals of means or of differences, and their width without noise.

    Attributes:
        intervals: as of ``Policy.intervals``.
        without_noise: the half widths if the same releases had no noise, shape (n,).
        among: how many intervals share the error.
        counted: whether the report may count rounds; widths without noise would tell these.
    """

    intervals: Intervals
    without_noise: np.ndarray
    among: int
    counted: bool

    @property
    def half_widths(self) -> np.ndarray:
        """Of the intervals, shape (n,)."""
        return (self.intervals.high - self.intervals.low) / 2.0

    @property
    def ends(self) -> str:
        """The intervals, in words."""
        return repr(self.intervals)[1:-1].partition(": ")[2]

    def to_dict(self) -> dict[str, Any]:
        """These intervals as data, with None for nan, and for counts that are not shown."""
        told = self.intervals.to_dict()
        if not self.counted:
            rows = [
                {**row, "rounds": None, "half_width": known(own), "half_width_without_noise": None}
                for row, own in zip(told["intervals"], self.half_widths, strict=True)
            ]
            return {"among": self.among, "intervals": rows}
        widths = zip(self.half_widths, self.without_noise, strict=True)
        rows = [
            {**row, "half_width": known(own), "half_width_without_noise": known(plain)}
            for row, (own, plain) in zip(told["intervals"], widths, strict=True)
        ]
        return {"among": self.among, "intervals": rows}

    def table(self, first: str, *, signs: bool = False) -> Section:
        """A row for each arm, or for each difference, which then says where its interval is."""
        ends = self.intervals
        rows = []
        for i, label in enumerate(ends.labels):
            low, high = float(ends.low[i]), float(ends.high[i])
            between = NONE if math.isnan(low) else f"{low:.4g} to {high:.4g}"
            row = [label, written(ends.means[i]), between, written(self.half_widths[i])]
            if self.counted:
                row.append(written(self.without_noise[i]))
            if signs or self.counted:
                row.append(_sign(low, high) if signs else f"{int(ends.rounds[i]):,}")
            rows.append(row)
        what = "difference" if signs else "mean"
        between = f"{100.0 * ends.confidence:.4g} % interval"
        heads = [first, what, between, "half width"]
        heads += ["without noise"] if self.counted else []
        heads += [""] if signs else ["rounds"] if self.counted else []
        lines = list(zip(ends.low, ends.means, ends.high, strict=True))
        drawn = plot(ends.labels, lines, "; ".join(f"{row[0]}: {row[2]}" for row in rows))
        return Section("", (), heads, rows, drawn)


def found_in(
    sums: ReleasedSums,
    confidence: float,
    arms: Sequence[str],
    releases: int,
    counted: bool,
    pairs: Differences | None,
) -> Found:
    """Intervals from released sums: of means, or of the differences of pairs."""
    told: dict[str, Any] = {"method": "mixture", "labels": arms, "releases": releases, "breaks": ()}
    own = Intervals.of(sums, confidence, pairs, **told)
    plain = Intervals.of(sums.without_noise(), confidence, pairs, **told)
    among = len(arms) if pairs is None else pairs.among
    return Found(own, (plain.high - plain.low) / 2.0, among, counted)


def _sign(low: float, high: float) -> str:
    if math.isnan(low):
        return ""
    return "above 0" if low > 0.0 else "below 0" if high < 0.0 else "contains 0"
