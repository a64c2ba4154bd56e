"""The table of bounds, and what a policy is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbandits import ZCDP, AdaCUCB, ArgumentError
from dpbandits.environments import Bernoulli
from dpbandits.theory import BOUNDS, bound, promises
from dpbandits.theory.concentrated import adac_ucb


def test_theorem_10_by_hand():
    log = math.log(1000)
    by_hand = 8 * 4 * log / 0.5 + 8 * math.sqrt(4 * log / 0.1) + 2 * 4 / (4 - 3)
    assert adac_ucb(1000, [0.5, 0.0], 0.1, 4.0) == pytest.approx(by_hand)
    assert adac_ucb(np.array([1000, 1000]), [0.5], 0.1, 4.0) == pytest.approx([by_hand] * 2)
    assert adac_ucb(1000, [0.5], 0.1, 3.0) == math.inf


def test_a_policy_reads_its_own_parameters():
    policy = AdaCUCB(2, budget=ZCDP(0.1), beta=4.0, reward_range=(-1.0, 3.0))
    world = Bernoulli([0.9, 0.5])
    one = next(p for p in promises(policy, world, [1000, 2000]) if p.bound.name == "adac_ucb")
    assert one.bound is BOUNDS["adac_ucb"]
    assert one.values == pytest.approx(4 * adac_ucb(np.array([1000, 2000]), [0.1], 0.1, 4.0))


def test_a_name_is_taken_once_and_a_gap_is_told():
    def adac_ucb(horizon):
        return horizon

    with pytest.raises(ArgumentError, match="already"):
        bound("upper", source="nobody")(adac_ucb)
    with pytest.raises(ArgumentError, match="because"):
        bound("upper", source="nobody", holds="void")(lambda horizon: horizon)


@pytest.mark.parametrize("one", BOUNDS.values(), ids=lambda one: one.name)
def test_every_bound_is_documented(one):
    assert one.summary
    assert one.source
    assert one.kind in ("upper", "lower")
