"""What policies have to beat: computed apart, and told only where it has a meaning."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from dpbandits import RDP, ZCDP, ApproxDP, PureDP, plan
from dpbandits.environments import (
    Advised,
    Bernoulli,
    ContextTable,
    Delay,
    Gaussian,
    GLMContexts,
    SwitchingBest,
)
from dpbandits.planning import Setting
from dpbandits.planning import candidates as candidates_module
from dpbandits.planning.plans import _price_in_words
from dpbandits.planning.targets import Outcome, where_it_pays
from dpbandits.planning.yardsticks import (
    _channel,
    exploring,
    in_reverse,
    regret_at_random,
    why_not_exploring,
)
from dpbandits.report.means import Estimate

MEANS = np.array([0.3, 0.7, 0.5])
UNIT = (0.0, 1.0)


# Choosing at random -----------------------------------------------------------------------------


def test_without_contexts_it_costs_the_mean_gap():
    found = regret_at_random(Bernoulli(MEANS), 1000, runs=3, seed=1)
    assert found == pytest.approx([200.0] * 3)
    # two arms that take turns: every fixed arm loses half a gap, and so does whoever guesses
    turns = SwitchingBest(2, best=[0, 1], switches=[500], horizon=1000, gap=0.4)
    drawn = regret_at_random(turns, 1000, runs=1, seed=1)
    assert drawn == pytest.approx([0.0], abs=1e-9)


def test_with_contexts_it_costs_what_the_table_says():
    rng = np.random.default_rng(3)
    means = rng.random((2000, 4))
    world = ContextTable(rng.normal(size=(2000, 4, 2)), means, means)
    found = regret_at_random(world, 2000, runs=200, seed=5)
    costs = means.max(axis=1, keepdims=True) - means
    spread = math.sqrt(costs.var(axis=1).sum())
    # alpha 1e-4: four standard errors; a choice among three arms is 60 of them off
    assert abs(found.mean() - costs.mean(axis=1).sum()) < 4.0 * spread / math.sqrt(200)
    assert found.std(ddof=1) == pytest.approx(spread, rel=0.25)
    assert (regret_at_random(world, 2000, runs=2, seed=5) == found[:2]).all()


# Exploring first --------------------------------------------------------------------------------


def cost_of(length, horizon, noise, rng, draws=100_000):
    """Mean regret of exploring first, written apart: whole arrays, and no kernel."""
    sums = rng.binomial(length, MEANS, (draws, 3)) + noise(length, (draws, 3))
    gaps = MEANS.max() - MEANS
    regrets = length * gaps.sum() + (horizon - 3 * length) * gaps[sums.argmax(axis=1)]
    return regrets.mean(), regrets.std() / math.sqrt(draws)


@pytest.mark.parametrize("trust", ["central", "local"])
@pytest.mark.parametrize("budget", [PureDP(0.5), ZCDP(0.05)], ids=str)
def test_its_cost_is_that_of_sums_with_the_noise_of_the_budget(budget, trust):
    horizon = 3000
    found = exploring(Bernoulli(MEANS), horizon, budget, trust_model=trust, seed=4)
    rng = np.random.default_rng(9)

    def noise(length, shape, share=1.0):
        count = length if trust == "local" else 1
        if isinstance(budget, PureDP):
            each = rng.laplace(0.0, share / budget.epsilon, (count, *shape)) if count < 30 else None
            if each is not None:
                return each.sum(axis=0)
            std = share * math.sqrt(2.0 * count) / budget.epsilon
        else:
            std = share * math.sqrt(count / (2.0 * budget.rho))
        return rng.normal(0.0, std, shape)

    mean, error = cost_of(found.length, horizon, noise, rng)
    own = (found.cost.high - found.cost.low) / 4.0
    # alpha 1e-4, and some for the sums of many Laplace variables
    assert abs(found.cost.mean - mean) < 4.0 * math.hypot(error, own) + 0.005 * mean
    half, _ = cost_of(found.length, horizon, lambda *a: noise(*a, share=0.5), rng)
    assert half < mean - 8.0 * math.hypot(error, own), "half the noise would be found out"
    lengths = np.unique(np.geomspace(1, horizon // 3, 25).astype(int))
    best = min(cost_of(int(one), horizon, noise, rng, 5000)[0] for one in lengths)
    assert mean < 1.05 * best


def test_its_noise_spends_the_budget_and_no_more():
    """By the textbook's formula of each notion."""
    assert 1.0 / (2.0 * _channel(ZCDP(0.3)).multiplier ** 2) == pytest.approx(0.3)
    assert 1.0 / _channel(PureDP(0.3)).multiplier == pytest.approx(0.3)
    assert 4.0 / (2.0 * _channel(RDP(4.0, 0.3)).multiplier ** 2) == pytest.approx(0.3)
    std = _channel(ApproxDP(0.7, 1e-5)).multiplier
    a, b = 0.5 / std - 0.7 * std, -0.5 / std - 0.7 * std
    assert norm.cdf(a) - math.exp(0.7) * norm.cdf(b) == pytest.approx(1e-5, rel=1e-6)


