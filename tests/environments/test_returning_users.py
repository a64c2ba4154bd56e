"""Users who come back: who comes when, in which state, what arms do for them, and what loops make of
it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dpbandits as dpb
from dpbandits import ArgumentError
from dpbandits.environments import ReturningUsers
from dpbandits.errors import StudyError
from dpbandits.studies import load_study

ALPHA = 1e-4


def rounds_between(attendance):
    order = np.argsort(attendance, kind="stable")
    return np.diff(order)[attendance[order][1:] == attendance[order][:-1]]


def test_everybody_comes_as_often_as_she_may_and_not_too_soon():
    free = ReturningUsers(2, 3, users=40, visits=25, seed=1)
    assert np.bincount(free.attendance).tolist() == 40 * [25]
    assert free.horizon == 1000
    rested = ReturningUsers(2, 3, users=40, visits=25, gap=30, seed=1)
    assert rounds_between(rested.attendance).min() == 30
    assert np.bincount(rested.attendance).max() == 25
    assert 500 < rested.horizon <= 1000
    assert rounds_between(free.attendance).min() == 1


def test_who_comes_goes_by_weights():
    """Of 4,000 rounds, in which nobody has come to her end; equal weights would be rejected."""
    weights = np.array([1.0, 2.0, 4.0, 1.0])
    world = ReturningUsers(2, 1, users=4, visits=4000, weights=weights, seed=2)
    counts = np.bincount(world.attendance[:4000])
    assert stats.chisquare(counts, 4000 * weights / weights.sum()).pvalue > ALPHA
    assert stats.chisquare(counts).pvalue < ALPHA
    # Nobody's waiting makes her come sooner: the next one is independent of the last.
    pairs = np.zeros((4, 4))
    np.add.at(pairs, (world.attendance[:3999], world.attendance[1:4000]), 1)
    assert stats.chi2_contingency(pairs).pvalue > ALPHA


def test_states_go_on_from_visit_to_visit():
    world = ReturningUsers(2, 4, users=400, visits=6, persistence=0.7, seed=3)
    assert np.linalg.norm(world.state.states, axis=1).max() <= 1.0 + 1e-12
    visits = np.array([world.state.states[world.attendance == user] for user in range(400)])
    short = (np.linalg.norm(visits, axis=2) < 0.999).all(axis=1)  # and were not shortened
    now, later = visits[short][:, :-1].ravel(), visits[short][:, 1:].ravel()
    other = np.roll(visits[short], 1, axis=0)[:, 1:].ravel()
    bound = stats.norm.isf(ALPHA / 2) / np.sqrt(short.sum() * 4)
    assert np.corrcoef(now, later)[0, 1] > 0.3
    assert abs(np.corrcoef(now, other)[0, 1]) < 2 * bound


def test_contexts_are_states_alike_for_all_arms_and_owe_nothing_to_arms(play):
    world = ReturningUsers(3, 2, users=10, visits=20, seed=4)
    one = play(world, np.zeros(200), seed=5)
    other = play(world, np.arange(200) % 3, seed=6)
    assert np.array_equal(one.contexts, other.contexts)
    assert np.array_equal(one.hidden, world.attendance)
    for arm in range(3):
        assert np.array_equal(one.contexts[:, arm], world.state.states)


@pytest.mark.parametrize("heterogeneity", [0.0, 2.5])
def test_rewards_have_the_means_of_the_user_and_regret_is_against_her_best(play, heterogeneity):
    world = ReturningUsers(
        3, 2, users=100, visits=200, persistence=0.2, heterogeneity=heterogeneity, seed=5
    )
    arms = np.random.default_rng(1).integers(0, 3, world.horizon)
    rounds = play(world, arms, seed=7)
    thetas = world.state.thetas[world.attendance]
    means = np.clip(np.einsum("tkp,tp->tk", thetas, world.state.states), -1.0, 1.0)
    played = means[np.arange(arms.size), arms]
    assert rounds.regrets == pytest.approx(means.max(axis=1) - played, abs=1e-12)
    assert set(rounds.rewards) == {-1.0, 1.0}
    for weights in (1.0, played):
        spread = np.sqrt((weights**2 * (1.0 - played**2)).sum())
        assert abs((weights * (rounds.rewards - played)).sum() / spread) < stats.norm.isf(ALPHA / 2)
    shared = world.state.states @ world.state.thetas.mean(axis=0).T
    if heterogeneity == 0.0:
        assert means == pytest.approx(rounds.contexts[:, 0] @ world.parameter.T)
        assert np.linalg.norm(world.parameter, axis=1) == pytest.approx(np.ones(3))
    else:
        assert world.parameter is None
        assert np.abs(means - shared).mean() > 0.2


def test_a_seed_gives_the_same_world_and_says_so():
    one, other = (ReturningUsers(2, 2, users=9, visits=3, seed=8) for _ in range(2))
    assert repr(one) == repr(other)
    assert repr(one) == (
        "ReturningUsers(2 arms, dimension 2, 9 users, visits=3, gap=1, persistence=0.8,"
        " heterogeneity=0, seed=8)"
    )
    for field in one.state._fields:
        assert np.array_equal(getattr(one.state, field), getattr(other.state, field))
    weighted = ReturningUsers(2, 2, users=9, visits=3, weights=range(1, 10), seed=8)
    assert ", weights " in weighted.stream_key
    larger = ReturningUsers(2, 2, users=20, visits=3, seed=8)
    assert np.array_equal(larger.parameter, one.parameter)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_arms": 0}, "n_arms must"),
        ({"dimension": 0}, "dimension must"),
        ({"users": 0}, "users must"),
        ({"visits": 0}, "visits must"),
        ({"gap": 0}, "gap must"),
        ({"persistence": 1.0}, "persistence must"),
        ({"heterogeneity": -0.1}, "heterogeneity must"),
        ({"weights": [1.0, 2.0]}, "weights must hold 5 numbers"),
        ({"weights": [1.0, 2.0, 0.0, 1.0, 1.0]}, "weights must hold numbers in"),
        ({"seed": -1}, "seed must"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ArgumentError, match=f"^{message}"):
        ReturningUsers(**({"n_arms": 2, "dimension": 2, "users": 5} | options))


# In loops --------------------------------------------------------------------------------------


WORLD = ReturningUsers(2, 2, users=60, visits=5, gap=12, seed=9)


def joint(**options):
    given = {"budget": dpb.ZCDP(0.5), "horizon": 500, "batch": 10, "max_rounds": 5}
    return dpb.algorithms.LinUCBJDP(
        2, 2, models="disjoint", reward_range=(-1, 1), **(given | options)
    )


@pytest.mark.long
def test_the_loop_records_what_a_policy_would_that_is_told_who_comes(play):
    """Every round, and hence with as many releases."""
    policy = joint(seed=1)
    contexts = play(WORLD, np.zeros(WORLD.horizon), seed=3).contexts
    recorded = []
    for user, seen in zip(WORLD.attendance, contexts, strict=True):
        recorded.append(policy.pull(seen[0], user=int(user)).recorded)
        policy.update(0.0)
    assert all(recorded)
    result = dpb.simulate(policy, WORLD, horizon=WORLD.horizon, seed=1)
    assert int(result.runs["releases"].iloc[0]) == WORLD.horizon // 10
    assert policy.ledger.spent() == dpb.ZCDP(0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: joint(max_rounds=4),
            "max_rounds of .* must be at least 5: a user has 5 rounds",
        ),
        (lambda: joint(batch=13), "may cover 13 rounds, but a user comes again after 12"),
        (
            lambda: dpb.algorithms.AdaCOFULJDP(
                2, 2, budget=dpb.ZCDP(0.5), horizon=500, max_rounds=5, reward_range=(-1, 1)
            ),
            "at most once in a release",
        ),
    ],
)
def test_users_whom_a_policy_would_not_record_are_refused(make, message):
    policy = make()
    with pytest.raises(ArgumentError, match=message):
        dpb.simulate(policy, WORLD, horizon=WORLD.horizon)


@pytest.mark.long
def test_within_the_horizon_they_may_fit():
    """In twelve rounds everybody is new; and without ``max_rounds`` every round is a person's."""
    for policy in (joint(max_rounds=1), joint(max_rounds=None, batch=50)):
        assert dpb.simulate(policy, WORLD, horizon=12).runs["regret"].iloc[0] >= 0.0


