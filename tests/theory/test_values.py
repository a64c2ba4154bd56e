"""Values of bounds, worked out by hand from the text of the papers, and identities between them."""

from __future__ import annotations

import math
from math import e, exp, log, pi, sqrt

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from dpbandits import ZCDP, ArgumentError, PureDP
from dpbandits.environments import LinearArms
from dpbandits.papers.concentrated import AdaCGOPE
from dpbandits.papers.concentrated import theory as concentrated
from dpbandits.papers.dgs.theory import dgs, dgs_noise, dgs_perturbed
from dpbandits.theory import BOUNDS, crossover, free_from, lower, regime

T = 1000
L = log(T)


@pytest.mark.parametrize(
    ("name", "arguments", "by_hand"),
    [
        (
            "adac_ucb",
            {"gaps": [0.5, 0.0, 0.25], "rho": 0.1, "beta": 4},
            8 * 4 * L / 0.5 + 8 * 4 * L / 0.25 + 2 * (8 * sqrt(4 * L / 0.1) + 2 * 4 / (4 - 3)),
        ),
        ("adac_ucb", {"gaps": [0.5], "rho": 0.1, "beta": 3}, math.inf),
        (
            "adac_ucb_minimax",
            {"n_arms": 5, "rho": 0.1, "beta": 4},
            4 * sqrt(2 * 4 * 5 * T * L) + 8 * 5 * sqrt(4 * L / 0.1) + 3 * 4 * 4,
        ),
        (
            "adap_ucb_converted",
            {"gaps": [0.5], "rho": 0.1, "beta": 4},
            8 * 4 * L / 0.5 + 8 * sqrt(4 / 0.1) * L,
        ),
        ("adap_ucb_converted_minimax", {"n_arms": 5, "rho": 4}, sqrt(5 * T * L) + 5 * L / 2),
        ("arms_zcdp", {"n_arms": 5, "rho": 1e-6}, sqrt(4 / 1e-6) / 124),
        ("arms_zcdp", {"n_arms": 5, "rho": 0.5}, sqrt(4 * T) / 27),
        ("arms_zcdp", {"n_arms": T + 2, "rho": 0.5}, 0.0),
        (
            "adac_gope",
            {"dimension": 2, "n_arms": 8, "rho": 4, "delta": 0.1},
            sqrt(2 * T * log(80 * L)) + sqrt(log(80 * L)) * L,
        ),
        (
            "adac_gope",
            {"dimension": 100, "n_arms": 100, "rho": 4, "delta": 0.1},
            sqrt(100 * T * log(1000 * L)) + 100 * sqrt(100) / 2 * L,
        ),
        (
            "adac_gope_expected",
            {"dimension": 2, "n_arms": 8, "rho": 4},
            sqrt(2 * T * log(8 * T)) + sqrt(log(8 * T)) * L,
        ),
        (
            "hanna_converted",
            {"dimension": 3, "n_arms": 8, "rho": 4},
            sqrt(3 * T * log(8 * T)) + 9 * log(8 * T) ** 2 / 2,
        ),
        ("linear_zcdp", {"dimension": 6, "rho": 1e-8}, exp(-2.25) / 4 * 6 * 1e4),
        ("linear_zcdp", {"dimension": 6, "rho": 2.0}, exp(-2) / 8 * 6 * sqrt(T)),
        ("linear_zcdp", {"dimension": 6, "rho": 1.0}, exp(-2) / 8 * 6 * sqrt(T)),
        ("adac_oful", {"dimension": 3, "rho": 4}, 3 * L * sqrt(T) + 9 / 2 * L**2),
        ("linpriv", {"dimension": 3, "n_arms": 5, "epsilon": 0.5}, 33 * sqrt(T)),
        (
            "linpriv_printed",
            {"dimension": 3, "n_arms": 5, "epsilon": 0.5},
            3 * sqrt(T) + 30 * L,
        ),
        ("shariff_sheffet", {"n_arms": 5, "epsilon": 0.5}, 10 * L),
        ("linear_pure", {"dimension": 6, "epsilon": 1e-4}, 6 / (8 * e * 1e-4)),
        ("private_contexts", {"rho": 0.25}, 3 * sqrt(T)),
        (
            "two_coins",
            {"n_arms": 3, "gap": 0.01, "local_epsilon": 0.1},
            T * 0.01 / 8 * exp(-exp(0.2) * (exp(0.1) - 1) ** 2 * 500 * 0.02**2),
        ),
        ("arms_minimax", {"n_arms": 5}, sqrt(4 * T) / 27),
        ("arms_pure", {"n_arms": 5, "epsilon": 0.01}, 4 / 0.22),
        ("linear_minimax", {"dimension": 6}, exp(-2) / 8 * 6 * sqrt(T)),
        (
            "lai_robbins",
            {"means": [0.9, 0.5, 0.9]},
            0.4 * L / (0.5 * log(0.5 / 0.9) + 0.5 * log(0.5 / 0.1)),
        ),
        # epsilon so small that all is moved: d_epsilon = epsilon gap + O(epsilon^2)
        ("pure_asymptotic", {"means": [0.9, 0.5], "epsilon": 1e-9}, L / 1e-9),
        ("pure_asymptotic_first", {"means": [0.9, 0.5], "epsilon": 0.1}, 0.4 * L / 0.04),
        (
            "local_asymptotic",
            {"means": [0.9, 0.5], "epsilon": 0.1},
            L / 0.4 / (exp(0.2) * (exp(0.1) - 1) ** 2),
        ),
        ("local_asymptotic", {"means": [0.9, 0.5], "epsilon": 1.0}, None),
        (
            "two_coins",
            {"n_arms": 3, "gap": 0.01, "rho": 1e-6},
            T * 0.01 / 8 * exp(-1e-6 * (500 * T * 0.02**2 + 500 * 0.02)),
        ),
        (
            "two_coins",
            {"n_arms": 3, "gap": 0.01, "epsilon": 1e-3},
            T * 0.01 / 8 * exp(-1e-3 * 500 * 0.02),
        ),
        (
            "two_coins",
            {"n_arms": 3, "gap": 0.1},
            T * 0.1 / 8 * exp(-500 * 0.5 * (log(0.5 / 0.7) + log(0.5 / 0.3))),
        ),
        (
            "dpse",
            # one epoch of 8 K / b = 160, one of 640, and the errors
            {"gaps": [0.0, 0.4], "noise": 1.0, "failure_probability": 0.1},
            0.4 * min(T, 4000) + pi**2 / 12 * 0.1 * T * 0.4,
        ),
        ("search_error", {"failure_probability": 0.1}, 0.1),
        ("group_actions", {"rho": 0.5, "changed": 3}, 4.5),
        ("group_renyi", {"rho": 0.5, "changed": 3, "alpha": 2}, 9.0),
        ("kl_transport", {"rho": 0.5, "mean_square": 3}, 1.5),
        ("kl_product", {"rho": 0.5, "distances": [0.1, 0.3]}, 0.5 * (0.16 + 0.09 + 0.21)),
        ("kl_bandits", {"rho": 0.5, "mean": 3, "within": 1, "variance": 2}, 6.0),
        ("table_delta", {"delta": 1e-6, "n_arms": 3, "horizon": 4}, 81e-6),
        ("table_delta", {"delta": 1e-6, "n_arms": 3, "horizon": 4000}, 1.0),
    ],
)
def test_by_hand(name, arguments, by_hand):
    one = BOUNDS[name]
    given = {"horizon": T} if "horizon" in one.parameters else {}
    value = float(one(**{**given, **arguments}))
    if by_hand is None:  # where reports hide less than chance does
        by_hand = float(lower.lai_robbins(T, arguments["means"]))
    assert value == pytest.approx(by_hand, rel=1e-6)


