"""Intervals of arms' means and differences that hold at every release: see ``mixture``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..errors import ArgumentError
from ..html import NONE, Html, glance, tag, written
from ..validation import choice, real, shown
from .mixture import (
    Cells,
    Evidence,
    Noise,
    closed_form,
    least_difference,
    least_sum,
    reports,
    weighted_mean,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedSums:
    """The releases of each arm, and their noise.

    Attributes:
        cells: the batches of each arm, for rewards in [0, 1].
        noise: on a sum.
        low: the lower end of the reward range.
        width: of that range.
        rounding: how far the mean of rewards may be from that of the rounded ones.
    """

    cells: tuple[Cells, ...]
    noise: Noise
    low: float = 0.0
    width: float = 1.0
    rounding: float = 0.0

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """About each arm."""
        return tuple(Evidence.of(one, self.noise) for one in self.cells)

    @property
    def rounds(self) -> np.ndarray:
        """The rounds in the sums of each arm."""
        return np.array([int(one.rounds @ one.batches) for one in self.cells])

    @property
    def means(self) -> np.ndarray:
        """The mean of each arm's sums, each with its precision as weight; nan without any."""
        return self.low + self.width * self._means

    @property
    def _means(self) -> np.ndarray:  # of rewards in [0, 1]
        return np.array([weighted_mean(one, self.noise)[0] for one in self.cells])

    def joined(self, others: Iterable[ReleasedSums]) -> ReleasedSums:
        """These and others of equal noise and range, as one: see ``mixture``."""
        every = [one.cells for one in (self, *others)]
        cells = (
            Cells(*map(np.concatenate, zip(*of_one, strict=True)))
            for of_one in zip(*every, strict=True)
        )
        return replace(self, cells=tuple(cells))

    def without_noise(self) -> ReleasedSums:
        """What the same releases would be without noise, if the mean of each arm were the one that
        they have now, or the nearest in the range.
        """
        means = np.clip(np.nan_to_num(self._means), 0.0, 1.0)
        cells = [reports(n, n * mean) for n, mean in zip(self.rounds.tolist(), means, strict=True)]
        return replace(self, cells=tuple(cells), noise=Noise(0.0, is_laplace=False))

    def ends(self, confidence: float, method: str = "mixture") -> tuple[np.ndarray, np.ndarray]:
        """The lower and the upper ends of the intervals of all arms."""
        a = (1.0 - confidence) / len(self.cells)
        if method == "closed":
            found = [closed_form([one], [1.0], self.noise, a) for one in self.cells]
        else:
            found = [one.interval(a) for one in self.evidence]
        lower, upper = self.low + self.width * np.array(found).T
        lower, upper = lower - self.rounding, upper + self.rounding
        lower, upper = np.maximum(lower, self.low), np.minimum(upper, self.low + self.width)
        # Releases that no constant mean explains: no interval is left.
        empty = lower > upper
        lower[empty] = upper[empty] = np.nan
        return lower, upper

    def difference(
        self, b: int, c: int, confidence: float, method: str = "mixture"
    ) -> tuple[float, float]:
        """The ends of the interval of the mean of b, less that of c."""
        a = 1.0 - confidence
        if method == "closed":
            ends = closed_form([self.cells[b], self.cells[c]], [1.0, -1.0], self.noise, a)
        else:
            one, other = self.evidence[b], self.evidence[c]
            ends = (
                least_difference(one, other, 0.5 * a),
                -least_difference(other, one, 0.5 * a),
            )
        return self._of_differences(*ends)

    def margin(self, b: int, confidence: float) -> tuple[float, float]:
        """The ends of the interval of the mean of b, less the highest of the others.  Those of all
        arms hold together.
        """
        a, own = (1.0 - confidence) / len(self.cells), self.evidence[b]
        level, low, high = math.log(1.0 / a), 1.0, 1.0
        for c in self._rivals(b):
            other = self.evidence[c]
            if least_sum(own, other, low) < level:
                low = least_difference(own, other, a)
            if least_sum(other, own, -high) >= level:
                high = -least_difference(other, own, a)
        return self._of_differences(low, max(high, 0.0))

    def decides(self, b: int, confidence: float, gap: float) -> bool:
        """Whether the margin of b is above -gap, without computing its ends."""
        level = math.log(len(self.cells) / (1.0 - confidence))
        d = (2.0 * self.rounding - gap) / self.width
        if abs(d) > 1.0:
            return d < 0.0  # no two means are so far apart
        own, others = self.evidence[b], (self.evidence[c] for c in self._rivals(b))
        return all(least_sum(own, one, d) > level for one in others)

    def _rivals(self, b: int) -> list[int]:
        """The other arms, first those that leave the least margin: most others then need a look
        each.
        """
        order = np.argsort(-np.nan_to_num(self._means, nan=np.inf))
        return [int(c) for c in order if c != b]

    def _of_differences(self, low: float, high: float) -> tuple[float, float]:
        """The ends of an interval of differences, from those for rewards in [0, 1]."""
        reach = 2.0 * self.rounding
        lower = max(self.width * low - reach, -self.width)
        upper = min(self.width * high + reach, self.width)
        return (lower, upper) if lower <= upper else (math.nan, math.nan)


