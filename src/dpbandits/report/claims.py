"""Claims of papers that a study has measured, with the verdicts.  A verdict is computed from the
numbers, never written down.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from ..html import Html, table, tag, text
from ..plotting.numbers import number_near_one, percent
from .means import Estimate

HOLDS, FAILS, TIE = "holds", "does not hold", "tie"
TOO_SHORT, UNDECIDED = "too short to tell", "undecided"

# The rule of each verdict, by the interval of the number that was measured.  The first that applies
# is the verdict.
RULES = {
    TOO_SHORT: "the policy still has at least 0.9 times the regret of choosing at random, so"
    " the learning that the claim is about has not begun",
    TIE: "the claim says which of two numbers is larger, but the interval contains equality and"
    " stays within 0.005 of it",
    HOLDS: "the whole interval agrees with the claim",
    FAILS: "the whole interval contradicts the claim",
    UNDECIDED: "the interval lies partly within and partly outside of the claim, or the interval of"
    " regret contains 0.9 times the regret of choosing at random: another seed might decide it"
    " either way",
}

# Of the interval that decides: a hundred verdicts are then all right with a probability of some
# 90 %, and two seeds come to opposite ones in a few of ten million cases.
VERDICT_CONFIDENCE = 0.999

TIE_MARGIN = 0.005  # from equality; of a ratio, half a percent
UNLEARNED = 0.9  # of the regret of choosing at random: who has that much has not begun to learn

_OVER_RANDOM = ("over_random", "over_random_low", "over_random_high")
_ROUNDING = 1e-9  # what sums in another order may change


@dataclass(frozen=True)
class Expectation:
    """The interval in which a measured value has to lie for a claim to hold."""

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False  # whether the ends lie outside of it

    def contains(self, value: float) -> bool:
        """Whether the value is within.

        >>> Expectation(high=1.0).contains(1.0), Expectation(high=1.0, strict=True).contains(1.0)
        (True, False)
        """
        return self.low < value < self.high if self.strict else self.low <= value <= self.high

    def ties(self, low: float, high: float) -> bool:
        """Whether an interval is about equality, which a strict claim excludes.

        >>> one = Expectation(high=1.0, strict=True)
        >>> one.ties(1.0, 1.0), one.ties(0.999, 1.004), one.ties(0.999, 1.02), one.ties(0.99, 0.998)
        (True, True, False, False)
        """
        return self.strict and any(
            end - TIE_MARGIN <= low <= end + _ROUNDING
            and end - _ROUNDING <= high <= end + TIE_MARGIN
            for end in (self.low, self.high)
            if math.isfinite(end)
        )

    def excludes(self, low: float, high: float) -> bool:
        """Whether no value of an interval is within."""
        below, above = (
            (high <= self.low, low >= self.high)
            if self.strict
            else (high < self.low, low > self.high)
        )
        return below or above


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, or of ours about it, with its measurement.

    ``over_random`` is the regret over that of choosing at random.  It is for claims about how
    regret grows or falls, which need a policy that has begun to learn.
    """

    statement: str  # a sentence, with the number that was measured in words
    source: str  # who says so, and where
    reading: str  # the rules of measuring, such as "as published"; claims of one stand together
    measured: Estimate  # with an interval of ``VERDICT_CONFIDENCE``
    expected: Expectation
    shares: bool = False  # whether the number is a share, to be written in percent
    over_random: Estimate | None = None

    @property
    def verdict(self) -> str:
        """One of ``RULES``; undecided where one run gives no interval.

        Each of the first four is wrong with a probability of at most 1 - ``VERDICT_CONFIDENCE``.
        Where the interval of ``over_random`` lies astride, it is not known whether learning has
        begun, and the claim is undecided, too.

        >>> def verdict(low, high):
        ...     return Claim("", "", "", Estimate(0.5, low, high), Expectation(high=1.0)).verdict
        >>> verdict(0.4, 0.6), verdict(1.4, 1.6), verdict(0.4, 1.6), verdict(math.nan, math.nan)
        ('holds', 'does not hold', 'undecided', 'undecided')
        """
        if self.over_random is not None and not self.over_random.high < UNLEARNED:
            return TOO_SHORT if self.over_random.low >= UNLEARNED else UNDECIDED
        value, low, high = self.measured
        if any(map(math.isnan, (value, low, high))):
            return UNDECIDED
        if self.expected.ties(low, high):
            return TIE
        if self.expected.contains(low) and self.expected.contains(high):
            return HOLDS
        return FAILS if self.expected.excludes(low, high) else UNDECIDED

    def shown(self, value: float) -> str:
        """A value as this claim writes it."""
        return (
            percent(value, 1).replace("-", "−")
            if self.shares and math.isfinite(value)
            else number_near_one(value)
        )

    @property
    def range(self) -> str:
        """The interval in brackets; empty where there is none."""
        low, high = self.shown(self.measured.low), self.shown(self.measured.high)
        return "" if math.isnan(self.measured.low) else f"[{low}, {high}]"

    @property
    def wanted(self) -> str:
        """The range that the number has to lie in, in words."""
        low, high = self.shown(self.expected.low), self.shown(self.expected.high)
        if math.isinf(self.expected.low):
            return f"below {high}" if self.expected.strict else f"at most {high}"
        if math.isinf(self.expected.high):
            return f"above {low}" if self.expected.strict else f"at least {low}"
        return f"{low} to {high}"