def test_dgs_by_hand():
    d, t, zeta = 4, 100, 0.1
    widths = sqrt(d * t * log(0.5 + 2.0 * t / d))
    free = 2 * (sqrt(d * log((1 + t * 4.0 * 0.5) / zeta)) + sqrt(0.5) * 3.0) * widths
    noise = 2 * 3**1.5 * 2.0 / (e**1.5 * 0.5) * log(10) * widths
    given = {"context_bound": 2.0, "ridge": 0.5, "parameter_bound": 3.0}
    assert float(dgs(t, d, 0.5, 1e-3, zeta, 0.2, **given)) == pytest.approx(
        free + noise / 0.2 + 32 * log(1000) / 0.2
    )
    assert float(dgs_perturbed(t, d, 0.5, 1e-3, zeta, 0.3, **given)) == pytest.approx(
        (free + noise + 32 * log(1000)) / 0.09
    )
    assert float(dgs_noise(10, 100, 0.5, 0.1)) == pytest.approx(
        log(100) * sqrt(log(10)) * log(10) / 5
    )


# Theorem 9, step by step ---------------------------------------------------------------------


def proved_of_signs(d, horizon, rho, size):
    """A sign wrong in half of the rounds, with probability exp(-KL) / 4 on average."""
    most = size * horizon  # the largest sum of distances
    return d * (size * horizon / 2) * exp(-rho * (most**2 + most)) / 4


