"""Rarely switching OFUL: walks with dense noise, and how often it changes."""

import numpy as np
import pytest
from linear_walks import (
    DELTA,
    changes,
    independent_noise,
    laplace_tree_noise,
    oful,
    problem,
    published_radius,
    tight_radius,
    toeplitz_noise,
)

from dpbandits import ZCDP, ArgumentError, PureDP
from dpbandits.algorithms import RSOFUL, AdaCOFUL
from dpbandits.privacy.noise import SimulationNoise

HORIZON = 1000


def cases(name, *values):
    """Every value with three arms in the plane, and the second one with other sizes."""
    sizes = [(3, 2, value) for value in values]
    others = [(k, d, values[1]) for k, d in ((1, 3), (4, 1), (10, 5))]
    return pytest.mark.parametrize(("n_arms", "dimension", name), [*sizes, *others])


def arms_played(policy, world):
    arms = []
    for contexts, rewards in zip(world.contexts, world.rewards, strict=True):
        decision = policy.pull(contexts)
        policy.update(rewards[decision], decision)
        arms.append(decision.arm)
    return arms


@cases("growth", 0.2, 1.0, 3.0)
def test_rsoful_walks_as_the_paper_says(growth, n_arms, dimension):
    world = problem(HORIZON, n_arms, dimension)
    expected = oful(world, np.zeros((HORIZON, dimension)), tight_radius(0.0, DELTA), growth)
    assert arms_played(RSOFUL(n_arms, dimension, growth=growth), world) == expected.tolist()
    assert (
        arms_played(AdaCOFUL(n_arms, dimension, budget=None, horizon=HORIZON, growth=growth), world)
        == expected.tolist()
    )


@cases("rho", 1e-8, 0.05, 1e8)
def test_the_tight_variant_walks_with_dense_noise(rho, n_arms, dimension):
    world = problem(HORIZON, n_arms, dimension)
    noise = toeplitz_noise(
        changes(HORIZON, dimension), dimension, rho, SimulationNoise(7).generator("privacy")
    )
    policy = AdaCOFUL(n_arms, dimension, budget=ZCDP(rho), horizon=HORIZON, seed=7)
    assert policy.most_changes == changes(HORIZON, dimension)
    assert (
        arms_played(policy, world) == oful(world, noise.values, tight_radius(noise.norm)).tolist()
    )


@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_a_laplace_tree(epsilon):
    world = problem(HORIZON)
    noise = laplace_tree_noise(
        changes(HORIZON, 2), 2, epsilon, SimulationNoise(7).generator("privacy")
    )
    policy = AdaCOFUL(3, 2, budget=PureDP(epsilon), horizon=HORIZON, counter="tree", seed=7)
    assert (
        arms_played(policy, world) == oful(world, noise.values, tight_radius(noise.norm)).tolist()
    )


@cases("eigenvalue", None, 0.0, 0.9)
def test_the_published_variant_walks_as_the_paper_says(eigenvalue, n_arms, dimension):
    world, rho = problem(HORIZON, n_arms, dimension), 0.05
    noise = independent_noise(
        changes(HORIZON, dimension), dimension, rho, SimulationNoise(7).generator("privacy")
    )
    policy = AdaCOFUL(
        n_arms,
        dimension,
        budget=ZCDP(rho),
        horizon=HORIZON,
        variant="published",
        smallest_eigenvalue=eigenvalue,
        seed=7,
    )
    assert (
        arms_played(policy, world)
        == oful(world, noise.values, published_radius(rho, HORIZON, dimension, eigenvalue)).tolist()
    )


def test_a_walk_with_other_noise_is_told_apart():
    world = problem(HORIZON)
    noise = toeplitz_noise(changes(HORIZON, 2), 2, 0.05, SimulationNoise(7).generator("privacy"))
    policy = AdaCOFUL(3, 2, budget=ZCDP(0.05), horizon=HORIZON, seed=7)
    assert (
        arms_played(policy, world)
        != oful(world, noise.values / 2, tight_radius(noise.norm)).tolist()
    )


@pytest.mark.parametrize("growth", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("dimension", [1, 4])
def test_adversarial_contexts_do_not_exceed_the_planned_changes(growth, dimension):
    """Equal shares of every direction reach the determinant-trace bound, the most that contexts can
    do.
    """
    policy = AdaCOFUL(1, dimension, budget=ZCDP(0.5), horizon=400, growth=growth, seed=1)
    for t in range(400):
        policy.pull(np.eye(dimension)[[t % dimension]])
        policy.update(0.5)
    policy.pull(np.eye(dimension)[[0]])
    assert policy.session.state.wall.running.limit == policy.most_changes
    assert 0.6 * policy.most_changes - 2 <= policy.ledger.releases <= policy.most_changes


def test_one_round_is_enough():
    policy = AdaCOFUL(2, 1, budget=ZCDP(0.5), horizon=1, seed=1, growth=0.1)
    policy.pull([[0.3], [0.9]])
    policy.update(1.0)
    policy.pull([[0.3], [0.9]])
    assert policy.ledger.releases == 1


def test_sums_that_could_grow_inexact_are_refused_at_once():
    options = {
        "budget": ZCDP(0.5),
        "horizon": 10**6,
        "noise": "secure",
        "reward_range": (0.0, 4096.0),
    }
    with pytest.raises(
        ArgumentError,
        match=(
            r"^grid must be coarser than .*, or counter must be 'tree': a release may cover 1000000"
        ),
    ):
        AdaCOFUL(1, 1, grid=2.0**-20, **options)
    for fitting in ({"counter": "tree"}, {"grid": 2.0**-10}):
        assert AdaCOFUL(1, 1, **options, **fitting).pull([[1.0]]).recorded
