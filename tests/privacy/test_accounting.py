"""Accounting against high-precision arithmetic and against libraries that we did not write."""

import math

import dp_accounting
import mpmath
import numpy as np
import opendp.prelude as opendp
import pytest
from dp_accounting import gaussian_mechanism, pld, rdp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.integrate import quad
from scipy.stats import norm

from dpbandits.privacy import accounting

TINY, LOOSE = 1e-300, 1e-8


def logs(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log10(low), math.log10(high)).map(lambda x: 10.0**x)


epsilons = logs(1e-6, 50.0)
deltas = st.one_of(logs(1e-15, 0.5), logs(TINY, 0.5))
many = settings(max_examples=100)


def exact_delta(epsilon: float, mu: float):
    """Balle & Wang's curve at a precision at which nothing cancels."""
    with mp.workdps(120):
        epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
        first, second = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return (mp.erfc(-first / mp.sqrt(2)) - mp.exp(epsilon) * mp.erfc(-second / mp.sqrt(2))) / 2


def exact_zcdp_delta(rho: float, epsilon: float):
    """The bound of Canonne, Kamath & Steinke at its best order, the root of the derivative."""
    low, high = -1e4, 50.0  # of the order's logarithm
    for _ in range(64):
        middle = (low + high) / 2
        rising = (2 * math.exp(middle) + 1) * rho - epsilon > np.logaddexp(0.0, -middle)
        low, high = (low, middle) if rising else (middle, high)
    with mp.workdps(80):
        rho, epsilon, log_order = mp.mpf(rho), mp.mpf(epsilon), mp.mpf(low)
        for _ in range(3):  # Newton's steps each double the digits of a float
            order = mp.exp(log_order)
            slope = (2 * order + 1) * rho - epsilon - mp.log1p(1 / order)
            log_order -= slope / (2 * order * rho + 1 / (order + 1))
        order = mp.exp(log_order)
        return mp.exp(
            order * ((order + 1) * rho - epsilon)
            - (order + 1) * mp.log1p(1 / order)
            - mp.log(order)
        )


# Gaussian ------------------------------------------------------------------------------------


@many
@given(st.one_of(st.just(0.0), logs(1e-8, 300.0)), logs(1e-9, 300.0))
def test_gaussian_delta_is_the_exact_one_rounded_up(epsilon, mu):
    exact = exact_delta(epsilon, mu)
    assume(exact > TINY)
    assert exact <= accounting.gaussian_delta(epsilon, mu) <= exact * (1 + LOOSE)


@many
@given(logs(1e-6, 50.0), st.floats(0.0, 37.0))
def test_gaussian_delta_is_as_good_far_out_in_the_tail(epsilon, tail):
    mu = epsilon / (tail + 1e-3)
    exact = exact_delta(epsilon, mu)
    assume(exact > TINY)
    assert exact <= accounting.gaussian_delta(epsilon, mu) <= exact * (1 + LOOSE)


@many
@given(epsilons, deltas)
def test_gaussian_noise_is_never_smaller_than_the_exact_one(epsilon, delta):
    mu = accounting.gaussian_mu(epsilon, delta)
    assert exact_delta(epsilon, mu) <= delta
    assert exact_delta(epsilon, mu * (1 + LOOSE)) > delta


@many
@given(logs(1e-7, 100.0), deltas)
def test_gaussian_loss_is_never_lower_than_the_exact_one(mu, delta):
    epsilon = accounting.gaussian_epsilon(mu, delta)
    assert exact_delta(epsilon, mu) <= delta
    assert epsilon == 0.0 or exact_delta(epsilon * (1 - 10 * LOOSE), mu) > delta


@many
@given(epsilons, deltas)
def test_gaussian_inverses_undo_each_other(epsilon, delta):
    mu = accounting.gaussian_mu(epsilon, delta)
    assert accounting.gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-6)
    # At tiny epsilon the curve through (0, delta(0)) leaves few digits for the way back.
    assert accounting.gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-6, abs=1e-9)


