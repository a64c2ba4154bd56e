"""Laplace noise on vectors that move as a whole: its cost against numerical divergences, its ledger
lines, and the published noise.
"""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from scipy.integrate import quad
from scipy.stats import kstest, laplace

from dpbandits import RDP, ZCDP, ApproxDP, ArgumentError, PureDP
from dpbandits.privacy import LaplaceVector, accounting
from dpbandits.privacy.channels import VECTOR, Laplace
from dpbandits.privacy.ledger import WHOLE, Ledger, Meter, empty_arrays, write

ALPHA = 1e-4


def divergence(shift: float, alpha: float) -> float:
    """The Renyi divergence of Laplace noise of scale one from itself, shifted."""

    def integrand(z: float) -> float:
        return 0.5 * math.exp(-alpha * abs(z - shift) - (1 - alpha) * abs(z))

    total = sum(
        quad(integrand, a, b, epsabs=0.0, epsrel=1e-11)[0]
        for a, b in [(-np.inf, 0.0), (0.0, shift), (shift, np.inf)]
    )
    return math.log(total) / (alpha - 1)


def test_its_cost_bounds_the_divergence_of_every_shift_and_is_approached_by_small_ones():
    rng, channel = np.random.default_rng(1), LaplaceVector(1.3)
    for _ in range(12):
        n = rng.integers(1, 8)
        shift = rng.dirichlet(np.ones(n)) ** rng.uniform(0.1, 1.0)
        shift *= rng.uniform(0.1, 1.0) / np.linalg.norm(shift)  # of at most one, the sensitivity
        for alpha in (1.05, 1.5, 2.0, 4.0, 16.0, 64.0):
            loss = sum(divergence(v / channel.multiplier, alpha) for v in shift)
            assert loss <= alpha * channel.cost("zcdp") * (1 + 1e-9)
            assert loss <= channel.cost("rdp", alpha) * (1 + 1e-9)
    spread = np.full(10_000, 0.01)  # of length one
    assert 10_000 * divergence(spread[0] / 1.3, 2.0) == pytest.approx(
        2.0 * channel.cost("zcdp"), rel=0.02
    )


def test_it_is_cheaper_than_the_same_noise_in_the_l1_norm():
    # The nearly right alternative, pure DP with the L2 norm, would be false: n equal shifts lose
    # sqrt(n) times as much.
    channel = LaplaceVector(1.0)
    assert channel.cost("pure") == math.inf
    assert channel.cost("gdp") == math.inf
    assert channel.cost("zcdp") == Laplace(1.0).cost("zcdp") == 0.5


@pytest.mark.parametrize("budget", [ZCDP(0.3), ApproxDP(1.0, 1e-6)], ids=str)
def test_calibrated_noise_spends_the_budget(budget):
    channel = LaplaceVector.calibrated(budget)
    assert channel.cost("zcdp") == pytest.approx(budget.rho)


@pytest.mark.parametrize("budget", [PureDP(1.0), RDP(2.0, 1.0)], ids=str)
def test_other_budgets_are_refused(budget):
    with pytest.raises(
        ArgumentError, match=r"^budget must be ZCDP or ApproxDP for Laplace vector noise"
    ):
        LaplaceVector.calibrated(budget)


def test_published_noise_is_enough_wherever_it_is_allowed():
    for delta in (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.3):
        limit = 6 * (1 - math.sqrt(2 / 3)) * -math.log(delta)
        for epsilon in np.geomspace(1e-3, limit, 25):
            budget = ApproxDP(float(epsilon), delta)
            channel = LaplaceVector.calibrated(budget, calibration="paper")
            assert channel.multiplier == pytest.approx(3 * math.sqrt(math.log(1 / delta)) / epsilon)
            assert accounting.zcdp_delta(channel.cost("zcdp"), budget.epsilon) <= delta
            assert channel.multiplier >= LaplaceVector.calibrated(budget).multiplier


@pytest.mark.parametrize(
    ("budget", "cost"),
    [(ZCDP(0.5), 0.5), (RDP(4.0, 2.0), 2.0), (ApproxDP(3.0, 1e-5), 0.5)],
    ids=["zCDP", "RDP", "approximate"],
)
def test_the_ledger_charges_it(budget, cost):
    arrays = empty_arrays()
    write(arrays, 0, 9, WHOLE, VECTOR, 2.5, 1.0, 4)
    meter = Meter.of(budget, gaussian=False)
    ledger = Ledger(arrays, meter)
    assert ledger.total() == pytest.approx(cost)
    assert meter.cost(VECTOR, 1.0) == pytest.approx(cost)
    write(arrays, 5, 9, WHOLE, VECTOR, 2.5, 1.0, 4)
    assert Ledger(arrays, meter).total() == pytest.approx(2 * cost)
    # it has no Gaussian-DP curve
    assert Ledger(arrays, Meter.of(ApproxDP(3.0, 1e-5))).total() == math.inf


def test_the_event_is_one_that_accountants_of_rdp_take():
    arrays = empty_arrays()
    write(arrays, 0, 9, WHOLE, VECTOR, 2.5, 2.0, 4)
    event = Ledger(arrays, Meter.of(ZCDP(1.0))).to_dp_event()
    accountant = rdp.RdpAccountant().compose(event)
    assert accountant.get_epsilon(1e-6) == pytest.approx(
        accounting.zcdp_epsilon(0.125, 1e-6), rel=2e-3
    )
    expected = rdp.RdpAccountant().compose(dp_accounting.ZCDpEvent(0.125))
    assert accountant.get_epsilon(1e-6) == expected.get_epsilon(1e-6)


def test_every_coordinate_has_independent_laplace_noise():
    noise = LaplaceVector(2.0).release(np.zeros(20_000), 1.5, np.random.default_rng(1))
    assert kstest(noise, laplace(scale=3.0).cdf).pvalue > ALPHA
    assert kstest(noise, laplace(scale=2.8).cdf).pvalue < ALPHA
    assert abs(np.corrcoef(noise[::2], noise[1::2])[0, 1]) < 4 / math.sqrt(10_000)
