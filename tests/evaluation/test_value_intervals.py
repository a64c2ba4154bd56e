"""Intervals: their formulas, their coverage, and what covers too little."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from dpbandits import evaluate
from dpbandits.evaluation import intervals

ALPHA = 0.05
pytestmark = pytest.mark.filterwarnings("ignore:The effective sample", "ignore:The mean weight")


def two_arms(n, seed, p=(0.7, 0.3), means=(0.3, 0.6)):
    rng = np.random.default_rng(seed)
    arms = rng.choice(2, n, p=p)
    rewards = (rng.random(n) < np.array(means)[arms]).astype(float)
    return {"arm": arms, "reward": rewards, "propensity": np.array(p)[arms]}


def terms_of(log, arm):
    w = (np.asarray(log["arm"]) == arm) / log["propensity"]
    return w, w * log["reward"]


def bernstein(terms, width, alpha=ALPHA):
    """Theorem 4 of Maurer & Pontil (2009), on both sides, for terms in an interval of a width."""
    n, level = terms.size, math.log(4 / alpha)
    reach = math.sqrt(2 * terms.var(ddof=1) * level / n) + 7 * width * level / (3 * (n - 1))
    return np.array([terms.mean() - reach, terms.mean() + reach])


def test_bernstein_is_the_bound_of_maurer_and_pontil():
    log = two_arms(2000, 1)
    w, z = terms_of(log, 1)
    found = evaluate(log, 1, estimator="IPS")
    assert (found.low, found.high) == pytest.approx(bernstein(z, w.max()), abs=1e-9)


def test_terms_of_an_episode_are_one():
    log = episodes_of(1, draws=1500, rounds=5)
    _, z = terms_of(log, 1)
    found = evaluate(log, 1, estimator="IPS", episode="draw")
    expected = bernstein(z.reshape(-1, 5).sum(axis=1), 5 * 2.0) / 5
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


def test_halves_that_are_fitted_to_each_other_have_intervals_of_their_own():
    log = two_arms(3000, 5)
    w, _ = terms_of(log, 1)
    expected = np.zeros(2)
    for fold in (0, 1):
        use, other = np.arange(3000) % 2 == fold, np.arange(3000) % 2 != fold
        q = np.array([log["reward"][other & (log["arm"] == a)].mean() for a in (0, 1)])
        terms = q[1] + w * (log["reward"] - q[log["arm"]])
        expected += bernstein(terms[use], 1 + 2 * w.max(), ALPHA / 2) / 2
    found = evaluate(log, 1, estimator="DR")
    clipped = np.clip(expected, 0.0, 1.0)  # of each half; here neither exceeds the range
    assert (found.low, found.high) == pytest.approx(clipped, abs=1e-9)


def test_blocks_of_episodes_are_one_sequence(monkeypatch):
    log = two_arms(400, 6)
    expected = evaluate(log, 1, interval="betting")
    monkeypatch.setattr(intervals, "_BLOCK", 7)
    assert evaluate(log, 1, interval="betting").to_dict() == expected.to_dict()


def test_bernstein_of_a_ratio_keeps_what_the_bound_does_not_reject():
    log = two_arms(2000, 2)
    w, z = terms_of(log, 1)
    n, level = z.size, math.log(4 / ALPHA)

    def rejects(v):
        x = z - v * w
        reach = math.sqrt(2 * x.var(ddof=1) * level / n) + 7 * w.max() * level / (3 * (n - 1))
        return abs(x.mean()) > reach

    found = evaluate(log, 1)
    for end, outward in ((found.low, -1e-6), (found.high, 1e-6)):
        assert rejects(end + outward)
        assert not rejects(end - outward)


@pytest.mark.parametrize("estimator", ["IPS", "SNIPS"])
def test_betting_keeps_what_no_capital_rejects(estimator):
    log = two_arms(400, 3)
    w, z = terms_of(log, 1)
    bound = w.max()
    stakes = [0.95 * 2 ** (-j / 2) for j in range(20)]

    def rejects(v):
        # The most that a round can lose: at the ends of the values, and of w and r.
        below, above = (1.0, bound) if estimator == "IPS" else (bound, bound)
        for sign, most in ((1, below), (-1, above)):
            capital = [1.0] * len(stakes)
            for w_i, z_i in zip(w, z, strict=True):
                x = z_i - v * (1.0 if estimator == "IPS" else w_i)
                capital = [
                    m * (1 + sign * s / most * x) for m, s in zip(capital, stakes, strict=True)
                ]
                if sum(capital) / len(stakes) >= 2 / ALPHA:
                    return True
        return False

    found = evaluate(log, 1, estimator=estimator, interval="betting")
    for end, outward in ((found.low, -1e-6), (found.high, 1e-6)):
        assert rejects(end + outward)
        assert not rejects(end - outward)


def test_the_bootstrap_is_about_the_normal_interval_of_a_long_log():
    log = two_arms(5000, 4)
    w, z = terms_of(log, 1)
    value = z.sum() / w.sum()
    reach = 1.96 * (z - value * w).std() / w.mean() / math.sqrt(w.size)
    found = evaluate(log, 1, interval="bootstrap")
    assert found.value == pytest.approx(value)
    assert found.low == pytest.approx(value - reach, abs=0.15 * reach)
    assert found.high == pytest.approx(value + reach, abs=0.15 * reach)


# Coverage ----------------------------------------------------------------------------------------


def episodes_of(seed, draws=40, rounds=20):
    rng = np.random.default_rng(seed)
    arms = np.repeat(rng.integers(0, 2, draws), rounds)
    rewards = (rng.random(arms.size) < np.array([0.2, 0.8])[arms]).astype(float)
    return {
        "arm": arms,
        "reward": rewards,
        "propensity": np.full(arms.size, 0.5),
        "draw": np.repeat(np.arange(draws), rounds),
    }


def most_misses(runs, share):
    """A number of misses that at most this share exceeds with probability 1e-4."""
    return binom.isf(1e-4, runs, share)


@pytest.mark.long
@pytest.mark.parametrize(
    ("interval", "share"), [("bernstein", ALPHA), ("betting", ALPHA), ("bootstrap", 0.1)]
)
def test_intervals_by_episode_cover_and_those_by_round_do_not(interval, share):
    runs = 100
    by_episode = by_round = 0
    for seed in range(runs):
        log = episodes_of(seed)
        given = {"estimator": "IPS", "interval": interval, "resamples": 200}
        right = evaluate(log, 1, episode="draw", **given)
        by_episode += not right.low <= 0.8 <= right.high
        wrong = evaluate(log, 1, **given)
        by_round += not wrong.low <= 0.8 <= wrong.high
    assert by_episode <= most_misses(runs, share)
    assert by_round > most_misses(runs, share)


def learned_log(n, seed):
    """Two equal arms; a policy draws the better one so far more often."""
    rng = np.random.default_rng(seed)
    arms, chances, rewards = np.zeros(n, int), np.zeros(n), rng.random(n) < 0.5
    sums, counts = np.ones(2), np.full(2, 2.0)
    for i in range(n):
        best = int(sums[1] / counts[1] > sums[0] / counts[0])
        p = 0.8 if best else 0.2
        arms[i] = rng.random() < p
        chances[i] = p if arms[i] else 1 - p
        sums[arms[i]] += rewards[i]
        counts[arms[i]] += 1
    return {"arm": arms, "reward": rewards.astype(float), "propensity": chances}


def ever_misses_normally(log, truth):
    """Whether somebody who looks after each round sees the usual interval miss."""
    _, z = terms_of(log, 1)
    n = np.arange(1, z.size + 1)
    mean = np.cumsum(z) / n
    deviation = np.sqrt(np.maximum(np.cumsum(z**2) / n - mean**2, 1e-12))
    return bool((np.abs(mean - truth) > 1.96 * deviation / np.sqrt(n))[50:].any())


@pytest.mark.parametrize(
    "estimator", [pytest.param("IPS", marks=pytest.mark.long), "SNIPS"], ids=["IPS", "SNIPS"]
)
def test_betting_holds_whenever_somebody_stops(estimator):
    runs, n = 100, 400
    missed = missed_by_others = 0
    for seed in range(runs):
        log = learned_log(n, seed)
        # It keeps what was rejected after any round: it misses at the end if it ever did.
        found = evaluate(log, 1, estimator=estimator, interval="betting")
        missed += not found.low <= 0.5 <= found.high
        missed_by_others += ever_misses_normally(log, 0.5)
    assert missed <= most_misses(runs, ALPHA)
    assert missed_by_others > most_misses(runs, ALPHA)


def test_betting_never_widens():
    log = learned_log(600, 1)
    ends = [
        evaluate(
            {name: one[:n] for name, one in log.items()},
            1,
            interval="betting",
            largest_weight=5.0,
        )
        for n in (100, 200, 400, 600)
    ]
    assert all(a.low <= b.low and b.high <= a.high for a, b in itertools.pairwise(ends))


def test_halves_that_are_fitted_to_each_other_cover():
    runs, missed = 150, 0
    for seed in range(runs):
        found = evaluate(two_arms(300, seed), 1, estimator="DR")
        missed += not found.low <= 0.6 <= found.high
    assert missed <= most_misses(runs, ALPHA)
