"""Half widths of plans: those of policies that were really played, of exact sums."""

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import ZCDP, PureDP
from dpbandits.algorithms import ArmsLocal, BestArm, MergedIMED, SequentialHalving
from dpbandits.papers.others import DPTS
from dpbandits.planning import Setting
from dpbandits.planning.widths import half_widths


def played(policy, people):
    """An arm whose rewards are 0 and 1 by turns; all others have the reward 0."""
    rewards = 0
    for _ in range(people):
        decision = policy.pull()
        reward = 0.0
        if decision.arm == 0:
            rewards += 1
            reward = float(rewards % 2)
        policy.update(reward, decision)
    return policy


@pytest.mark.parametrize("budget", [None, PureDP(1.0), ZCDP(0.02)])
def test_they_are_those_of_a_played_policy(budget):
    """Read the releases of an arm until more than 4,000 people would be in them."""
    told = {one.share: one for one in half_widths(MergedIMED(3, budget=budget, seed=1), 8000)}
    assert sorted(told) == [0.01, 0.1, 1 / 3, 0.5]
    policy = played(MergedIMED(3, budget=budget, seed=2), 6000)
    table = policy.released_sums.query("arm == 0").drop(columns="known")
    noise = {None: None, PureDP: "Laplace", ZCDP: "Gaussian"}[budget and type(budget)]
    known = {"noise": noise, "scale": policy.noise_scale, "n_arms": 3}
    found = dpb.intervals(table[table["rounds"].cumsum() <= 4000], **known)
    half_width = float(found.high[0] - found.low[0]) / 2
    own = told[0.5]
    assert own.people == 4000
    assert own.half_width == pytest.approx(half_width, rel=0.08)
    if budget is None:
        assert own.half_width == pytest.approx(own.without_noise, rel=0.2)
    else:
        assert told[0.1].half_width > 1.1 * told[0.1].without_noise


def test_local_reports_have_noise_on_each():
    own = half_widths(ArmsLocal(2, budget=PureDP(1.0), seed=1), 10_000)[0]
    found = played(ArmsLocal(2, budget=PureDP(1.0), seed=2), 6000).intervals()
    half_width = float(found.high[0] - found.low[0]) / 2
    expected = half_width * (found.rounds[0] / own.people) ** 0.5  # one over the root of people
    assert own.half_width == pytest.approx(expected, rel=0.1)
    assert own.half_width > 2 * own.without_noise


def test_they_are_in_units_of_rewards():
    one, ten = (
        half_widths(MergedIMED(2, budget=PureDP(1.0), reward_range=(0, top), seed=1), 1000)
        for top in (1, 10)
    )
    assert [w.half_width for w in ten] == pytest.approx([10 * w.half_width for w in one], rel=1e-6)


def test_no_share_that_no_arm_gets():
    shares = [one.share for one in half_widths(SequentialHalving(4, horizon=400, budget=None), 400)]
    assert 0.5 not in shares
    assert 0.25 in shares
    search = half_widths(BestArm(3, failure_probability=0.1, budget=None, seed=1), 3000)
    assert search[0].half_width < search[-1].half_width


def test_a_plan_with_secure_noise_draws_none_for_them():
    secure = dpb.plan(Setting(2), 1000, PureDP(1.0), rounds=0, noise="secure")
    assert secure.half_widths == dpb.plan(Setting(2), 1000, PureDP(1.0), rounds=0).half_widths


def test_nothing_where_no_interval_is_proved():
    assert half_widths(DPTS(2, horizon=100, budget=PureDP(1.0)), 100) == []


def test_a_plan_tells_them():
    made = dpb.plan(Setting(2), 1000, PureDP(1.0), rounds=0)
    last = made.findings[-1]
    assert f"{made.half_widths[0].half_width:.3g} for 50 % of people" in last
    told = made.to_dict()
    assert told["half_widths"][0] == made.half_widths[0]._asdict()
    assert told["table"][0]["mean"] is None
    assert last in made._repr_html_().replace("&nbsp;", " ").replace("&#x27;", "'")
    none = dpb.plan(Setting(2, features=3), 1000, ZCDP(1.0), rounds=0)
    assert "no confidence intervals" in none.findings[-1]
    assert none.to_dict()["half_widths"] == []
    assert np.all([one.people == int(one.share * 1000) for one in made.half_widths])
