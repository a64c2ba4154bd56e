"""Channels: the law of the noise, its calibration and its price."""

import functools
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism, rdp
from scipy import stats

from dpbandits.errors import ArgumentError
from dpbandits.privacy import (
    RDP,
    ZCDP,
    ApproxDP,
    Certified,
    Gaussian,
    Hemisphere,
    Laplace,
    LaplaceVector,
    Open,
    PureDP,
    accounting,
)
from dpbandits.privacy.budgets import examples
from dpbandits.privacy.channels import FAMILIES, add_noise, noise_for, unit_cost

# With 40,000 draws the Kolmogorov-Smirnov test at this level finds a scale that is 5 % off: the
# distance is then 0.012 (normal) or 0.009 (Laplace), with a critical value of 2.2 / sqrt(n) =
# 0.011; Laplace needs twice as many.
ALPHA, RELEASES, WIDTH, SENSITIVITY, MULTIPLIER = 1e-4, 1000, 80, 3.0, 2.0
LAWS = [(Gaussian, stats.norm), (Laplace, stats.laplace)]


@functools.cache
def noise(kind) -> np.ndarray:
    """(RELEASES, WIDTH) noise in units of multiplier times sensitivity, one vector a release."""
    channel, rng = kind(MULTIPLIER), np.random.default_rng(11)
    statistic = np.arange(float(WIDTH))
    drawn = [channel.release(statistic, SENSITIVITY, rng) - statistic for _ in range(RELEASES)]
    return np.array(drawn) / (MULTIPLIER * SENSITIVITY)


@pytest.mark.parametrize(("kind", "law"), LAWS)
def test_simulated_noise_has_its_law_and_the_test_would_see_a_slightly_wrong_scale(kind, law):
    sample = noise(kind).ravel()
    assert stats.kstest(sample, law.cdf).pvalue > ALPHA
    for wrong in (0.95, 1.05):
        assert stats.kstest(sample * wrong, law.cdf).pvalue < ALPHA


@pytest.mark.parametrize(("kind", "law"), LAWS)
def test_coordinates_are_independent(kind, law):
    sample = noise(kind)
    first, second = sample[:, ::2].ravel(), sample[:, 1::2].ravel()
    for f, g in ((first, second), (np.abs(first), np.abs(second)), (first, np.abs(second))):
        assert stats.pearsonr(f, g).pvalue > ALPHA
    assert np.unique(np.abs(sample)).size == sample.size
    # A size that the coordinates of a release share fails.
    shared = sample * np.random.default_rng(1).uniform(0.5, 1.5, (RELEASES, 1))
    left, right = np.abs(shared[:, ::2]).ravel(), np.abs(shared[:, 1::2]).ravel()
    assert stats.pearsonr(left, right).pvalue < ALPHA


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
def test_a_release_is_fresh_repeatable_from_its_seed_and_leaves_the_statistic_alone(kind):
    statistic, rng = np.array([1.0, 2.0]), np.random.default_rng(5)
    channel = kind(1.0)
    one, two = channel.release(statistic, 1.0, rng), channel.release(statistic, 1.0, rng)
    assert not np.any(one == two)
    assert np.array_equal(channel.release(statistic, 1.0, np.random.default_rng(5)), one)
    assert statistic.tolist() == [1.0, 2.0]
    assert channel.release(statistic, 0.0, rng).tolist() == [1.0, 2.0]


def test_the_open_channel_adds_nothing_and_an_unknown_family_shows_nothing():
    assert Open().release(np.array([3.0]), 1.0, np.random.default_rng(0)).tolist() == [3.0]
    released = np.zeros(2)
    add_noise(99, 1.0, 0.0, np.ones(2), released, np.random.default_rng(0))
    assert np.all(np.isnan(released))
    assert unit_cost(99, 1.0, "zcdp") == math.inf


@pytest.mark.parametrize("bad", [-1e-300, -1.0, math.nan, math.inf, -math.inf, None, "1", True])
@pytest.mark.parametrize("channel", [Gaussian(1.0), Laplace(1.0), Open()])
def test_a_sensitivity_that_is_no_bound_is_refused(channel, bad):
    with pytest.raises(ArgumentError, match=r"^sensitivity must be a number in \[0, inf\)"):
        channel.release(np.zeros(1), bad, np.random.default_rng(0))


@pytest.mark.parametrize(("multiplier", "sensitivity"), [(1e-200, 1e-200), (1e200, 1e200)])
def test_noise_that_would_vanish_or_overflow_is_refused(multiplier, sensitivity):
    with pytest.raises(ArgumentError, match="must be a number above 0 for Gaussian"):
        Gaussian(multiplier).scale(sensitivity)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1", None])
@pytest.mark.parametrize("kind", [Gaussian, Laplace])
def test_a_multiplier_outside_its_range_is_refused(kind, bad):
    with pytest.raises(ArgumentError, match=r"^multiplier must be a number in"):
        kind(bad)


@pytest.mark.parametrize("statistic", [3.0, [[1.0]], [math.nan], [math.inf]])
def test_a_statistic_that_is_no_finite_vector_is_refused(statistic):
    with pytest.raises(ArgumentError, match=r"^statistic must be a vector"):
        Gaussian(1.0).release(statistic, 1.0, np.random.default_rng(0))


def test_the_open_channel_has_no_multiplier():
    with pytest.raises(ArgumentError, match="open channel"):
        Open(1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-3])
