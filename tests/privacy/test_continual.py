"""Continual sums: the factorisations against dense matrices, and the compiled and the secure noise
against the factorisations.
"""

import copy
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import linalg, optimize, stats

import dpbandits
from dpbandits.errors import ArgumentError, BudgetExhausted, ClaimError, DPBanditsError
from dpbandits.privacy import RDP, ZCDP, ApproxDP, Gaussian, Laplace, Open, PureDP, smat, svec
from dpbandits.privacy.channels import GAUSSIAN, HEMISPHERE, LAPLACE, OPEN, Hemisphere, add_noise
from dpbandits.privacy.continual import (
    SINGLE,
    BinaryTree,
    BufferedToeplitz,
    HonakerTree,
    HybridTree,
    Independent,
    SqrtToeplitz,
    draws_of,
    is_spent,
    mechanism_from_python,
    no_running_sum,
    overshoot,
    release_exactly,
    release_replaced,
)
from dpbandits.privacy.continual import toeplitz as buffers
from dpbandits.privacy.continual_sum import ContinualSum
from dpbandits.privacy.secure import Sampler
from dpbandits.privacy.secure_sum import SecureState, SecureSum
from dpbandits.session.gate import Gate

ALPHA, SECURE_ALPHA = 1e-4, 1e-9  # secure noise has no seed

MAKERS = {
    "tree": BinaryTree,
    "honaker": HonakerTree,
    "sqrt": SqrtToeplitz,
    "rounded": lambda horizon: SqrtToeplitz(horizon, bits=10),
    "buffered": BufferedToeplitz,
    "hybrid": lambda _: HybridTree(),
    "independent": Independent,
}
FAMILIES = {1: LAPLACE, 2: GAUSSIAN}
KINDS = [
    (name, norm) for name, make in MAKERS.items() for norm in (1, 2) if norm == 2 or make(1).pure
]
over_kinds = pytest.mark.parametrize(("name", "norm"), KINDS)


def draw(rng: np.random.Generator, norm: int, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape) if norm == 2 else rng.laplace(size=shape)


def released(running, family: int, increments: np.ndarray, scales, rng) -> np.ndarray:
    """(T, n) what the compiled step makes of the increments."""
    release, mechanism = np.empty(increments.shape), mechanism_from_python(running.kind)
    for t, (x, scale) in enumerate(zip(increments, scales, strict=True)):
        mechanism(running, family, float(scale), x, release[t], rng)
    return release


# The factors ---------------------------------------------------------------------------------