def tally(claims: Sequence[Claim]) -> str:
    """The number of claims that hold, in a sentence.

    >>> tally([Claim("", "", "", Estimate(1.0, 0.9, 1.1), Expectation(high=0.5))])
    'Of 1 claim, 0 hold, 1 does not hold, and 0 are undecided.'
    """
    found = Counter(claim.verdict for claim in claims)
    words = {
        HOLDS: ("holds", "hold"),
        FAILS: ("does not hold", "do not hold"),
        TIE: ("is a tie", "are ties"),
        TOO_SHORT: ("is too short to tell", "are too short to tell"),
        UNDECIDED: ("is undecided", "are undecided"),
    }
    *first, last = (
        f"{found[verdict]} {one if found[verdict] == 1 else many}"
        for verdict, (one, many) in words.items()
        if found[verdict] or verdict not in (TIE, TOO_SHORT)
    )
    count = f"{len(claims)} claim{'' if len(claims) == 1 else 's'}"
    return f"Of {count}, {', '.join(first)}, and {last}."


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """One row per claim: its statement, the measured and the expected value, and the verdict."""
    columns = ["reading", "claim", "source", "measured", "low", "high", "expected", "verdict"]
    rows = [
        (
            *(claim.reading, claim.statement, claim.source, *claim.measured),
            *(claim.wanted, claim.verdict),
            *(claim.over_random or (math.nan, math.nan, math.nan)),
        )
        for claim in claims
    ]
    return pd.DataFrame(rows, columns=[*columns, *_OVER_RANDOM])


def section(claims: Sequence[Claim], notes: Sequence[str]) -> Iterator[Html]:
    """The claims of a page, one table per reading."""
    error = 1.0 - VERDICT_CONFIDENCE
    yield tag(
        "p",
        f"Verdicts follow from {percent(1.0 - error, 1)} intervals, by the first of these rules"
        " that applies.",
    )
    rules = "".join(tag("dt", one) + tag("dd", f"Where {rule}.") for one, rule in RULES.items())
    yield tag("dl", Html(rules))
    yield tag(
        "p",
        "Intervals cover all that the seed decides: runs, and random instances where there are"
        " some. Runs are paired: all policies meet the same instances. Ratios of positive numbers"
        " have intervals on a logarithmic scale. Each verdict except 'undecided' is wrong with a"
        f" probability of at most {percent(error, 1)}, as far as means over runs or"
        " instances are normal. The probability that any of these"
        f" {len(claims)} is wrong is at most {percent(min(1.0, error * len(claims)), 1)}.",
    )
    for note in notes:
        yield tag("p", note)
    for reading in dict.fromkeys(claim.reading for claim in claims):
        chosen = [claim for claim in claims if claim.reading == reading]
        yield tag("h3", reading)
        rows = [
            (_stated(claim), [[_badge(claim), _measured(claim), claim.wanted]]) for claim in chosen
        ]
        yield table(tally(chosen), ["Claim", "Verdict", "Measured", "Expected"], rows)


def _stated(claim: Claim) -> Html:
    said, source = tag("span", claim.statement, class_="claim"), claim.source
    return Html(said + tag("span", source, class_="range"))


def _badge(claim: Claim) -> Html:
    kinds = {HOLDS: "holds", FAILS: "fails", TIE: "tie", TOO_SHORT: "short", UNDECIDED: "open"}
    return tag("span", claim.verdict, class_=f"verdict {kinds[claim.verdict]}")


def _measured(claim: Claim) -> Html:
    beside = claim.range
    if claim.over_random is not None:
        times, low, high = map(number_near_one, claim.over_random)
        beside += f"; {times} [{low}, {high}] times the regret of random choice"
    return Html(text(claim.shown(claim.measured.mean)) + tag("span", beside, class_="range"))