def test_study_files_say_at_once_who_would_not_be_recorded(tmp_path):
    path = tmp_path / "study.toml"
    entry = 'kind = "LinUCBJDP"\nreward_range = [-1, 1]\n'
    text = f"""
title = "Users"
horizon = 200
runs = 1
budgets = {{zcdp = [0.5]}}
[[environments]]
kind = "ReturningUsers"
n_arms = 2
dimension = 2
users = 60
visits = 5
gap = 12
[[policies]]
{entry}max_rounds = 5
batch = 12
[[policies]]
{entry}batch = 50
"""
    path.write_text(text)
    assert len(load_study(path).policies) == 2
    for old, new, message in (
        ("max_rounds = 5", "max_rounds = 3", r"policies\[0\]: max_rounds of"),
        ("batch = 12", "batch = 20", r"policies\[0\]: users must come at most once in a release"),
    ):
        path.write_text(text.replace(old, new))
        with pytest.raises(StudyError, match=message):
            load_study(path)


@pytest.mark.long
def test_models_of_arms_learn_what_states_mean():
    world = ReturningUsers(2, 2, users=300, visits=10, seed=1)
    policies = [
        dpb.algorithms.LinUCBJDP(
            2, 2, budget=None, horizon=3000, models=models, reward_range=(-1, 1)
        )
        for models in ("disjoint", "shared")
    ]
    runs = dpb.simulate(policies, world, horizon=3000, runs=3, seed=1).runs
    learned, blind = runs.groupby("policy", sort=False)["regret"].mean()
    assert learned < 0.3 * blind