@over_kinds
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 9, 40])
def test_factors_norms_and_variances_agree_with_dense_matrices(name, norm, horizon):
    counter = MAKERS[name](horizon)
    b, c = counter.decoder(horizon, norm), counter.encoder(horizon, norm)
    assert b @ c == pytest.approx(np.tri(horizon), abs=1e-12)
    longest = np.linalg.norm(c, norm, axis=0).max()
    # A record that the hybrid tree has not yet put into all its nodes costs less than the whole.
    assert longest <= counter.column_norm(norm) * (1 + 1e-12)
    if name != "hybrid":
        assert longest == pytest.approx(counter.column_norm(norm), rel=1e-12)
    assert counter.exact_column_norm(norm) == counter.column_norm(norm)
    dense = (3 - norm) * counter.column_norm(norm) ** 2 * np.sum(b**2, axis=1)
    every = np.arange(1, horizon + 1)
    assert counter.variance(every, norm) == pytest.approx(dense, rel=1e-11)
    assert counter.variance(every.reshape(1, -1), norm).shape == (1, horizon)
    assert counter.variance(horizon, norm) == pytest.approx(dense[-1])
    for n in {1, (horizon + 1) // 2, horizon}:
        assert counter.max_variance(n, norm) == pytest.approx(dense[:n].max(), rel=1e-11)
        part = counter.encoder(n, norm), counter.decoder(n, norm)
        assert part[0] == pytest.approx(c[: len(part[0]), :n], rel=1e-14)
        assert part[1] == pytest.approx(b[:n, : len(part[0])], rel=1e-14)


def test_the_hybrid_tree_spends_its_whole_budget_in_every_epoch():
    for norm in (1, 2):
        columns = np.linalg.norm(HybridTree().encoder(255, norm), norm, axis=0)
        # the first record after 2^k is in all k levels of its tree, and in the block that ends the
        # epoch
        for k in range(1, 7):
            assert columns[2**k] == columns[2**k : 2 ** (k + 1)].max() == pytest.approx(1.0)


@over_kinds
def test_no_two_releases_share_all_their_noise(name, norm):
    b = MAKERS[name](64).decoder(64, norm)
    apart = [np.linalg.norm(b[t] - b[s]) for t in range(64) for s in range(t)]
    # a release that adds nothing fresh would have an earlier prefix read off exactly
    assert min(apart) > 0.5


# Several records of one user -----------------------------------------------------------------


def worst_pattern(encoder, records: int, norm: int) -> float:
    """The longest sum of so many columns, over all choices of them."""
    columns = range(encoder.shape[1])
    sums = (encoder[:, chosen].sum(axis=1) for chosen in itertools.combinations(columns, records))
    return max(float(np.linalg.norm(one, norm)) for one in sums)


def exceeded(counter, norm: int) -> list[tuple[int, int]]:
    """For how many releases and records some pattern moves the rows farther than is counted."""
    return [
        (n, records)
        for n in range(1, 9)
        for records in range(1, min(n, 4) + 1)
        if worst_pattern(counter(n).encoder(n, norm), records, norm)
        > counter(n).growth(records, norm) * counter(n).exact_column_norm(norm) * (1 + 1e-12)
    ]


@over_kinds
def test_no_pattern_of_returns_moves_the_rows_farther_than_is_counted(name, norm):
    assert exceeded(MAKERS[name], norm) == []
    assert all(MAKERS[name](n).growth(1, norm) == 1.0 for n in (1, 2, 7, 300))


@pytest.mark.parametrize(
    ("name", "norm", "records"),
    [
        *[("independent", norm, records) for norm in (1, 2) for records in (2, 3, 4)],
        *[(name, 2, records) for name in ("sqrt", "rounded", "buffered") for records in (2, 3, 4)],
        *[("honaker", 1, records) for records in (2, 3, 4)],
        *[("honaker", 2, records) for records in (2, 4)],
    ],
)
def test_some_pattern_moves_them_as_far(name, norm, records):
    counter = MAKERS[name](8)
    counted = counter.growth(records, norm) * counter.column_norm(norm)
    assert worst_pattern(counter.encoder(8, norm), records, norm) == pytest.approx(counted)


@pytest.mark.parametrize(
    ("name", "norm"), [("independent", 1), ("tree", 1), ("tree", 2), ("sqrt", 2), ("buffered", 2)]
)
def test_too_little_for_several_records_is_caught(name, norm, monkeypatch):
    kind = type(MAKERS[name](8))
    # the root of their number, which is right for independent Gaussian noise alone
    monkeypatch.setattr(kind, "_growth", lambda _, records, norm: math.sqrt(records))
    assert exceeded(MAKERS[name], norm)


@over_kinds
@pytest.mark.parametrize("horizon", [8, 40, 64])
def test_records_in_two_sums_cost_no_more_than_in_one(name, norm, horizon):
    counter = MAKERS[name](horizon)
    cost = [0.0, *(counter.growth(n, norm) ** norm for n in range(1, horizon + 1))]
    assert cost == sorted(cost)
    for one in range(1, horizon):
        for other in range(1, horizon - one + 1):
            assert cost[one] + cost[other] <= cost[one + other] * (1 + 1e-12)


@pytest.mark.parametrize("horizon", [1, 2, 300])
def test_sums_of_buffered_columns_agree_with_dense_matrices(horizon):
    counter = BufferedToeplitz(horizon)
    dense = np.cumsum(counter.encoder(), axis=1)
    for records in {1, 2, 7, 299, 300} & set(range(1, horizon + 1)):
        counted = counter.growth(records) * counter.column_norm()
        assert counted == pytest.approx(np.linalg.norm(dense[:, records - 1]), rel=1e-12)


@pytest.mark.parametrize("horizon", [2, 10, 2**9, 2**15, 2**31, 2**48])
def test_columns_of_buffered_sums_fall_and_are_not_negative(horizon):
    # which the proof that the first columns are the worst needs
    both = buffers.planned(horizon)
    assert (both.weights > 0.0).all()
    assert ((both.gaps > 0.0) & (both.gaps < 1.0)).all()
    assert both.weights.sum() <= 1.0


def test_ten_consecutive_columns_of_a_square_root():
    assert round(SqrtToeplitz(2000).growth(10), 2) == 8.65


def test_what_growth_is_not_asked_for():
    for counter, records in ((BinaryTree(8), 9), (Independent(2), 3), (HybridTree(), 0)):
        with pytest.raises(ArgumentError, match=r"^records must be"):
            counter.growth(records)
    with pytest.raises(ArgumentError, match=r"^norm must be"):
        SqrtToeplitz(8).growth(2, norm=1)


# Variances ------------------------------------------------------------------------------------

# (maximum, mean) at rho = 1, as far as the digits go.
PUBLISHED = {
    ("tree", 1000): ("45.0", "24.7"),
    ("tree", 20_000): ("105.0", "52.2"),
    ("tree", 2**20): ("210", "105"),
    ("honaker", 1000): ("26.5", "14.4"),
    ("honaker", 20_000): ("58.5", "29.1"),
    ("honaker", 2**20): ("113", "56.7"),
    ("sqrt", 1000): ("5.33", "4.81"),
    ("sqrt", 20_000): ("8.90", "8.23"),
    ("sqrt", 2**20): ("15.0", "14.1"),
    ("rounded", 20_000): ("8.905", "8.226"),
    ("buffered", 20_000): ("8.94", "8.26"),
}


@pytest.mark.parametrize(("name", "horizon"), PUBLISHED)
def test_golden_variances(name, horizon):
    maximum, mean = PUBLISHED[name, horizon]
    counter = MAKERS[name](horizon)
    every = counter.variance(np.arange(1, horizon + 1)) / 2
    assert rounds_to(every.max(), maximum)
    assert rounds_to(every.mean(), mean)
    assert counter.max_variance() == pytest.approx(2 * every.max(), rel=1e-12)


def rounds_to(value: float, digits: str) -> bool:
    places = len(digits.partition(".")[2])
    return abs(value - float(digits)) <= 0.5001 * 10.0**-places


@pytest.mark.parametrize("k", [0, 1, 5, 10])
def test_levels_at_powers_of_two(k):
    for horizon, levels in ((2**k, k + 1), (2 ** (k + 1) - 1, k + 1)):
        for kind in (BinaryTree, HonakerTree):
            assert (
                kind(horizon).column_norm(1)
                == pytest.approx(kind(horizon).column_norm(2) ** 2)
                == levels
            )
            assert kind(horizon).start(1).memory.shape == (levels, 1)


def test_levels_can_be_those_of_a_recipe_and_the_truth_is_kept():
    recipe = BinaryTree(20_000, levels=math.log2(20_000))
    assert recipe.column_norm(1) == pytest.approx(14.2877, abs=1e-4)
    assert recipe.exact_column_norm(1) == 15.0
    assert recipe.variance(20_000) == pytest.approx(
        BinaryTree(20_000).variance(20_000) * math.log2(20_000) / 15
    )
    with pytest.raises(ArgumentError, match="counter must have noise at all its levels"):
        ContinualSum(BinaryTree(8, levels=1), PureDP(1.0), sensitivity=1.0, seed=1)
    running = ContinualSum(BinaryTree(8, levels=8), PureDP(1.0), sensitivity=1.0, seed=1)
    running.add(0.0)
    assert running.spent() == PureDP(0.5)
    assert running.noise_scale == 8.0


def test_the_square_root_is_one():
    c, b = SqrtToeplitz(64).coefficients()
    assert np.array_equal(c, b)
    assert SqrtToeplitz(64).encoder() == pytest.approx(linalg.sqrtm(np.tri(64)), abs=1e-6)
    assert c[:4].tolist() == [1.0, 0.5, 0.375, 0.3125]


def test_the_rounded_square_root_is_an_integer_matrix_whose_norm_is_exact():
    counter = SqrtToeplitz(500, bits=10)
    integers = counter.encoder() * 2**10
    assert np.all(integers % 1 == 0)
    # Python's integers
    largest = max(sum(int(entry) ** 2 for entry in column) for column in integers.T)
    assert counter.column_norm() * 2**10 == math.sqrt(largest)
    assert counter.max_variance() == pytest.approx(SqrtToeplitz(500).max_variance(), rel=1e-3)
    coarse = SqrtToeplitz(20_000, bits=6)
    assert rounds_to(coarse.max_variance() / 2, "11.7")


@pytest.mark.parametrize("horizon", [2, 33, 1500])
def test_the_buffered_decoder_is_the_inverse_of_its_encoder(horizon):
    both = buffers.planned(horizon)
    assert np.all(both.gaps > 0)
    assert np.all(both.weights > 0)
    assert np.all(both.decoder_weights > 0)
    assert both.decoder_weights.sum() == pytest.approx(1.0, rel=1e-13)
    assert np.all((both.decoder_gaps[1:] > both.gaps) & (both.decoder_gaps[:-1] < both.gaps))
    counter = BufferedToeplitz(horizon)
    summed = linalg.solve_toeplitz(
        (counter.encoder(horizon)[:, 0], np.eye(1, horizon)[0]), np.ones(horizon)
    )
    assert counter.decoder(horizon)[:, 0] == pytest.approx(summed, rel=1e-9)


def fitted(horizon: int, start: np.ndarray) -> tuple[np.ndarray, float]:
    """How ``buffers.TABLE`` was found: the logarithms of (gaps, weights) with the least maximal
    variance, and that variance.

    The variance of the last release is the largest, and smooth in eight numbers; a quasi-Newton
    search from the optimum of half the horizon finds its optimum in some seconds.
    """
    four = buffers.BUFFERS

    def log_variance(logs: np.ndarray) -> float:
        order = np.argsort(logs[:four])
        both = buffers.solve(np.exp(logs[:four][order]), np.exp(logs[four:][order]))
        last = buffers.squares(both.decoder_gaps, both.decoder_weights, np.array(horizon))
        return math.log(buffers.columns_square(both, horizon) * float(last))

    found = optimize.minimize(
        log_variance,
        start,
        method="L-BFGS-B",
        jac="3-point",
        options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9},
    )
    return found.x, math.exp(found.fun)


