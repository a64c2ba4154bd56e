"""Lower bounds: what they are for counts that can be checked, that they cover, and what is possible."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm

from dpbandits import RDP, ZCDP, ApproxDP, ArgumentError, PureDP
from dpbandits.auditing import best_possible
from dpbandits.auditing.loss_bounds import (
    EPSILON,
    MU,
    RHO,
    Counts,
    Measure,
    Rule,
    Weights,
    best_rule,
    claim_of,
    epsilon_at,
    gaussian_losses,
    gaussian_mu,
    laplace_losses,
    lower_bound,
    proved,
    pure_epsilon,
    renyi,
)

ALPHA = 1e-4


def counts(*numbers: float) -> Counts:
    return Counts(*(np.array(float(number)) for number in numbers[:4]), *numbers[4:])


def clopper_pearson(count: int, n: int, alpha: float) -> tuple[float, float]:
    """Both one-sided bounds, each at level 1 - alpha."""
    found = binomtest(count, n).proportion_ci(1 - 2 * alpha, "exact")
    return float(found.low), float(found.high)


def test_bounds_are_those_of_clopper_and_pearson():
    seen = counts(700, 260, 240, 690, 1000, 1000)
    low, _ = clopper_pearson(700 + 690, 1890, ALPHA)
    assert pure_epsilon(seen, ALPHA) == pytest.approx(np.log(low / (1 - low)))
    found, _ = clopper_pearson(700, 1000, ALPHA / 2)
    _, false = clopper_pearson(260, 1000, ALPHA / 2)
    assert epsilon_at(0.1, seen, ALPHA) == pytest.approx(np.log((found - 0.1) / false))
    assert gaussian_mu(seen, ALPHA) == pytest.approx(norm.ppf(found) - norm.ppf(false))


def test_nothing_is_proved_of_nothing():
    for seen in (counts(0, 0, 0, 0, 0, 0), counts(0, 0, 0, 0, 50, 50), counts(5, 5, 5, 5, 10, 10)):
        assert pure_epsilon(seen, ALPHA) == 0.0
        assert gaussian_mu(seen, ALPHA) == 0.0
        assert epsilon_at(1e-5, seen, ALPHA) == 0.0
        assert renyi(np.array([2.0]), seen, ALPHA) == 0.0


def test_a_renyi_divergence_is_that_of_two_coins():
    many = counts(9e11, 2e11, 0, 0, 1e12, 1e12)  # no sampling error to speak of
    by_hand = np.log(0.9**3 / 0.2**2 + 0.1**3 / 0.8**2) / 2
    assert 3.0 * renyi(np.array([3.0]), many, ALPHA) == pytest.approx(by_hand, rel=1e-4)


def test_a_bound_on_zcdp_covers_gaussian_noise_and_reaches_most_of_it():
    # rho = 1/2.  An event says less than the noise: what the threshold in the middle shows of N(1, 1)
    # against N(0, 1) is 0.786^2 / 2, and no other all of it.
    n = 1e12
    thresholds = np.linspace(-4.0, 5.0, 181)
    above, below = n * norm.sf(thresholds - 1), n * norm.sf(thresholds)
    found = RHO.lower(Counts(above, below, 0 * above, 0 * below, n, n), ALPHA)
    assert found[90] == pytest.approx(0.786**2 / 2, rel=0.01)
    assert found.max() < 0.5


@pytest.mark.parametrize(
    ("budget", "gaussian", "value", "symbol"),
    [
        (PureDP(0.7), False, 0.7, "ε"),
        (ZCDP(0.5), True, 1.0, "μ"),
        (ZCDP(0.5), False, 0.5, "ρ"),
        (RDP(4.0, 2.0), True, 1.0, "μ"),
        (RDP(4.0, 2.0), False, 2.0, "ε of order 4"),
        (ApproxDP(1.0, 1e-6), True, ApproxDP(1.0, 1e-6).mu, "μ"),
        (ApproxDP(1.0, 1e-6), False, 1.0, "ε at δ = 1e-06"),
    ],
)
def test_claims_are_in_the_currency_of_the_noise(budget, gaussian, value, symbol):
    claim = claim_of(budget, gaussian=gaussian)
    assert claim.value == pytest.approx(value)
    assert claim.measure.symbol == symbol


# What is possible -----------------------------------------------------------------------------


def test_the_law_of_a_loss_is_that_of_its_noise():
    shifts, rng = np.array([0.5, 0.2, 0.2, 0.05]), np.random.default_rng(1)
    u = shifts + rng.laplace(size=(400_000, 4))
    drawn = (np.abs(u) - np.abs(u - shifts)).sum(axis=1)
    law = laplace_losses(shifts)
    for level in (-0.7, -0.2, 0.1, 0.5, 0.9):
        share = law.in_one[law.score >= level].sum()
        assert binomtest(int((drawn >= level).sum()), drawn.size, share).pvalue > ALPHA
    normal = gaussian_losses([0.6, 0.8])
    assert normal.in_one @ normal.score == pytest.approx(0.5, abs=1e-4)
    assert normal.in_zero @ normal.score == pytest.approx(-0.5, abs=1e-4)


def test_the_best_possible_bounds_at_20_000_runs():
    found = [best_possible([1.0 / levels] * levels) for levels in (1, 6, 15)]
    assert found == pytest.approx([0.95, 0.74, 0.42], abs=0.01)
    # One Laplace release by hand: the two atoms of the loss hold (1 + 1/e) / 2 of all runs.
    guesses = 20_000 * (1 + np.exp(-1))
    low, _ = clopper_pearson(20_000, round(guesses), ALPHA)
    assert found[0] == pytest.approx(np.log(low / (1 - low)), abs=0.002)
    # more runs, more is proved; never more than there is
    more = [best_possible([1.0], runs=runs) for runs in (10**3, 10**4, 10**6, 10**9)]
    assert more == sorted(more)
    assert 0.999 < more[-1] <= 1.0
    assert best_possible([0.0]) == 0.0


def test_the_best_possible_bound_of_gaussian_noise_is_the_best_of_all_thresholds():
    by_hand = []
    for c in np.linspace(-1, 2, 61):
        above, false = (round(20_000 * norm.sf(c - shift)) for shift in (1.0, 0.0))
        found = clopper_pearson(above, 20_000, ALPHA / 2)[0]
        by_hand.append(norm.ppf(found) - norm.ppf(clopper_pearson(false, 20_000, ALPHA / 2)[1]))
    assert best_possible([0.6, 0.8], noise="gaussian") == pytest.approx(max(by_hand), abs=0.003)


# Coverage -------------------------------------------------------------------------------------


def laplace_pair(rng: np.random.Generator, levels: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Likelihood ratios of ``levels`` Laplace noises that together lose 1."""
    world = rng.integers(0, 2, n)
    u = world[:, None] / levels + rng.laplace(size=(n, levels))
    return (np.abs(u) - np.abs(u - 1 / levels)).sum(axis=1).round(9), world