def test_one_other_reward_moves_one_sum_by_the_width_at_most():
    """Rounds fall into disjoint blocks, one of every arm; brute force over all neighbours."""
    rng = np.random.default_rng(2)
    rewards = rng.uniform(-1.0, 2.0, 12)

    def sums(given):
        return given.reshape(3, 4).sum(axis=1)

    for place in range(12):
        for end in (-1.0, 2.0):
            other = rewards.copy()
            other[place] = end
            moved = np.abs(sums(other) - sums(rewards))
            assert np.count_nonzero(moved) <= 1
            assert moved.sum() <= 3.0 + 1e-12


def test_its_cost_is_the_mean_of_its_runs():
    for means in ([0.2, 0.8], [0.5, 0.5]):  # exploring pays, and does not
        few, many = (
            exploring(Bernoulli(means), 1000, PureDP(1.0), least_runs=least)
            for least in (0, 12_000)
        )
        assert many.regrets.size == 12_000 > few.regrets.size
        for found in (few, many):
            assert found.cost.mean == pytest.approx(found.regrets.mean())


def test_where_noise_drowns_all_it_is_best_not_to_explore():
    found = exploring(Bernoulli([0.4, 0.6]), 50, PureDP(1e-4))
    assert found.length == 0
    assert found.cost == pytest.approx((5.0,) * 3)


def test_without_noise_equal_sums_favour_no_arm():
    """After one round of each arm both sums are 1: whichever is first must not always win."""
    sure = exploring(Bernoulli([1.0, 1.0]), 100, None)
    assert sure.cost.mean == 0.0
    for means in ([0.9, 0.8], [0.8, 0.9]):
        assert exploring(Bernoulli(means), 4, None, seed=3).cost.mean == pytest.approx(
            0.19, abs=0.02
        )


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (Setting.of(GLMContexts(3, [0.5, 0.1])), "every round"),
        (Setting.of(Bernoulli(MEANS), trust="shuffle"), "protocol"),
        (Setting.of(Bernoulli(MEANS).delayed(Delay("fixed", 3))), "late"),
        (Setting.of(Gaussian([0.0, 1.0])), "outside of their range"),
        (Setting.of(SwitchingBest(2, best=[0], switches=[], horizon=9)), "change"),
        (Setting.of(Advised.constant(Bernoulli(MEANS), 4, horizon=9)), "expert"),
        (Setting.of(Bernoulli(MEANS)), None),
        (Setting.of(Bernoulli(MEANS), trust="local"), None),
    ],
)
def test_where_it_has_no_meaning_the_reason_is_told(setting, words):
    found = why_not_exploring(setting, UNIT)
    assert found is None if words is None else words in found


# Where learning pays ----------------------------------------------------------------------------


def test_starts_are_those_of_a_known_law():
    """Regret 10 / rho beside yardsticks of T and T / 2: 10 % less from rho = 11.1 / T on."""

    def lost(budget, rounds):
        return Outcome(Estimate(*[10.0 / budget.rho] * 3), rounds, rounds / 2.0)

    found = where_it_pays(ZCDP(0.01), 100, 100_000, lost)
    assert 10.0 / found.random.budget.rho <= 90.0 < 1.8 * 10.0 / found.random.budget.rho
    assert found.random.rounds == 1600  # 800 would leave 1000 above 720
    assert found.both.rounds == 3200
    assert found.both.budget.rho == pytest.approx(0.316)