@pytest.mark.long  # a search in eight dimensions
@pytest.mark.parametrize("power", [6, 15, 26])
def test_the_shipped_parameters_are_optimal_and_so_are_those_between_them(power):
    row = buffers.TABLE[(power - 4) // 2]
    found, variance = fitted(2**power, row)
    assert found.shape == (8,)
    assert variance <= BufferedToeplitz(2**power).max_variance() <= variance * 1.0002


@pytest.mark.parametrize(
    ("horizon", "excess"), [(1, 1e-9), (16, 1e-6), (1000, 0.0003), (20_000, 0.0044), (2**20, 0.032)]
)
def test_four_buffers_nearly_reach_the_square_root(horizon, excess):
    ratio = BufferedToeplitz(horizon).max_variance() / SqrtToeplitz(horizon).max_variance()
    assert 1 - 1e-9 <= ratio <= 1 + excess


def test_closed_forms_hold_far_beyond_what_can_be_written_out():
    # Against the plain sum of a million terms; the decays are within 1e-8 of one there.
    counter = BufferedToeplitz(2**26)
    both = buffers.planned(2**26)
    total = 0.0
    for start in range(0, 2**20, 2**16):
        k = np.arange(start, start + 2**16)[:, None]
        total += float(
            np.sum((np.exp(k[:, :] * np.log1p(-both.decoder_gaps)) @ both.decoder_weights) ** 2)
        )
    assert counter.variance(2**20) == pytest.approx(counter.column_norm() ** 2 * total, rel=1e-9)
    assert counter.variance(2**26) == counter.max_variance()
    alternating = buffers.squares(np.array([1.5, 0.25]), np.array([0.5, 2.0]), np.array([5]))
    assert alternating == pytest.approx(
        sum((0.5 * (-0.5) ** k + 2 * 0.75**k) ** 2 for k in range(5))
    )


def test_a_generous_plan_for_an_unknown_number_of_releases():
    assert overshoot(20_000) == 2**20
    assert [overshoot(n, 1) for n in (1, 2, 3, 1024, 1025)] == [1, 2, 4, 1024, 2048]
    assert overshoot(3, 1.5) == 8
    for kind, ratio in ((SqrtToeplitz, 1.3), (BufferedToeplitz, 1.31)):
        known, planned = kind(20_000).variance(20_000), kind(2**20).variance(20_000)
        assert planned / known == pytest.approx(ratio, abs=0.006)
    assert HybridTree().max_variance(20_000) / SqrtToeplitz(20_000).max_variance() == pytest.approx(
        20.6, abs=0.1
    )
    for arguments in ((0,), (5, 0.5), (5, math.nan), (2**40, 2.0**20)):
        with pytest.raises(ArgumentError, match=r"^(expected|factor) must"):
            overshoot(*arguments)


@pytest.mark.parametrize(
    "kind", [BinaryTree, HonakerTree, SqrtToeplitz, BufferedToeplitz, Independent]
)
def test_horizons_are_checked(kind):
    for bad in (0, -1, 2.5, True, 2**60):
        with pytest.raises(ArgumentError, match=r"^horizon must be"):
            kind(bad)
    counter = kind(10)
    for call in (counter.encoder, counter.decoder, counter.max_variance):
        with pytest.raises(ArgumentError, match=r"^n must be an integer between 1 and 10"):
            call(11)
    for bad in (0, 11, 1.0, [1, 11]):
        with pytest.raises(ArgumentError, match=r"^t must be integers between 1 and 10"):
            counter.variance(bad)
    assert counter.variance(np.array([], np.int64)).shape == (0,)
    with pytest.raises(ArgumentError, match="between 1 and 8,192"):
        kind(9000).encoder()
    with pytest.raises(ArgumentError, match=r"^norm must be 1 \(Laplace\) or 2"):
        counter.column_norm(3)
    with pytest.raises(ArgumentError, match=r"^n must be an integer"):
        counter.start(0)


def test_what_does_not_fit_is_refused_with_advice():
    for kind in (SqrtToeplitz, BufferedToeplitz):
        for call in (
            kind(8).column_norm,
            lambda norm, kind=kind: kind(8).start(1, norm),
            lambda n, k=kind: k(8).variance(1, n),
        ):
            with pytest.raises(ArgumentError, match=r"norm must be 2 .* Use BinaryTree"):
                call(1)
    with pytest.raises(ArgumentError, match=r"horizon must be at most 167772 .* BufferedToeplitz"):
        SqrtToeplitz(200_000).start(100)
    for call in (HybridTree().encoder, HybridTree().max_variance, Independent().decoder):
        with pytest.raises(ArgumentError, match=r"^n must be given"):
            call()
    for bits in (0, 17, 1.5):
        with pytest.raises(ArgumentError, match=r"^bits must be"):
            SqrtToeplitz(8, bits=bits)
    with pytest.raises(ArgumentError, match=r"^horizon must be an integer between 1 and 65,536"):
        SqrtToeplitz(2**17, bits=10)
    with pytest.raises(ArgumentError, match=r"^levels must be"):
        BinaryTree(8, levels=0)


# The compiled step ---------------------------------------------------------------------------


def expected_noise(
    counter, norm: int, horizon: int, n: int, scales: np.ndarray, rng
) -> tuple[np.ndarray, int]:
    """(T, n) column norm times B times fresh rows, each scaled as at its release, and how many
    numbers that takes.
    """
    b = counter.decoder(horizon, norm)
    c = counter.encoder(horizon, norm)
    # The last increment that a row covers tells the release at which it is drawn.
    at = np.array([np.flatnonzero(row)[-1] for row in c])
    z = draw(rng, norm, (b.shape[1], n)) * scales[at][:, None]
    return counter.column_norm(norm) * b @ z, z.size


@over_kinds
@pytest.mark.parametrize("horizon", [1, 2, 8, 9, 50])
@pytest.mark.long
def test_the_compiled_step_is_the_factorisation_draw_by_draw(name, norm, horizon):
    # Nothing statistical: from the same seed, the same numbers as dense matrices; so every node is
    # drawn once, in order, with the scale of its release, and nothing else is drawn.
    counter, rng, same = MAKERS[name](horizon), np.random.default_rng(3), np.random.default_rng(3)
    running, n = counter.start(3, norm), 3
    increments = np.random.default_rng(4).normal(size=(horizon, n))
    scales = np.random.default_rng(5).uniform(0.5, 2.0, horizon)
    release, counted, mechanism = np.empty((horizon, n)), 0, mechanism_from_python(running.kind)
    for t in range(horizon):
        assert not is_spent(running)
        counted += n * draws_of(running)
        mechanism(running, FAMILIES[norm], scales[t], increments[t], release[t], rng)
    noise, drawn = expected_noise(counter, norm, horizon, n, scales, same)
    assert release - np.cumsum(increments, axis=0) == pytest.approx(
        noise, abs=1e-12 * np.abs(noise).max() * horizon
    )
    assert counted == drawn
    assert rng.random() == same.random()
    assert running.total == pytest.approx(increments.sum(axis=0))
    assert is_spent(running) == (counter.horizon is not None)


def p_value(sample: np.ndarray, covariance: np.ndarray) -> float:
    """The p-value of a sample (T, R) of R independent vectors against a covariance: of the products
    of its whitened coordinates.
    """
    white = linalg.solve_triangular(np.linalg.cholesky(covariance), sample, lower=True)
    scores = []
    for i in range(len(white)):
        for j in range(i + 1):
            product = white[i] * white[j] - (i == j)
            scores.append(abs(product.mean()) / product.std() * math.sqrt(product.size))
    return min(1.0, 2 * stats.norm.sf(max(scores)) * len(scores))


REPLICAS = 20_000  # finds 7 % of a variance, and a correlation of 0.04


@over_kinds
@pytest.mark.long
def test_the_noise_has_the_covariance_of_its_factorisation(name, norm):
    horizon = 11
    counter, rng = MAKERS[name](horizon), np.random.default_rng(7)
    increments = np.zeros((horizon, REPLICAS))  # coordinates are independent, hence replicas
    sample = released(
        counter.start(REPLICAS, norm), FAMILIES[norm], increments, np.full(horizon, 1.5), rng
    )
    b = counter.decoder(horizon, norm)
    scale = 1.5**2 * (3 - norm) * counter.column_norm(norm) ** 2
    covariance = scale * b @ b.T
    assert p_value(sample, covariance) > ALPHA
    assert np.diag(covariance) == pytest.approx(
        1.5**2 * counter.variance(np.arange(1, horizon + 1), norm)
    )
    # What must be seen: one level more, noise that is redrawn at every release, and one release too
    # early or too late.
    for wrong in (covariance * 5 / 4, np.diag(np.diag(covariance))):
        assert p_value(sample, wrong) < ALPHA
    assert p_value(sample[1:], covariance[:-1, :-1]) < ALPHA
    first = sample[0] / math.sqrt(covariance[0, 0] / (3 - norm))
    assert stats.kstest(first, stats.norm.cdf if norm == 2 else stats.laplace.cdf).pvalue > ALPHA


def test_no_running_sum_is_a_plain_release():
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    running, x, got, want = no_running_sum(), np.array([1.0, 2.0]), np.empty(2), np.empty(2)
    for family in (GAUSSIAN, LAPLACE, OPEN):
        for _ in range(3):
            mechanism_from_python(SINGLE)(running, family, 2.0, x, got, rng)
            add_noise(family, 2.0, 0.0, x, want, same)
            assert np.array_equal(got, want)
    release_exactly(running, OPEN, 0.0, x, got, 0)
    assert np.array_equal(got, x)
    assert not is_spent(running)
    assert draws_of(running) == 1
    assert running.clock[0] == 0


def test_a_replaced_vector_has_a_mechanism_of_its_own():
    """Running sums of that noise have no proof: they release NaN, never the statistic."""
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    x, got, want = np.array([0.6, 0.8]), np.empty(2), np.empty(2)
    release_replaced(no_running_sum(), HEMISPHERE, 2.0, x, got, rng)
    add_noise(HEMISPHERE, 2.0, 0.0, x, want, same)
    assert np.array_equal(got, want)
    for make in MAKERS.values():
        running = make(8).start(2)
        mechanism_from_python(running.kind)(running, HEMISPHERE, 2.0, x, got, rng)
        assert np.isnan(got).all()


@pytest.mark.parametrize("counter", [None, BinaryTree(8)])
def test_a_gate_replaces_vectors_only_without_a_running_sum(counter):
    gate = SimpleNamespace(statistic=SimpleNamespace(counter=counter), channel=Hemisphere(1.0))
    found = Gate.mechanism.fget(gate)
    assert (found is release_replaced) == (counter is None)


def test_every_kind_has_the_same_types():
    starts = [make(8).start(2) for make in MAKERS.values()]
    for running in (*starts, no_running_sum()):
        assert [type(field) for field in running] == [int, int, float, *[np.ndarray] * 4, float]
        assert [(field.dtype.str, field.ndim) for field in running[3:7]] == [
            ("<i8", 1),
            ("<f8", 2),
            ("<f8", 2),
            ("<f8", 1),
        ]
        assert all(field.flags.c_contiguous and field.flags.writeable for field in running[3:7])


@over_kinds
def test_the_open_channel_is_exact_and_nothing_leaves_after_the_last_release(name, norm):
    increments = np.random.default_rng(0).normal(size=(9, 2))
    for open_channel in (True, False):
        running, release = MAKERS[name](9).start(2, norm), np.empty((10, 2))
        step = release_exactly if open_channel else mechanism_from_python(running.kind)
        rng = 0 if open_channel else np.random.default_rng(0)
        for t in range(9):
            step(running, OPEN, 0.0, increments[t], release[t], rng)
        assert np.array_equal(release[:9], np.cumsum(increments, axis=0))
        step(running, OPEN, 0.0, increments[0], release[9], rng)
        assert np.all(np.isnan(release[9])) == (running.limit == 9)
    running = MAKERS[name](2).start(2, norm)
    late = released(running, FAMILIES[norm], increments[:4], np.ones(4), np.random.default_rng(0))
    assert np.all(np.isfinite(late[:2]))
    assert np.all(np.isnan(late[2:])) == (running.limit == 2)


@over_kinds
def test_a_family_without_noise_shows_nothing(name, norm):
    for running in (MAKERS[name](4).start(2, norm), no_running_sum()):
        assert np.all(
            np.isnan(released(running, 99, np.ones((4, 2)), np.ones(4), np.random.default_rng(0)))
        )


PLAIN = [
    ("tree", 1),
    ("honaker", 1),
    ("hybrid", 1),
    ("sqrt", 2),
    ("buffered", 2),
    ("independent", 2),
]


def walk_of_every_kind() -> list[list[float]]:
    """Twelve releases of three coordinates, and how many variables each took."""
    walk = []
    for name, norm in PLAIN:
        running, rng, release = (
            MAKERS[name](12).start(3, norm),
            np.random.default_rng(9),
            np.empty(3),
        )
        for t in range(12):
            draws = draws_of(running)
            mechanism = mechanism_from_python(running.kind)
            mechanism(running, FAMILIES[norm], 1.0 + t, np.full(3, 0.5), release, rng)
            walk.append([*release.tolist(), draws])
    return walk


@pytest.mark.long
def test_plain_python_gives_the_same_numbers():
    places = [Path(dpbandits.__file__).parents[1], Path(__file__).parent]
    paths = os.pathsep.join(map(str, places))
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths}
    script = "import json, test_continual; print(json.dumps(test_continual.walk_of_every_kind()))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == pytest.approx(np.array(walk_of_every_kind()), rel=1e-12)


