"""The paper's batches, against the regret bounds that they are to balance."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq

from dpbandits import ApproxDP, ArgumentError, PureDP
from dpbandits.shuffle import BitSum, GaussianReports, published_batch

T, D = 10**6, 7
BUDGETS = [ApproxDP(0.5, 1e-3), ApproxDP(1.0, 0.1)]


def private_term(size: float, epsilon: float, logs: float) -> float:
    """Of Theorems B.1 and C.1 without what both terms share, log T, and log(T / alpha)."""
    return logs * D**0.75 * T**0.75 / (epsilon**0.5 * size**0.25)


def amplification(delta: float) -> float:
    return (math.log(T / delta) * math.log(2 / delta)) ** 0.25


def balanced(logs: float, epsilon_of) -> float:
    """Where waiting, d B, costs as much as noise."""
    return brentq(lambda b: D * b - private_term(b, epsilon_of(b), logs), 1e-9, 1e12)


@pytest.mark.parametrize("budget", BUDGETS)
def test_utility_targeted_batches_balance_the_terms_of_the_theorems(budget):
    epsilon, delta = budget.epsilon, budget.delta
    shape = {"features": D, "people": T}
    bits = balanced(math.log(D**2 / delta) ** 0.5, lambda b: epsilon)
    assert published_batch(budget, **shape) == round(bits)
    reports = balanced(amplification(delta), lambda b: epsilon)
    assert published_batch(budget, protocol="reports", **shape) == round(reports)


@pytest.mark.parametrize("budget", BUDGETS)
def test_privacy_targeted_batches_do(budget):
    """With the level that the theorems have after the shuffler, of local level epsilon; for B.3
    with log(B / delta) of the theorem at B delta, log(1 / delta).
    """
    epsilon, delta = budget.epsilon, budget.delta
    shape = {"features": D, "people": T, "level": "local"}
    bits = balanced(math.log(D**2 / delta) ** 0.5, lambda b: epsilon / math.sqrt(b))
    assert published_batch(budget, **shape) == round(bits)
    logs = (math.log(1 / delta) * math.log(2 / delta)) ** 0.25
    reports = balanced(logs, lambda b: epsilon * math.sqrt(math.log(2 / delta) / b))
    assert published_batch(budget, protocol="reports", **shape) == round(reports)


@pytest.mark.parametrize("budget", BUDGETS)
def test_batches_of_returning_users_do_up_to_logarithms(budget):
    """Theorem E.2 leaves each of T / B batches epsilon sqrt(B / T), times logarithms."""
    epsilon, delta = budget.epsilon, budget.delta
    shape = {"features": D, "people": T, "returning": True}
    for protocol, log in (
        ("bits", math.log(T * D**2 / delta)),
        ("reports", math.log(T / delta)),
    ):
        size = balanced(log**0.75, lambda b: epsilon * math.sqrt(b / T))
        assert published_batch(budget, protocol=protocol, **shape) == round(size)


def test_batches_without_a_budget_and_at_the_ends():
    assert published_batch(None, features=D, people=T) == 3981  # T^(3/5)
    assert published_batch(None, features=D, people=T, returning=True) == 10**4  # T^(2/3)
    assert published_batch(ApproxDP(1e-6, 1e-9), features=1, people=50) == 50
    assert published_batch(ApproxDP(1e6, 0.9), features=1, people=1) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": PureDP(1.0)}, "^budget must be ApproxDP or None"),
        ({"features": 0}, "^features must be"),
        ({"people": 0.5}, "^people must be"),
        ({"protocol": "modular"}, "^protocol must be"),
        ({"level": "joint"}, "^level must be one of"),
        ({"returning": 1}, "^returning must be"),
        ({"returning": True, "level": "local"}, "^level must be 'shuffle' for returning"),
    ],
)
def test_bad_arguments_are_named(change, message):
    given = {"budget": ApproxDP(1.0, 0.1), "features": 5, "people": 100, **change}
    with pytest.raises(ArgumentError, match=message):
        published_batch(given.pop("budget"), **given)


@pytest.mark.long
def test_privacy_targeted_noise_is_that_of_the_corollaries_and_owes_nothing_to_the_batch():
    budget, features = ApproxDP(1.0, 1e-3), 5
    for batch in (1, 400):
        shape = {"batch": batch, "features": features, "level": "local"}
        reports = GaussianReports.published(budget, **shape)
        std = 4 * math.sqrt(2 * math.log(2.5 / 1e-3))
        assert reports.noise * reports.step == pytest.approx(std, rel=2e-3)
        bits = BitSum.published(budget, **shape)
        log = math.log(4 * 26 / 1e-3)
        assert (bits.levels, bits.noise) == (5, math.ceil(24e4 * 25 * log**2))
        for made in (reports, bits):
            assert made.delta_at(1.0, level="local") < 1e-3  # far below: 4.5 is not 16


@pytest.mark.parametrize("cls", [BitSum, GaussianReports])
def test_the_least_noise_for_messages_by_themselves(cls):
    shape = {"batch": 20, "dimension": 3, "bound": 1.0}
    made = cls.calibrated(ApproxDP(2.0, 1e-3), level="local", **shape)
    less = cls(**{**vars(made), "noise": int(made.noise * 0.97)})
    assert made.delta_at(2.0, level="local") <= 1e-3 < less.delta_at(2.0, level="local")
    assert made.epsilon_at(1e-3, level="local") == pytest.approx(2.0, rel=0.02)
    shuffled = made.epsilon_at(1e-3)  # of which P_Amp promises nothing more
    assert (shuffled < 0.5) == (cls is BitSum)
