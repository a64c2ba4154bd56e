"""The ledger: one line per release, and the largest privacy loss of any person.

A line covers the records of the rounds ``first..last``.  Its ``part`` says which of them: ``WHOLE``
for all, otherwise only the records of that part (one arm, say).  Parts are disjoint sets of
records.  So sums over alternating arms compose in parallel although their spans interleave.
``repeats`` adjacent equal lines of equal length are folded into one; a record is in one of them.

Guarantee: no record loses more than the spent budget, which is the largest total cost, over all
records, of the lines that cover a record.  It assumes that the line of a record depends only on
values released before that record arrived.

Lines of disjoint records compose in parallel, and overlapping ones add up.  This is valid under
adaptive choice of lines because each currency (see ``budgets``) composes adaptively.  The parallel
part is the argument of Azize & Basu (2024, Lemma 1 and Appendix D).

Let a user have M records, no two of them in one release.  A meter charges each line the cost of M
such releases to that user (``growth``).  The user's true loss is the sum over their records of an
M-th of that. It is the mean of M totals, hence at most the largest total.  Lines of a running sum
together cost the user one such charge.  So no user exceeds a budget that no total exceeds.

The arrays live in compiled loops and behind ``pull``/``update``; ``write`` alone adds to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import DPBanditsError
from ..html import Html, glance
from ..kernel import kernel, outlined
from ..validation import downward, upward
from .budgets import Budget, Currency, checked_budget
from .channels import CERTIFIED, FAMILY_NAMES, OPEN, unit_cost

if TYPE_CHECKING:
    import dp_accounting
    import pandas as pd

WHOLE = -1


class SpanSlots(NamedTuple):
    """The columns of ``LedgerArrays.span``."""

    first: int = 0
    last: int = 1
    part: int = 2
    repeats: int = 3
    family: int = 4


class NoiseSlots(NamedTuple):
    """The columns of ``LedgerArrays.noise``."""

    sensitivity: int = 0
    multiplier: int = 1


class HeadSlots(NamedTuple):
    """The places of ``LedgerArrays.head``."""

    lines: int = 0
    releases: int = 1
    draws: int = 2


SPAN, NOISE, HEAD = SpanSlots(), NoiseSlots(), HeadSlots()

_SHOWN = 10  # lines in a notebook
_SLACK = 1e-9  # relative; by rounding, the costs of an exactly spent budget may add up to more


class Line(NamedTuple):
    """A line, as ``write`` takes it."""

    first: int
    last: int
    part: int
    family: int
    sensitivity: float
    multiplier: float
    draws: int


class LedgerArrays(NamedTuple):
    """The ledger's storage."""

    span: np.ndarray  # (capacity, 5) int64: first round, last round, part, repeats, family
    noise: np.ndarray  # (capacity, 2) float64: sensitivity, multiplier
    head: np.ndarray  # (3,) int64: lines used, releases, scalar noise draws


def empty_arrays(capacity: int = 64) -> LedgerArrays:
    """A ledger without lines."""
    return LedgerArrays(
        np.zeros((capacity, 5), np.int64), np.zeros((capacity, 2)), np.zeros(3, np.int64)
    )


def grown(arrays: LedgerArrays) -> LedgerArrays:
    """A copy of the ledger with room for twice as many lines."""
    larger = empty_arrays(2 * arrays.span.shape[0])
    used = int(arrays.head[HEAD.lines])
    larger.span[:used], larger.noise[:used] = arrays.span[:used], arrays.noise[:used]
    larger.head[:] = arrays.head
    return larger


def ending_of(arrays: LedgerArrays) -> tuple[list[int], list[int]]:
    """The head and the last span, for ``cut_to``: of earlier lines ``write`` changes nothing."""
    head: list[int] = arrays.head.tolist()
    lines = head[HEAD.lines]
    return head, arrays.span[lines - 1].tolist() if lines else []


def cut_to(arrays: LedgerArrays, ending: tuple[list[int], list[int]]) -> None:
    """Take back everything that was written since ``ending_of``."""
    arrays.head[:], span = ending
    if span:
        arrays.span[arrays.head[HEAD.lines] - 1] = span


@kernel
def is_full(ledger: LedgerArrays) -> bool:
    """Whether the next line may find no room."""
    return ledger.head[HEAD.lines] >= ledger.span.shape[0]


