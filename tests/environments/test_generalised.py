"""Generalised linear rewards: the spectrum of features, the law of rewards, and what is refused."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
import pytest
from scipy import special, stats

from dpbandits import ArgumentError, simulate
from dpbandits.algorithms import LinUCB
from dpbandits.environments import CovariateArms, GLMContexts
from dpbandits.glm import links, register_link

ALPHA = 1e-4
NU = {"identity": lambda t: t, "logistic": special.expit, "probit": stats.norm.cdf, "tanh": np.tanh}
NORMS = {"identity": 1.0, "logistic": 6.0, "probit": 3.0, "tanh": 0.9}


@pytest.fixture(autouse=True)
def tanh():
    """A link of one's own, whose means are no probabilities."""
    with patch.dict(links._LINKS):
        register_link(
            "tanh",
            lambda t: math.tanh(t),
            lambda t: 1.0 - math.tanh(t) ** 2,
            least_slope=0.41,
            largest_slope=1.0,
        )
        yield


@pytest.mark.parametrize("decay", [0.0, 2.0, 20.0])
@pytest.mark.long
def test_features_have_the_eigenvalues_that_were_asked_for(play, decay: float):
    """40,000 rounds of 2 arms; the smallest of 3**-20 / 3 is 1e-10, and is met as exactly."""
    world = GLMContexts.random(2, 3, decay=decay)
    x = play(world, np.zeros(40_000), seed=1).contexts.reshape(-1, 3)
    assert np.linalg.norm(x, axis=1).max() <= 1.0 + 1e-12
    assert world.eigenvalues == pytest.approx([i**-decay / 3 for i in (1, 2, 3)])
    unit = x / np.sqrt(3 * world.eigenvalues)
    assert np.linalg.norm(unit, axis=1) == pytest.approx(1.0)
    # a coordinate of a uniform point of the sphere in 3 dimensions is uniform (Archimedes)
    for i in range(3):
        assert stats.kstest(unit[:, i], stats.uniform(-1, 2).cdf).pvalue > ALPHA / 3
    assert stats.kstest(unit[:, 0] * 0.98, stats.uniform(-1, 2).cdf).pvalue < ALPHA
    products = unit[:, [0, 0, 1]] * unit[:, [1, 2, 2]]
    assert np.abs(products.mean(axis=0) / stats.sem(products)).max() < stats.norm.isf(ALPHA / 6)


def test_eigenvalues_may_be_given_and_may_be_zero(play):
    world = GLMContexts(3, [0.5, 0.5], eigenvalues=[0.0, 0.5])
    contexts = play(world, np.zeros(200), seed=1).contexts
    assert np.array_equal(contexts[..., 0], np.zeros((200, 3)))
    assert np.abs(contexts[..., 1]).max() > 0.9
    assert "eigenvalues=[0.0, 0.5]" in repr(world)


@pytest.mark.parametrize("models", ["shared", "disjoint"])
@pytest.mark.parametrize("link", NU)
@pytest.mark.long
def test_rewards_have_the_means_of_the_link_and_regret_is_against_the_best(play, link, models):
    world = GLMContexts.random(4, 3, models=models, link=link, norm=NORMS[link], seed=2)
    arms = np.random.default_rng(2).integers(0, 4, 20_000)
    rounds = play(world, arms, seed=5)
    means = NU[link]((rounds.contexts * world.parameter).sum(axis=2))
    played = means[np.arange(arms.size), arms]
    assert rounds.regrets == pytest.approx(means.max(axis=1) - played, abs=1e-12)
    low = 0.0 if link in ("logistic", "probit") else -1.0
    assert world.support == (low, 1.0)
    assert set(rounds.rewards) == {low, 1.0}

    def score(expected, mine):
        chance = ((expected - low) / (1.0 - low))[mine]
        wins = (rounds.rewards == 1.0)[mine]
        return abs((wins - chance).sum() / np.sqrt((chance * (1.0 - chance)).sum()))

    high = played > np.median(played)
    limit = stats.norm.isf(ALPHA / 16)
    for arm in range(4):
        for half in (high, ~high):
            assert score(played, half & (arms == arm)) < limit
    # Flatter means, which agree on average only, would be noticed.
    flat = played.mean() + 0.8 * (played - played.mean())
    assert max(score(flat, high), score(flat, ~high)) > limit


def test_one_person_is_shown_to_all_arms_that_have_parameters_of_their_own(play):
    contexts = play(GLMContexts.random(4, 3, models="disjoint"), np.zeros(300), seed=1).contexts
    assert np.array_equal(contexts, np.repeat(contexts[:, :1], 4, axis=1))
    shared = play(GLMContexts.random(4, 3), np.zeros(300), seed=1).contexts
    assert not np.any(shared[:, 0] == shared[:, 1])