# Symmetric matrices --------------------------------------------------------------------------


def test_matrices_keep_their_lengths_as_vectors():
    rng = np.random.default_rng(0)
    for d in (1, 2, 5):
        a, b = (m + m.T for m in rng.normal(size=(2, d, d)))
        assert svec(a) @ svec(b) == pytest.approx(np.sum(a * b))
        assert smat(svec(a)) == pytest.approx(a, rel=1e-14)
        assert svec(a).shape == (d * (d + 1) // 2,)
    for bad in (
        np.ones((2, 3)),
        np.array([[0.0, 1.0], [2.0, 0.0]]),
        np.full((2, 2), np.nan),
        np.ones(4),
    ):
        with pytest.raises(ArgumentError, match=r"^matrix must be"):
            svec(bad)
    for bad in (np.ones(2), np.ones(0), np.ones((2, 2)), 1.0):
        with pytest.raises(ArgumentError, match=r"^vector must (have|be)"):
            smat(bad)


@pytest.mark.long
def test_matrix_noise_is_the_gaussian_orthogonal_ensemble():
    running = ContinualSum(Independent(5000), ZCDP(0.5), shape=(3, 3), sensitivity=2.0, seed=3)
    sums = np.array([running.add(np.zeros((3, 3))) for _ in range(5000)])
    noise = np.diff(sums, axis=0)
    assert np.array_equal(sums, sums.transpose(0, 2, 1))
    # By invariance under rotation u' N v has one law for all orthonormal u, v; the iid triangle
    # fails the second line by a factor.
    rotation = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    turned = rotation @ noise @ rotation.T
    for sample in (noise, turned):
        assert stats.kstest(sample[:, 1, 1] / 2.0, stats.norm.cdf).pvalue > ALPHA
        assert stats.kstest(sample[:, 0, 2] / math.sqrt(2.0), stats.norm.cdf).pvalue > ALPHA
    assert running.variance / 5000 == pytest.approx(
        np.array([[4.0, 2.0, 2.0], [2.0, 4.0, 2.0], [2.0, 2.0, 4.0]])
    )


# Streaming -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [PureDP(0.5), ZCDP(0.5), ApproxDP(1.0, 1e-6), RDP(4.0, 1.0)])
def test_a_stream_spends_its_budget_once(budget):
    counter = HonakerTree(100)
    running = ContinualSum(counter, budget, shape=(2,), sensitivity=3.0, seed=0)
    assert (running.count, running.spent(), running.variance.tolist()) == (0, None, [0.0, 0.0])
    outputs = [running.add([1.0, 2.0]) for _ in range(7)]
    assert running.count == 7
    assert running.spent() == budget
    norm, kind = (1, Laplace) if isinstance(budget, PureDP) else (2, Gaussian)
    multiplier = kind.calibrated(budget).multiplier
    assert running.noise_scale == pytest.approx(3.0 * multiplier * counter.column_norm(norm))
    assert running.variance == pytest.approx(
        np.full(2, 9.0 * multiplier**2 * counter.variance(7, norm))
    )
    again = ContinualSum(counter, budget, shape=(2,), sensitivity=3.0, seed=0)
    assert all(np.array_equal(again.add([1.0, 2.0]), output) for output in outputs)


def test_a_stream_of_numbers():
    running = ContinualSum(BufferedToeplitz(3000), ZCDP(1e12), sensitivity=1.0, seed=1)
    for t in range(1, 3001):
        total = running.add(0.25)
        assert isinstance(total, float)
        assert total == pytest.approx(t / 4, abs=1e-4)
    with pytest.raises(BudgetExhausted, match="planned for 3000 releases"):
        running.add(0.25)
    assert running.count == 3000


def test_what_is_refused_changes_nothing():
    running, undisturbed = (
        ContinualSum(BinaryTree(5), PureDP(1.0), shape=(2, 2), sensitivity=1.0, seed=2)
        for _ in range(2)
    )
    good = np.array([[1.0, 0.5], [0.5, 0.0]])
    for _ in range(2):
        for bad in (
            1.0,
            [1.0, 2.0],
            np.full((2, 2), np.nan),
            [[0.0, np.inf], [np.inf, 0.0]],
            "x",
            None,
            [[1.0], [2.0, 3.0]],
        ):
            with pytest.raises(ArgumentError, match=r"^x must be finite numbers of shape \(2, 2\)"):
                running.add(bad)
        with pytest.raises(ArgumentError, match="symmetric"):
            running.add([[0.0, 1.0], [2.0, 0.0]])
        assert np.array_equal(running.add(good), undisturbed.add(good))
    assert running.count == 2


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("counter", {"counter": 5}),
        ("sensitivity", {"sensitivity": 0.0}),
        ("sensitivity", {"sensitivity": math.inf}),
        ("shape", {"shape": (2, 3)}),
        ("shape", {"shape": (0,)}),
        ("shape", {"shape": 3}),
        ("bound", {"bound": 0.6}),
        ("noise", {"noise": "none"}),
        ("seed", {"noise": "secure", "seed": 1}),
        ("seed", {"seed": -1}),
        ("grid", {"noise": "secure", "grid": 0.3}),
        ("norm", {"budget": PureDP(1.0)}),
        ("counter", {"counter": HonakerTree(8), "noise": "secure"}),
        ("counter", {"counter": BufferedToeplitz(8), "noise": "secure"}),
    ],
)
def test_the_door_of_a_stream(name, arguments):
    given = {"counter": SqrtToeplitz(8), "budget": ZCDP(1.0), "sensitivity": 1.0} | arguments
    with pytest.raises(ArgumentError, match=f"^{name} must"):
        ContinualSum(given.pop("counter"), given.pop("budget"), **given)