@outlined
def write(
    ledger: LedgerArrays,
    first: int,
    last: int,
    part: int,
    family: int,
    sensitivity: float,
    multiplier: float,
    draws: int,
) -> None:
    """Add a line, or fold it into the one before; the caller has made sure that there is room."""
    span, noise, head = ledger.span, ledger.noise, ledger.head
    head[HEAD.releases] += 1
    head[HEAD.draws] += draws
    new = head[HEAD.lines]
    old = new - 1
    # Folded if the noise is equal, and the rounds are the next ones, as many as each repeat has.
    if (
        old >= 0
        and span[old, SPAN.last] + 1 == first
        and span[old, SPAN.part] == part
        and span[old, SPAN.family] == family
        and noise[old, NOISE.sensitivity] == sensitivity
        and noise[old, NOISE.multiplier] == multiplier
        and span[old, SPAN.last] - span[old, SPAN.first] + 1
        == span[old, SPAN.repeats] * (last - first + 1)
    ):
        span[old, SPAN.last] = last
        span[old, SPAN.repeats] += 1
        return
    span[new, SPAN.first], span[new, SPAN.last], span[new, SPAN.part] = first, last, part
    span[new, SPAN.repeats], span[new, SPAN.family] = 1, family
    noise[new, NOISE.sensitivity], noise[new, NOISE.multiplier] = sensitivity, multiplier
    head[HEAD.lines] = new + 1


class WorstRecord(NamedTuple):
    """The record that the lines of a ledger cost most."""

    cost: float
    round: int
    part: int


def worst_record(span: np.ndarray, costs: np.ndarray) -> WorstRecord:
    """The largest sum of costs over the lines that cover one record; infinite as soon as one is.

    ``span`` has shape (n, 5), ``costs`` (n,).  A line of a part covers that part's records, a WHOLE
    one those of all parts.  Totals only grow where a line opens: the worst record is at a start.
    """
    # A line without rounds covers no record.
    covering = span[:, SPAN.first] <= span[:, SPAN.last]
    span, costs = span[covering], costs[covering]
    if not len(costs):
        return WorstRecord(0.0, 0, 0)
    if not np.all(costs < np.inf):
        worst = int(np.argmin(costs < np.inf))
        return WorstRecord(np.inf, int(span[worst, SPAN.first]), int(span[worst, SPAN.part]))
    whole = span[:, SPAN.part] == WHOLE
    if not whole.any() or whole.all():
        return _worst_within_parts(span, costs)
    found = []
    for part in np.unique(span[~whole, SPAN.part]):
        # A WHOLE line counts once in every part, because a record is in one part.
        mine = span[whole | (span[:, SPAN.part] == part)]
        mine[:, SPAN.part] = part
        found.append(_worst_within_parts(mine, costs[whole | (span[:, SPAN.part] == part)]))
    return max(found)


def _worst_within_parts(span: np.ndarray, costs: np.ndarray) -> WorstRecord:
    """The worst record where every line covers the records of one part, and none of another."""
    n, part = len(costs), np.maximum(span[:, SPAN.part], 0)
    # Lines open with their first round, and close, ahead of others' opening, after their last.
    time = np.concatenate([span[:, SPAN.last] + 1, span[:, SPAN.first]])
    opens = np.repeat([0, 1], n)
    order = np.lexsort((opens, time, np.tile(part, 2)))
    # Each part closes all lines that it opens, so the sum is 0 again where the next part begins.
    totals = np.cumsum(np.concatenate([-costs, costs])[order])
    at = order[np.argmax(totals)] % n
    return WorstRecord(float(totals.max()), int(span[at, SPAN.first]), int(part[at]))


@dataclass(frozen=True)
class Meter:
    """A meter of costs: the currency, the limit, and the conversion of a total into a budget.

    ``growth`` is by how much farther a unit moves all its releases together than a record moves
    one: sqrt(M) for M records under Gaussian noise, M under Laplace noise (``Counter.growth``).
    """

    currency: Currency
    limit: float
    budget: Budget
    growth: float = 1.0

    @classmethod
    def of(cls, budget: Budget, *, gaussian: bool = True) -> Meter:
        """The meter of a budget; (epsilon, delta) of other than Gaussian noise is kept in zCDP."""
        return cls(*checked_budget(budget).kept_in(gaussian=gaussian), budget)

    def cost(self, family: int, multiplier: float) -> float:
        """The cost of one release, or to a unit with several records of all that they are in."""
        return unit_cost(family, multiplier / self.growth, self.currency, self.budget.order)

    def allows(self, total: float) -> bool:
        """Whether a total is within the limit."""
        return total <= self.limit * (1.0 + _SLACK)

    def describe(self, total: float) -> Budget | None:
        """A total as a budget of the same notion; None for nothing spent.

        For an (epsilon, delta) budget it is the epsilon at the budget's delta.  A total that
        differs from the limit by rounding only is the budget itself.  Others are rounded up to six
        digits, and to no more than a budget that they keep.
        """
        if abs(total - self.limit) <= _SLACK * self.limit:
            return self.budget
        if total <= 0.0:
            return None
        if math.isinf(total):
            raise DPBanditsError(f"the releases have no finite cost under {self.budget!r}")
        value = upward(self.budget.of(total, self.currency).value)
        return self.budget.at(min(value, self.budget.value) if self.allows(total) else value)

    def shown(self, total: float) -> float:
        """A total to six digits, rounded up, and no more than a limit that it keeps."""
        if abs(total - self.limit) <= _SLACK * self.limit:
            return self.limit
        return min(upward(total), self.limit) if self.allows(total) else upward(total)


