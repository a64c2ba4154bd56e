"""LinUCB for fixed arms against a walk that solves everything anew in every round."""

import math

import numpy as np
import pytest
from sides import in_the_loop, public_of
from walks import arms_played

import dpbandits as dpb
from dpbandits.algorithms import LinUCB
from dpbandits.environments import ContextTable, RewardTable
from dpbandits.papers.others import FixedLinUCB

ROUNDS = 4000


def instance(n_arms, dimension, rounds=ROUNDS, seed=4):
    """Arms, theta on the unit sphere, and a table of rewards with normal noise; arms of equal
    length would tie at first.
    """
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n_arms + 1, dimension))
    vectors *= np.linspace(1.0, 0.8, n_arms + 1)[:, None] / np.linalg.norm(
        vectors, axis=1, keepdims=True
    )
    return vectors[1:], np.clip(
        vectors[1:] @ vectors[0] + 0.3 * rng.standard_normal((rounds, n_arms)), -2.0, 2.0
    )


def walk(contexts, rewards, *, ridge=1.0, scatter, failure=0.001, scale=1.0):
    """LinUCB with the radius of Abbasi-Yadkori et al. (2011, Theorem 2), everything solved anew in
    every round.
    """
    d = contexts.shape[2]
    precision, moment, arms = ridge * np.eye(d), np.zeros(d), []
    for seen, row in zip(contexts, rewards, strict=True):
        inverse = np.linalg.inv(precision)
        log_det = np.linalg.slogdet(precision)[1] - d * math.log(ridge)
        radius = scale * (
            scatter * math.sqrt(2 * math.log(1 / failure) + log_det) + math.sqrt(ridge)
        )
        widths = np.sqrt(((seen @ inverse) * seen).sum(axis=1))
        arms.append(int(np.argmax(seen @ (inverse @ moment) + radius * widths)))
        precision += np.outer(seen[arms[-1]], seen[arms[-1]])
        moment += row[arms[-1]] * seen[arms[-1]]
    return arms


@pytest.mark.long
@pytest.mark.parametrize(("n_arms", "dimension"), [(12, 3), (9, 9), (5, 12)])
def test_the_arms_of_linucb_solved_anew_in_every_round(n_arms, dimension):
    features, rewards = instance(n_arms, dimension)
    policy = FixedLinUCB(features, reward_range=(-2, 2), subgaussian=0.3)
    expected = walk(np.broadcast_to(features, (ROUNDS, n_arms, dimension)), rewards, scatter=0.3)
    assert in_the_loop(policy, RewardTable(rewards)) == expected
    assert len(set(expected)) > 3  # it explored


@pytest.mark.long
def test_pull_and_update_play_the_arms_of_the_loop():
    features, rewards = instance(10, 5, rounds=1500)
    policy = FixedLinUCB(features, reward_range=(-2, 2), subgaussian=0.3)
    assert arms_played(policy, rewards) == in_the_loop(policy, RewardTable(rewards))


@pytest.mark.long
@pytest.mark.parametrize(("n_arms", "dimension"), [(6, 3), (7, 11)])
def test_fresh_contexts_too(n_arms, dimension):
    """The pruning of ``LinUCB`` changes nothing, and neither does the drift of its updated inverse."""
    rng = np.random.default_rng(2)
    contexts = rng.standard_normal((ROUNDS, n_arms, dimension)) / math.sqrt(dimension) + 0.3
    rewards = np.clip(
        contexts @ np.linspace(-0.5, 1, dimension) + 0.1 * rng.standard_normal((ROUNDS, n_arms)),
        -3,
        3,
    )
    policy = LinUCB(n_arms, dimension, reward_range=(-3, 3), subgaussian=0.1, context_bound=10.0)
    assert in_the_loop(policy, ContextTable(contexts, rewards)) == walk(
        contexts, rewards, scatter=0.1
    )


@pytest.mark.long
def test_fixed_arms_are_linucb_shown_the_same_features_in_every_round():
    features, rewards = instance(8, 4)
    options = {"reward_range": (-2, 2), "ridge": 0.3, "radius_scale": 0.5}
    shown = ContextTable(np.broadcast_to(features, (ROUNDS, 8, 4)).copy(), rewards)
    assert in_the_loop(FixedLinUCB(features, **options), RewardTable(rewards)) == in_the_loop(
        LinUCB(8, 4, **options), shown
    )


@pytest.mark.parametrize(
    "features",
    [[[0.0]], [[2.0]], [[0.0, 0.0]] * 3, [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]], np.eye(2) * 1e20],
)
@pytest.mark.long
def test_degenerate_arms(features):
    policy = FixedLinUCB(features, reward_range=(-1, 1))
    rewards = np.random.default_rng(1).uniform(-1, 1, (500, len(features)))
    arms = in_the_loop(policy, RewardTable(rewards))
    assert arms == arms_played(policy, rewards)
    for name in ("means", "widths", "facts"):
        assert np.all(np.isfinite(getattr(public_of(policy), name)))


def test_equal_arms_go_to_the_first():
    policy = FixedLinUCB([[0.5, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert set(arms_played(policy, np.ones((300, 3)))) == {1}


@pytest.mark.parametrize(
    "arms", [[], [1.0, 2.0], [[]], [[math.nan]], [["x"]], None, [[1.0], [1.0, 2.0]], [[1e60]]]
)
def test_arms_must_be_a_table_of_numbers(arms):
    with pytest.raises(dpb.ArgumentError, match="arms must"):
        FixedLinUCB(arms)


def test_the_table_survives_repr_and_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    features, rewards = instance(6, 3, rounds=400)
    policy = FixedLinUCB(features, reward_range=(-2, 2))
    twin = eval(repr(policy), {"FixedLinUCB": FixedLinUCB})
    assert arms_played(policy, rewards[:200]) == arms_played(twin, rewards[:200])
    loaded = dpb.load(policy.save(tmp_path / "saved"))
    assert repr(loaded) == repr(twin)
    assert arms_played(loaded, rewards[200:]) == arms_played(twin, rewards[200:])
    assert "6 x 3" in policy.label
    assert str(features[0, 0]) not in policy.label
