"""Features with a fixed coordinate: their law, that of their rewards, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpbandits import ArgumentError
from dpbandits.environments import AnchoredContexts, CovariateArms

ALPHA = 1e-4
HALF = np.sqrt(0.5)


@pytest.mark.long
def test_features_are_fixed_in_one_coordinate_and_point_anywhere_in_the_others(play):
    """24,000 rounds: directions drawn from a flat cube, would be rejected."""
    contexts = play(AnchoredContexts.random(4, 3, seed=1), np.zeros(24_000), seed=2).contexts
    assert np.array_equal(contexts[..., 2], np.full((24_000, 4), HALF))
    assert np.linalg.norm(contexts, axis=2) == pytest.approx(np.ones((24_000, 4)), abs=1e-14)
    for arm in (0, 3):
        angles = np.arctan2(contexts[:, arm, 1], contexts[:, arm, 0])
        assert stats.kstest(angles, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > ALPHA
    cube = np.random.default_rng(1).uniform(-1.0, 1.0, (24_000, 2)) * [1.0, 0.9]
    wrong = np.arctan2(cube[:, 1], cube[:, 0])
    assert stats.kstest(wrong, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue < ALPHA


@pytest.mark.parametrize("dimension", [2, 5])
@pytest.mark.long
def test_rewards_are_coins_with_linear_means_and_regret_is_against_the_best(play, dimension: int):
    environment = AnchoredContexts.random(7, dimension, seed=3)
    arms = np.random.default_rng(2).integers(0, 7, 20_000)
    rounds = play(environment, arms, seed=5)
    means = rounds.contexts @ environment.parameter
    assert means.min() >= -1e-12
    assert means.max() <= 1.0 + 1e-12
    played = means[np.arange(arms.size), arms]
    assert rounds.regrets == pytest.approx(means.max(axis=1) - played, abs=1e-12)
    assert set(rounds.rewards) == {0.0, 1.0}
    spread = np.sqrt((played * (1.0 - played)).clip(1e-9).sum())
    score = (rounds.rewards - played).sum() / spread
    assert abs(score) < stats.norm.isf(ALPHA / 2)


@pytest.mark.long
def test_contexts_do_not_depend_on_the_arms(play):
    environment, arms = AnchoredContexts.random(4, 5, seed=1), np.arange(300) % 4
    one, other = play(environment, arms, seed=6), play(environment, np.zeros(300), seed=6)
    assert np.array_equal(one.contexts, other.contexts)


def test_it_says_what_it_is():
    environment = AnchoredContexts.random(4, 5, seed=1)
    assert repr(environment) == "AnchoredContexts(4 arms, dimension 5, random, seed=1)"
    assert np.linalg.norm(environment.parameter) == pytest.approx(1.0)
    assert environment.parameter[-1] == HALF


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AnchoredContexts(0, [HALF, HALF]), "n_arms must be"),
        (lambda: AnchoredContexts(3, [1.0]), "theta must have at least 2"),
        (lambda: AnchoredContexts(3, [0.8, 0.7]), "theta must have at least 2"),
        (lambda: AnchoredContexts(3, [0.5, 1.0]), "theta must have at least 2"),
        (lambda: AnchoredContexts(3, [np.nan, 1.0]), "theta must"),
        (lambda: AnchoredContexts.random(3, 1), "dimension must be"),
        (lambda: AnchoredContexts.random(3, 2, seed=-1), "seed must be"),
    ],
)
def test_bad_arguments_are_named(make, message: str):
    with pytest.raises(ArgumentError, match=f"^{message}"):
        make()


# One vector for all arms ---------------------------------------------------------------------


@pytest.mark.long
def test_a_person_is_shown_alike_to_every_arm_and_answers_by_the_parameter_of_hers(play):
    environment = CovariateArms.random(5, 3, seed=3)
    arms = np.random.default_rng(2).integers(0, 5, 20_000)
    rounds = play(environment, arms, seed=5)
    assert np.array_equal(rounds.contexts, np.repeat(rounds.contexts[:, :1], 5, axis=1))
    assert len(np.unique(rounds.contexts[:, 0, 0])) == 20_000
    means = rounds.contexts[:, 0] @ environment.parameter.T
    assert (means.min() >= -1e-12, means.max() <= 1.0 + 1e-12) == (True, True)
    played = means[np.arange(arms.size), arms]
    assert rounds.regrets == pytest.approx(means.max(axis=1) - played, abs=1e-12)
    for arm in range(5):
        mine = arms == arm
        spread = np.sqrt((played * (1.0 - played))[mine].clip(1e-9).sum())
        score = (rounds.rewards - played)[mine].sum() / spread
        assert abs(score) < stats.norm.isf(ALPHA / 10)


def test_people_are_drawn_as_features_are(play):
    people = play(CovariateArms.random(4, 3, seed=1), np.zeros(24_000), seed=2).contexts[:, 0]
    assert np.array_equal(people[:, 2], np.full(24_000, HALF))
    angles = np.arctan2(people[:, 1], people[:, 0])
    assert stats.kstest(angles, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > ALPHA


def test_parameters_of_arms_are_checked_one_by_one():
    sure, steep = [0.0, HALF], [0.6, 0.1]  # always 1/2, and sometimes negative
    assert CovariateArms([sure, [0.5, HALF]]).n_arms == 2
    with pytest.raises(ArgumentError, match=r"^parameters must have at least 2 coordinates"):
        CovariateArms([sure, steep])
    for wrong in ([], [0.0, HALF], [[HALF]], [[np.nan, HALF]]):
        with pytest.raises(ArgumentError, match=r"^parameters must"):
            CovariateArms(wrong)
    with pytest.raises(ArgumentError, match=r"^n_arms must be"):
        CovariateArms.random(0, 3)
    assert repr(CovariateArms.random(4, 3)) == "CovariateArms(4 arms, dimension 3, random, seed=0)"
