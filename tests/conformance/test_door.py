"""Door: what is wrong is refused with an error that names it, and everything is as before."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from suite import CASES, FIRST_OF_CLASS, Case, over, play, snapshot

from dpbandits import RDP, ZCDP, ApproxDP, ArgumentError, PureDP, UpdateError
from dpbandits.policies.options import SHARED

BAD_OPTIONS: list[tuple[str, Any]] = [
    *[("n_arms", value) for value in (0, -1, 1.5, True, "3", None, math.nan, 10**9, np.array([3]))],
    *[
        ("arms", value)
        for value in (
            3,
            None,
            "ab",
            [],
            [1.0, 2.0],
            [[]],
            [[[1.0]]],
            [[1.0], [1.0, 2.0]],
            [["a"]],
            [[1j]],
            [[math.nan]],
            [[1e101]],
        )
    ],
    *[
        ("reward_range", value)
        for value in ((1, 0), (0, 0), (0, math.inf), (math.nan, 1), (0,), (0, 1, 2), 3, None, "ab", (-1e308, 1e308))
    ],
    *[("patience", value) for value in (-1, 1.5, True, math.inf, "0")],
    *[("default_reward", value) for value in (-0.1, 1.1, math.nan, math.inf, "0", True)],
    *[("seed", value) for value in (-1, 1.5, True, "7")],
    *[("calibration", value) for value in ("tight", None, 1)],
    *[("clip", value) for value in (1, 0, None, "yes")],
    *[("choices_public", value) for value in (1, None)],
    *[("noise", value) for value in ("none", None, 0)],
]
MAY_BE_ZERO = {"c"}


def takes(case: Case, name: str) -> bool:
    return name in SHARED or name in inspect.signature(case.cls).parameters


@pytest.mark.parametrize(
    ("case", "name", "value"),
    [(case, name, value) for case in FIRST_OF_CLASS for name, value in BAD_OPTIONS if takes(case, name)],
    ids=lambda v: str(v)[:20],
)
def test_a_bad_argument_is_named_with_its_value(case: Case, name: str, value: Any):
    with pytest.raises(ArgumentError, match=f"^{name}") as caught:
        case.make(**{name: value})
    assert "got" in str(caught.value)


def test_every_shared_option_is_tried():
    # The grid concerns secure noise only, and is tested with it.
    assert {name for name, _ in BAD_OPTIONS} >= set(SHARED) - {"grid"}
    assert all(takes(case, "n_arms") != takes(case, "arms") for case in FIRST_OF_CLASS)


@over(FIRST_OF_CLASS)
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "big", None, True, [1.0]], ids=str)
def test_every_number_of_its_own_is_checked(case: Case, value: Any):
    defaults = {name: p.default for name, p in inspect.signature(case.cls).parameters.items()}
    for name in set(case.make()._config) - set(SHARED) - {"n_arms", "budget"}:
        flag = isinstance(defaults[name], bool)
        allowed = (flag and isinstance(value, bool)) or value is defaults[name] or (name in MAY_BE_ZERO and value == 0)
        if not allowed:
            with pytest.raises(ArgumentError, match=f"^{name}"):
                case.make(**{name: value})


@over(FIRST_OF_CLASS)
def test_an_unknown_argument_is_a_type_error(case: Case):
    with pytest.raises(TypeError, match="epsilon_budget"):
        case.make(epsilon_budget=1.0)


@over(FIRST_OF_CLASS)
@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-5), RDP(4.0, 1.0), 1.0, "1", PureDP], ids=str)
def test_only_budgets_that_fit_are_taken(case: Case, budget: Any):
    if type(budget) in case.cls.card.channels:
        assert case.under(budget).make().budget == budget
    else:
        with pytest.raises(ArgumentError, match=r"^budget"):
            case.under(budget).make()


@over(CASES)
@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, None, "1", b"1", [1.0, 2.0], 1j, np.zeros(2), {}], ids=str)
def test_a_bad_reward_changes_nothing(case: Case, reward: Any):
    policy = case.make(seed=2)
    play(policy, lambda d: 0.5, until=1)
    decision = policy.pull()
    before = snapshot(policy)
    for arguments in ((reward,), (reward, decision)):
        with pytest.raises(ArgumentError, match=r"^reward must be a finite number"):
            policy.update(*arguments)
    assert snapshot(policy) == before
    policy.update(0.5, decision)
    assert snapshot(policy) != before


@over(FIRST_OF_CLASS)
def test_bad_decisions_and_arms_change_nothing(case: Case):
    policy, other = case.make(seed=2), case.make(seed=2)
    before = snapshot(policy)
    with pytest.raises(UpdateError, match="needs a pull"):
        policy.update(1.0)
    with pytest.raises(UpdateError, match="needs a pull"):
        policy.expire()
    assert snapshot(policy) == before
    decision, foreign = policy.pull(), other.pull()
    before = snapshot(policy)
    for stranger in (foreign, 0, "0", (0, 1)):
        with pytest.raises(UpdateError, match="this policy's pull"):
            policy.update(1.0, stranger)  # type: ignore[arg-type]
    for arm in (-1, policy.n_arms, 0.5, True, "0", math.nan):
        with pytest.raises(ArgumentError, match=r"^arm must be"):
            policy.update(1.0, decision, arm=arm)  # type: ignore[arg-type]
    assert snapshot(policy) == before
    assert policy.update(1.0, decision) is True


@over(CASES)
def test_rewards_outside_the_range_are_clipped(case: Case):
    def statistic(reward: float) -> bytes:
        policy = case.make(seed=2, reward_range=(-1.0, 2.0))
        play(policy, lambda d: reward, until=1)
        return policy._wall.release.tobytes()

    # A clipped reward is the end of the range, through the same noise.
    assert statistic(1e9) == statistic(2.0)
    assert statistic(-1e9) == statistic(-1.0)