def test_increments_are_shrunk_into_a_ball_where_a_bound_is_given():
    for budget, norm in ((PureDP(1e12), 1), (ZCDP(1e24), 2)):
        running = ContinualSum(
            Independent(), budget, shape=(2,), sensitivity=2.0, bound=1.0, seed=0
        )
        for x in ([3.0, 4.0], [0.3, -0.4], [0.0, 0.0]):
            before = running.add([0.0, 0.0])
            moved = running.add(x) - before
            want = np.array(x) / max(1.0, np.linalg.norm(x, norm))
            assert moved == pytest.approx(want, abs=1e-9)
    rounded = ContinualSum(
        Independent(),
        PureDP(1e12),
        shape=(2,),
        sensitivity=2.0,
        bound=1.0,
        noise="secure",
        grid=0.25,
    )
    # towards zero, so that no length grows
    assert rounded.add([-0.3, 0.6]).tolist() == [
        -0.25,
        0.5,
    ]


# Secure noise --------------------------------------------------------------------------------

EXACT = {
    "tree": BinaryTree,
    "rounded": lambda horizon: SqrtToeplitz(horizon),
    "hybrid": lambda _: HybridTree(),
    "independent": Independent,
}
EXACT_KINDS = [
    (name, norm) for name in EXACT for norm in (1, 2) if norm == 2 or EXACT[name](1).pure
]
over_exact = pytest.mark.parametrize(("name", "norm"), EXACT_KINDS)
CHANNELS = {1: Laplace(1.0), 2: Gaussian(1.0)}


