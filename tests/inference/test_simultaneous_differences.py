"""Differences that hold together: their ends by definition, and how often any of them misses."""

import math

import numpy as np
import pytest
import slow_evidence as slow

import dpbandits as dpb
from dpbandits import ArgumentError, PureDP
from dpbandits.algorithms import MergedIMED
from dpbandits.inference import Batches, Differences, Noise, ReleasedSums
from dpbandits.inference.mixture import least_sum
from dpbandits.papers.others import FixedLinUCB

MEANS = (0.2, 0.5, 0.6)


def served(policy, rounds, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = policy.pull()
        policy.update(float(rng.random() < MEANS[decision.arm]), decision)
    return policy


@pytest.fixture(scope="module")
def policy():
    return served(MergedIMED(3, budget=PureDP(2.0), arm_names=["old", "a", "b"], seed=1), 600)


def test_the_error_is_divided_among_differences(policy):
    found = policy.intervals(0.9, control="old")
    assert list(found.labels) == ["a - old", "b - old"]
    for i, arm in enumerate(["a", "b"]):
        alone = policy.intervals(0.95, (arm, "old"))
        ends = (alone.low[0], alone.high[0], alone.means[0], alone.rounds[0])
        assert (found.low[i], found.high[i], found.means[i], found.rounds[i]) == ends


def test_ends_are_where_the_evidence_reaches_its_share(policy):
    """By the definition of the evidence, with a half of the error for each of two differences."""
    found = policy.intervals(0.9, control=0)
    batches = [slow.Batch(*map(int, row[:2]), *row[2:]) for row in policy.released_sums.to_numpy()]
    batches = [one._replace(known=int(one.known)) for one in batches]
    level = math.log(2 / (0.1 / 2))
    for i, arm in enumerate((1, 2)):
        below = slow.difference_below(batches, arm, 0, found.low[i], policy.noise_scale, True)
        above = slow.difference_below(batches, 0, arm, -found.high[i], policy.noise_scale, True)
        # The definition is minimised on a grid, from above; with all of the error it is at 3.0.
        assert level - 0.01 < min(below, above) <= max(below, above) < level + 0.15


def test_the_closed_form_divides_the_error_too():
    policy = served(MergedIMED(3, budget=None, seed=1), 300)
    both = policy.intervals(0.9, control=2, method="closed")
    alone = policy.intervals(0.95, (1, 2), method="closed")
    assert (both.low[1], both.high[1]) == (alone.low[0], alone.high[0])


def test_a_table_and_a_place_take_a_control(policy, tmp_path):
    given = {"noise": "Laplace", "scale": policy.noise_scale}
    table = dpb.intervals(policy.released_sums, control=0, **given)
    np.testing.assert_allclose(table.low, policy.intervals(control=0).low, atol=1e-6)
    path = policy.save(tmp_path / "trial.dpb")
    policy.close()
    seen = dpb.intervals(path, control="b")
    assert list(seen.labels) == ["old - b", "a - b"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"control": 3}, "control must be"),
        ({"control": "old"}, "control must be a number"),
        ({"control": 0, "difference": (1, 0)}, "difference must not be given with a control"),
    ],
)
def test_arguments_are_checked(given, message):
    with pytest.raises(ArgumentError, match=message):
        MergedIMED(3, budget=None).intervals(**given)


def test_one_arm_has_no_control():
    with pytest.raises(ArgumentError, match="None for a policy with one arm"):
        MergedIMED(1, budget=None).intervals(control=0)


# How often they miss ----------------------------------------------------------------------------


def missed(runs, arms, a, seed):
    """How many runs of equal arms ever exclude that two of them are equal: of the differences of
    the leader to others, with the error divided and with all of it; and of those to arm 0.
    """
    rng, noise, counts = np.random.default_rng(seed), Noise(0.0, is_laplace=False), np.zeros(3)
    divided = [Differences.of_leader(0, arms).among, 1, Differences.from_control(0, arms).among]
    levels = np.log(2.0 * np.array(divided) / a)
    for _ in range(runs):
        total, wrong = np.zeros(arms), np.zeros(3, bool)
        for look in range(1, 9):
            total += rng.binomial(40, 0.5, arms)
            # Of arms with equally many people, the extreme ones have the largest differences.
            chosen = np.array([int(total.argmax()), int(total.argmin()), 0])
            rounds = np.full(3, 40.0 * look)
            batches = Batches(np.arange(3), rounds, total[chosen], np.arange(3))
            cells = tuple(batches.cells(b, noise) for b in range(3))
            high, low, control = ReleasedSums(cells, noise).evidence
            widest = least_sum(high, low)
            against = max(least_sum(high, control), least_sum(control, low))
            wrong |= np.array([widest, widest, against]) >= levels
        counts += wrong
    return counts


def test_none_of_them_misses_more_often_than_promised():
    """Of 40 equal arms at 80 %, with eight looks.  Without division the leader misses too often."""
    leader, picked, control = missed(runs=100, arms=40, a=0.2, seed=1)
    # More than 37 of 100 happen with a probability below 1e-4 where 20 % are allowed.
    assert max(leader, control) <= 37 < picked


# Arms with features that never change -----------------------------------------------------------


def test_arms_with_fixed_features_have_intervals_of_their_own_means():
    policy = FixedLinUCB([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    rng, batches = np.random.default_rng(1), []
    for i in range(150):
        decision = policy.pull()
        reward = float(rng.random() < MEANS[decision.arm])
        policy.update(reward, decision)
        batches.append(slow.Batch(decision.arm, 1, reward, i))
    found = policy.intervals()
    assert ((found.low <= MEANS) & (np.array(MEANS) <= found.high)).all()
    level = 2 * 3 / 0.05
    for arm in range(3):
        if found.low[arm] > 0.0:
            at = slow.evidence(batches, arm, found.low[arm], 0.0, False, up=True)
            assert at == pytest.approx(level, rel=1e-3)
        if found.high[arm] < 1.0:
            at = slow.evidence(batches, arm, found.high[arm], 0.0, False, up=False)
            assert at == pytest.approx(level, rel=1e-3)
    # The model's means are other ones, of which nothing is proved.
    assert not np.allclose(policy.estimates.means, found.means)
