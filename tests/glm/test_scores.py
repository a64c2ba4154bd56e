"""What a person adds to the sums, and the most that replacing her moves them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special
from worlds import logistic

from dpbandits import ArgumentError
from dpbandits.glm.scores import Score, joint_sensitivity, record_range, statistic_size
from dpbandits.privacy import svec

LINKS = {
    "logistic": (special.expit, lambda t: special.expit(t) * special.expit(-t)),
    "identity": (lambda t: t, np.ones_like),
    "probit": (special.ndtr, lambda t: np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)),
}


def record(score: Score, theta, x, y, *, weight=1.0, grid=0.0) -> np.ndarray:
    return score.add_up(np.array([x]), np.array([y]), np.asarray(theta), weight=weight, grid=grid)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("link", LINKS)
def test_sums_are_those_of_the_formulas(link: str, bounded: bool):
    features, outcomes, _ = logistic(50, 3, 1.0)
    theta, (mean, slope) = np.array([0.3, 0.5, -0.2]), LINKS[link]
    t = features @ theta
    if bounded:
        omega = 1 / np.maximum(mean(t), 1 - mean(t))
    elif link == "probit":
        omega = slope(t) / (mean(t) * (1 - mean(t)))
    else:
        omega = np.ones_like(t)
    sums = Score(link, (0.0, 1.0), 1.0, 1.0, bounded).add_up(features, outcomes, theta, weight=0.5)
    r, h = (mean(t) - outcomes) * omega, slope(t) * omega
    assert sums[:3] == pytest.approx(r @ features)
    matrix = (features.T * h) @ features
    assert sums[3:] == pytest.approx(0.5 * svec((matrix + matrix.T) / 2))


@pytest.mark.parametrize("link", LINKS)
def test_bounded_residuals_are_zero_in_the_mean_at_the_truth(link: str):
    """And those of another parameter are not."""
    mean, score = LINKS[link][0], Score(link, (0.0, 1.0), 1.0, 1.0)
    x, theta = np.array([0.5, 0.4]), np.array([0.9, 0.3])
    for at, zero in ((theta, True), (0.9 * theta, False)):
        p = mean(x @ theta)
        expected = p * record(score, at, x, 1.0) + (1 - p) * record(score, at, x, 0.0)
        assert (np.abs(expected[:2]).max() < 1e-12) == zero


def distance(at, a: float, b: float) -> float:
    """Of two records with residuals, weights and features within their bounds."""
    r, s, h, k, angle, p, q = np.clip(at, [-1, -1, 0, 0, -9, 0, 0], [1, 1, 1, 1, 9, 1, 1])
    x, y = p * np.array([1.0, 0.0]), q * np.array([math.cos(angle), math.sin(angle)])
    first = a * (r * x - s * y)
    second = b * (h * svec(np.outer(x, x)) - k * svec(np.outer(y, y)))
    return float(np.hypot(np.linalg.norm(first), np.linalg.norm(second)))


@pytest.mark.parametrize("b", [0.35, 0.8, 1.1, 30.0])
@pytest.mark.long
def test_no_two_records_are_farther_apart_than_the_sensitivity_and_some_are_as_far(b: float):
    """By search; the bound of each block on its own would be larger."""
    rng, sensitivity, farthest = np.random.default_rng(1), joint_sensitivity(1.0, b), 0.0
    starts = rng.uniform([-1, -1, 0, 0, -3, 0, 0], [1, 1, 1, 1, 3, 1, 1], size=(4_000, 7))
    starts[::2] = np.sign(starts[::2]) * [1, 1, 1, 1, 0, 1, 1] + starts[::2] * np.eye(7)[4]
    starts[::4, 3] = 0.0
    found = [distance(at, 1.0, b) for at in starts]
    for at in starts[np.argsort(found)[-3:]]:
        polished = optimize.minimize(lambda v: -distance(v, 1.0, b), at, method="Nelder-Mead")
        farthest = max(farthest, -polished.fun)
    assert farthest <= sensitivity * (1 + 1e-9)
    assert farthest >= sensitivity * (1 - 1e-4)
    assert max(found) <= sensitivity * (1 + 1e-9)
    assert sensitivity <= math.hypot(2.0, math.sqrt(2.0) * b)


NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
PEOPLE = st.tuples(st.lists(NUMBERS, min_size=3, max_size=3), NUMBERS)


@given(
    one=PEOPLE,
    other=PEOPLE,
    theta=st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    link=st.sampled_from(list(LINKS)),
    ends=st.sampled_from([(0.0, 1.0), (-1.0, 2.0), (3.0, 4.0)]),
    grid=st.sampled_from([0.0, 2.0**-10, 2.0**-2]),
)
@settings(max_examples=100)
def test_whatever_people_enter_moves_the_sums_by_no_more(one, other, theta, link, ends, grid):
    score = Score(link, ends, 0.7, 1.2)
    theta = np.array(theta) * (1.2 / max(1.2, np.linalg.norm(theta)))
    records = [record(score, theta, *person, weight=0.4, grid=grid) for person in (one, other)]
    sensitivity = score.sensitivity(0.4, dimension=3, grid=grid)
    assert np.linalg.norm(records[0] - records[1]) <= sensitivity
    if grid > 0.0:
        assert all(np.all(r / grid % 1.0 == 0.0) for r in records)
        low, high = record_range(0.7, 0.4 * score.largest_weight * 0.7, grid)
        assert low <= min(map(min, records)) <= max(map(max, records)) <= high


def test_a_link_that_lies_moves_nothing_farther():
    """Its mean and slope are cut, not trusted."""
    score, theta = Score("logistic", (0.0, 1.0), 1.0, 1.0), np.array([50.0, 0.0])
    records = [record(score, theta, [s, 0.0], y) for s in (-1.0, 1.0) for y in (0.0, 1.0)]
    sensitivity = score.sensitivity(1.0, dimension=2)
    assert max(np.linalg.norm(a - b) for a in records for b in records) <= sensitivity


def test_bad_entries_count_as_zero_and_people_without_outcomes_add_nothing():
    score, theta = Score("logistic", (0.0, 1.0), 1.0, 1.0), np.array([0.2, 0.1])
    clean = record(score, theta, [0.5, 0.0], 1.0)
    for entry in (math.nan, math.inf, -math.inf, 1e200):
        assert np.array_equal(record(score, theta, [0.5, entry], 1.0), clean)
    assert not record(score, theta, [0.5, 0.5], math.nan).any()
    assert np.array_equal(record(score, theta, [0.5, 0.0], math.inf), clean)
    assert np.allclose(
        record(score, theta, [30.0, 40.0], 1.0), record(score, theta, [0.6, 0.8], 1.0)
    )


def test_the_largest_weight_is_that_of_the_interval():
    for length in (0.1, 1.0, 8.0):
        for link, (mean, slope) in LINKS.items():
            score = Score(link, (0.0, 1.0), 1.0, length)
            t = np.linspace(-length, length, 9999)
            h = slope(t) / np.maximum(mean(t), 1 - mean(t))
            assert score.largest_weight == pytest.approx(h.max(), rel=1e-2)


def test_dispersion_bounds_what_residuals_vary_by():
    p = special.expit(np.linspace(-1, 1, 999))
    efficient = Score("logistic", (0.0, 1.0), 1.0, 1.0, False)
    assert efficient.dispersion(None) == pytest.approx(1.0)
    bounded = Score("logistic", (0.0, 1.0), 1.0, 1.0)
    assert bounded.dispersion(None) == pytest.approx((1 / np.maximum(p, 1 - p)).max(), rel=1e-3)
    linear = Score("identity", (-2.0, 2.0), 1.0, 1.0, False)
    assert linear.dispersion(None) == pytest.approx(4.0)
    assert linear.dispersion(0.25) == pytest.approx(0.25)
    assert Score("probit", (0.0, 1.0), 1.0, 1.0, False).dispersion(None) == pytest.approx(1.0)


def test_a_link_is_refused_where_it_is_flat():
    with pytest.raises(ArgumentError, match="reach must be at most 8"):
        Score("probit", (0.0, 1.0), 1.0, 9.0)
    assert statistic_size(20) == 230
