"""What integer noise is proved to hide, against exact laws and the accountant of dp_accounting."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats
from scipy.special import betainc, ndtri

from dpbandits import ApproxDP, ArgumentError
from dpbandits.privacy.accounting import gaussian_delta, gaussian_mu
from dpbandits.shuffle import BitSum, GaussianReports, ModularSum, certificates
from dpbandits.shuffle.certificates import WIDEST, DiscreteGaussian, Shifts, Tails, shifts


def sure(norm):
    return Shifts(np.array([norm]), np.ones(1))


def coins(n, heads):
    t = np.arange(n + 1)
    return {int(x): float(p) for x, p in zip(t, stats.binom(n, heads).logpmf(t), strict=True)}


def exact_delta(noise, shift, epsilon):
    """Of a vector whose coordinates move by the given integers: composition over coordinates.

    ``noise`` has the logarithm of the probability of every integer.
    """
    noise = {x: p for x, p in noise.items() if p > -80}
    losses = [
        pld.from_two_probability_mass_functions(
            {x + s: p for x, p in noise.items()}, noise, value_discretization_interval=1e-3
        )
        for s in shift
    ]
    total = losses[0]
    for loss in losses[1:]:
        total = total.compose(loss)
    return total.get_delta_for_epsilon(epsilon)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("heads", [0.25, 0.5])
def test_the_bound_covers_the_exact_loss_in_every_direction(epsilon, heads):
    """All integer shifts of norm at most 6 in three coordinates; the worst comes close to it."""
    bound = Tails(400, heads).delta(epsilon, sure(6.0), 3)
    shifts = [(6, 0, 0), (-6, 0, 0), (4, 4, 2), (-4, -4, -2), (4, -4, 2), (5, 3, -1), (3, 3, 4)]
    exact = [exact_delta(coins(400, heads), shift, epsilon) for shift in shifts]
    assert max(exact) <= bound
    nearly = Tails(400, heads).delta(epsilon, sure(5.0), 3)  # a bound for a smaller shift
    assert max(exact) > nearly


def test_the_bound_covers_discrete_gaussians():
    t = np.arange(-120, 121)
    weight = np.exp(-0.5 * (t / 12) ** 2)
    law = {int(x): float(p) for x, p in zip(t, np.log(weight / weight.sum()), strict=True)}
    bound = DiscreteGaussian(12).delta(1.0, sure(5.0), 2)
    exact = [outright(law, shift, 1.0) for shift in [(5, 0), (3, 4), (-4, 3)]]
    assert 0.99 * bound < max(exact) <= bound


def outright(law, shift, epsilon):
    """The same for two coordinates, by adding up all outcomes."""
    t = np.arange(min(law) - 9, max(law) + 10)
    plain = np.array([np.exp(law.get(x, -np.inf)) for x in t])
    moved = [np.array([np.exp(law.get(x - s, -np.inf)) for x in t]) for s in shift]
    return np.maximum(np.outer(*moved) - np.exp(epsilon) * np.outer(plain, plain), 0.0).sum()


@pytest.mark.parametrize("p", [Fraction(1, 4), Fraction(1, 2)])
def test_distribution_functions_are_those_of_exact_arithmetic(p):
    n, below, rows = 300, Fraction(0), []
    for t in range(n):
        below += math.comb(n, t) * p**t * (1 - p) ** (n - t)
        rows.append((float(below), float(1 - below)))
    exact = np.array([row for row in rows if min(row) > 0.0])
    tails = Tails(n, float(p))
    middle = [np.argmin(np.abs(below - 0.5)) for below in (exact[:, 0], tails.below)]
    for side, ours in enumerate((tails.below, tails.above)):
        theirs = exact[middle[0] - 60 : middle[0] + 60, side]
        assert ours[middle[1] - 60 : middle[1] + 60] == pytest.approx(theirs, rel=1e-12)


def weight(t, n, p):
    """P(X = t), of n coins of chance p heads, from 40 digits."""
    with mpmath.workdps(40):
        log, chance = mpmath.loggamma, mpmath.mpf(p)
        ways = log(n + 1) - log(t + 1) - log(n - t + 1)
        return float(mpmath.exp(ways + t * mpmath.log(chance) + (n - t) * mpmath.log(1 - chance)))


@pytest.mark.parametrize("std", [2.0**15, WIDEST])
@pytest.mark.parametrize("p", [0.25, 0.5])
def test_steps_are_raised_by_more_than_their_error(p, std, monkeypatch):
    """F changes by the weight of t; z by that over the normal density.  A tenth of the raise would
    not do where noise is widest.
    """
    n = int(std**2 / (p * (1 - p)))
    monkeypatch.setattr(certificates, "_REACH", 0.001)
    raise_of_c = Tails(n, p).raised - 1.0
    t = np.round(n * p + std * np.random.default_rng(1).uniform(-8.0, 8.0, 800))
    tails = (np.array([betainc(n - s, s + 1, 1 - p), betainc(s + 1, n - s, p)]) for s in (t - 1, t))
    before, z = (np.where(f < 0.5, ndtri(f), -ndtri(rest)) for f, rest in tails)
    steps = np.array([weight(int(s), n, p) for s in t]) / stats.norm.pdf(0.5 * (before + z))
    error = np.abs((z - before) / steps - 1.0).max()
    assert error < raise_of_c
    assert std < WIDEST or error > 0.1 * raise_of_c


@pytest.mark.parametrize("p", [0.25, 0.5])
def test_the_proof_of_the_tails(p):
    """The law with geometric tails is log-concave, and the steps of z shrink beyond them."""
    law = stats.binom(200, p)
    for low in range(int(200 * p) - 40, int(200 * p) - 20):
        ratio = law.cdf(low - 1) / law.cdf(low)
        assert law.pmf(low + 1) / law.pmf(low) <= 1 / ratio
        z = stats.norm.ppf(law.cdf(low) * ratio ** np.arange(30))
        assert np.all(np.diff(-np.diff(z)) < 0)


@pytest.mark.parametrize("cls", [BitSum, ModularSum, GaussianReports])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0])
def test_calibration_spends_the_budget_and_no_more(cls, epsilon):
    budget = ApproxDP(epsilon, 0.1)
    shape = {"batch": 20, "dimension": 20, "bound": 1.0}
    protocol = cls.calibrated(budget, **shape)
    assert 0.075 < protocol.delta_at(epsilon) <= 0.1
    people = 1 if cls is GaussianReports else 20
    ideal = protocol.sensitivity / gaussian_mu(epsilon, 0.1)
    assert ideal <= protocol.noise_std * (people / 20) ** 0.5 < 1.25 * ideal


# Half steps are rounded to either side; a far single coordinate hardly is.
DIFFERENCES = [(3.5, 0.5, 0.5), (2.5, -2.5, 0.5), (0.5, 0.5, 0.5), (3.6, 0.0, 0.0), (2.1, 2.1, 2.0)]


def roundings(difference):
    """Every integer shift of a difference in steps, with its probability."""
    whole = np.floor(difference)
    part = np.asarray(difference) - whole
    for up in itertools.product((0, 1), repeat=len(difference)):
        yield whole + up, float(np.where(up, part, 1.0 - part).prod())


@pytest.mark.parametrize("distance", [1.0, 3.6])
def test_the_law_of_shifts_is_above_every_rounding(distance):
    law = shifts(distance, 3, worst=distance + 3**0.5)
    assert law.weights.min() >= 0.0
    assert law.weights.sum() == pytest.approx(1.0, abs=1e-12)
    above = [(norm, law.weights[law.norms > norm].sum()) for norm in law.norms]
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=(500, 3))
    drawn *= distance / np.linalg.norm(drawn, axis=1, keepdims=True)
    drawn[:100] = np.round(2.0 * drawn[:100]) / 2.0
    for difference in [*DIFFERENCES, *drawn]:
        if np.linalg.norm(difference) <= distance:
            moved = [(np.linalg.norm(s), chance) for s, chance in roundings(difference)]
            for norm, bound in above:
                assert sum(chance for length, chance in moved if length > norm) <= bound + 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_bound_covers_vectors_that_are_rounded_at_random(epsilon):
    """The exact delta of the rounding and the sum together, which reveals more than the sum; and it
    is far below the bound of the worst rounding.
    """
    law = shifts(3.6, 3, worst=3.6 + 3**0.5)
    bound = Tails(100, 0.25).delta(epsilon, law, 3)
    exact = [
        sum(
            chance * exact_delta(coins(100, 0.25), shift.astype(int).tolist(), epsilon)
            for shift, chance in roundings(difference)
            if chance > 0.0
        )
        for difference in DIFFERENCES
    ]
    assert 0.0 < max(exact) <= bound
    assert bound < 0.9 * Tails(100, 0.25).delta(epsilon, sure(3.6 + 3**0.5), 3)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_the_bound_covers_several_batches(batches):
    """Of a person who is as far as allowed in each: the mean over all roundings."""
    bound = DiscreteGaussian(9).delta(1.0, shifts(3.6, 3, 3.6 + 3**0.5, batches), 3, batches)
    for difference in DIFFERENCES:
        squares = [(float(s @ s), chance) for s, chance in roundings(difference) if chance > 0.0]
        exact = sum(
            math.prod(chance for _, chance in each)
            * gaussian_delta(1.0, math.sqrt(sum(square for square, _ in each)) / 9.0)
            for each in itertools.product(squares, repeat=batches)
        )
        assert exact <= bound


@pytest.mark.parametrize(("batch", "bits"), [(20, 2131), (100, 441)])
def test_bits_have_nearly_the_noise_of_a_curator(batch, bits):
    """``bits`` is what the worst rounding needed, with a quarter more noise."""
    shape = {"dimension": 20, "bound": 2**0.5, "sensitivity": 4.5**0.5, "largest": 1.0}
    protocol = BitSum.calibrated(ApproxDP(1.0, 1e-5), batch=batch, **shape)
    ideal = 4.5**0.5 / gaussian_mu(1.0, 1e-5)
    assert math.hypot(protocol.noise_std, 0.5 * protocol.step * batch**0.5) < 1.06 * ideal
    assert 2 * protocol.levels + protocol.noise < 1.1 * bits


def test_differences_of_a_calibrated_protocol_stay_within_the_budget():
    protocol = BitSum.calibrated(ApproxDP(1.0, 0.1), batch=5, dimension=4, bound=1.0, levels=2)
    law = coins(5 * protocol.noise, 0.25)
    assert protocol.shift == pytest.approx(6.0)
    for difference in [(4, 0, 0, 0), (-4, 0, 0, 0), (2, 2, 2, 2), (1.5, 1.5, 1.5, -3.0)]:
        assert np.linalg.norm(difference) <= protocol.distance
        exact = [
            chance * exact_delta(law, shift.astype(int).tolist(), 1.0)
            for shift, chance in roundings(difference)
            if chance > 0.0
        ]
        assert sum(exact) <= 0.1


@pytest.mark.parametrize("cls", [BitSum, ModularSum])
def test_noise_is_calibrated_for_the_largest_dropout(cls):
    shape = {"batch": 20, "dimension": 3, "bound": 1.0, "levels": 8}
    everybody = cls.calibrated(ApproxDP(1.0, 1e-3), **shape)
    some = cls.calibrated(ApproxDP(1.0, 1e-3), dropout=10, **shape)
    assert some.noise == pytest.approx(2 * everybody.noise, rel=0.01)


def test_published_parameters():
    """Levels and bits of the theorem at d = 5, B = 20, delta = 0.1."""
    bits = [
        BitSum.published(ApproxDP(epsilon, 0.1), batch=20, features=5) for epsilon in (0.2, 1, 10)
    ]
    assert [p.levels for p in bits] == [9, 9, 9]
    assert [p.noise for p in bits] == pytest.approx([1.17e9, 4.69e7, 4.69e5], rel=3e-3)
    assert [p.noise_std for p in bits] == pytest.approx([7368, 1474, 147.4], rel=1e-3)
    reports = [
        GaussianReports.published(ApproxDP(epsilon, 0.1), batch=20, features=5)
        for epsilon in (0.2, 1, 10)
    ]
    each = [p.noise_std / 20**0.5 for p in reports]
    assert each == pytest.approx([27.29, 5.458, 0.5458], rel=1e-3)
    really = gaussian_delta(10.0, 4.5**0.5 / each[2])  # of a report: twice what was asked for
    assert 0.19 < really < reports[2].delta_at(10.0) < really * 1.02
    assert bits[1].delta_at(1.0) < 1e-12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 0}, "batch must be"),
        ({"dimension": 0}, "dimension must be"),
        ({"bound": 0.0}, "bound must be"),
        ({"sensitivity": 2.1}, "sensitivity must be"),
        ({"largest": 1.1}, "largest must be"),
        ({"dropout": 20}, "dropout must be"),
        ({"levels": 2**21}, "levels must be"),
    ],
)
def test_bad_shapes(change, message):
    shape = {"batch": 20, "dimension": 2, "bound": 1.0, **change}
    with pytest.raises(ArgumentError, match=message):
        BitSum.calibrated(ApproxDP(1.0, 1e-3), **shape)


def test_budgets_that_nothing_keeps():
    with pytest.raises(ArgumentError, match="levels must be fewer, or the budget larger"):
        BitSum.calibrated(ApproxDP(1e-6, 1e-12), batch=20, dimension=2, bound=1.0)
    with pytest.raises(ArgumentError, match="epsilon at most 40"):
        BitSum.calibrated(ApproxDP(41.0, 0.1), batch=20, dimension=2, bound=1.0)


def sums_of(value, n, heads, levels):
    """The exact law of a rounded value and n coins, from -levels on."""
    law, whole = np.zeros(n + 2 * levels + 2), math.floor(value)
    for up, chance in ((0, whole + 1.0 - value), (1, value - whole)):
        start = levels + whole + up
        if chance > 0.0:
            law[start : start + n + 1] += chance * stats.binom(n, heads).pmf(np.arange(n + 1))
    return law


def hockey_stick(one, other, epsilon):
    """The larger one of both directions."""
    over = (np.maximum(a - np.exp(epsilon) * b, 0.0).sum() for a, b in ((one, other), (other, one)))
    return max(over)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("cls", [BitSum, ModularSum])
def test_sums_of_few_people_keep_to_delta(cls, levels, epsilon):
    """The exact law of what the server sees, for random pairs of values of one person: of a vector
    of two, and of two batches, the second of which follows the output of the first.
    """
    rng, closest = np.random.default_rng(levels), 0.0
    for people, noise in itertools.product((2, 4), (10, 40)):
        n, shape = people * noise, {"batch": people, "levels": levels, "noise": noise, "bound": 1.0}
        vectors, numbers = cls(dimension=2, **shape), cls(dimension=1, **shape)
        for trial in range(8):
            x, y = rng.uniform(-1.0, 1.0, (2, 3)) if trial else np.array([[1.0] * 3, [-1.0] * 3])
            first, second, third = (
                [sums_of(levels * v[i], n, cls.heads, levels) for v in (x, y)] for i in range(3)
            )
            cut = int(rng.integers(len(first[0])))
            both = [
                np.vstack([np.outer(a[:cut], b), np.outer(a[cut:], c)])
                for a, b, c in zip(first, second, third, strict=True)
            ]
            batches = hockey_stick(*both, epsilon) / numbers.delta_at(epsilon, 2)
            length = np.hypot(*np.maximum(np.abs(x), np.abs(y))[:2]).clip(min=1.0)
            pair = [
                np.outer(*(sums_of(levels * v / length, n, cls.heads, levels) for v in one[:2]))
                for one in (x, y)
            ]
            closest = max(
                closest, batches, hockey_stick(*pair, epsilon) / vectors.delta_at(epsilon)
            )
    assert 0.25 < closest <= 1.0
