"""One truth: the loop, ``pull``/``update`` by hand and plain Python play alike; sums of rewards are
the sums of single ones.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp
from suite import BY_FAMILY, FIRST_OF_CLASS, OF_KINDS, Case, over

import dpbandits
from dpbandits.environments import Bernoulli
from dpbandits.protocol import one_round
from dpbandits.simulation import simulate
from dpbandits.testing.playing import loop_and_hand_play_alike, propensities_are_frequencies
from dpbandits.testing.streams import ROUNDS, SEED, table

pytestmark = pytest.mark.compiled

ALPHA = 1e-4
HOLDING = [case for case in BY_FAMILY if case.cls.kernels.hold_rounds is not one_round]
# Noise is drawn at releases, whatever was answered in how many draws: one kind is enough for laws.
LAWS = list({case.name: case for case in reversed(HOLDING)}.values())


@over(BY_FAMILY, short=OF_KINDS)
def test_loop_and_hand_play_the_same_arms_compiled_and_interpreted(case: Case):
    # Enough rounds for several releases of every kind.
    assert len(set(loop_and_hand_play_alike(case.make))) > 1


@over(FIRST_OF_CLASS, short=OF_KINDS)
def test_propensities_are_frequencies(case: Case):
    propensities_are_frequencies(case.make)


@over(HOLDING, short=OF_KINDS)
def test_on_a_table_single_rounds_and_holds_are_the_same(case: Case):
    policy = case.make()
    world, options = table(policy), {"horizon": ROUNDS, "seed": SEED}
    whole = simulate(policy, world, **options)
    single = simulate(policy, world, round_by_round=True, **options)
    assert whole.frame.equals(single.frame)
    assert whole.runs.equals(single.runs)


@over(LAWS, short=[])
def test_sums_of_rewards_have_the_law_of_single_ones(case: Case):
    world = Bernoulli([0.8, 0.5, 0.2])
    options = {"horizon": 4000, "runs": 400, "record": [4000]}
    sums = simulate(case.make(), world, seed=1, **options).runs
    singles = simulate(case.make(), world, seed=2, round_by_round=True, **options).runs
    for column in ("regret", "reward"):
        assert ks_2samp(sums[column].round(6), singles[column].round(6)).pvalue > ALPHA
    assert sums["releases"].mean() == pytest.approx(singles["releases"].mean(), rel=0.1)


def test_the_comparison_of_laws_has_power():
    # A sum that misses the first of its rounds loses 2 % of the reward: the size of error that the
    # test above must see.
    options = {"horizon": 4000, "runs": 400, "record": [4000]}
    policy = dpbandits.papers.concentrated.AdaCUCB(3, budget=dpbandits.ZCDP(0.5))
    right = simulate(policy, Bernoulli([0.8, 0.5, 0.2]), seed=1, **options).runs["reward"]
    wrong = simulate(
        policy, Bernoulli([0.784, 0.49, 0.196]), seed=2, round_by_round=True, **options
    ).runs["reward"]
    assert ks_2samp(right, wrong).pvalue < ALPHA
    assert np.ptp(right) > 0
