"""Claims: the arithmetic by hand, verdicts that numbers decide, and planted results that have to
fail.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbandits.errors import ArgumentError
from dpbandits.report.claims import FAILS, HOLDS, UNDECIDED, Claim, Expectation, claims_table, tally
from dpbandits.report.estimates import Estimate
from dpbandits.studies.claims import curve, largest, mean, measured, price, ratio, ratios, steps


def claim(value: float, low: float, high: float, expected: Expectation, **options: bool) -> Claim:
    return Claim(
        "It is small.",
        "Someone (2024), Figure 1",
        "As published",
        Estimate(value, low, high),
        expected,
        **options,
    )


@pytest.mark.parametrize(
    ("low", "high", "expected", "verdict"),
    [
        (0.1, 0.9, Expectation(high=1.0), HOLDS),
        (0.1, 1.0, Expectation(high=1.0), HOLDS),
        (0.1, 1.0, Expectation(high=1.0, strict=True), UNDECIDED),
        (1.0, 1.0, Expectation(high=1.0, strict=True), FAILS),  # exactly as large is not smaller
        (1.0, 1.0, Expectation(high=1.0), HOLDS),
        (0.9, 1.1, Expectation(high=1.0), UNDECIDED),
        (1.1, 1.2, Expectation(high=1.0), FAILS),
        (-0.2, 0.0, Expectation(low=0.0, strict=True), FAILS),
        (-0.2, -0.1, Expectation(-0.05, 0.05), FAILS),
        (-0.2, 0.2, Expectation(-0.05, 0.05), UNDECIDED),
        (-0.04, 0.05, Expectation(-0.05, 0.05), HOLDS),
        (math.nan, math.nan, Expectation(high=1.0), UNDECIDED),  # one run
        (0.1, math.inf, Expectation(high=1.0), UNDECIDED),
        (1.5, math.inf, Expectation(0.8, 1.25), FAILS),
    ],
)
def test_the_interval_decides(low: float, high: float, expected: Expectation, verdict: str) -> None:
    assert claim((low + high) / 2, low, high, expected).verdict == verdict


def test_a_claim_is_written_as_people_read_it() -> None:
    shares = claim(0.031, -0.02, 0.08, Expectation(-0.05, 0.05), shares=True)
    assert (shares.shown(0.031), shares.range, shares.wanted) == (
        "3.1 %",
        "[−2.0 %, 8.0 %]",
        "−5.0 % to 5.0 %",
    )
    assert claim(1.0, 1.0, 1.0, Expectation(high=1.0, strict=True)).wanted == "below 1"
    assert claim(1.0, 1.0, 1.0, Expectation(low=2.5)).wanted == "at least 2.5"
    assert claim(1.0, math.nan, math.nan, Expectation(low=2.5)).range == ""
    near = claim(0.99621, 0.99512, 1.00042, Expectation(high=0.998))
    assert (near.shown(near.measured.mean), near.range, near.wanted) == (
        "0.99621",
        "[0.99512, 1.00042]",
        "at most 0.998",
    )


def test_a_table_of_claims_counts_its_verdicts() -> None:
    claims = [
        claim(1, 1, 1, Expectation(high=2)),
        claim(3, 3, 3, Expectation(high=2)),
        claim(2, 1, 3, Expectation(high=2)),
    ]
    assert tally(claims) == "Of 3 claims, 1 holds, 1 does not hold, and 1 is undecided."
    table = claims_table(claims)
    assert table["verdict"].tolist() == [HOLDS, FAILS, UNDECIDED]
    assert table.loc[2, ["measured", "low", "high", "expected"]].tolist() == [2, 1, 3, "at most 2"]


def test_statistics_of_means_by_hand() -> None:
    assert price(np.array([3.0, 2.0])) == 0.5
    assert ratio(np.array([3.0, 2.0])) == 1.5
    assert mean(np.array([3.0])) == 3.0
    assert ratios(np.array([1.0, 6.0, 2.0, 4.0])).tolist() == [0.5, 1.5]
    # from 9 to 5 and from 5 to 6, in units of 2
    assert steps(np.array([9.0, 5.0, 6.0, 2.0])).tolist() == [
        -2.0,
        0.5,
    ]


def test_the_largest_of_equal_numbers_is_not_taken_for_larger() -> None:
    """The plain bootstrap of the largest of eight would say so nearly always: it lies 1.4 standard
    errors above, and its resamples more.
    """
    rng = np.random.default_rng(4)
    found = [largest(list(rng.normal(0.0, 1.0, (8, 50))), lambda means: means) for _ in range(100)]
    # 2.5 % are due; 13 or more of 100 have a probability below 1e-5
    assert sum(one.low > 0.0 for one in found) <= 12
    assert sum(one.high < 0.0 for one in found) == 0
    larger = largest(
        [*rng.normal(0.0, 1.0, (7, 50)), rng.normal(1.0, 1.0, 50)], lambda means: means
    )
    assert larger.low > 0.3


def test_runs_are_resampled_in_pairs() -> None:
    rng = np.random.default_rng(1)
    # what both policies meet: without pairing it would drown the difference
    shared = rng.normal(100.0, 30.0, 400)
    private, without = shared + 1.0 + rng.normal(0.0, 0.1, 400), shared
    gap = measured([private, without], lambda means: means[..., 0] - means[..., 1])
    assert gap.low < 1.0 < gap.high
    assert gap.high - gap.low < 0.04  # +-1.96 * 0.1 / 20; unpaired it would be some 8


def test_intervals_are_as_wide_as_theory_says() -> None:
    values = np.random.default_rng(2).normal(5.0, 2.0, 900)
    found = measured([values], mean)
    half = 1.96 * values.std() / 30.0
    assert found.mean == pytest.approx(values.mean())
    # 2,000 resamples leave some 3 % of chance in an end; half of a 90 % interval would be 16 %
    # shorter.
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.1)


def test_a_curve_has_an_interval_at_every_point() -> None:
    columns = np.random.default_rng(3).normal([1.0, 2.0, 3.0], 0.1, (50, 3))
    value, low, high = curve([columns], mean)
    assert value == pytest.approx(columns.mean(axis=0))
    assert np.all((low < value) & (value < high))
    single = curve([columns[:1]], mean)
    assert single[0] == pytest.approx(columns[0])
    assert np.all(np.isnan(single[1:]))


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"equally long, got \[2, 3\]"):
        measured([np.ones(2), np.ones(3)], ratio)