@pytest.mark.parametrize("models", ["shared", "disjoint"])
def test_contexts_do_not_depend_on_the_arms(play, models):
    world = GLMContexts.random(4, 3, models=models)
    one, other = play(world, np.arange(300) % 4, seed=6), play(world, np.zeros(300), seed=6)
    assert np.array_equal(one.contexts, other.contexts)


def test_people_of_covariate_arms_may_have_another_link(play):
    world = CovariateArms(6.0 * np.eye(3), link="logistic")
    arms = np.arange(3000) % 3
    rounds = play(world, arms, seed=2)
    means = special.expit(rounds.contexts[:, 0] @ world.parameter.T)
    assert rounds.regrets == pytest.approx(means.max(axis=1) - means[np.arange(3000), arms])
    assert (world.support, set(rounds.rewards)) == ((0.0, 1.0), {0.0, 1.0})
    assert CovariateArms([[0.3, -0.4]], link="tanh").support == (-1.0, 1.0)
    made = CovariateArms.random(4, 3, link="probit", seed=1)
    assert repr(made) == "CovariateArms(4 arms, dimension 3, link='probit', random, seed=1)"


@pytest.mark.long
def test_a_linear_learner_finds_the_better_arms_of_a_logistic_world():
    """The order of means is that of <x, theta>, whatever the link.  Anything that ignores contexts
    has the regret of the first arm for ever, which is that of chance.
    """
    world = GLMContexts.random(5, 3, norm=4.0, seed=1)
    runs = simulate(LinUCB(5, 3, radius_scale=0.2), world, horizon=3000, runs=2, seed=1).runs
    assert (runs["regret"] < 0.25 * 3000 * chance(world)).all()


def chance(world):
    x = np.random.default_rng(0).standard_normal((4000, world.n_arms, world.dimension))
    x *= world.state.stretch / np.linalg.norm(x, axis=2, keepdims=True)
    means = NU[world.link.name](x @ world.parameter)
    return float((means.max(axis=1) - means.mean(axis=1)).mean())


def test_it_says_what_it_is():
    world = GLMContexts.random(4, 3, models="disjoint", norm=2.5, seed=1, decay=1.5)
    assert repr(world) == (
        "GLMContexts(4 arms, dimension 3, a parameter per arm, link='logistic', decay=1.5,"
        " random, norm=2.5, seed=1)"
    )
    assert np.linalg.norm(world.parameter, axis=1) == pytest.approx(2.5)
    assert world.title == "GLMContexts, 4 arms, dimension 3"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GLMContexts(0, [1.0]), "n_arms must be an integer at least 1, got 0"),
        (
            lambda: GLMContexts(2, [np.nan]),
            "theta must hold finite numbers, got NaN or nothing in row 0",
        ),
        (lambda: GLMContexts(2, [[1.0]]), r"theta must have shape \(d,\) or \(2, d\)"),
        (lambda: GLMContexts(2, [1.0], link="logit"), "link must be one of 'identity', 'logistic'"),
        (
            lambda: GLMContexts(2, [0.8, 0.8], link="identity"),
            "theta must have a length of at most 1",
        ),
        (lambda: GLMContexts(2, [0.8, 0.8], link="tanh"), "theta must have a length of at most 1"),
        (
            lambda: GLMContexts(2, [61.0]),
            "theta must have a length of at most 60 for the link 'logistic'",
        ),
        (lambda: GLMContexts(2, [1.0], decay=-1.0), r"decay must be a number in \[0, 100\]"),
        (
            lambda: GLMContexts(2, [1.0, 0.0], eigenvalues=[0.6, 0.1]),
            r"eigenvalues must hold numbers in \[0, 0.5\], got 0.6 in row 0",
        ),
        (
            lambda: GLMContexts(2, [1.0, 0.0], eigenvalues=[0.5]),
            "eigenvalues must be 2 numbers, one per feature, and decay must be 0, got 1",
        ),
        (
            lambda: GLMContexts(2, [1.0, 0.0], eigenvalues=[0.5, 0.1], decay=1.0),
            "eigenvalues must be 2 numbers, .* and decay=1",
        ),
        (lambda: GLMContexts.random(2, 0), "dimension must be an integer at least 1"),
        (lambda: GLMContexts.random(2, 3, models="own"), "models must be one of 'shared'"),
        (lambda: GLMContexts.random(2, 3, norm=-1.0), "norm must be a number in"),
        (lambda: GLMContexts.random(2, 3, seed=-1), "seed must be"),
        (lambda: CovariateArms([[0.5]], link="logistic"), "parameters must have at least 2"),
        (
            lambda: CovariateArms([[90.0, 0.0]], link="logistic"),
            "parameters must have a length of at most 60",
        ),
    ],
)
def test_bad_arguments_are_named(make, message: str):
    with pytest.raises(ArgumentError, match=f"^{message}"):
        make()
