"""The ledger against a brute-force count over every record."""

import math
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbandits as dpb
from dpbandits.errors import DPBanditsError
from dpbandits.privacy import RDP, ZCDP, ApproxDP, Gaussian, Laplace, Ledger, PureDP
from dpbandits.privacy.channels import GAUSSIAN, LAPLACE, OPEN
from dpbandits.privacy.ledger import (
    HEAD,
    SPAN,
    WHOLE,
    LedgerArrays,
    Meter,
    empty_arrays,
    grown,
    is_full,
    worst_record,
    write,
)

ROUNDS, PARTS = 8, 3
many = settings(max_examples=120)

# (first, last, part, family, multiplier); last = first - 1 covers nobody.
lines = st.tuples(
    st.integers(0, ROUNDS - 1),
    st.integers(-1, ROUNDS - 1),
    st.integers(WHOLE, PARTS - 1),
    st.sampled_from([GAUSSIAN, LAPLACE]),
    st.sampled_from([0.5, 1.0, 2.0, 10.0]),
).map(lambda line: (line[0], max(line[1], line[0] - 1), *line[2:]))
budgets = st.sampled_from([ZCDP(1.0), ApproxDP(3.0, 1e-5), RDP(4.0, 2.0)])


def ledger_of(entries, budget=None) -> Ledger:
    arrays = empty_arrays(1)
    for first, last, part, family, multiplier in entries:
        if is_full(arrays):
            arrays = grown(arrays)
        write(arrays, first, last, part, family, 1.0, multiplier, 1)
    return Ledger(arrays, budget and Meter.of(budget))


def covers(line, t, p) -> bool:
    return line[0] <= t <= line[1] and line[2] in (WHOLE, p)


def records():
    return [(t, p) for t in range(ROUNDS) for p in range(PARTS)]


@many
@given(st.lists(lines, max_size=9), budgets)
def test_total_is_the_worst_over_all_records(entries, budget):
    meter = Meter.of(budget)
    oracle = max(
        math.fsum(meter.cost(*line[3:]) for line in entries if covers(line, t, p))
        for t, p in records()
    )
    assert ledger_of(entries, budget).total() == pytest.approx(oracle, rel=1e-14)


@many
@given(st.lists(lines, max_size=6), lines, st.floats(0.05, 8.0))
def test_a_line_is_allowed_if_it_fits_for_every_record_that_it_covers(entries, new, rho):
    budget = ZCDP(rho)
    meter = Meter.of(budget)
    worst = 0.0
    for t, p in records():
        if covers(new, t, p):
            worst = max(
                worst,
                math.fsum(meter.cost(*line[3:]) for line in [*entries, new] if covers(line, t, p)),
            )
    if new[0] <= new[1] and abs(worst / rho - 1) > 1e-6:
        assert ledger_of(entries, budget).allows(*new) == (worst <= rho)


def test_an_exactly_spent_budget_is_allowed_and_nothing_more():
    line = (0, 4, WHOLE, GAUSSIAN, math.sqrt(0.5 / 0.1))
    ledger = ledger_of([line] * 9, ZCDP(1.0))
    assert ledger.allows(*line)
    full = ledger_of([line] * 10, ZCDP(1.0))
    assert not full.allows(4, 9, 2, GAUSSIAN, 1e4)
    assert full.allows(5, 9, 2, GAUSSIAN, math.sqrt(0.5))


def test_lines_outside_the_new_one_do_not_count_against_it():
    half = math.sqrt(0.5 / 0.5)
    ledger = ledger_of([(0, 9, 0, GAUSSIAN, half), (0, 3, 0, GAUSSIAN, half)], ZCDP(1.0))
    assert ledger.allows(4, 9, 0, GAUSSIAN, half)
    assert ledger.allows(0, 9, 1, GAUSSIAN, half)
    assert not ledger.allows(3, 9, 0, GAUSSIAN, half)
    assert not ledger.allows(3, 9, WHOLE, GAUSSIAN, half)


