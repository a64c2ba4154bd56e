"""Budgets: what they refuse, how they convert, how they read."""

import json
import math
import pickle

import pytest
from dp_accounting import rdp

from dpbandits.errors import ArgumentError
from dpbandits.privacy import RDP, ZCDP, ApproxDP, Budget, PureDP, accounting

SAMPLES = [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.5), RDP(4.0, 1.0)]
BAD = [0, -1.0, math.nan, math.inf, -math.inf, True, "1", None, 1j, [1.0], 10**400]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    ("build", "name"),
    [
        (PureDP, "epsilon"),
        (ZCDP, "rho"),
        (lambda x: ApproxDP(x, 1e-6), "epsilon"),
        (lambda x: ApproxDP(1.0, x), "delta"),
        (lambda x: RDP(x, 1.0), "alpha"),
        (lambda x: RDP(2.0, x), "epsilon"),
        (lambda x: ZCDP(1.0).to_approx(x), "delta"),
        (lambda x: PureDP(1.0).to_approx(x), "delta"),
        (lambda x: RDP(2.0, 1.0).to_approx(x), "delta"),
    ],
)
def test_arguments_outside_their_range_are_refused_by_name(build, name, bad):
    with pytest.raises(ArgumentError, match=rf"^{name} must be a number in \(.*\), got "):
        build(bad)


@pytest.mark.parametrize(
    "build", [lambda: ApproxDP(1.0, 1.0), lambda: RDP(1.0, 1.0), lambda: PureDP(1e200).to_zcdp()]
)
def test_ends_of_open_ranges_are_refused(build):
    with pytest.raises(ArgumentError):
        build()


@pytest.mark.parametrize("budget", SAMPLES)
def test_budgets_are_values(budget):
    same = eval(repr(budget))
    assert same == budget
    assert hash(same) == hash(budget)
    assert pickle.loads(pickle.dumps(budget)) == budget
    with pytest.raises(AttributeError):
        budget.epsilon = 2.0


@pytest.mark.parametrize("budget", SAMPLES)
def test_budgets_come_back_from_files(budget):
    written = json.loads(json.dumps(budget.to_dict()))
    assert written["notion"] == type(budget).__name__
    assert Budget.from_dict(written) == budget


@pytest.mark.parametrize(
    "data",
    [{}, {"notion": "TrustMe"}, {"notion": "ZCDP"}, {"notion": "ZCDP", "epsilon": 1.0}, {"rho": 1}],
)
def test_what_is_no_budget_is_refused(data):
    with pytest.raises(ArgumentError, match=r"^data must be a budget of PureDP, .* got "):
        Budget.from_dict(data)


def test_budgets_of_different_notions_or_numbers_differ():
    assert len({*SAMPLES, PureDP(2.0), ZCDP(1.0), ApproxDP(1.0, 1e-5), RDP(3.0, 1.0)}) == 8
    assert PureDP(1) == PureDP(1.0)
    assert type(PureDP(1).epsilon) is float


def test_budgets_read_as_the_field_writes_them():
    assert [str(b) for b in SAMPLES] == ["1-DP", "(1, 1e-06)-DP", "0.5-zCDP", "(4, 1)-RDP"]


def test_conversions():
    assert PureDP(2.0).to_zcdp() == ZCDP(2.0)
    assert PureDP(2.0).to_approx(1e-6) == ApproxDP(2.0, 1e-6)
    assert ZCDP(0.5).to_rdp(4.0) == RDP(4.0, 2.0)
    assert ApproxDP(1.0, 1e-6).mu == accounting.gaussian_mu(1.0, 1e-6)
    assert ApproxDP(1.0, 1e-6).rho == pytest.approx(0.024356, abs=1e-6)


@pytest.mark.parametrize("rho", [1e-3, 0.1, 2.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_zcdp_converts_as_well_as_the_best_renyi_order_and_gaussian_noise_better(rho, delta):
    best = min(
        ZCDP(rho).to_rdp(1 + order).to_approx(delta).epsilon
        for order in [10 ** (k / 50) for k in range(-150, 250)]
    )
    bound = ZCDP(rho).to_approx(delta)
    assert best * (1 - 1e-3) <= bound.epsilon <= best
    assert ZCDP(rho).to_approx(delta, gaussian=True).epsilon < bound.epsilon


@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.01])
def test_renyi_conversion_agrees_with_dp_accounting(alpha, epsilon, delta):
    assert RDP(alpha, epsilon).to_approx(delta).epsilon == pytest.approx(
        rdp.compute_epsilon([alpha], [epsilon], delta)[0], rel=1e-9
    )


def test_a_loss_that_rounds_to_nothing_is_still_a_budget():
    assert ZCDP(1e-12).to_approx(0.5).epsilon > 0.0
    assert RDP(100.0, 1e-9).to_approx(0.9).epsilon > 0.0
