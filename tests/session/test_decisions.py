"""A decision is an index and equals its arm; whatever else an arm could do refuses, and says so."""

from __future__ import annotations

import copy
import json
import math
import operator
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpbandits import ArgumentError
from dpbandits.algorithms import MergedIMED
from dpbandits.session import Decision

NAMES = ["control", "blue", "green"]


def decision_of(arm, number=7, life="ab" * 16):
    return Decision(arm, 1.0, number, True, life, NAMES[arm])


@pytest.mark.parametrize("arm", [0, 1, 2])
def test_a_decision_equals_its_arm_and_no_other(arm):
    one = decision_of(arm)
    for other in range(3):
        kinds = (int, float, np.int64, np.int8, np.uint8, np.float32, Decimal, Fraction)
        for number in (kind(other) for kind in kinds):
            assert (one == number) is (number == one) is (arm == other) or isinstance(
                number, np.generic
            )
            assert bool(one == number) == bool(number == one) == (arm == other)
            assert bool(one != number) == (arm != other)
        assert (one in (other,)) == (one in [other]) == (arm == other)
    assert one in range(3)
    assert list(range(3)).index(one) == arm
    assert (np.arange(3) == one).tolist() == (one == np.arange(3)).tolist()
    assert (np.arange(3) == one).argmax() == (pd.Series([0, 1, 2]) == one).argmax() == arm
    assert np.isin(one, [arm])
    assert one != math.nan
    assert one is not None
    match one:
        case 0:
            assert arm == 0
        case Decision(arm=1, number=7):
            assert arm == 1
        case _:
            assert arm == 2
    if arm < 2:
        assert (one == bool(arm)) is True


@pytest.mark.parametrize("arm", [0, 1, 2])
def test_a_decision_is_an_index(arm):
    one, table = decision_of(arm), np.arange(6).reshape(3, 2)
    assert NAMES[one] == tuple(NAMES)[one] == np.array(NAMES)[one] == NAMES[arm]
    assert table[one].tolist() == table[arm].tolist() == np.take(table, one, axis=0).tolist()
    assert table[one, 1] == table[arm, 1]
    table[one] += 10
    assert table[arm].tolist() == [10 + 2 * arm, 11 + 2 * arm]
    assert range(3)[one] == int(one) == operator.index(one) == arm
    assert np.array([one], dtype=int).tolist() == [arm]
    assert (hex(one), f"{one}") == (hex(arm), str(one))


REFUSED = {
    "a key of a dictionary": lambda one: {0: "a", 1: "b", 2: "c"}.get(one),
    "a key to set": lambda one: {}.__setitem__(one, 1),
    "a member of a set": lambda one: {one},
    "a hash": hash,
    "a condition": lambda one: 1 if one else 2,
    "no condition": operator.not_,
    "a float": float,
    "a complex number": complex,
    "less": lambda one: one < 1,
    "more": lambda one: one >= 1,
    "sorting": lambda one: sorted([one, decision_of(0, 8)]),
    "the least": lambda one: min(one, 1),
    "a sum": lambda one: one + 1,
    "a sum of NumPy": lambda one: np.arange(3) + one,
    "a difference": lambda one: 1 - one,
    "a product": lambda one: 2 * one,
    "a quotient": lambda one: one // 2,
    "a rest": lambda one: divmod(one, 2),
    "a power": lambda one: one**2,
    "bits": lambda one: one & 1,
    "a sign": lambda one: -one,
    "rounding": round,
    "a format": lambda one: f"{one:03d}",
    "another decision": lambda one: one == decision_of(0, 8),
    "another life's": lambda one: one != decision_of(0, 7, "cd" * 16),
    "a list of others": lambda one: one in [decision_of(0, 8)],
    "a name": lambda one: one == "control",
    "no name": lambda one: one in ("what", "ever"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_else_an_arm_could_do_is_refused_with_what_to_use(name):
    for arm in (0, 1):  # whether there is an error does not depend on the arm
        with pytest.raises(TypeError, match=r"decision.*\.arm\b"):
            REFUSED[name](decision_of(arm))


@pytest.mark.parametrize(
    "look",
    [
        lambda one: pd.DataFrame({"x": [1, 2, 3]}).iloc[one],
        lambda one: pd.DataFrame({"x": [1, 2, 3]}).loc[one],
        lambda one: pd.DataFrame({"x": [1, 2, 3]}).loc[one, "x"],
        lambda one: pd.Series([1, 2, 3])[one],
        lambda one: pd.Series([1, 2, 3]).iloc[one],
        json.dumps,
        lambda one: np.array([one], dtype=float),
        list,
    ],
)
def test_other_libraries_refuse_it_in_their_own_words(look):
    """None of them takes it for something else."""
    with pytest.raises((TypeError, KeyError, ValueError)):
        look(decision_of(1))


def test_a_copy_is_the_same_decision_and_the_original_stays_with_its_policy():
    policy = MergedIMED(3, budget=None, arm_names=NAMES)
    one = policy.pull()
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one
        assert one in [other]
    assert policy.update(1.0, one)


def test_a_decision_is_no_reward():
    policy = MergedIMED(3, budget=None)
    decision = policy.pull()
    with pytest.raises(ArgumentError, match="reward must be a number"):
        policy.update(decision)
    assert policy.diagnostics.pending == 1


def test_pending_decisions_are_kept_by_number_or_token():
    policy = MergedIMED(3, budget=None, answers_within=None)
    waiting = [policy.pull() for _ in range(4)]
    by_number = {one.number: one for one in waiting}
    by_token = {one.token: one for one in waiting}
    assert len(by_number) == len(by_token) == 4