def test_gaussian_calibration(epsilon, delta):
    budget = ApproxDP(epsilon, delta)
    exact = Gaussian.calibrated(budget)
    assert exact.multiplier == pytest.approx(
        gaussian_mechanism.get_sigma_gaussian(epsilon, delta), rel=1e-6
    )
    assert accounting.gaussian_delta(epsilon, 1 / exact.multiplier) <= delta * (1 + 1e-12)
    paper = Gaussian.calibrated(budget, calibration="paper")
    assert paper.multiplier == pytest.approx(math.sqrt(2 * math.log(1.25 / delta)) / epsilon)


def test_calibration_spends_each_budget_exactly():
    assert Gaussian.calibrated(ZCDP(0.3)).cost("zcdp") == pytest.approx(0.3, rel=1e-14)
    assert Gaussian.calibrated(RDP(5.0, 0.3)).cost("rdp", 5.0) == pytest.approx(0.3, rel=1e-14)
    assert Laplace.calibrated(PureDP(0.3)).cost("pure") == pytest.approx(0.3, rel=1e-14)
    assert Gaussian.calibrated(ApproxDP(1.0, 1e-6)).cost("gdp") == pytest.approx(
        4.22468**-2, rel=1e-5
    )


NUMBERS = (1e-9, 1e-3, 0.01, 0.1, 0.37, 0.5, 1.0, 2.0, 3.3, 8.0, 60.0)
MULTIPLIERS = [
    (Laplace, PureDP, lambda epsilon: 1.0 / epsilon),
    (Hemisphere, PureDP, lambda epsilon: 1.0 / epsilon),
    (Gaussian, ZCDP, lambda rho: math.sqrt(0.5 / rho)),
    (LaplaceVector, ZCDP, lambda rho: math.sqrt(0.5 / rho)),
]
OF_ORDERS = [(Gaussian, RDP, lambda alpha, epsilon: math.sqrt(0.5 * alpha / epsilon))]
OF_DELTAS = [
    (Gaussian, ApproxDP, lambda *budget: 1.0 / ApproxDP(*budget).mu),
    (Certified, ApproxDP, lambda *budget: 1.0 / ApproxDP(*budget).mu),
    (LaplaceVector, ApproxDP, lambda *budget: math.sqrt(0.5 / ApproxDP(*budget).rho)),
]


def test_calibration_is_that_of_each_notion_to_the_last_bit():
    """Seeded numbers of policies hang on every bit of it."""
    cases = [(*one, (number,)) for one in MULTIPLIERS for number in NUMBERS]
    cases += [(*one, (order, x)) for one in OF_ORDERS for order in (1.5, 4.0) for x in NUMBERS]
    cases += [(*one, (x, delta)) for one in OF_DELTAS for x in NUMBERS for delta in (0.1, 1e-6)]
    for kind, notion, multiplier, numbers in cases:
        assert kind.calibrated(notion(*numbers)).multiplier == multiplier(*numbers)


@pytest.mark.parametrize("kind", FAMILIES.values())
@pytest.mark.parametrize("budget", examples(), ids=str)
def test_what_is_calibrated_costs_the_budget(kind, budget):
    if kind.takes(budget):
        currency, amount = budget.kept_in(gaussian=kind.keeps_gdp)
        cost = kind.calibrated(budget).cost(currency, budget.order)
        assert cost == pytest.approx(amount, rel=1e-14)


@pytest.mark.parametrize(
    ("notion", "noise", "best"),
    [
        (PureDP, ("Gaussian", "Laplace"), Laplace),
        (PureDP, ("Gaussian", "hemisphere"), Hemisphere),
        (ApproxDP, ("certified", "Laplace", "Laplace vector", "Gaussian"), Gaussian),
        (ApproxDP, ("certified", "Laplace vector"), LaplaceVector),
        (RDP, ("Laplace vector", "Laplace"), None),
    ],
)
def test_a_notion_takes_the_noise_that_suits_it_best(notion, noise, best):
    assert noise_for(notion, noise) is best


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
def test_budgets_that_do_not_fit_are_refused(kind):
    with pytest.raises(ArgumentError, match=f"for {kind.__name__} noise"):
        kind.calibrated(PureDP(1.0) if kind is Gaussian else ZCDP(1.0))


@pytest.mark.parametrize("multiplier", [0.3, 1.0, 7.0, 100.0])
@pytest.mark.parametrize("alpha", [1.5, 2.0, 16.0])
def test_costs_agree_with_dp_accounting(multiplier, alpha):
    for kind, event in (
        (Gaussian, dp_accounting.GaussianDpEvent),
        (Laplace, dp_accounting.LaplaceDpEvent),
    ):
        accountant = rdp.RdpAccountant([alpha]).compose(event(multiplier))
        assert kind(multiplier).cost("rdp", alpha) == pytest.approx(accountant._rdp[0], rel=1e-9)
        # The zCDP bound holds at every order, and is met by Gaussian noise.
        assert kind(multiplier).cost("zcdp") * alpha >= accountant._rdp[0] * (1 - 1e-12)
    assert Laplace(multiplier).cost("pure") == 1 / multiplier
    assert Gaussian(multiplier).cost("pure") == Open().cost("zcdp") == math.inf
    assert Gaussian(multiplier).cost("gdp") == pytest.approx(multiplier**-2)
    assert Laplace(multiplier).cost("gdp") == accounting.pure_mu(1 / multiplier) ** 2


@pytest.mark.parametrize("family", [Gaussian.family, Laplace.family])
@pytest.mark.parametrize("currency", ["pure", "zcdp", "rdp", "gdp"])
def test_costs_of_extreme_noise_neither_fail_nor_turn_into_nothing_known(family, currency):
    assert unit_cost(family, 1e-200, currency, 2.0) >= 1e150
    assert (
        0.0
        <= unit_cost(family, 1e200, currency, 2.0)
        <= (math.inf if currency == "pure" else 1e-150)
    )