@pytest.mark.parametrize("rho", [1e-8, 1e-3, 0.1, 1.0])
def test_theorem_9_holds_but_not_by_its_proof(rho):
    horizon, d = 4, 7
    private = exp(-2.25) / 4 * d / sqrt(rho)
    # the published steps: s T / 2 for a wrong sign, KL <= 9/4
    assert d / (2 * sqrt(rho)) * exp(-2.25) / 4 == pytest.approx(private / 2)
    sizes = np.geomspace(0.01, 1, 2000) / (horizon * sqrt(rho))
    best = max(proved_of_signs(d, horizon, rho, size) for size in sizes)
    assert best > private
    free = d * exp(-2) / 8 * 2
    sharp = float(concentrated.linear_zcdp_sharp(horizon, d, rho))
    assert sharp == pytest.approx(max(free, best), rel=1e-5)
    assert sharp >= concentrated.linear_zcdp(horizon, d, rho)


def test_theorem_4_hides_the_dimension():
    """f / L is bounded by no constant: what the noise costs grows with d^(3/2)."""

    def f(d, log):
        return d + 2 * sqrt(d * log) + 2 * log

    log_ = math.log(2 * 10**6 * 14)
    assert f(10_000, log_) / log_ > 500
    free, noisy = (
        [
            concentrated.linear._phases(d, 10, noise, 0.001, 0.5, 0.5, True)[1][5]
            for d in (400, 1600)
        ]
        for noise in (0.0, 1e6)
    )
    assert (noisy[1] - free[1]) / (noisy[0] - free[0]) > 7.0  # 4 if it were linear, 8 = 4^(3/2)


# Divergences ---------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize(("mean", "best"), [(0.5, 0.9), (0.05, 0.95), (0.49, 0.5)])
def test_the_private_divergence_is_the_least(mean, best, epsilon):
    found = minimize_scalar(
        lambda z: lower.bernoulli_kl(z, best) + epsilon * (z - mean),
        bounds=(mean, best),
        method="bounded",
        options={"xatol": 1e-12},
    )
    assert float(lower.private_divergence(mean, best, epsilon)) == pytest.approx(
        min(found.fun, float(lower.bernoulli_kl(mean, best))), rel=1e-6
    )


def test_the_price_of_pure_dp():
    """The factors in docs/errata.md."""
    for mean, best, factor in ((0.05, 0.95, 2.2), (0.5, 0.999, 3.9)):
        kl = float(lower.bernoulli_kl(mean, best))
        private = float(lower.private_divergence(mean, best, sqrt(2.0)))
        assert kl / private == pytest.approx(factor, abs=0.06)


@pytest.mark.parametrize(("mean", "best"), [(0.25, 0.75), (0.5, 0.9)])
def test_from_the_log_odds_ratio_on_pure_dp_is_free(mean, best):
    free = lower.free_epsilon(mean, best)
    kl = float(lower.bernoulli_kl(mean, best))
    assert float(lower.private_divergence(mean, best, free * 1.001)) == pytest.approx(kl)
    assert float(lower.private_divergence(mean, best, free * 0.9)) < kl


# Regimes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "about", "private", "free"),
    [
        (
            ZCDP(1e-6),
            {"n_arms": 5},
            lambda t: concentrated.arms_zcdp(t, 5, 1e-6),
            lambda t: lower.arms_minimax(t, 5),
        ),
        (
            PureDP(0.01),
            {"n_arms": 5},
            lambda t: lower.arms_pure(t, 5, 0.01),
            lambda t: lower.arms_minimax(t, 5),
        ),
        (
            ZCDP(1e-4),
            {"dimension": 5},
            lambda t: concentrated.linear_zcdp(t, 5, 1e-4),
            lambda t: lower.linear_minimax(t, 5),
        ),
        (
            PureDP(0.01),
            {"dimension": 5},
            lambda t: lower.linear_pure(t, 5, 0.01),
            lambda t: lower.linear_minimax(t, 5),
        ),
    ],
)
def test_regimes_meet_where_the_terms_of_the_bound_do(budget, about, private, free):
    meet = crossover(budget, **about)
    assert private(0.99 * meet) > 1.004 * free(0.99 * meet)
    assert private(1.01 * meet) == pytest.approx(free(1.01 * meet))
    assert regime(0.99 * meet, budget, **about) == "high privacy"
    assert regime(1.01 * meet, budget, **about) == "low privacy"


