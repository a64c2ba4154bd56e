"""The exact sampler: its laws, and what draws with it."""

from __future__ import annotations

import io
import math
import sys
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpbandits as dpb
from dpbandits.privacy import Gaussian, Laplace, exact, secure
from dpbandits.privacy.randomiser import Randomiser
from dpbandits.privacy.secure import DeviceNoise

ALPHA = 1e-4
DRAWS = 100_000


def weights(p: int, q: int, reach: int = 60) -> dict[int, float]:
    """The law of the discrete Gaussian."""
    given = {y: math.exp(-y * y * q / (2 * p)) for y in range(-reach, reach + 1)}
    return {y: weight / math.fsum(given.values()) for y, weight in given.items()}


def laplace(t: int, s: int, reach: int = 60) -> dict[int, float]:
    given = {y: math.exp(-abs(y) * s / t) for y in range(-reach, reach + 1)}
    return {y: weight / math.fsum(given.values()) for y, weight in given.items()}


def both_zeros(law: dict[int, float]) -> dict[int, float]:
    """The same where -0 is kept: zero has twice its weight."""
    return {y: (2 if y == 0 else 1) * chance / (1 + law[0]) for y, chance in law.items()}


# Every path --------------------------------------------------------------------------------------


class Fork(Exception):
    """A path ends, and goes on with one of so many outcomes of these probabilities."""


class Refused(Exception):
    """A second round begins."""


class Path:
    """Replays known outcomes, in the place of bytes."""

    def __init__(self, outcomes: tuple[int, ...]) -> None:
        self._left, self._seen = list(outcomes), set()

    def follow(self, chances: list) -> int:
        if not self._left:
            raise Fork(chances)
        return self._left.pop(0)

    def toss(self, chance) -> bool:
        return self.follow([1 - chance, chance]) == 1

    def seen(self, what) -> bool:
        """Whether this was asked before."""
        before = what in self._seen
        self._seen.add(what)
        return before

    def byte(self, size: int) -> bytes:
        return bytes(self.follow([2.0**-8] * 256) for _ in range(size))


def refusing(draw):
    def once(path):
        try:
            return draw(path)
        except Refused:
            return "refused"

    return once


def law_of(draw, least: float) -> tuple[dict, float]:
    """The probability of every result, exact for fractions and for bytes; and that of paths that
    were left because they are less probable than ``least``.
    """
    law, rest, paths = defaultdict(int), 0, [((), 1)]
    while paths:
        outcomes, chance = paths.pop()
        try:
            law[draw(Path(outcomes))] += chance
        except Fork as fork:
            for i, c in enumerate(fork.args[0] if chance >= least else []):
                paths.append(((*outcomes, i), chance * c))
            rest += chance if chance < least else 0
    assert sum(law.values()) + rest == pytest.approx(1, abs=1e-12)
    return dict(law), rest


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8, 100, 255, 256, 257, 1000])
def test_uniform_integers_are_equally_likely_in_every_byte(n):
    law, rest = law_of(lambda path: exact.uniform(n, path.byte), 2.0**-15)
    assert set(law) == set(range(n))
    assert len(set(law.values())) == 1
    assert rest < 0.5


