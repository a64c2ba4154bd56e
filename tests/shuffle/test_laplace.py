"""Shares of discrete Laplace noise: their law, what it hides, and what wraps around."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpbandits import ApproxDP, ArgumentError, PureDP
from dpbandits.shuffle import Analyzer, LaplaceShares, Randomizer, Shuffler
from dpbandits.shuffle.randomness import Source

DRAWS = 40_000


def fit(drawn, law, least=5.0):
    """The p-value of integers under a law of ``scipy.stats``, with what is rare lumped together."""
    cells = np.arange(drawn.min(), drawn.max() + 1)
    expected = len(drawn) * law.pmf(cells)
    counts = np.bincount(drawn - cells[0])
    often = expected >= least
    rest = [counts[~often].sum(), len(drawn) - expected[often].sum()]
    observed, wanted = np.append(counts[often], rest[0]), np.append(expected[often], rest[1])
    return stats.chisquare(observed, wanted).pvalue


def geometric_shares(people, scale):
    return stats.nbinom(1 / people, -np.expm1(-1 / scale))


@pytest.mark.parametrize(("people", "scale"), [(1, 1), (1, 7), (3, 7), (20, 50)])
def test_a_share_has_the_polya_law(people, scale):
    """At alpha 1e-4; shares of a fifth more people, or of a scale a third larger, would fail."""
    drawn = Source("simulation", 1).polyas(scale, people, (DRAWS,))
    assert fit(drawn, geometric_shares(people, scale)) > 1e-4
    assert fit(drawn, geometric_shares(1.2 * people, scale)) < 1e-4
    assert fit(drawn, geometric_shares(people, 4 / 3 * scale)) < 1e-4


@pytest.mark.parametrize("ends", [3, 2**20 + 1, 2**40, 3 * 2**61])
def test_integers_below_an_end_are_uniform(ends):
    drawn = Source("simulation", 2).below(np.full(DRAWS, ends, np.uint64)).astype(float) / ends
    if ends == 3:
        assert stats.chisquare(np.unique(drawn, return_counts=True)[1]).pvalue > 1e-4
    else:
        assert stats.kstest(drawn, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("noise", ["simulation", "secure"])
def test_the_noise_of_a_batch_is_discrete_laplace(noise):
    """Values on the grid, which are not rounded.  At alpha 1e-4 (1e-8 where no seed is fixed); a
    scale that is a fifth larger, or one person's share that is missing, would fail.
    """
    protocol = LaplaceShares(batch=5, dimension=1, bound=1.0, levels=2, noise=6)
    seed = 3 if noise == "simulation" else None
    integers = np.tile([[2], [-2], [1], [0], [0]], (8000, 1))
    records = protocol.messages(integers, Source(noise, seed)).reshape(8000, 5)
    sums = protocol.total(records.sum(axis=1) % protocol.modulus) - 1
    assert fit(sums, stats.dlaplace(1 / 6)) > (1e-4 if seed else 1e-8)
    assert fit(sums, stats.dlaplace(1 / 7.2)) < 1e-4
    without = protocol.total(records[:, :4].sum(axis=1) % protocol.modulus) - 1
    assert fit(without, stats.dlaplace(1 / 6)) < 1e-4


def test_what_the_analyzer_sees_is_that_sum():
    protocol = LaplaceShares(batch=3, dimension=2, bound=1.0, levels=4, noise=2)
    shuffler = Shuffler(protocol, noise="simulation", seed=1)
    randomizer = Randomizer(protocol, noise="simulation", seed=2)
    batch = [randomizer.encode([0.5, -0.75]) for _ in range(3)]
    total = protocol.total(sum(one.values[0] for one in batch) % protocol.modulus)
    mixed = shuffler.shuffle(batch)
    assert Analyzer(protocol).aggregate(mixed).tolist() == (total * 0.25).tolist()


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 7.0, 40.0])
@pytest.mark.parametrize("shape", [{}, {"dimension": 3, "sensitivity": 0.7}, {"largest": 0.2}])
def test_noise_is_calibrated_to_the_budget_and_not_beyond(epsilon, shape):
    given = {"batch": 10, "dimension": 1, "bound": 1.0} | shape
    protocol = LaplaceShares.calibrated(PureDP(epsilon), **given)
    assert protocol.delta_at(epsilon) == 0.0 < replace(protocol, noise=10**6).delta_at(0.0)
    assert protocol.epsilon <= epsilon < protocol.shift / (protocol.noise - 1)
    assert protocol.noise_std == pytest.approx(
        2**0.5 * protocol.shift * protocol.step / epsilon, rel=0.001 + epsilon / 150
    )


def test_a_scalar_pays_nothing_for_rounding():
    protocol = LaplaceShares(batch=10, dimension=1, bound=0.5, levels=512, noise=1)
    assert protocol.shift == 1024
    ends = protocol.rounded(np.array([[-0.5], [0.5]]), np.full((2, 1), 2**32 - 1))
    assert ends.ravel().tolist() == [-512, 512]


def test_one_person_moves_integers_by_no_more_than_the_shift():
    """In the L1 norm, under the same rounding words, and somewhere by all of it."""
    protocol = LaplaceShares(
        batch=10, dimension=2, bound=1.0, largest=1.0, sensitivity=0.5, levels=10, noise=1
    )
    assert protocol.shift == 9  # 5 sqrt(2), rounded down, and 2
    rng = np.random.default_rng(4)
    x = rng.uniform(-0.4, 0.4, (100_000, 2))
    y = x + 0.5 * 0.5**0.5
    words = rng.integers(0, 2**32, x.shape, dtype=np.uint32)
    moved = np.abs(protocol.rounded(x, words) - protocol.rounded(y, words)).sum(axis=1)
    assert moved.max() == 8  # both coordinates by ceil(3.54)
    assert moved.max() <= protocol.shift


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.9])
def test_delta_bounds_the_exact_one(epsilon):
    """Of discrete Laplace noise, shifted by all that one person can."""
    protocol = LaplaceShares(batch=4, dimension=1, bound=1.0, levels=3, noise=6)
    assert protocol.epsilon == 1.0
    k = np.arange(-300, 301)
    law = stats.dlaplace(1 / 6)
    exact = np.maximum(law.pmf(k) - np.exp(epsilon) * law.pmf(k - 6), 0.0).sum()
    assert exact <= protocol.delta_at(epsilon) <= 2.5 * exact


def test_noise_is_enough_without_that_of_those_who_drop_out():
    """All people together then have more, as is stated."""
    protocol = LaplaceShares(batch=6, dimension=1, bound=1.0, levels=2, noise=4, dropout=2)
    zeros = np.zeros((6 * 8000, 1), np.int64)
    values = protocol.messages(zeros, Source("simulation", 5)).reshape(8000, 6)
    enough = protocol.total(values[:, :4].sum(axis=1) % protocol.modulus)
    assert fit(enough, stats.dlaplace(1 / 4)) > 1e-4
    everybody = protocol.total(values.sum(axis=1) % protocol.modulus) * protocol.step
    kurtosis = 3 + 6 / 1.5  # about, of a variance
    assert everybody.var() == pytest.approx(
        protocol.noise_std**2, rel=4 * np.sqrt((kurtosis - 1) / 8000)
    )
    assert fit(everybody.astype(int) * 2, stats.dlaplace(1 / 4)) < 1e-4


def test_sums_at_both_ends_do_not_wrap_around():
    protocol = LaplaceShares(batch=3, dimension=1, bound=1.0, levels=2, noise=4)
    reach = 3 * 2 + int(2 * 4 * 66 * np.log(2))
    for total in (-reach, -1, 0, 1, reach):
        assert protocol.total(np.array(total % protocol.modulus)) == total


def test_what_is_refused():
    shape = {"batch": 10, "dimension": 1, "bound": 1.0}
    for budget in (ApproxDP(1.0, 1e-3), PureDP(50.0)):
        with pytest.raises(ArgumentError, match="PureDP with epsilon at most 40"):
            LaplaceShares.calibrated(budget, **shape)
    with pytest.raises(ArgumentError, match="overflow"):
        LaplaceShares(**{**shape, "batch": 10**6}, levels=2, noise=2**40)
