"""Whether releases decide which arm is best, or whether one is better than a control."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..html import Html, tag
from ..validation import real, upward
from .intervals import Differences, Intervals, ReleasedSums, known

_DIGITS = 3  # of a gap in words


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """Whether it is decided which arm is best, from released values alone.

    A wrong answer ever comes with a probability of at most 1 - ``confidence``, at whichever look
    somebody stops.  An arm is decided when no other arm's mean is higher by ``gap`` or more; with a
    gap of 0, when its own is the highest.  With a control, an arm that leads is compared with the
    control alone, and a control that leads with all other arms.

    Attributes:
        arm: the arm that leads, which the answer is about; None before the first release.
        name: of that arm; empty without one.
        control: the name of the control; None without one.
        gap: as asked for.
        intervals: those that say so: of the mean of ``arm`` less the highest of the others, or of
            all differences to the control.

    Example:
        >>> import dpbandits as dpb
        >>> policy = dpb.bandit(["old", "new"], budget=dpb.ZCDP(0.5), seed=1)
        >>> for person in range(2000):
        ...     decision = policy.pull()
        ...     _ = policy.update(float(decision.name == "new"), decision)
        >>> policy.decided()
        <Decided at 95 %: new has the highest mean>
    """

    arm: int | None
    name: str
    control: str | None
    gap: float
    intervals: Intervals

    @classmethod
    def of(
        cls,
        sums: ReleasedSums,
        leader: int | None,
        confidence: float,
        gap: float,
        control: int | None,
        *,
        labels: Sequence[str] | None,
        **told: Any,
    ) -> Self:
        """The verdict on the arm that leads.  ``told`` are ``releases`` and ``breaks``."""
        names = labels or [str(a) for a in range(len(sums.cells))]
        pairs = None if control is None else Differences.from_control(control, len(names))
        # Two arms have one difference.
        if pairs is None and leader is not None and len(names) == 2:
            pairs = Differences.of_leader(leader, 2)
        if pairs is None:
            found = _margin(sums, leader, confidence, names, **told)
        else:
            found = Intervals.of(sums, confidence, pairs, method="mixture", labels=names, **told)
        return cls.on(found, leader, names, control, gap)

    @classmethod
    def on(
        cls,
        found: Intervals,
        leader: int | None,
        names: Sequence[str],
        control: int | None,
        gap: float,
    ) -> Self:
        """The verdict that intervals give: of a margin, or of differences to a control."""
        name = "" if leader is None else names[leader]
        against = None if control is None else names[control]
        return cls(leader, name, against, real("gap", gap, 0.0), found)

    @property
    def decided(self) -> bool:
        """Whether it is decided."""
        return self._most < self.gap

    @property
    def least_gap(self) -> float:
        """Every larger gap is decided by now; nan where an interval has no ends, and before the
        first release.
        """
        return max(self._most, 0.0)

    @property
    def _most(self) -> float:  # by which others may be better
        low, high = self.intervals.low, self.intervals.high
        if self.arm is None:
            return math.nan
        if self.control is None:
            return -float(low[0])
        if self.control == self.name:
            return float(high.max())
        return -float(low[list(self.intervals.labels).index(f"{self.name} - {self.control}")])

    @property
    def confidence(self) -> float:
        """The probability that no answer is ever wrong."""
        return self.intervals.confidence

    @property
    def breaks(self) -> Sequence[str]:
        """Sentences on what breaks the answer."""
        return self.intervals.breaks

    @property
    def words(self) -> str:
        """The answer in plain words."""
        level = f"ecided at {100.0 * self.confidence:.4g} %"
        return f"D{level}: {self._sure}" if self.decided else f"Not d{level}: {self._open}"

    @property
    def _sure(self) -> str:
        alone = self.control not in (None, self.name)
        if self.gap > 0.0:
            other = f"the mean of {self.control} is not" if alone else "no other mean is"
            return f"{other} higher than that of {self.name} by {self.gap:g} or more"
        return f"{self.name} has " + (
            f"a higher mean than {self.control}" if alone else "the highest mean"
        )

    @property
    def _open(self) -> str:
        if self.arm is None:
            return "nothing has been released yet"
        if math.isnan(self._most):
            return "releases contradict that means stay the same"
        other = (
            "another mean" if self.control in (None, self.name) else f"the mean of {self.control}"
        )
        by = f"{upward(self.least_gap, _DIGITS):g}"
        return f"{self.name} leads, but {other} may be higher by {by}"

    def to_dict(self) -> dict[str, Any]:
        """The verdict as data.

        Returns:
            ``decided``, ``arm``, ``name``, ``control``, ``gap``, ``least_gap`` (None for nan) and
            ``words``, with all of ``Intervals.to_dict``.
        """
        return {
            "decided": self.decided,
            "words": self.words,
            "arm": self.arm,
            "name": self.name,
            "control": self.control,
            "gap": self.gap,
            "least_gap": known(self.least_gap),
            **self.intervals.to_dict(),
        }

    def __repr__(self) -> str:
        return f"<{self.words}>"

    def __str__(self) -> str:
        return "\n".join([f"{self.words}.", *(f"* {one}" for one in self.breaks)])

    def _repr_html_(self) -> Html:
        listed = tag("ul", *(tag("li", one) for one in self.breaks))
        return tag("div", tag("p", tag("b", f"{self.words}.")), listed)


def _margin(
    sums: ReleasedSums,
    arm: int | None,
    confidence: float,
    names: Sequence[str],
    *,
    releases: int,
    breaks: Sequence[str],
) -> Intervals:
    """The interval of the mean of an arm, less the highest of the others; none without an arm."""
    confidence = real("confidence", confidence, 0.0, 1.0, strict=True)
    labels, found, means, rounds = [], [], [], []
    if arm is not None:
        labels, found = [f"{names[arm]} - best of the others"], [sums.margin(arm, confidence)]
        means, rounds = (
            [sums.means[arm] - np.fmax.reduce(np.delete(sums.means, arm))],
            [sums.rounds.sum()],
        )
    low, high = np.array(found, float).reshape(-1, 2).T
    return Intervals(
        confidence, low, high, np.array(means), np.array(rounds), labels, releases, breaks
    )