def test_lines_that_cover_nobody_hide_nothing():
    def costly(first, last):
        return (first, last, 0, LAPLACE, 1.0)

    ledger = ledger_of([costly(0, 7), (5, 4, 0, LAPLACE, 10.0), costly(6, 7)], PureDP(9.0))
    assert ledger.total() == 2.0


# Folding -------------------------------------------------------------------------------------


@settings(many, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(WHOLE, 1), st.sampled_from([1.0, 2.0])).map(
            lambda x: (x[0], x[1], LAPLACE, x[2])
        ),
        max_size=12,
    )
)
def test_folding_keeps_every_total(lengths):
    """Consecutive spans per part, as policies write them; the unfolded lines are the oracle."""
    opened, plain = dict.fromkeys((WHOLE, 0, 1), 0), []
    for length, part, family, multiplier in lengths:
        first = opened[part]
        plain.append((first, first + length - 1, part, family, multiplier))
        opened[part] = first + length
    ledger = ledger_of(plain, PureDP(1.0))
    folded = ledger.frame
    kept = list(folded[["first", "last", "part", "cost"]].itertuples(index=False, name=None))
    for t in range(sum(line[0] for line in lengths) + 1):
        for p in range(2):
            exact = sum(1 / line[4] for line in plain if covers(line, t, p))
            assert sum(line[3] for line in kept if covers(line, t, p)) == pytest.approx(exact)
    assert ledger.releases == ledger.draws == len(plain) == folded["repeats"].sum()


def test_adjacent_equal_lines_of_equal_length_fold_and_others_do_not():
    arrays = empty_arrays()
    for i in range(5):
        write(arrays, 2 * i, 2 * i + 1, 1, GAUSSIAN, 1.0, 2.0, 3)
    assert arrays.head.tolist() == [1, 5, 15]
    assert arrays.span[0].tolist() == [0, 9, 1, 5, GAUSSIAN]
    different = [
        (10, 12, 1, GAUSSIAN, 1.0, 2.0),
        (10, 11, 0, GAUSSIAN, 1.0, 2.0),
        (11, 12, 1, GAUSSIAN, 1.0, 2.0),
        (9, 10, 1, GAUSSIAN, 1.0, 2.0),
        (10, 11, 1, LAPLACE, 1.0, 2.0),
        (10, 11, 1, GAUSSIAN, 0.5, 2.0),
        (10, 11, 1, GAUSSIAN, 1.0, 2.5),
    ]
    for line in different:
        copy = LedgerArrays(*(a.copy() for a in arrays))
        write(copy, *line, 1)
        assert copy.head[HEAD.lines] == 2, line


def test_growth_keeps_the_lines():
    entries = [(i, i, i % 2, LAPLACE, 1.0 + i) for i in range(100)]
    ledger = ledger_of(entries, PureDP(9.0))
    assert len(ledger) == 100
    assert ledger.frame[["first", "last", "part", "multiplier"]].to_numpy().tolist() == [
        [f, t, p, m] for f, t, p, _, m in entries
    ]


# Numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_rounding_does_not_drift_over_many_lines_of_wildly_different_costs(seed):
    rng = np.random.default_rng(seed)
    n = 200
    span = np.zeros((n, 5), np.int64)
    span[:, SPAN.first] = rng.integers(0, 100, n)
    span[:, SPAN.last] = span[:, SPAN.first] + rng.integers(0, 30, n)
    span[:, SPAN.part] = rng.integers(WHOLE, 3, n)
    costs = 10.0 ** rng.uniform(-250, 250, n)
    exact = Fraction(0)
    for t in span[:, SPAN.first]:
        for p in range(3):
            covering = (
                (span[:, SPAN.first] <= t)
                & (t <= span[:, SPAN.last])
                & ((span[:, SPAN.part] == p) | (span[:, SPAN.part] == WHOLE))
            )
            exact = max(exact, sum(map(Fraction, costs[covering].tolist()), Fraction(0)))
    assert worst_record(span, costs).cost == pytest.approx(float(exact), rel=1e-12)