class Script:
    """A sampler that gives out known numbers and writes down the scales that it was asked for."""

    def __init__(self):
        self.scales, self.given, self._rng = [], [], np.random.default_rng(0)

    def _draw(self, family, scale, count):
        self.scales += [scale] * count
        self.given += self._rng.integers(-1000, 1000, count).tolist()
        return self.given[-count:]


@over_exact
@pytest.mark.parametrize("horizon", [1, 8, 21])
def test_secure_sums_are_the_factorisation_in_integers(name, norm, horizon):
    script, grid, n = Script(), 2.0**-4, 2
    running = SecureSum(EXACT[name](horizon), n, grid, script)
    state, counter, bits = running.start(), running.counter, 10 if name == "rounded" else 0
    increments = np.random.default_rng(1).integers(-100, 100, (horizon, n)) * grid
    scales = np.linspace(1.0, 2.0, horizon)
    release = np.array(
        [running.add(state, x, CHANNELS[norm], s) for x, s in zip(increments, scales, strict=True)]
    )
    b, c = counter.decoder(horizon, norm), counter.encoder(horizon, norm)
    rows = np.array(script.scales).reshape(horizon, n)
    # The noise of row t, in integers, against the sensitivity of the row in integers.  In a row of
    # the hybrid tree all entries are 1 / scale where the integer row has ones.
    unit = 2.0**bits if name == "rounded" else 1.0 / np.abs(c).max(axis=1)
    widths = scales * counter.column_norm(norm) / grid * unit
    if norm == 2:
        widths = np.sqrt(widths**2 + 0.1)  # discrete Gaussian noise
    assert rows == pytest.approx(widths[:, None] * np.ones(n), rel=1e-12)
    assert np.all(rows > widths[:, None])  # rounded up
    noise = np.array(script.given).reshape(horizon, n) * grid / (np.ones(horizon) * unit)[:, None]
    assert release - np.cumsum(increments, axis=0) == pytest.approx(b @ noise, abs=1e-9)
    if name != "rounded":
        assert np.all(release / grid % 1 == 0)


