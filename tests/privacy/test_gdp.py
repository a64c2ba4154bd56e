"""Gaussian differential privacy, against its curve, and wherever a budget is taken."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import dpbandits as dpb
from dpbandits.auditing.loss_bounds import claim_of
from dpbandits.glm import PrivateGLM
from dpbandits.policies import registered
from dpbandits.privacy import ContinualSum, Gaussian, Meaning, SqrtToeplitz, VectorChannel
from dpbandits.privacy.channels import GAUSSIAN, LAPLACE
from dpbandits.privacy.ledger import WHOLE, Ledger, Meter, empty_arrays, write
from dpbandits.shuffle import BitSum, LaplaceShares

MUS = (0.01, 0.3, 1.0, 2.7)
WITH_GAUSSIAN_NOISE = [name for name, cls in registered().items() if "Gaussian" in cls.card.noise]


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.5])
def test_the_curve_is_that_of_gaussian_noise(mu, epsilon):
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    found = dpb.GDP(mu).delta_at(epsilon)
    assert exact * (1 - 1e-9) - 1e-12 <= found <= exact * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_conversions_go_to_and_fro(mu, delta):
    approx = dpb.GDP(mu).to_approx(delta)
    assert approx.delta == delta
    assert dpb.GDP(mu).delta_at(approx.epsilon) <= delta
    if approx.epsilon > 1e-6:  # otherwise the curve is below delta from the start
        assert approx.mu == pytest.approx(mu, rel=1e-9)
    assert approx.epsilon <= dpb.GDP(mu).to_zcdp().to_approx(delta).epsilon
    assert approx == dpb.GDP(mu).to_zcdp().to_approx(delta, gaussian=True)


def test_the_curve_is_that_of_an_accountant():
    accountants = pytest.importorskip("dp_accounting.pld.pld_privacy_accountant")
    arrays = empty_arrays()
    for _ in range(4):
        write(arrays, 0, 9, WHOLE, GAUSSIAN, 1.0, 2.0, 1)
    ledger = Ledger(arrays, Meter.of(dpb.GDP(1.0)))
    accountant = accountants.PLDAccountant().compose(ledger.to_dp_event())
    approx = ledger.spent().to_approx(1e-5)
    assert approx.epsilon == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("alpha", [1.5, 8.0])
def test_it_implies_zcdp(mu, alpha):
    def density(x):
        return math.exp(alpha * norm.logpdf(x - mu) + (1 - alpha) * norm.logpdf(x))

    moment, _ = quad(density, -40, 40, points=[alpha * mu])
    divergence = math.log(moment) / (alpha - 1)
    assert dpb.GDP(mu).to_zcdp().rho * alpha == pytest.approx(divergence)


@pytest.mark.parametrize("mu", MUS)
def test_gaussian_noise_attains_the_guess_and_no_mechanism_the_belief(mu):
    found = Meaning.of(dpb.GDP(mu))
    assert found.guess == pytest.approx(norm.cdf(mu / 2), rel=1e-9)
    loss = math.log(found.belief / (1 - found.belief))
    exceeded = norm.sf((loss - mu * mu / 2) / mu)  # by Gaussian noise
    assert exceeded <= found.exception == 1e-6
    # The outcome of a test on the curve, of which the loss is as large as it gets.
    for share in (1e-6, 1.01e-6, 1e-5, 0.1):
        largest = math.log(share / norm.cdf(norm.ppf(share) - mu))
        assert largest <= loss * (1 + 1e-9)


@pytest.mark.parametrize("k", [1, 4, 25])
def test_releases_add_up_by_the_root_of_the_sum_of_squares(k):
    def spent(budget, multiplier, family=GAUSSIAN):
        arrays = empty_arrays()
        for _ in range(k):
            write(arrays, 0, 9, WHOLE, family, 1.0, multiplier, 1)
        return Ledger(arrays, Meter.of(budget)).spent()

    each = Gaussian.calibrated(dpb.GDP(0.3)).multiplier
    assert spent(dpb.GDP(5.0), each).mu == pytest.approx(0.3 * math.sqrt(k), rel=1e-5)
    assert spent(dpb.GDP(5.0), each).mu >= 0.3 * math.sqrt(k) * (1 - 1e-12)
    shared = each * math.sqrt(k)
    assert spent(dpb.GDP(0.3), shared) == dpb.GDP(0.3)
    # Laplace noise of epsilon is mu-GDP with the chord of its curve.
    mu = spent(dpb.GDP(50.0), 1.0, LAPLACE).mu
    assert mu == pytest.approx(math.sqrt(k) * -2 * norm.ppf(1 / (1 + math.e)), rel=1e-5)


def test_the_ledger_refuses_what_would_cost_more():
    ledger = Ledger(empty_arrays(), Meter.of(dpb.GDP(0.5)))
    assert ledger.allows(0, 9, WHOLE, GAUSSIAN, 2.0)
    assert not ledger.allows(0, 9, WHOLE, GAUSSIAN, 1.99)


@pytest.mark.parametrize("name", WITH_GAUSSIAN_NOISE)
def test_every_policy_with_gaussian_noise_takes_it(name):
    cls = registered()[name]
    policy = cls(**cls.example, budget=dpb.GDP(0.7), seed=1)
    assert policy.channel == Gaussian(1 / 0.7)
    assert policy.effective_budget == policy.guarantee.holds == dpb.GDP(0.7)
    assert policy.meter.limit == pytest.approx(policy.channel.cost("gdp"), rel=1e-15)
    exact = cls(**cls.example, budget=dpb.ZCDP(0.7**2 / 2), seed=1)
    assert policy.noise_scale == pytest.approx(exact.noise_scale, rel=1e-14)


def test_it_plays_like_zcdp_with_noise_of_the_same_size():
    one, other = (
        dpb.algorithms.MergedIMED(3, budget=budget, seed=4)
        for budget in (dpb.GDP(1.0), dpb.ZCDP(0.5))
    )
    for t in range(300):
        assert one.pull().arm == other.pull().arm
        one.update(t % 2), other.update(t % 2)
    assert one.ledger.spent() == dpb.GDP(1.0)


def test_rounds_of_a_user_cost_the_root_of_their_number():
    policy = dpb.algorithms.MergedIMED(3, budget=dpb.GDP(1.0), max_rounds=4, seed=1)
    assert policy.channel.multiplier == 2.0
    assert policy.meter.growth == 2.0
    for t in range(200):
        policy.update(0.5, policy.pull(user=t % 20))
    assert policy.ledger.spent() == dpb.GDP(1.0)


def test_secure_noise_keeps_it_and_it_survives_a_save(tmp_path):
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.GDP(0.8), noise="secure")
    for _ in range(40):
        policy.pull()
        policy.update(0.5)
    assert policy.ledger.spent() == dpb.GDP(0.8)
    page = policy.card_page().markdown()
    assert "The limit for each record is 0.8-GDP" in page
    epsilon = dpb.GDP(0.8).to_approx(1e-6).epsilon
    assert f"| as (epsilon, delta) | ({epsilon:.5f}"[:30] in page
    policy.save(tmp_path / "trial")
    del policy
    loaded = dpb.load(tmp_path / "trial")
    assert (loaded.budget, loaded.ledger.spent()) == (dpb.GDP(0.8), dpb.GDP(0.8))


def test_estimators_sums_and_channels_take_it():
    rng = np.random.default_rng(0)
    features, outcomes = rng.uniform(-0.5, 0.5, (500, 2)), rng.integers(0, 2, 500)
    model = PrivateGLM("logistic", budget=dpb.GDP(1.0), noise="simulation", seed=1)
    assert model.fit(features, outcomes).ledger.spent() == dpb.GDP(1.0)
    ContinualSum(SqrtToeplitz(8), dpb.GDP(1.0), sensitivity=1.0, seed=1)
    assert VectorChannel(dpb.GDP(0.5), bound=1.0).std == 4.0


@pytest.mark.parametrize(
    "refusing",
    [
        lambda: PrivateGLM("logistic", budget=dpb.GDP(1.0), method="objective"),
        lambda: dpb.algorithms.MergedIMEDSDP(3, budget=dpb.GDP(1.0)),
        lambda: dpb.algorithms.LinUCBSDP(3, 2, budget=dpb.GDP(1.0), horizon=10),
        lambda: dpb.papers.others.DPKLUCB(3, budget=dpb.GDP(1.0)),
        lambda: BitSum.calibrated(dpb.GDP(1.0), batch=20, dimension=2, bound=1.0),
        lambda: LaplaceShares.calibrated(dpb.GDP(1.0), batch=20, dimension=1, bound=1.0),
    ],
)
def test_what_has_no_gaussian_noise_refuses_it_by_name(refusing):
    with pytest.raises(dpb.ArgumentError, match=r"^budget must be .*, got GDP\(mu=1.0\)"):
        refusing()


@pytest.mark.parametrize("mu", [0.0, -1.0, math.inf, math.nan, "1", True])
def test_mu_is_a_positive_number(mu):
    with pytest.raises(dpb.ArgumentError, match=r"^mu must be a number in \(0, inf\)"):
        dpb.GDP(mu)


@pytest.mark.parametrize("mu", [1e-160, 1e-110, 1e110, 1e160])
def test_extreme_budgets_are_refused_by_name(mu):
    with pytest.raises(dpb.ArgumentError, match="budget must be less extreme"):
        dpb.algorithms.MergedIMED(3, budget=dpb.GDP(mu))


@pytest.mark.compiled
def test_an_audit_knows_its_claim_and_stays_below():
    assert claim_of(dpb.GDP(0.7), gaussian=True)[0] == pytest.approx(0.7)
    found = dpb.audit(
        dpb.algorithms.MergedIMED(2, budget=dpb.GDP(1.0)), runs=1000, n_jobs=1, seed=1
    )
    assert found.measured <= found.claimed == pytest.approx(1.0)
    assert found.measured > 0.6
    half = dpb.audit(
        dpb.algorithms.MergedIMED(2, budget=dpb.GDP(1.0)), plant="half", runs=1000, n_jobs=1, seed=1
    )
    assert half.refuted
