"""One truth: the loop, ``pull``/``update`` by hand and plain Python play alike; sums of rewards are
the sums of single ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp
from streams import both, looped, table
from suite import CASES, Case, over

import dpbandits
from dpbandits.environments import Bernoulli
from dpbandits.policies.protocol import one_round
from dpbandits.simulation import simulate

ALPHA = 1e-4
HERE = Path(__file__).parent


@cache
def without_numba() -> dict[str, list[list[int]]]:
    """What ``streams.py`` plays where nothing is compiled."""
    package = Path(dpbandits.__file__).parent.parent
    environment = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join([str(package), str(HERE)]),
    }
    run = subprocess.run(
        [sys.executable, HERE / "streams.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


@over(CASES)
def test_the_loop_and_the_hand_play_the_same_arms(case: Case):
    looping, hand = both(case)
    assert looping == hand
    assert len(set(hand)) > 1


@over(CASES)
def test_plain_python_plays_the_same_arms(case: Case):
    looping, hand = both(case)
    plain_looping, plain_hand = without_numba()[str(case)]
    assert len(plain_hand) >= 600
    assert plain_looping == looping[: len(plain_looping)]
    assert plain_hand == hand[: len(plain_hand)]


@over([case for case in CASES if case.cls.kernels.hold_rounds is not one_round])
def test_on_a_table_single_rounds_and_holds_are_the_same(case: Case):
    world = table(case.make())
    assert looped(case.make(), world) == looped(case.make(), world, round_by_round=True)


@over([case for case in CASES if case.cls.kernels.hold_rounds is not one_round])
def test_sums_of_rewards_have_the_law_of_single_ones(case: Case):
    world = Bernoulli([0.8, 0.5, 0.2])
    options = {"horizon": 4000, "runs": 1000, "record": [4000]}
    sums = simulate(case.make(), world, seed=1, **options).runs
    singles = simulate(case.make(), world, seed=2, round_by_round=True, **options).runs
    for column in ("regret", "reward"):
        assert ks_2samp(sums[column].round(6), singles[column].round(6)).pvalue > ALPHA
    assert sums["releases"].mean() == pytest.approx(singles["releases"].mean(), rel=0.1)


def test_the_comparison_of_laws_has_power():
    # A sum that misses the first of its rounds loses 2 % of the reward: the size of error that the
    # test above must see.
    options = {"horizon": 4000, "runs": 1000, "record": [4000]}
    policy = dpbandits.AdaCUCB(3, budget=dpbandits.ZCDP(0.5))
    right = simulate(policy, Bernoulli([0.8, 0.5, 0.2]), seed=1, **options).runs["reward"]
    wrong = simulate(
        policy, Bernoulli([0.784, 0.49, 0.196]), seed=2, round_by_round=True, **options
    ).runs["reward"]
    assert ks_2samp(right, wrong).pvalue < ALPHA
    assert np.ptp(right) > 0