def test_a_hundred_thousand_overlapping_lines_stay_within_the_slack():
    n, width = 100_000, 7
    span = np.zeros((n, 5), np.int64)
    span[:, SPAN.first], span[:, SPAN.last] = np.arange(n), np.arange(n) + width - 1
    assert worst_record(span, np.full(n, 0.1)).cost == pytest.approx(width * 0.1, rel=1e-10)


def test_costs_without_bound_stay_without_bound():
    entries = [
        (0, 3, 0, LAPLACE, 1.0),
        (0, 3, 0, GAUSSIAN, 5.0),
        (2, 5, 0, GAUSSIAN, 5.0),
        (6, 9, 0, LAPLACE, 1.0),
    ]
    ledger = ledger_of(entries, PureDP(10.0))
    assert ledger.total() == math.inf
    assert "without bound" in repr(ledger)
    with pytest.raises(DPBanditsError, match="no finite cost"):
        ledger.spent()
    assert not ledger.allows(3, 3, 0, LAPLACE, 1.0)
    assert ledger.allows(6, 9, 0, LAPLACE, 1.0)
    assert not ledger.allows(10, 11, 0, GAUSSIAN, 1.0)
    assert len(ledger.to_dp_event().events) == 3


# What is read off it -------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.5), RDP(4.0, 1.0), ApproxDP(1.0, 1e-6)])
def test_one_calibrated_release_spends_the_budget(budget):
    kind = Laplace if isinstance(budget, PureDP) else Gaussian
    channel = kind.calibrated(budget)
    arrays = empty_arrays()
    ledger = Ledger(arrays, Meter.of(budget))
    assert ledger.spent() is None
    assert ledger.allows(0, 9, WHOLE, channel.family, channel.multiplier)
    write(arrays, 0, 9, WHOLE, channel.family, 1.0, channel.multiplier, 1)
    spent = ledger.spent()
    assert type(spent) is type(budget)
    assert vars(spent) == pytest.approx(vars(budget), rel=1e-9)
    assert not ledger.allows(9, 10, 0, channel.family, 1e3)


def test_an_open_ledger_says_that_everything_crossed():
    ledger = ledger_of([(0, 3, WHOLE, OPEN, 0.0), (1, 3, 0, OPEN, 0.0)])
    assert ledger.spent() is None
    assert ledger.total() == math.inf
    assert ledger.allows(0, 9, WHOLE, OPEN, 0.0)
    assert np.all(np.isinf(ledger.frame["cost"]))
    assert ledger.to_dp_event().events == [dp_accounting.NonPrivateDpEvent()] * 2


@pytest.mark.parametrize("meter", [None, Meter.of(ZCDP(1.0))])
def test_an_empty_ledger_has_spent_nothing(meter):
    ledger = Ledger(empty_arrays(), meter)
    assert (ledger.total(), ledger.spent(), len(ledger), ledger.releases) == (0.0, None, 0, 0)
    assert ledger.frame.empty
    assert rdp.RdpAccountant().compose(ledger.to_dp_event()).get_epsilon(1e-6) == 0.0


@many
@given(st.lists(lines, min_size=1, max_size=9), budgets)
def test_the_history_has_the_total_after_each_line(entries, budget):
    ledger = ledger_of(entries, budget)
    history = ledger.history()
    assert [total for _, total in history] == sorted(total for _, total in history)
    assert history[-1] == (ledger.releases, ledger.total())
    if len(ledger) == len(entries):  # none is folded
        after = [ledger_of(entries[: n + 1], budget).total() for n in range(len(entries))]
        assert history == list(zip(range(1, len(entries) + 1), after, strict=True))