def test_where_there_is_no_bound_there_is_no_regime():
    with pytest.raises(ArgumentError, match="n_arms or dimension must be given"):
        crossover(PureDP(1.0))


def test_privacy_is_free_from_where_its_share_is_small():
    given = {"n_arms": 5, "rho": 1e-4, "beta": 4.0}
    bound = BOUNDS["adac_ucb_minimax"]

    def excess(horizon):
        rest = {**given, "rho": math.inf}
        return float(bound(horizon, **given) / bound(horizon, **rest)) - 1.1

    assert free_from(bound, 0.1, **given) == pytest.approx(brentq(excess, 1e3, 1e12), rel=0.02)
    assert free_from(BOUNDS["adac_ucb"], 0.1, gaps=[0.2], rho=1e9, beta=4.0) == 2.0
    assert free_from(BOUNDS["adap_ucb"], 0.1, gaps=[0.2], noise=100.0, alpha=4.0) == math.inf
    with pytest.raises(ArgumentError, match="must have"):
        free_from(BOUNDS["lai_robbins"], means=[0.5, 0.6])


# Upper and lower -----------------------------------------------------------------------------


def test_no_lower_bound_is_above_an_upper_one():
    horizons = np.geomspace(10, 1e12, 40)
    for k in (2, 5, 50):
        for rho in (1e-8, 1e-3, 1.0):
            upper = concentrated.adac_ucb_minimax(horizons, k, rho, 3.5)
            assert (lower.coins_minimax(horizons, k, rho=rho) < upper).all()
    for epsilon in (0.01, 1.0):
        means = np.array([0.9, 0.6, 0.5])
        asymptotic = lower.pure_asymptotic(horizons, means, epsilon)
        upper = concentrated.adap_ucb(horizons, 0.9 - means, 1 / epsilon, 3.1)
        assert (asymptotic < upper).all()
        assert (lower.lai_robbins(horizons, means) <= asymptotic).all()
        assert (lower.pure_asymptotic_first(horizons, means, epsilon) <= asymptotic + 1e-9).all()
        local = lower.local_asymptotic(horizons, means, epsilon)
        assert (lower.lai_robbins(horizons, means) <= local + 1e-9).all()


def test_adap_ucb_solves_for_the_length_of_an_episode():
    """Where the bonus of an episode of n* rounds is half the gap."""
    gap, s, alpha = 0.3, 7.0, 3.5
    root = brentq(
        lambda n: sqrt(alpha * L / (2 * n)) + s * alpha * L / n - gap / 2, 1.0, 1e9, xtol=1e-9
    )
    by_hand = gap * 4 * root + 3 * alpha / (alpha - 3)
    assert float(concentrated.adap_ucb(T, [gap], s, alpha)) == pytest.approx(by_hand)


# Phases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["tight", "published"])
@pytest.mark.parametrize("rho", [0.001, 1.0])
def test_a_first_phase_is_as_long_as_the_bound_says(variant, rho):
    world = LinearArms.on_sphere(10, 3, seed=1, rewards="bounded")
    policy = AdaCGOPE(world.features, budget=ZCDP(rho), variant=variant, reward_range=(-1.0, 1.0))
    rounds = policy.new_state().public.goal.sum()
    noise = sqrt(0.5 / rho)
    _, lengths = concentrated.linear._phases(3, 10, noise, 0.001, 0.5, 0.5, variant == "published")
    assert rounds <= lengths[0] <= 1.08 * rounds


def test_gope_by_hand():
    width, lengths = concentrated.linear._phases(2, 3, 2.0, 0.1, 0.5, 0.5, False)
    assert width[:3].tolist() == [0.25, 0.125, 0.0625]
    t = lengths[:3].sum() + 10
    # whoever is left in phase 3 has a gap of 4 / 8 at most, in phase 4 of 4 / 16
    by_hand = lengths[0] + lengths[1] + lengths[2] / 2 + 10 / 4 + 0.1 * t
    assert float(concentrated.gope(t, 2, 3, 2.0, 0.1)) == pytest.approx(by_hand)
