"""What is shown of privacy is rounded outward: losses up, noise down, and no total past its limit."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbandits import RDP, ZCDP, ApproxDP, PureDP
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.privacy.channels import GAUSSIAN, LAPLACE
from dpbandits.privacy.ledger import WHOLE, Ledger, Meter, empty_arrays, write
from dpbandits.validation import downward, upward

numbers = st.floats(1e-300, 1e300)
digits = st.integers(1, 12)
SUMS = Decimal("1e-12")  # relative, of rounded sums


def exactly(text: str) -> Decimal:
    return Decimal(text)


@given(numbers, digits)
def test_bounds_stay_bounds_in_as_many_digits(number, places):
    true, unit = Decimal(number), Decimal(10) ** (math.floor(math.log10(number)) - places + 1)
    high, low = (exactly(f"{one(number, places):.{places}g}") for one in (upward, downward))
    assert float(high) == upward(number, places)  # the text reads back
    assert float(low) == downward(number, places)
    assert low * (1 - SUMS) <= true <= high * (1 + SUMS)
    assert high - low <= unit * Decimal("1.0001") + true * SUMS * 2  # and no farther than needed


@pytest.mark.parametrize("number", [0.3, 0.1, 1414e-4, 7.0, 1e-6, 123456.0])
def test_what_sums_are_off_by_is_no_loss(number):
    for near in (number, math.nextafter(number, 0.0), math.nextafter(number, math.inf)):
        assert upward(near) == downward(near) == number
    assert upward(number * (1 + 1e-11)) > number
    assert downward(number * (1 - 1e-11)) < number


@pytest.mark.parametrize("special", [0.0, math.inf, -math.inf])
def test_what_has_no_digits_stays(special):
    assert upward(special) == downward(special) == special


budgets = st.one_of(
    st.floats(1e-4, 20.0).map(PureDP),
    st.floats(1e-4, 20.0).map(ZCDP),
    st.floats(1e-4, 20.0).map(lambda epsilon: RDP(4.0, epsilon)),
    st.floats(0.01, 10.0).map(lambda epsilon: ApproxDP(epsilon, 1e-6)),
)


@given(budgets, st.floats(1e-6, 1.5))
def test_spent_is_at_least_what_was_lost_and_within_what_was_allowed(budget, share):
    meter = Meter.of(budget)
    total = share * meter.limit
    for shown in (meter.shown(total), meter.describe(total)):
        if isinstance(shown, float):
            true, limit = total, meter.limit
        else:
            (*_, true), (*_, limit), (*_, shown) = (
                (getattr(one, "rho", None) or one.epsilon,)
                for one in (exact(meter, total), budget, shown)
            )
        if share <= 1.0:
            assert shown <= limit
        assert shown >= min(true, limit) * (1 - 1e-9) if share <= 1 else shown >= true * (1 - 1e-9)
        assert shown <= true * (1 + 2e-5)


def exact(meter: Meter, total: float):
    """A total as a budget with all its digits, by the definitions."""
    match meter.budget:
        case PureDP():
            return PureDP(total)
        case ZCDP():
            return ZCDP(total)
        case RDP(alpha):
            return RDP(alpha, total)
    return ZCDP(total / 2).to_approx(1e-6, gaussian=True)


@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.3), RDP(8.0, 0.7), ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("parts", [3, 7, 10])
def test_a_budget_spent_in_parts_is_spent(budget, parts):
    """Sums of parts are off by rounding, and nobody reads of it."""
    meter, arrays = Meter.of(budget), empty_arrays()
    family = LAPLACE if isinstance(budget, PureDP) else GAUSSIAN
    whole = {"pure": 1.0, "zcdp": 0.5, "rdp": 4.0, "gdp": 1.0}[meter.currency]
    cost = meter.limit / parts
    multiplier = whole / cost if family == LAPLACE else math.sqrt(whole / cost)
    ledger = Ledger(arrays, meter)
    for _ in range(parts):
        write(arrays, 0, 9, WHOLE, family, 1.0, multiplier, 1)
        assert ledger.shown_total() <= meter.limit
    assert ledger.spent() == budget
    assert ledger.shown_total() == meter.limit
    assert repr(ledger).endswith(f"spent {budget}>")


def test_three_tenths_are_written_as_such():
    arrays, meter = empty_arrays(), Meter.of(ZCDP(1.0))
    for _ in range(3):
        write(arrays, 0, 9, WHOLE, GAUSSIAN, 1.0, math.sqrt(5.0), 1)
    ledger = Ledger(arrays, meter)
    assert repr(ledger.spent()) == "ZCDP(rho=0.3)"
    assert ledger.table()[1][0][4:] == ["2.23606", "0.1"]  # noise downward: the root of 5 is more


def test_derived_budgets_are_shown_in_six_digits():
    policy = AdaCUCB(3, budget=ApproxDP(10, 0.1), calibration="paper", noise="secure")
    holds = policy.guarantee.holds
    shown = float(holds.shown().split(", ")[1].removesuffix(")-DP"))
    assert holds.delta <= shown < holds.delta + 1e-6
    assert f"with {holds.shown()} from " in str(policy.guarantee)
    assert str(holds.delta) not in str(policy.guarantee)