def test_the_history_of_many_lines_is_thinned():
    ledger = ledger_of([(t, t + 1, WHOLE, GAUSSIAN, 2.0) for t in range(500)], ZCDP(1.0))
    history = ledger.history(most=10)
    assert len(history) == 10
    assert (history[0], history[-1]) == ((1, 0.125), (500, 0.25))
    assert ledger_of([], ZCDP(1.0)).history() == []


def test_a_copy_is_not_written_to():
    arrays = empty_arrays()
    ledger = Ledger(arrays, Meter.of(ZCDP(1.0)))
    copied = ledger.copy()
    write(arrays, 0, 3, WHOLE, GAUSSIAN, 1.0, 2.0, 1)
    assert (len(ledger), len(copied)) == (1, 0)
    assert copied.meter == ledger.meter


def test_the_frame_has_one_row_per_line():
    arrays = empty_arrays()
    write(arrays, 0, 3, 1, GAUSSIAN, 3.0, 2.0, 1)
    row = Ledger(arrays, Meter.of(ZCDP(1.0))).frame.iloc[0].to_dict()
    assert row == {
        "first": 0,
        "last": 3,
        "part": 1,
        "repeats": 1,
        "family": "Gaussian",
        "sensitivity": 3.0,
        "multiplier": 2.0,
        "noise_scale": 6.0,
        "cost": 0.125,
    }


@many
@given(st.lists(lines, max_size=9), budgets)
def test_the_exported_event_is_that_of_a_worst_record(entries, budget):
    ledger, meter = ledger_of(entries, budget), Meter.of(budget)
    families = {dp_accounting.GaussianDpEvent: GAUSSIAN, dp_accounting.LaplaceDpEvent: LAPLACE}
    event = ledger.to_dp_event()
    cost = math.fsum(meter.cost(families[type(e)], e.noise_multiplier) for e in event.events)
    assert cost == pytest.approx(ledger.total(), rel=1e-12)


def test_the_worst_record_may_be_where_a_whole_line_starts_inside_one_of_a_part():
    ledger = ledger_of([(0, 9, 0, GAUSSIAN, 2.0), (5, 9, WHOLE, GAUSSIAN, 3.0)], ZCDP(9.0))
    assert [e.noise_multiplier for e in ledger.to_dp_event().events] == [2.0, 3.0]


def test_the_exported_event_agrees_with_the_accountants():
    entries = [
        (0, 7, WHOLE, GAUSSIAN, 4.0),
        (0, 3, 0, GAUSSIAN, 5.0),
        (2, 2, 0, GAUSSIAN, 3.0),
        (4, 7, 1, GAUSSIAN, 3.0),
    ]
    gdp, zcdp = ledger_of(entries, ApproxDP(9.0, 1e-6)), ledger_of(entries, ZCDP(9.0))
    exact = pld.PLDAccountant().compose(gdp.to_dp_event()).get_epsilon(1e-6)
    assert gdp.spent().epsilon == pytest.approx(exact, rel=1e-3)
    renyi = (
        rdp.RdpAccountant(1 + np.geomspace(0.1, 1e3, 2000))
        .compose(zcdp.to_dp_event())
        .get_epsilon(1e-6)
    )
    assert zcdp.spent().to_approx(1e-6).epsilon == pytest.approx(renyi, rel=1e-3)


def test_laplace_lines_in_gaussian_currency_are_safe():
    ledger = ledger_of([(0, 7, WHOLE, LAPLACE, 4.0), (0, 3, 0, GAUSSIAN, 5.0)], ApproxDP(9.0, 1e-6))
    assert ledger.spent().epsilon >= pld.PLDAccountant().compose(ledger.to_dp_event()).get_epsilon(
        1e-6
    ) * (1 - 1e-3)


def test_a_huge_epsilon_is_exported_as_no_privacy():
    policy = dpb.algorithms.PrivateLinUCB(2, 2, budget=dpb.PureDP(1000.0), horizon=8, seed=1)
    policy.pull(np.eye(2))
    policy.update(1.0)
    (event,) = policy.ledger.to_dp_event().events
    assert event.noise_parameter == 0.0
