"""The law of sums: from messages, and drawn directly."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from dpbandits.shuffle import (
    Analyzer,
    BitSum,
    GaussianReports,
    LaplaceShares,
    ModularSum,
    Protocol,
    Randomizer,
    Shuffler,
)
from dpbandits.shuffle.randomness import Source

SMALL = {"batch": 4, "dimension": 2, "bound": 1.0, "levels": 5}
PROTOCOLS = [
    BitSum(noise=13, **SMALL),
    ModularSum(noise=13, **SMALL),
    GaussianReports(noise=3, **SMALL),
    LaplaceShares(noise=3, **SMALL),
    BitSum(noise=13, **{**SMALL, "dimension": 1}),
    ModularSum(noise=16, largest=0.5, sensitivity=0.7, **{**SMALL, "dimension": 1}),
]
NAMES = [f"{type(p).__name__}-{p.dimension}" for p in PROTOCOLS]
RUNS = 4000
# One process runs all long tests of a protocol, which look at the same runs.
ALONE = [
    pytest.param(protocol, id=name, marks=pytest.mark.xdist_group(f"messages of {name}"))
    for protocol, name in zip(PROTOCOLS, NAMES, strict=True)
]


def vectors(protocol: Protocol, n: int | None = None) -> np.ndarray:
    """Off the grid, so that rounding is random."""
    return np.random.default_rng(5).uniform(-0.47, 0.47, (n or protocol.batch, protocol.dimension))


def from_messages(protocol, x, runs=RUNS, noise="simulation", short="pad"):
    seeds = (None, None) if noise == "secure" else (1, 2)
    randomizer = Randomizer(protocol, noise=noise, seed=seeds[0])
    shuffler = Shuffler(protocol, noise=noise, seed=seeds[1], short=short)
    analyzer = Analyzer(protocol)
    return np.array(
        [analyzer.aggregate(shuffler.shuffle([randomizer.encode_many(x)])) for _ in range(runs)]
    )


@cache
def sums_of_messages(protocol, people):
    return from_messages(protocol, vectors(protocol, people))


def rounding_variance(protocol, x):
    part = (x / protocol.step) % 1.0
    return protocol.step**2 * (part * (1 - part)).sum(axis=0)


@pytest.mark.long
@pytest.mark.parametrize("protocol", ALONE)
@pytest.mark.parametrize("people", [4, 1])
def test_sums_of_messages_are_unbiased_and_have_the_variance_that_is_stated(protocol, people):
    """At alpha = 1e-5; a bias of a tenth of a step for each person, or a variance 15 % off, would
    fail.  Batches that are short are padded, so that the noise is that of a full one.
    """
    x = vectors(protocol, people)
    sums = sums_of_messages(protocol, people)
    variance = protocol.noise_std**2 + rounding_variance(protocol, x)
    z = (sums.mean(axis=0) - x.sum(axis=0)) / np.sqrt(variance / RUNS)
    assert np.all(np.abs(z) < 4.5)
    ratio = sums.var(axis=0) / variance
    assert np.all(np.abs(ratio - 1) < 4.5 * np.sqrt(2 / RUNS))
    assert 4.5 * np.sqrt(2 / RUNS) < 0.15
    if protocol.noise_std > 0.4:
        assert 4.5 * np.sqrt(variance.max() / RUNS) < 4 * protocol.step


@pytest.mark.long
@pytest.mark.parametrize("protocol", ALONE)
def test_messages_and_sums_have_the_same_law(protocol):
    """KS at alpha 1e-4; noise with a fifth more in its standard deviation would fail.  Sums that are
    drawn cost little: with so many of them, half the messages tell nearly as much.
    """
    x = vectors(protocol)
    runs = 8 * RUNS
    ours = sums_of_messages(protocol, len(x))[:, 0]
    rng = np.random.default_rng(3)
    drawn = protocol.simulate_sums(np.broadcast_to(x, (runs, *x.shape)), rng)[:, 0]
    assert _distance(ours, drawn) > 1e-4
    noisier = replace(protocol, noise=round(1.5 * protocol.noise))
    wrong = noisier.simulate_sums(np.broadcast_to(x, (runs, *x.shape)), rng)[:, 0]
    assert _distance(ours, wrong) < 1e-4


def _distance(a, b):
    return stats.ks_2samp(a.round(6), b.round(6)).pvalue


def test_secure_bits_have_the_same_law():
    protocol = PROTOCOLS[0]
    x = vectors(protocol)
    secure = from_messages(protocol, x, noise="secure")[:, 0]
    drawn = protocol.simulate_sums(np.broadcast_to(x, (RUNS, *x.shape)), np.random.default_rng(4))
    assert _distance(secure, drawn[:, 0]) > 1e-6


def test_secure_gaussian_reports_have_the_same_variance():
    protocol = GaussianReports(noise=50, **SMALL)
    x = vectors(protocol)
    sums = from_messages(protocol, x, runs=1000, noise="secure")
    # More than six standard errors, because there is no seed.
    assert np.all(np.abs(sums.var(axis=0) / protocol.noise_std**2 - 1) < 4.5 * np.sqrt(2 / 500))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=NAMES)
def test_one_person_moves_the_rounded_sum_by_no_more_than_the_shift(protocol):
    """Under the same rounding words, as the proof couples them; somewhere by nearly all of it."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 20_000, protocol.dimension))
    length = rng.uniform(0.0, 0.35, (2, 20_000, 1))
    x, y = (
        v * r / np.linalg.norm(v, axis=1, keepdims=True)
        for v, r in zip((x, y), length, strict=True)
    )
    words = rng.integers(0, 2**32, x.shape, dtype=np.uint32)
    moved = protocol.rounded(x, words) - protocol.rounded(y, words)
    allowed = np.linalg.norm(x - y, axis=1) / protocol.step + np.sqrt(protocol.dimension)
    assert np.all(np.linalg.norm(moved, axis=1) <= allowed + 1e-6)
    assert np.any(np.linalg.norm(moved, axis=1) > allowed - 0.3)
    apart = protocol.rounded(y, rng.integers(0, 2**32, x.shape, dtype=np.uint32))
    moved = protocol.rounded(x, words) - apart
    assert np.any(np.linalg.norm(moved, axis=1) > allowed)  # without the coupling


