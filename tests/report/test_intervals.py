"""Claims: the arithmetic by hand, verdicts that numbers decide, and planted results that have to
fail.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from dpbandits.errors import ArgumentError
from dpbandits.papers.plans import largest, measured, ratios, steps
from dpbandits.report.claims import (
    FAILS,
    HOLDS,
    TIE,
    TOO_SHORT,
    UNDECIDED,
    Claim,
    Expectation,
    claims_table,
    section,
    tally,
)
from dpbandits.report.intervals import curve, mean, price, ratio
from dpbandits.report.means import Estimate


def claim(value: float, low: float, high: float, expected: Expectation, **options: Any) -> Claim:
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
        (1.0, 1.0, Expectation(high=1.0, strict=True), TIE),  # exactly as large is not smaller
        (1.0, 1.0, Expectation(high=1.0), HOLDS),
        (0.9, 1.1, Expectation(high=1.0), UNDECIDED),
        (1.1, 1.2, Expectation(high=1.0), FAILS),
        (1.0 - 1e-12, 1.0 - 1e-12, Expectation(high=1.0, strict=True), TIE),  # sums are rounded
        (0.996, 1.004, Expectation(high=1.0, strict=True), TIE),
        (0.996, 1.006, Expectation(high=1.0, strict=True), UNDECIDED),
        (0.994, 1.004, Expectation(high=1.0, strict=True), UNDECIDED),
        (0.996, 0.999, Expectation(high=1.0, strict=True), HOLDS),  # little, and beyond doubt
        (1.001, 1.004, Expectation(high=1.0, strict=True), FAILS),
        (0.996, 1.004, Expectation(high=1.0), UNDECIDED),  # which does not ask for a difference
        (-0.004, 0.003, Expectation(low=0.0, strict=True), TIE),
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


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.1, 0.5, HOLDS),
        (0.1, 0.8999, HOLDS),
        (0.8, 1.0, UNDECIDED),  # nobody knows whether it has begun to learn
        (0.9, 1.0, TOO_SHORT),
        (1.1, 1.2, TOO_SHORT),
        (math.nan, math.nan, UNDECIDED),
    ],
)
def test_before_anything_is_learned_it_is_too_short_to_tell(low, high, verdict) -> None:
    begun = Estimate((low + high) / 2, low, high)
    assert claim(0.5, 0.4, 0.6, Expectation(high=1.0), over_random=begun).verdict == verdict
    fails = claim(1.5, 1.4, 1.6, Expectation(high=1.0), over_random=begun).verdict
    assert fails == (FAILS if verdict == HOLDS else verdict)


def test_verdicts_beyond_the_three_are_counted_where_there_are_some() -> None:
    nothing = Estimate(1.0, 0.95, 1.05)
    claims = [
        claim(1, 1, 1, Expectation(high=1, strict=True)),
        claim(1, 1, 1, Expectation(high=1), over_random=nothing),
    ]
    said = "Of 2 claims, 0 hold, 0 do not hold, 1 is a tie, 1 is too short to tell"
    assert tally(claims) == f"{said}, and 0 are undecided."
    assert claims_table(claims)["verdict"].tolist() == [TIE, TOO_SHORT]
    assert claims_table(claims)["over_random"].tolist()[1] == 1.0
    page = "".join(section(claims, []))
    assert 'class="verdict tie">tie<' in page
    assert 'class="verdict short">too short to tell<' in page
    assert "1 [0.95, 1.05] times the regret of random choice" in page


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
    """The plain largest of eight lies 1.4 standard errors above."""
    rng = np.random.default_rng(4)

    def numbers(values: np.ndarray) -> list[np.ndarray]:
        return [row[None] for row in values]

    found = [
        largest(numbers(rng.normal(0.0, 1.0, (8, 50))), lambda means: means) for _ in range(200)
    ]
    # 0.1 are due; 3 or more of 200 have a probability below 2e-4
    assert sum(one.low > 0.0 for one in found) <= 2
    assert sum(one.high < 0.0 for one in found) == 0
    assert np.mean([one.mean for one in found]) == pytest.approx(1.42 / np.sqrt(50), rel=0.1)
    values = np.vstack([rng.normal(0.0, 1.0, (7, 50)), rng.normal(1.0, 1.0, 50)])
    assert largest(numbers(values), lambda means: means).low > 0.3


def test_runs_are_left_out_in_pairs() -> None:
    rng = np.random.default_rng(1)
    # what both policies meet: without pairing it would drown the difference
    shared = rng.normal(100.0, 30.0, (1, 400))
    private, without = shared + 1.0 + rng.normal(0.0, 0.1, (1, 400)), shared
    gap = measured([private, without], lambda means: means[..., 0] - means[..., 1])
    assert gap.low < 1.0 < gap.high
    assert gap.high - gap.low < 0.05  # +-3.3 * 0.1 / 20; unpaired it would be some 14


def test_intervals_are_as_wide_as_theory_says() -> None:
    values = np.random.default_rng(2).normal(5.0, 2.0, (1, 900))
    found = measured([values], mean)
    assert found.mean == pytest.approx(values.mean())
    half = student.ppf(0.9995, 899) * values.std(ddof=1) / 30.0
    assert (found.high - found.low) / 2 == pytest.approx(half)
    # of a smooth function: the delta method, for the square of a mean
    square = measured([values], lambda means: means[..., 0] ** 2)
    assert (square.high - square.low) / 2 == pytest.approx(2 * values.mean() * half, rel=0.01)


def test_instances_are_the_units_where_there_are_several() -> None:
    """Twenty instances whose true numbers differ, with runs that hardly do: the runs alone would
    be sure of anything.
    """
    rng = np.random.default_rng(5)
    truth = rng.normal(0.0, 1.0, (20, 1))
    found = measured([truth + rng.normal(0.0, 1e-3, (20, 50))], mean)
    half = student.ppf(0.9995, 19) * truth.std(ddof=1) / np.sqrt(20)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.01)
    alone = measured([(truth + rng.normal(0.0, 1e-3, (20, 50))).reshape(1, -1)[:, :50]], mean)
    assert alone.high - alone.low < 0.002


def test_a_function_is_taken_on_every_instance() -> None:
    """A large instance has no more weight than a small one."""
    one, other = np.array([[1.0, 1.0], [100.0, 100.0]]), np.array([[2.0, 2.0], [100.0, 100.0]])
    assert measured([one, other], ratio).mean == 0.75


def test_two_seeds_do_not_come_to_opposite_verdicts() -> None:
    """At the border itself, where that is likeliest, and with ten runs: intervals of 95 % come to
    one in 5 % of all cases, and to opposite ones in 12 of 10,000.
    """
    rng = np.random.default_rng(6)
    decided = []
    for _ in range(4000):
        found = measured([rng.normal(1.0, 0.3, (1, 10))], mean)
        decided.append(found.low > 1.0 or found.high < 1.0)
    # 4 are due; 14 or more have a probability below 1e-4, and none is less likely than 0.02
    assert 0 < sum(decided) <= 13


def test_a_curve_has_an_interval_at_every_point() -> None:
    columns = np.random.default_rng(3).normal([1.0, 2.0, 3.0], 0.1, (1, 50, 3))
    value, low, high = curve([columns], mean)
    assert value == pytest.approx(columns.mean(axis=(0, 1)))
    half = student.ppf(0.975, 49) * columns.std(axis=1, ddof=1)[0] / np.sqrt(50)
    assert (high - low) / 2 == pytest.approx(half)
    single = curve([columns[:, :1]], mean)
    assert single[0] == pytest.approx(columns[0, 0])
    assert np.all(np.isnan(single[1:]))


def test_where_a_value_is_infinite_nothing_is_decided() -> None:
    found = measured([np.array([[1.0, 2.0]]), np.zeros((1, 2))], ratio)
    assert found.mean == math.inf
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_a_ratio_of_positive_numbers_never_reaches_zero() -> None:
    """Two runs that differ tenfold: on the plain scale the interval would reach far below 0."""
    found = measured([np.array([[1.0, 10.0]]), np.array([[5.0, 6.0]])], ratio)
    assert 0.0 <= found.low < found.mean < found.high
    back = measured([np.array([[5.0, 6.0]]), np.array([[1.0, 10.0]])], ratio)
    assert back.mean == pytest.approx(1.0 / found.mean)
    share = measured([np.array([[1.0, 10.0]]), np.array([[5.0, 6.0]])], price)
    assert tuple(share) == pytest.approx(tuple(end - 1.0 for end in found))


def test_the_interval_of_a_ratio_and_that_of_its_inverse_are_mirror_images() -> None:
    rng = np.random.default_rng(7)
    one, other = rng.lognormal(0.0, 0.3, (1, 200)), rng.lognormal(0.5, 0.3, (1, 200))
    found, back = measured([one, other], ratio), measured([other, one], ratio)
    assert found.low == pytest.approx(1.0 / back.high, rel=0.01)
    assert found.high == pytest.approx(1.0 / back.low, rel=0.01)


def test_a_ratio_of_few_skewed_runs_is_covered() -> None:
    """Eight runs, whose logarithms have a standard deviation of 0.7: the interval of 95 % holds
    the true ratio in 93.8 % of 2,000 cases.  One of half the width holds it in 71 %.
    """
    rng = np.random.default_rng(8)
    one, other = rng.lognormal(0.0, 0.7, (2, 2000, 8))
    hit = 0
    for first, second in zip(one, other, strict=True):
        _, low, high = curve([first[None], second[None]], ratio)
        hit += bool(low <= 1.0 <= high)
    assert 0.92 < hit / 2000 < 0.98


def test_a_ratio_beside_a_negative_number_has_no_interval() -> None:
    found = measured([np.array([[1.0, 2.0]]), np.array([[-1.0, -2.0]])], ratio)
    assert math.isnan(found.low)


def test_columns_of_different_shapes_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"have the same shape, got \[\(1, 2\), \(1, 3\)\]"):
        measured([np.ones((1, 2)), np.ones((1, 3))], ratio)