@pytest.mark.parametrize("d", [1, 2, 3, 7, 255, 256, 257, 1000, 65537])
def test_a_coin_has_its_probability_in_every_byte(d):
    for n in {0, 1, d // 3, d - 1, d}:
        law, rest = law_of(lambda path: exact.bernoulli(n, d, path.byte), 2.0**-20)  # noqa: B023
        true = Fraction(law.get(True, 0))
        assert true <= Fraction(n, d) <= true + Fraction(rest)
        assert rest <= 2.0**-24


def coins(monkeypatch, **known):
    """Put forks of known probabilities in the place of functions that were tested above."""
    for name, fork in known.items():
        monkeypatch.setattr(exact, name, fork)


@pytest.mark.parametrize(("n", "d"), [(0, 1), (1, 3), (1, 1), (5, 4), (2, 1), (17, 5)])
def test_exponential_coins_have_their_probability_on_every_path(monkeypatch, n, d):
    coins(monkeypatch, bernoulli=lambda n, d, path: path.toss(Fraction(n, d)))
    law, rest = law_of(lambda path: exact.bernoulli_exp(n, d, path), 1e-9)
    assert law.get(True, 0) - 1e-12 <= math.exp(-n / d) <= law.get(True, 0) + rest + 1e-12
    assert rest < 1e-7


def first_round(draw) -> dict[int, float]:
    """The law of what is drawn without a refusal; every round is alike, so that it is the law."""
    law, rest = law_of(draw, 1e-18)
    del law["refused"]
    assert rest < 1e-15
    return {y: float(chance / sum(law.values())) for y, chance in law.items()}


def agree(one: dict[int, float], other: dict[int, float]) -> bool:
    return all(one.get(y, 0) == pytest.approx(other[y], rel=1e-9, abs=1e-12) for y in other)


@pytest.mark.parametrize(("t", "s"), [(1, 1), (1, 2), (3, 2), (5, 7)])
def test_laplace_noise_has_its_law_on_every_path(monkeypatch, t, s):
    def uniform(n, path):
        if n == t and path.seen(t):
            raise Refused
        return path.follow([1 / n] * n)

    coins(
        monkeypatch,
        uniform=uniform,
        bernoulli_exp=lambda n, d, path: path.toss(math.exp(-n / d)),
    )
    law = first_round(refusing(lambda path: exact.discrete_laplace(t, s, path)))
    assert agree(law, laplace(t, s))
    assert not agree(law, both_zeros(laplace(t, s)))


@pytest.mark.parametrize(("p", "q"), [(1, 1), (1, 3), (9, 4), (50, 7)])
def test_gaussian_noise_has_its_law_on_every_path(monkeypatch, p, q):
    known = laplace(math.isqrt(p // q) + 1, 1, 100)
    ys, chances = list(known), list(known.values())

    def drawn(t, s, path):
        assert (t, s) == (math.isqrt(p // q) + 1, 1)
        if path.seen("noise"):
            raise Refused
        return ys[path.follow(chances)]

    coins(
        monkeypatch,
        discrete_laplace=drawn,
        bernoulli_exp=lambda n, d, path: path.toss(math.exp(-n / d)),
    )
    law = first_round(refusing(lambda path: exact.discrete_gaussian(p, q, path)))
    assert agree(law, weights(p, q))
    assert not agree(law, weights(p * 10**6 + 1, q * 10**6))


# Many draws --------------------------------------------------------------------------------------


def p_value(sample: np.ndarray, law: dict[int, float]) -> float:
    """Chi-square, the tails in one cell each of at least 20 expected draws."""
    ys = np.array(list(law))
    chances = np.array(list(law.values()))
    edge = max(y for y in ys if chances[ys >= y].sum() * sample.size >= 20)
    observed = np.bincount(np.clip(sample, -edge, edge) + edge, minlength=2 * edge + 1)
    expected = np.bincount(np.clip(ys, -edge, edge) + edge, weights=chances)
    return stats.chisquare(observed, expected / expected.sum() * sample.size).pvalue


def bytes_of(seed: int):
    return io.BytesIO(np.random.default_rng(seed).bytes(2**23)).read


@pytest.mark.long
def test_draws_from_bytes_follow_the_law():
    p, q, take = 9, 4, bytes_of(1)
    sample = np.array([exact.discrete_gaussian(p, q, take) for _ in range(DRAWS)])
    assert p_value(sample, weights(p, q)) > ALPHA
    for off in (98, 102):
        assert p_value(sample, weights(p * off**2, q * 100**2)) < ALPHA
    assert p_value(sample, both_zeros(weights(p, q))) < ALPHA


def test_wide_noise_follows_the_normal_law():
    """Of a million units and a fraction: rounding is not seen, 2 % are."""
    p, q, take = 7 * 10**12 + 1, 7, bytes_of(2)
    sample = np.array([exact.discrete_gaussian(p, q, take) for _ in range(DRAWS // 3)]) / 1e6
    assert stats.kstest(sample, "norm").pvalue > ALPHA
    for std in (0.98, 1.0, 1.02):
        z = math.sqrt(sample.size / 2) * (np.mean(sample**2) / std**2 - 1)
        assert (2 * stats.norm.sf(abs(z)) > ALPHA) == (std == 1.0)


def test_laplace_draws_from_bytes_follow_the_law():
    take = bytes_of(3)
    sample = np.array([exact.discrete_laplace(7, 3, take) for _ in range(DRAWS)])
    assert p_value(sample, laplace(7, 3)) > ALPHA
    for off in (97, 103):
        assert p_value(sample, laplace(7 * off, 3 * 100)) < ALPHA


def test_a_source_that_ends_is_noticed():
    """Zeros instead would be noise that everybody knows."""
    with pytest.raises(EOFError, match="must give 1 bytes, got 0"):
        exact.discrete_gaussian(9, 4, io.BytesIO(bytes([0, 3])).read)


# Devices -----------------------------------------------------------------------------------------


@given(
    rho=st.floats(1e-6, 1e3),
    sensitivity=st.floats(1e-3, 1e3),
    power=st.integers(-20, 4),
)
def test_gaussian_noise_is_that_of_a_parameter_no_smaller_than_claimed(rho, sensitivity, power):
    grid, drawn = 2.0**power, []
    source = DeviceNoise(grid, (0.0, 4 * grid))
    scale = Gaussian.calibrated(dpb.ZCDP(rho)).scale(sensitivity)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secure, "discrete_gaussian", lambda p, q, take: drawn.append((p, q)) or 0)
        source.add_noise(Gaussian(1.0), scale, np.zeros(1), np.zeros(1))
    parameter = source.sigma_squared(scale)
    assert drawn == [parameter.as_integer_ratio()]
    moved = Fraction(sensitivity) / Fraction(grid)
    claimed = max(moved**2 / (2 * Fraction(rho)) + Fraction(1, 10), Fraction(1))
    assert claimed <= parameter
    assert parameter - claimed <= Fraction(1, 2**20) + parameter / 10**12


@given(epsilon=st.floats(1e-4, 30.0), power=st.integers(-20, -3))
def test_laplace_noise_is_of_a_scale_no_smaller_than_claimed(epsilon, power):
    grid, drawn = 2.0**power, []
    source, channel = DeviceNoise(grid, (0.0, 1.0)), Laplace.calibrated(dpb.PureDP(epsilon))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secure, "discrete_laplace", lambda t, s, take: drawn.append((t, s)) or 0)
        source.add_noise(channel, channel.scale(1.0), np.zeros(1), np.zeros(1))
    [(t, s)] = drawn
    claimed = 1 / Fraction(grid) / Fraction(epsilon)
    assert claimed <= Fraction(t, s) <= claimed * (1 + Fraction(1, 10**12)) + Fraction(1, 2**20)


def test_what_no_record_moves_has_no_noise():
    for channel in (Gaussian(1.0), Laplace(1.0)):
        release = np.zeros(2)
        DeviceNoise(0.5, (0.0, 1.0)).add_noise(channel, 0.0, np.array([0.5, 7.0]), release)
        assert release.tolist() == [0.5, 7.0]


def test_reports_lie_on_the_grid_around_the_reward():
    randomise = Randomiser(Laplace(1.0), (0.0, 1.0), grid=2.0**-4)
    randomise._noise._take = bytes_of(4)
    reports = np.array([randomise(0.26) for _ in range(4000)])
    units = reports * 16
    assert np.all(units % 1 == 0)
    assert p_value(units.astype(int) - 4, laplace(16, 1, 400)) > ALPHA
    assert p_value(units.astype(int) - 12, laplace(16, 1, 400)) < ALPHA


def test_devices_need_no_opendp(monkeypatch):
    secure._opendp.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp", None)
    server = dpb.algorithms.LinUCBLDP(
        2, 2, budget=dpb.ZCDP(0.5), horizon=10, reports=True, noise="secure"
    )
    assert server.receive(server.device().report(1.0))
    policy = dpb.papers.others.LDPUCB(2, budget=dpb.PureDP(1.0), reports=True, noise="secure")
    policy.pull()
    assert policy.update(policy.randomiser()(1.0))
    with pytest.raises(dpb.errors.MissingExtra):
        dpb.papers.others.LDPUCB(2, budget=dpb.PureDP(1.0), noise="secure")