class Differences(NamedTuple):
    """Which differences are asked for.

    Attributes:
        pairs: of arms: the mean of the first, less that of the second.
        among: how many differences share the error, these included.
    """

    pairs: Sequence[tuple[int, int]]
    among: int

    @classmethod
    def from_control(cls, control: int, n_arms: int) -> Self:
        """Every other arm, less the control."""
        return cls([(b, control) for b in range(n_arms) if b != control], n_arms - 1)

    @classmethod
    def of_leader(cls, leader: int, n_arms: int) -> Self:
        """The leader, less every other arm.  Releases say who leads, so all pairs share the
        error.
        """
        pairs = [(leader, c) for c in range(n_arms) if c != leader]
        return cls(pairs, n_arms * (n_arms - 1) // 2)


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Intervals that hold at all releases together, from released values alone.

    With probability at least ``confidence`` none of them ever misses, at whichever release somebody
    looks or stops.  Several arms, or differences to one control, hold together.  They cost no
    privacy.

    Attributes:
        confidence: that probability.
        low, high: the ends, each of shape (n,): one for each arm or difference.  nan where releases
            contradict that a mean stays the same.
        means: of the sums that the intervals read, weighted by precision, or their differences; nan
            without any.
        rounds: in the released sums of the arm, or of both.
        labels: of the arms, or of the differences.
        releases: how many releases there were.
        breaks: sentences on what breaks the intervals.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
        >>> for _ in range(400):
        ...     decision = policy.pull()
        ...     _ = policy.update(float(decision.arm == 1))
        >>> policy.intervals().table()[1][1]
        ['1', '1.006', '0.9721', '1', '374']
    """

    confidence: float
    low: np.ndarray
    high: np.ndarray
    means: np.ndarray
    rounds: np.ndarray
    labels: Sequence[str]
    releases: int
    breaks: Sequence[str] = field(default=())

    @classmethod
    def of(
        cls,
        sums: ReleasedSums,
        confidence: float,
        differences: Differences | None,
        *,
        method: str,
        labels: Sequence[str] | None,
        releases: int,
        breaks: Sequence[str],
    ) -> Self:
        """The intervals of all arms, or of differences."""
        confidence = real("confidence", confidence, 0.0, 1.0, strict=True)
        checked_method(method, sums.noise)
        means, rounds = sums.means, sums.rounds
        labels = labels or [str(a) for a in range(len(means))]
        if differences is None:
            low, high = sums.ends(confidence, method)
        else:
            first, second = np.array(differences.pairs).T
            each = 1.0 - (1.0 - confidence) / differences.among
            found = [sums.difference(b, c, each, method) for b, c in differences.pairs]
            low, high = np.array(found).T
            labels = [f"{labels[b]} - {labels[c]}" for b, c in differences.pairs]
            means, rounds = means[first] - means[second], rounds[first] + rounds[second]
        breaks = [*breaks, *_gaps(labels, means, low)]
        return cls(confidence, low, high, means, rounds, labels, releases, breaks)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each arm, or for the difference: ``mean``, ``low``, ``high``, ``rounds``."""
        import pandas as pd  # takes longer to import than all else here

        columns = {"mean": self.means, "low": self.low, "high": self.high, "rounds": self.rounds}
        return pd.DataFrame(columns, pd.Index(self.labels, name="of"))

    def to_dict(self) -> dict[str, Any]:
        """These intervals as data.

        Returns:
            Attributes by name.  ``intervals`` is a list with a dictionary for each row, with None
            for nan.
        """
        rows = [
            {"of": label, **{name: known(value) for name, value in row.items()}}
            for label, row in zip(self.labels, self.frame.to_dict("records"), strict=True)
        ]
        return {
            "confidence": self.confidence,
            "releases": self.releases,
            "intervals": rows,
            "breaks": list(self.breaks),
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The intervals, in words.

        Returns:
            Heads, and a row for each arm or for the difference.
        """
        columns = self.labels, self.means, self.low, self.high, self.rounds
        return ["", "mean", "low", "high", "rounds"], [
            [label, *map(written, ends), f"{int(n):,}"]
            for label, *ends, n in zip(*columns, strict=True)
        ]

    @property
    def title(self) -> str:
        """Confidence and number of releases, in words."""
        count = f"{self.releases:,} release" + "s" * (self.releases != 1)
        return f"{100.0 * self.confidence:.4g} % intervals after {count}"

    def __repr__(self) -> str:
        found = "; ".join(
            f"{label}: {NONE if math.isnan(low) else f'{low:.4g} to {high:.4g}'}"
            for label, low, high in zip(self.labels, self.low, self.high, strict=True)
        )
        return f"<{self.title}: {found}>"

    def __str__(self) -> str:
        return "\n".join([f"{repr(self)[1:-1]}.", *(f"* {one}" for one in self.breaks)])

    def _repr_html_(self) -> Html:
        note = "They hold at all releases together. What they do not cover:"
        listed = tag("ul", *(tag("li", one) for one in self.breaks))
        return Html(glance(self.title, *self.table(), note=note) + listed)


def asked(
    difference: Any, control: Any, n_arms: int, number: Callable[[str, Any], int]
) -> Differences | None:
    """The differences that two arguments ask for; None for neither.

    ``number`` reads an arm of an argument.
    """
    if control is not None:
        if difference is not None:
            raise ArgumentError("difference must not be given with a control", "difference")
        if n_arms == 1:
            raise ArgumentError(
                f"control must be None for a policy with one arm, got {shown(control)}", "control"
            )
        return Differences.from_control(number("control", control), n_arms)
    if difference is None:
        return None
    if not isinstance(difference, tuple | list) or len(difference) != 2:
        raise ArgumentError(
            f"difference must be a pair of arms, got {shown(difference)}", "difference"
        )
    b, c = difference
    if b == c:
        raise ArgumentError(
            f"difference must have two different arms, got {b!r} twice", "difference"
        )
    return Differences([(number("difference", b), number("difference", c))], 1)


def checked_method(method: str, noise: Noise) -> None:
    """Refuse a method that is not proved for such noise."""
    choice("method", method, ("mixture", "closed"))
    if method == "closed" and noise.is_laplace and noise.scale > 0.0:
        raise ArgumentError(
            "method must be 'mixture' with Laplace noise, got 'closed': no proof covers 'closed'"
            " with this noise",
            "method",
        )


def _gaps(labels: Sequence[str], means: np.ndarray, low: np.ndarray) -> Iterator[str]:
    """Why some have no mean, and some no interval, in sentences."""
    for label, mean, end in zip(labels, means, low, strict=True):
        if math.isnan(end):
            yield f"{label}: no interval, because releases contradict that means stay the same."
        elif math.isnan(mean):
            yield f"{label}: no mean, because nothing of it was released."


def known(value: float) -> float | None:
    """A number in JSON, which has no nan."""
    return None if math.isnan(value) else float(value)