def test_devices_round_each_coordinate_by_bits_of_its_own(monkeypatch):
    """Halves go up or down alike in all ways, in two batches; with one word for all coordinates, or
    for both batches, the counts of ways would be far off.
    """
    monkeypatch.setattr(GaussianReports, "messages", lambda self, integers, source: integers)
    protocol = GaussianReports(batch=RUNS, dimension=3, bound=1.0, levels=1, noise=1)
    device = Randomizer(protocol, noise="simulation", seed=1)
    batches = [device.encode_many(np.full((RUNS, 3), 0.5)).values for _ in range(2)]
    ways = np.hstack(batches) @ 2 ** np.arange(6)
    assert stats.chisquare(np.bincount(ways, minlength=64)).pvalue > 1e-4


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=NAMES)
def test_vectors_are_shortened_and_never_refused_for_their_numbers(protocol):
    words = np.zeros((1, protocol.dimension), np.uint32)
    for bad in (1e300, -1e300, np.inf, np.nan, 3.0):
        x = np.full((1, protocol.dimension), bad)
        units = protocol.rounded(x, words)
        length = np.linalg.norm(units) * protocol.step
        assert length <= protocol.bound + protocol.step * protocol.dimension**0.5
        assert np.abs(units).max() <= protocol.levels
        if np.isfinite(bad):
            assert np.all(np.sign(units) == np.sign(bad))
        else:
            assert not units.any()


def test_published_constants_go_through_sums():
    """Half a billion bits for a coordinate of a batch, in no time."""
    from dpbandits import ApproxDP

    protocol = BitSum.published(ApproxDP(1.0, 0.1), batch=20, features=5)
    sums = protocol.simulate_sums(np.zeros((5000, 20, 20)), np.random.default_rng(1))
    assert sums.std() == pytest.approx(protocol.noise_std, rel=0.01)
    assert abs(sums.mean()) < 4.5 * protocol.noise_std / np.sqrt(sums.size)