def gaussian_pair(rng: np.random.Generator, levels: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    world = rng.integers(0, 2, n)
    return rng.normal(size=n) + world, world


PAIRS = [
    (laplace_pair, EPSILON, 1.0),
    (laplace_pair, Measure("ε at δ", lambda seen, alpha: epsilon_at(1e-5, seen, alpha)), 1.0),
    (gaussian_pair, MU, 1.0),
    (gaussian_pair, RHO, 0.5),
]


@pytest.mark.parametrize(("pair", "measure", "truth"), PAIRS)
@pytest.mark.parametrize("known", [False, True])
def test_bounds_cover_the_truth(pair, measure, truth, known: bool):
    # 400 audits at alpha = 0.05 fail more than 42 times with probability below 1e-5.
    alpha, repeats, n = 0.05, 400, 1000
    assert binom.sf(42, repeats, alpha) < 1e-5
    rng, bounds = np.random.default_rng(3), []
    law = laplace_losses([1.0]) if pair is laplace_pair else gaussian_losses([1.0])
    expected = Weights(law.score, n / 2 * law.in_one, n / 2 * law.in_zero)
    rule, _ = best_rule(expected, measure, alpha)
    for _ in range(repeats):
        scores, world = pair(rng, 1, n)
        if known:
            scores = scores if pair is laplace_pair else scores - 0.5
            near = Rule(rule.low + 1e-8, rule.high - 1e-8)
            bounds.append(proved(scores, world, near, measure, alpha))
        else:
            bounds.append(lower_bound(scores, world, measure, alpha, n // 2))
    assert sum(bound > truth for bound in bounds) <= 42
    assert np.mean(bounds) > 0.2 * truth


@pytest.mark.parametrize("measure", [EPSILON, MU, RHO])
def test_equal_worlds_show_no_loss(measure: Measure):
    rng = np.random.default_rng(1)
    found = [
        lower_bound(rng.normal(size=2000), rng.integers(0, 2, 2000), measure, ALPHA, 1000)
        for _ in range(50)
    ]
    assert max(found) == 0.0


def test_a_rule_chosen_on_what_is_counted_would_not_cover():
    # Why runs are held out: choosing and counting on the same runs finds a loss where none is.
    rng = np.random.default_rng(2)
    found = []
    for _ in range(200):
        scores, world = rng.normal(size=200), rng.integers(0, 2, 200)
        ones = np.bincount(np.argsort(np.argsort(scores)), world, 200)
        rule, _ = best_rule(Weights(np.sort(scores), ones, 1 - ones), EPSILON, 0.05)
        found.append(proved(scores, world, rule, EPSILON, 0.05))
    assert np.mean(np.array(found) > 0) > 0.3


@pytest.mark.parametrize("shifts", [[np.nan], [np.inf], [[1.0, 2.0]], 3.0, None, "x"], ids=str)
def test_shifts_that_are_no_numbers_are_refused(shifts):
    with pytest.raises(ArgumentError, match="shifts must be"):
        best_possible(shifts)