class Ledger:
    """A view of a ledger under a budget.  Without a budget, no costs are counted.

    Only policies and loops add lines.
    """

    def __init__(self, arrays: LedgerArrays | Callable[[], LedgerArrays], meter: Meter | None):
        # A policy gives a function, because its ledger moves to larger arrays as it grows.
        self._source: Any = arrays
        self.meter = meter

    def copy(self) -> Ledger:
        """A ledger with the lines of now, which other threads may read."""
        return Ledger(LedgerArrays(*map(np.copy, self._arrays)), self.meter)

    @property
    def _arrays(self) -> LedgerArrays:
        return self._source() if callable(self._source) else self._source

    def __len__(self) -> int:
        return int(self._arrays.head[HEAD.lines])

    def __repr__(self) -> str:
        return f"<Ledger: {len(self)} lines, {self.releases} releases, spent {self._spent}>"

    @property
    def _spent(self) -> str:
        return "without bound" if math.isinf(self.total()) else str(self.spent() or "nothing")

    def _repr_html_(self) -> Html:
        note = f"The last {_SHOWN} of {len(self):,} lines." if len(self) > _SHOWN else ""
        return glance(
            f"Ledger: {self.releases:,} releases, spent {self._spent}", *self.table(), note
        )

    def table(self, last: int = _SHOWN) -> tuple[list[str], list[list[str]]]:
        """The last lines, in words.

        Args:
            last: how many.

        Returns:
            Heads (rounds, part, releases, noise, scale and cost), and a row for each line.
        """
        cost = self.meter.shown if self.meter else upward
        rows = [
            [
                f"{line.first:,} to {line.last:,}",
                "all" if line.part == WHOLE else f"arm {line.part}",
                f"{line.repeats:,}",
                _noise_shown(line),
                # Outward: noise is never said to be larger than it is, nor a cost smaller.
                "–" if math.isnan(line.noise_scale) else f"{downward(line.noise_scale):.6g}",
                f"{cost(line.cost):.6g}"
                if math.isfinite(line.cost)
                else "unlimited"
                if self.meter
                else "–",
            ]
            for line in self.frame.tail(last).itertuples()
        ]
        return ["rounds", "part", "releases", "noise", "scale", "cost"], rows

    @property
    def releases(self) -> int:
        """The number of released statistics."""
        return int(self._arrays.head[HEAD.releases])

    @property
    def draws(self) -> int:
        """The number of scalar noise variables drawn: one for each coordinate of a release, or
        several where the release is a running sum that needs them.
        """
        return int(self._arrays.head[HEAD.draws])

    @property
    def frame(self) -> pd.DataFrame:
        """The lines: rounds (from 0), part (-1: all), repeats, family, sensitivity, multiplier,
        scale of the noise (NaN where it is of another law), cost.
        """
        import pandas as pd  # takes longer to import than all else here

        used = len(self)
        span, noise = self._arrays.span[:used], self._arrays.noise[:used]
        table = pd.DataFrame(span[:, :4], columns=["first", "last", "part", "repeats"])
        table["family"] = [FAMILY_NAMES[code] for code in span[:, SPAN.family]]
        table["sensitivity"] = noise[:, NOISE.sensitivity]
        table["multiplier"] = noise[:, NOISE.multiplier]
        scales = table["sensitivity"] * table["multiplier"]
        table["noise_scale"] = scales.where(span[:, SPAN.family] != CERTIFIED)
        table["cost"] = self._costs()
        return table

    def total(self) -> float:
        """The cost to the worst-placed record.

        Returns:
            A number in the budget's currency; infinite once anything crossed an open channel.
        """
        return worst_record(self._arrays.span[: len(self)], self._costs()).cost

    def history(self, most: int = 60) -> list[tuple[int, float]]:
        """How the total grew.

        Args:
            most: the number of pairs, for a ledger with more lines.

        Returns:
            The number of releases, and the total after them, from the first line to the last.  The
            releases of one line cover different records, so the first of them costs as much as all.
        """
        span, costs = self._arrays.span[: len(self)], self._costs()
        releases = np.cumsum(span[:, SPAN.repeats])
        ends = np.unique(np.linspace(1, len(span), min(most, len(span))).astype(int))
        return [(int(releases[n - 1]), worst_record(span[:n], costs[:n]).cost) for n in ends]

    def shown_total(self) -> float:
        """The total for tables, rounded up: see ``Meter.shown``."""
        return self.meter.shown(self.total()) if self.meter else self.total()

    def spent(self) -> Budget | None:
        """The largest privacy loss of any record so far.

        Returns:
            A ``Budget`` in the budget's own notion; None for nothing, or without a budget.

        Raises:
            DPBanditsError: a release has no finite cost, as Gaussian noise under ``PureDP``.
        """
        return self.meter.describe(self.total()) if self.meter else None

    def allows(self, first: int, last: int, part: int, family: int, multiplier: float) -> bool:
        """Whether one more line would stay within the budget, for every record."""
        if self.meter is None:
            return True
        span, costs = self._arrays.span[: len(self)], self._costs()
        met = (span[:, SPAN.last] >= first) & (span[:, SPAN.first] <= last)
        if part != WHOLE:
            met &= (span[:, SPAN.part] == part) | (span[:, SPAN.part] == WHOLE)
        # Cut to the new line: the records that are left are those that it covers.
        within = span[met]
        within[:, SPAN.first] = np.maximum(within[:, SPAN.first], first)
        within[:, SPAN.last] = np.minimum(within[:, SPAN.last], last)
        before = worst_record(within, costs[met]).cost
        return self.meter.allows(before + self.meter.cost(family, multiplier))

    def to_dp_event(self) -> dp_accounting.DpEvent:
        """The releases that touch the worst-placed record, as an event for the accountants of
        ``dp_accounting``; for a user's several records, as if all were placed so.

        That library has no parallel composition, so the other lines are left out.
        """
        import dp_accounting
        from scipy import special

        growth = self.meter.growth if self.meter else 1.0

        def laplace(multiplier: float) -> dp_accounting.DpEvent:
            # No running sum: its lines are of the family PURE, so that growth counts records.
            one = dp_accounting.LaplaceDpEvent(multiplier * growth)
            return one if growth == 1.0 else dp_accounting.SelfComposedDpEvent(one, round(growth))

        def one_bit(multiplier: float) -> dp_accounting.DpEvent:
            # Randomised response on one bit, which dominates every mechanism of its epsilon; its
            # parameter is P(answer is random).
            random = 2.0 * float(special.expit(-1.0 / multiplier))
            return dp_accounting.RandomizedResponseDpEvent(random, 2)

        makers: dict[str, Any] = {
            "open": lambda _: dp_accounting.NonPrivateDpEvent(),
            "Gaussian": dp_accounting.GaussianDpEvent,
            "Laplace": laplace,
            "Laplace vector": lambda multiplier: dp_accounting.ZCDpEvent(0.5 / multiplier**2),
            "certified": lambda _: dp_accounting.UnsupportedDpEvent(),
            "pure": one_bit,
            "hemisphere": one_bit,
        }
        lines = self.frame.iloc[self._worst_lines()]
        found = zip(lines["family"], lines["multiplier"].tolist(), strict=True)
        return dp_accounting.ComposedDpEvent([makers[family](m / growth) for family, m in found])

    def _costs(self) -> np.ndarray:
        span, noise = self._arrays.span[: len(self)], self._arrays.noise[: len(self)]
        if self.meter is None or not len(span):
            return np.full(len(span), np.inf)
        noises = np.column_stack((span[:, SPAN.family], noise[:, NOISE.multiplier]))
        # A pair is one complex number, because rows take eight times as long to sort.
        pairs = noises.view(np.complex128).ravel()
        kinds, which = np.unique(pairs, return_inverse=True, equal_nan=False)
        return np.array([self.meter.cost(int(one.real), one.imag) for one in kinds.tolist()])[which]

    def _worst_lines(self) -> np.ndarray:
        span, costs = self._arrays.span[: len(self)], self._costs()
        if not np.all(np.isfinite(costs)):
            # Where some costs are infinite, the record with the most of them is the worst.
            costs = np.isinf(costs).astype(np.float64)
        total, at, part = worst_record(span, costs)
        covering = (span[:, SPAN.first] <= at) & (at <= span[:, SPAN.last])
        within = (span[:, SPAN.part] == part) | (span[:, SPAN.part] == WHOLE)
        return np.flatnonzero(covering & within & (total > 0.0))


def _noise_shown(line: Any) -> str:
    """The law of a line's noise; "void" where there is noise of which no privacy is proved."""
    if line.family != FAMILY_NAMES[OPEN]:
        return str(line.family)
    return "void" if line.noise_scale > 0.0 else "none"