# Randomness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["secure", "simulation"])
def test_three_messages_leave_in_any_order(noise):
    """All six orders alike; a shuffle that swaps each place with any other (27 equal paths) has
    orders of 4/27 and 5/27, which 18,000 draws tell apart.
    """
    source = Source(noise, None if noise == "secure" else 8)
    seen: dict[tuple, int] = {}
    for _ in range(18_000):
        order = tuple(source.order(3).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6
    naive = np.array([4, 5, 5, 5, 4, 4]) * 18_000 / 27
    assert stats.chisquare(naive, np.full(6, 3000.0)).pvalue < 1e-6


@pytest.mark.parametrize("ones", [0, 1, 2, 3, 4, 5])
def test_bits_leave_in_any_order(ones):
    bits = np.zeros((10_000, 5), np.uint8)
    bits[:, :ones] = 1
    permuted = Source("simulation", 9).permuted_bits(bits)
    assert np.all(permuted.sum(axis=1) == ones)
    _, counts = np.unique(permuted @ (1 << np.arange(5)), return_counts=True)
    assert len(counts) == [1, 5, 10, 10, 5, 1][ones]
    assert len(counts) == 1 or stats.chisquare(counts).pvalue > 1e-5


@pytest.mark.parametrize("integer", [-5, 0, 5])
def test_bits_of_a_device_say_no_more_than_how_many_are_one(integer):
    """Every place is as likely: as the encoding has it, ones come first, and the last bits are
    those of noise.
    """
    runs, protocol = 3000, PROTOCOLS[0]
    source = Source("simulation", 3)
    integers = np.full((runs, protocol.dimension), integer)
    bits = protocol.messages(integers, source).reshape(runs * protocol.dimension, -1)
    at_each, share = bits.sum(axis=0), bits.mean()
    expected = (5 + integer + protocol.noise / 4) / bits.shape[1]
    assert share == pytest.approx(expected, abs=5 * np.sqrt(0.1875 * 13 / 23 / bits.size))
    # Places of one message shut each other out: a little less scatter than that of coins.
    chi2 = ((at_each - len(bits) * share) ** 2).sum() / (len(bits) * share * (1 - share))
    assert 1e-5 < stats.chi2.sf(chi2, bits.shape[1] - 1) < 1 - 1e-7


@pytest.mark.parametrize("n", [2**14, 2**14 + 1, 50_000])
def test_many_bits_keep_their_number(n):
    bits = (np.arange(2 * n) % 3 == 0).astype(np.uint8).reshape(2, n)
    permuted = Source("secure", None).permuted_bits(bits)
    assert permuted.sum(axis=1).tolist() == bits.sum(axis=1).tolist()
    place = np.flatnonzero(permuted[0])
    assert stats.kstest(place / n, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("tosses", [1, 7, 8, 13])
def test_bits_and_coins_have_their_laws(tosses):
    source = Source("simulation", 10)
    heads = np.bincount(source.heads((20_000, 1), tosses)[:, 0], minlength=tosses + 1)
    expected = 20_000 * stats.binom(tosses, 0.5).pmf(np.arange(tosses + 1))
    assert stats.chisquare(heads, expected).pvalue > 1e-5
    quarters = source.quarters((20_000, 1, tosses)).sum(axis=-1)[:, 0]
    observed = np.bincount(quarters, minlength=tosses + 1)[:6]
    law = stats.binom(tosses, 0.25)
    counts, expected = observed[: tosses + 1], 20_000 * law.pmf(np.arange(min(6, tosses + 1)))
    rest = 20_000 - counts.sum(), 20_000 - expected.sum()
    if rest[1] > 5:
        counts, expected = np.append(counts, rest[0]), np.append(expected, rest[1])
    scaled = expected * counts.sum() / expected.sum()
    assert stats.chisquare(counts, scaled).pvalue > 1e-5