@many
@given(epsilons, logs(1e-30, 0.5))
def test_more_budget_means_less_noise(epsilon, delta):
    mu, rho = accounting.gaussian_mu(epsilon, delta), accounting.zcdp_rho(epsilon, delta)
    assert accounting.gaussian_mu(1.01 * epsilon, delta) > mu
    assert accounting.gaussian_mu(epsilon, 1.01 * delta) > mu
    assert accounting.zcdp_rho(1.01 * epsilon, delta) > rho
    assert rho < mu**2 / 2  # the bound for any rho-zCDP mechanism cannot beat the exact Gaussian


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3, 0.1])
def test_gaussian_agrees_with_dp_accounting(epsilon, delta):
    sigma = gaussian_mechanism.get_sigma_gaussian(epsilon, delta)
    assert 1 / accounting.gaussian_mu(epsilon, delta) == pytest.approx(sigma, rel=1e-6)
    assert accounting.gaussian_epsilon(1 / sigma, delta) == pytest.approx(
        gaussian_mechanism.get_epsilon_gaussian(sigma, delta), rel=1e-6
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.1), (1.0, 1e-10), (3.0, 1e-6)])
def test_gaussian_agrees_with_privacy_loss_distributions(epsilon, delta):
    mu = accounting.gaussian_mu(epsilon, delta)
    loss = pld.privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=1e-4
    )
    assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=2e-2)


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [
        (0.2, 0.1, 0.435),
        (1, 0.1, 0.921),
        (10, 0.1, 3.549),
        (1, 1e-5, 0.268),
        (1, 1e-6, 1 / 4.22468),
    ],
)
def test_published_gaussian_values(epsilon, delta, mu):
    assert accounting.gaussian_mu(epsilon, delta) == pytest.approx(mu, abs=6e-4)


def test_classical_noise_at_large_epsilon_has_a_larger_delta_than_it_says():
    sigma = math.sqrt(2 * math.log(1.25 / 0.1)) / 10
    assert accounting.gaussian_delta(10.0, 1 / sigma) == pytest.approx(0.41, abs=0.005)


# zCDP -------------------------------------------------------------------------------------------------------------------------


@many
@given(logs(1e-14, 1e3), st.one_of(st.just(0.0), logs(1e-6, 1e3)))
def test_zcdp_delta_is_the_exact_bound_rounded_up(rho, epsilon):
    exact = exact_zcdp_delta(rho, epsilon)
    assume(exact > TINY)
    assert min(exact, 1) <= accounting.zcdp_delta(rho, epsilon) <= min(1, exact * (1 + LOOSE))


@many
@given(epsilons, deltas)
def test_zcdp_inverses_are_safe_and_undo_each_other(epsilon, delta):
    rho = accounting.zcdp_rho(epsilon, delta)
    assert exact_zcdp_delta(rho, epsilon) <= delta < exact_zcdp_delta(rho * (1 + LOOSE), epsilon)
    spent = accounting.zcdp_epsilon(rho, delta)
    assert exact_zcdp_delta(rho, spent) <= delta
    assert spent == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(
    ("rho", "bound", "gaussian"),
    [(0.02, 0.8999, 0.8341), (0.125, 2.4191, 2.2541), (1.0, 7.7662, 7.2861)],
)
def test_published_zcdp_values(rho, bound, gaussian):
    assert accounting.zcdp_epsilon(rho, 1e-6) == pytest.approx(bound, abs=1e-4)
    assert accounting.gaussian_epsilon(math.sqrt(2 * rho), 1e-6) == pytest.approx(
        gaussian, abs=1e-4
    )


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.125, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_zcdp_agrees_with_opendp_and_with_renyi_accounting(rho, delta):
    epsilon = accounting.zcdp_epsilon(rho, delta)
    opendp.enable_features("contrib")
    space = opendp.atom_domain(T=float, nan=False), opendp.absolute_distance(T=float)
    profile = opendp.c.make_zCDP_to_approxDP(
        opendp.m.make_gaussian(*space, scale=math.sqrt(0.5 / rho))
    )
    assert epsilon == pytest.approx(profile.map(1.0).epsilon(delta), rel=1e-4)
    accountant = rdp.RdpAccountant(np.concatenate([1 + np.geomspace(1e-3, 1e4, 4000)]))
    assert epsilon == pytest.approx(
        accountant.compose(dp_accounting.ZCDpEvent(rho)).get_epsilon(delta), rel=1e-4
    )


# Laplace -------------------------------------------------------------------------------------