@over_exact
def test_what_leaves_a_secure_sum_follows_from_its_noisy_rows_alone(name, norm):
    running, rng = SecureSum(EXACT[name](40), 2, 0.5, Script()), np.random.default_rng(5)
    state = running.start()
    for t in range(1, 41):
        release = running.add(state, rng.integers(-9, 9, 2) * 0.5, CHANNELS[norm], 1.0)
        assert np.array_equal(release, decode_only(running, t, state.noisy))


def decode_only(running: SecureSum, t: int, noisy: np.ndarray) -> np.ndarray:
    """The release number t, from the noisy rows: written out anew."""
    counter = running.counter
    if isinstance(counter, SqrtToeplitz):
        return counter.coefficients()[1][:t][::-1] @ noisy[:t] / 2.0**10 * running.grid
    if isinstance(counter, Independent):
        return noisy[0] * running.grid
    inside, first = (
        (t, 0) if isinstance(counter, BinaryTree) else (t & ~(1 << t.bit_length() - 1), 1)
    )
    parts = [noisy[first + place] for place in range(inside.bit_length()) if inside >> place & 1]
    return (np.sum(parts, axis=0) + (noisy[0] if first else 0)) * running.grid


@over_exact
def test_an_open_secure_sum_is_exact(name, norm):
    running, rng = SecureSum(EXACT[name](70), 3, 2.0**-10, Sampler()), np.random.default_rng(2)
    increments, state = rng.integers(-(2**20), 2**20, (70, 3)) * 2.0**-10, running.start()
    release = np.array([running.add(state, x, Open(), 0.0) for x in increments])
    if name == "rounded":  # decoded in floats; the rows are exact
        assert release == pytest.approx(np.cumsum(increments, axis=0), abs=1e-6)
    else:
        assert np.array_equal(release, np.cumsum(increments, axis=0))


@pytest.mark.long
@pytest.mark.parametrize(("name", "norm"), [("tree", 1), ("rounded", 2), ("hybrid", 2)])
def test_secure_noise_has_the_covariance_of_its_factorisation(name, norm):
    # 4,000 replicas find 25 % of a variance (one level too many or too few) and a correlation of
    # 0.1.
    replicas, horizon, scale = 4000, 6, 7.0
    running = SecureSum(EXACT[name](horizon), replicas, 1.0, Sampler())
    state = running.start()
    sample = np.array(
        [running.add(state, np.zeros(replicas), CHANNELS[norm], scale) for _ in range(horizon)]
    )
    b = running.counter.decoder(horizon, norm)
    covariance = scale**2 * (3 - norm) * running.counter.column_norm(norm) ** 2 * b @ b.T
    assert p_value(sample, covariance) > SECURE_ALPHA
    assert p_value(sample, covariance * 4 / 3) < SECURE_ALPHA
    assert p_value(sample, np.diag(np.diag(covariance))) < SECURE_ALPHA