def test_an_interval_that_reaches_the_yardstick_is_no_start():
    def lost(budget, rounds):
        return Outcome(Estimate(1.0, 0.5, 100.0), 50.0, math.inf)

    found = where_it_pays(PureDP(1.0), 10, 1000, lost)
    assert (*found.random, *found.both) == (None,) * 4
    alone = where_it_pays(PureDP(1.0), 10, 1000, lost, exploring=False)
    assert alone.both is None
    assert "exploring" not in str(alone)
    assert "It does not begin to pay: nothing was found up to 100-DP or up to 640 rounds" in str(
        found
    )


def only(monkeypatch, *names):
    known = candidates_module.registered()
    few = {name: known[name] for name in names}
    monkeypatch.setattr(candidates_module, "registered", lambda: few)


@pytest.mark.parametrize("means", [[0.45, 0.55], [0.55, 0.45]])
def test_where_privacy_leaves_nothing_to_learn_the_plan_says_so_whatever_the_order(
    monkeypatch, means
):
    only(monkeypatch, "MergedIMED", "UCB1")
    made = plan(Bernoulli(means), 300, ZCDP(1e-5), runs=20)
    assert made.saved.low <= 0.0
    assert made.findings[0].startswith("Privacy leaves nothing to learn here")
    assert not any(one.startswith("Take ") for one in made.findings)
    start = made.pays.random
    assert start.budget.rho > 1e-3
    assert start.rounds is None or start.rounds > 1000
    assert f"It begins to pay from a budget of {start.budget}" in made.findings[1]
    better = plan(Bernoulli(means), 300, start.budget, runs=20)
    assert better.pays is None
    assert better.findings[0] == "Take MergedIMED: the default."
    assert better.saved.mean >= 0.1 * 15.0


def test_rows_and_sentences_name_both_yardsticks(monkeypatch):
    only(monkeypatch, "MergedIMED", "UCB1")
    made = plan(Bernoulli([0.2, 0.8]), 500, ZCDP(1.0), runs=5)
    names = [row[0] for row in made.rows()[1]]
    assert names[-2] == "choosing at random"
    assert (
        names[-1]
        == f"exploring first ({made.yardsticks.exploring.length} rounds an arm), then staying"
    )
    assert made.rows()[1][-2][2:4] == ["150", "exact"]
    assert "Choosing at random loses 150." in " ".join(made.findings)
    assert repr(made) == "\n".join([made.heading, *made.findings])
    assert names[-1] in made._repr_html_()
    assert "asymptotic, and short runs may cost more or less" in repr(made)


def test_arms_that_are_all_alike_leave_nothing_to_gain_and_nothing_is_sought(monkeypatch):
    only(monkeypatch, "MergedIMED", "UCB1")
    assert plan(Bernoulli([0.5, 0.5]), 100, ZCDP(1.0), runs=3).pays is None


def test_the_reverse_order_is_for_arms_without_features():
    turned = in_reverse(Setting.of(Bernoulli(MEANS)))
    assert turned.state.first.tolist() == [0.5, 0.7, 0.3]
    assert in_reverse(Setting.of(GLMContexts(3, [0.5, 0.1]))) is None
    assert in_reverse(Setting(2, features=np.eye(2), gaps=[0.0, 0.1])) is None


def test_a_price_is_told_as_far_as_its_interval_carries_it():
    assert _price_in_words(Estimate(-0.21, -0.6, 0.4)) == "no difference seen (−60 % to 40 %)"
    assert _price_in_words(Estimate(-0.21, -0.3, -0.1)) == "−21 % (−30 % to −10 %)"
    assert _price_in_words(Estimate(0.5, 0.1, 1.0)) == "50 % (10 % to 100 %)"


@pytest.mark.parametrize(
    ("times", "start", "said"),
    [
        (Estimate(1.7, 1.3, 2.4), None, "Privacy is not free within"),
        (Estimate(1.7, 0.657, 2.74), None, "runs do not show whether privacy is free"),
        (Estimate(1.1, 0.9, 1.19), 10, "Privacy is free from round 10 on"),
        (Estimate(1.1, 0.9, 1.5), 10, "By the means, privacy is free from round 10 on"),
    ],
)
def test_that_privacy_is_free_or_not_is_said_where_the_interval_says_so(
    monkeypatch, times, start, said
):
    only(monkeypatch, "MergedIMED", "UCB1")
    made = plan(Bernoulli([0.2, 0.8]), 100, ZCDP(1.0), runs=3)
    told = replace(made)
    object.__setattr__(told, "free_from", start)
    assert said in told._whether_free(times)