@many
@given(logs(1e-10, 100.0), logs(1e-9, 1e6))
def test_laplace_rdp_is_the_closed_form_rounded_up(epsilon, order):
    alpha = 1.0 + order
    with mp.workdps(120):
        e, a = mp.mpf(epsilon), mp.mpf(alpha)
        exact = mp.log(
            a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)
        ) / (a - 1)
    assert (
        exact <= accounting.laplace_rdp(epsilon, alpha) <= min(mp.mpf(epsilon), exact * (1 + 1e-13))
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 8.0, 32.0])
def test_laplace_rdp_is_the_integral_it_stands_for(epsilon, alpha):
    def integrand(x):
        return 0.5 * epsilon * math.exp(-epsilon * (alpha * abs(x) - (alpha - 1) * abs(x - 1)))

    pieces = [
        quad(integrand, lo, hi, epsabs=0, epsrel=1e-12)[0]
        for lo, hi in ((-np.inf, 0), (0, 1), (1, np.inf))
    ]
    assert accounting.laplace_rdp(epsilon, alpha) == pytest.approx(
        math.log(sum(pieces)) / (alpha - 1), rel=1e-8
    )


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 30.0])
def test_pure_mu_is_the_least_mu_below_the_trade_off_curve_of_pure_privacy(epsilon):
    mu = accounting.pure_mu(epsilon)
    miss = np.unique(
        np.concatenate(
            [
                np.linspace(0.0, 1.0, 20_001),
                1 / (1 + np.exp([epsilon])),
                np.geomspace(1e-20, 0.1, 2_000),
            ]
        )
    )
    pure = np.maximum.reduce(
        [np.zeros_like(miss), 1 - math.exp(epsilon) * miss, math.exp(-epsilon) * (1 - miss)]
    )
    gaussian = norm.cdf(norm.isf(miss) - mu)
    assert np.all(gaussian <= pure + 1e-15)
    smaller = norm.cdf(norm.isf(miss) - 0.999 * mu)
    assert np.any(smaller > pure + 1e-15)


@many
@given(logs(1e-12, 300.0))
def test_pure_mu_is_rounded_up(epsilon):
    mu = accounting.pure_mu(epsilon)
    with mp.workdps(300):
        c = 1 / (1 + mp.exp(mp.mpf(epsilon)))
        assert mp.ncdf(-mp.mpf(mu) / 2) <= c <= mp.ncdf(-mp.mpf(mu) * (1 - mp.mpf(10) ** -13) / 2)


# Ends of the range ---------------------------------------------------------------------------


def test_nothing_spent_and_everything_spent():
    assert accounting.gaussian_delta(1.0, 0.0) == accounting.zcdp_delta(0.0, 1.0) == 0.0
    assert accounting.gaussian_delta(1.0, math.inf) == accounting.zcdp_delta(1e6, 1.0) == 1.0
    assert accounting.gaussian_epsilon(0.0, 1e-6) == accounting.zcdp_epsilon(0.0, 1e-6) == 0.0
    assert (
        accounting.gaussian_epsilon(math.inf, 0.1)
        == accounting.zcdp_epsilon(math.inf, 0.1)
        == math.inf
    )
    assert accounting.gaussian_epsilon(1.0, 0.0) == accounting.zcdp_epsilon(1.0, 0.0) == math.inf
    assert accounting.laplace_rdp(0.0, 2.0) == 0.0
    assert accounting.laplace_rdp(math.inf, 2.0) == accounting.pure_mu(math.inf) == math.inf


@settings(max_examples=25)
@given(st.floats(-320, 308), st.floats(-320, 308), st.floats(-320, -0.01))
def test_no_argument_gives_nan_or_an_unexpected_error(log_x, log_y, log_delta):
    x, y, delta = 10.0**log_x, 10.0**log_y, max(10.0**log_delta, math.ulp(0.0))
    assume(x > 0.0 and y > 1e-15)
    values = [
        accounting.gaussian_delta(x, y),
        accounting.gaussian_epsilon(x, delta),
        accounting.zcdp_delta(x, y),
        accounting.zcdp_epsilon(x, delta),
        accounting.laplace_rdp(x, 1.0 + y),
        accounting.pure_mu(x),
    ]
    values += [accounting.gaussian_mu(x, delta), accounting.zcdp_rho(x, delta)] if x < 1e6 else []
    assert all(value >= 0.0 for value in values), values
    assert max(values[0], values[2]) <= 1.0


def test_mpmath_is_precise_enough_for_these_tests():
    assert abs(exact_delta(1.0, 1.0) - mpmath.mpf("0.126936737506643956")) < 1e-17