@over_exact
def test_a_secure_sum_continues_from_its_arrays(name, norm):
    increments = np.random.default_rng(6).integers(-9, 9, (30, 2)) * 1.0
    whole, first = (SecureSum(EXACT[name](30), 2, 1.0, Script()) for _ in range(2))
    unbroken, state = whole.start(), first.start()
    for t, x in enumerate(increments):
        wanted = whole.add(unbroken, x, CHANNELS[norm], 1.0)
        assert np.array_equal(first.add(state, x, CHANNELS[norm], 1.0), wanted)
        if t in (6, 7, 20):
            state = SecureState(*(array.copy() for array in state))
            first = SecureSum(EXACT[name](30), 2, 1.0, first._source)


def test_a_node_that_was_swallowed_leaves_no_exact_sum_behind():
    for name in ("tree", "hybrid"):
        running = SecureSum(EXACT[name](8), 1, 1.0, Script())
        state = running.start()
        for _ in range(4):
            running.add(state, np.ones(1), CHANNELS[2], 1.0)
        assert state.exact.sum() == (4 if name == "tree" else 0)


def test_a_secure_sum_refuses_what_it_cannot_add():
    running = SecureSum(BinaryTree(2), 2, 0.5, Script())
    state = running.start()
    for bad in ([0.25, 0.0], [math.nan, 0.0], [math.inf, 0.0], [2.0**62, 0.0]):
        with pytest.raises(DPBanditsError, match="must be a multiple of the grid step"):
            running.add(state, np.array(bad), CHANNELS[2], 1.0)
    with pytest.raises(DPBanditsError, match=r"^grid must be coarser"):
        running.add(state, np.zeros(2), CHANNELS[2], 1e16)
    assert state.clock[0] == state.exact.any() == state.noisy.any() == 0
    for _ in range(2):
        running.add(state, np.zeros(2), CHANNELS[2], 1.0)
    with pytest.raises(BudgetExhausted, match="planned for 2 releases"):
        running.add(state, np.zeros(2), CHANNELS[2], 1.0)
    assert state.clock[0] == 2
    kind = r"^counter must be BinaryTree, HybridTree, Independent or SqrtToeplitz"
    horizon = r"^counter must have a horizon of at most 2\*\*30 releases"
    refused = {HonakerTree(8): kind, BufferedToeplitz(8): kind, BinaryTree(2**31): horizon}
    for counter, why in refused.items():
        with pytest.raises(ArgumentError, match=why):
            SecureSum(counter, 1, 1.0, Script())


def test_noise_that_is_ready_does_not_pile_up():
    source = Sampler()
    running = SecureSum(Independent(), 1, 1.0, source)
    state = running.start()
    for t in range(200):
        running.add(state, np.zeros(1), CHANNELS[1], 1.0 + t / 8)
    assert len(source._ready) <= 65


def test_a_secure_stream():
    running = ContinualSum(
        SqrtToeplitz(50), ApproxDP(1.0, 1e-6), shape=(2,), sensitivity=1.0, noise="secure"
    )
    assert running.counter == SqrtToeplitz(50, bits=10)
    with pytest.raises(ArgumentError, match="multiples of the grid"):
        running.add([0.3, 0.0])
    outputs = np.array([running.add([0.5, 0.25]) for _ in range(50)])
    assert running.count == 50
    assert running.spent() == ApproxDP(1.0, 1e-6)
    assert running.noise_scale == pytest.approx(
        Gaussian.calibrated(ApproxDP(1.0, 1e-6)).multiplier * running.counter.column_norm()
    )
    assert np.all(
        np.abs(outputs - np.arange(1, 51)[:, None] * [0.5, 0.25]) < 8 * np.sqrt(running.variance)
    )
    with pytest.raises(BudgetExhausted):
        running.add([0.0, 0.0])
    matrices = ContinualSum(
        HybridTree(), PureDP(1.0), shape=(2, 2), sensitivity=2.0, bound=1.0, noise="secure"
    )
    noisy = matrices.add(np.eye(2))
    assert np.array_equal(noisy, noisy.T)


def test_a_continual_sum_is_not_copied():
    running = ContinualSum(BinaryTree(8), PureDP(1.0), sensitivity=1.0, seed=1)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            copied(running)


def test_a_fork_adds_nothing(monkeypatch):
    running = ContinualSum(BinaryTree(8), PureDP(1.0), sensitivity=1.0, seed=1)
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(ClaimError, match="forked process"):
        running.add(1.0)
    assert running.count == 0


@pytest.mark.parametrize("counter", [BinaryTree(8), HybridTree(), SqrtToeplitz(8)])
def test_secure_noise_beyond_64_bits_is_refused_before_any_release(counter):
    budget = ZCDP(1e-30) if isinstance(counter, SqrtToeplitz) else PureDP(1e-15)
    with pytest.raises(ArgumentError, match=r"^grid must be coarser"):
        ContinualSum(counter, budget, sensitivity=1.0, noise="secure")


def test_no_noise_variable_is_wider_than_the_widening_says():
    for counter in (BinaryTree(60), HonakerTree(60), HybridTree(), Independent(60)):
        for n in (1, 2, 7, 60):
            assert counter.decoder(n, 1).max() == pytest.approx(counter.widening(n, 1)), (
                counter,
                n,
            )
