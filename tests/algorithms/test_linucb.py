"""LinUCB and linear Thompson sampling: walks with dense noise, and what counters add."""

import numpy as np
import pytest
from linear_walks import (
    DELTA,
    gaussian_noise,
    laplace_tree_noise,
    linucb,
    problem,
    silence,
    thompson,
    toeplitz_noise,
    tree,
)
from scipy import stats
from sides import crossed, public_of

from dpbandits import ZCDP, ArgumentError, PureDP
from dpbandits.algorithms import LinearThompson, LinUCB, PrivateLinUCB
from dpbandits.privacy.noise import SimulationNoise

WORLD = problem(1000)
SIZES = pytest.mark.parametrize(("n_arms", "dimension"), [(3, 2), (1, 3), (4, 1), (10, 5)])


def arms_played(policy, world):
    arms = []
    for contexts, rewards in zip(world.contexts, world.rewards, strict=True):
        decision = policy.pull(contexts)
        policy.update(rewards[decision], decision)
        arms.append(decision.arm)
    return arms


def tree_noise(n, d, rho, rng):
    return gaussian_noise(n, d, rho, rng, tree(n), n.bit_length() ** 0.5)


@SIZES
def test_linucb_walks_as_the_paper_says(n_arms, dimension):
    world = problem(1000, n_arms, dimension)
    expected = linucb(world, silence(1000, dimension), DELTA)
    assert arms_played(LinUCB(n_arms, dimension), world) == expected.tolist()
    assert n_arms == 1 or len(set(expected)) > 1


@SIZES
@pytest.mark.parametrize("counter", ["toeplitz", "tree"])
@pytest.mark.parametrize("rho", [1e-8, 0.5, 1e8])
@pytest.mark.long
def test_private_linucb_walks_with_dense_gaussian_noise(counter, rho, n_arms, dimension):
    world, make = (
        problem(300, n_arms, dimension),
        {"toeplitz": toeplitz_noise, "tree": tree_noise}[counter],
    )
    noise = make(300, dimension, rho, SimulationNoise(7).generator("privacy"))
    policy = PrivateLinUCB(
        n_arms, dimension, budget=ZCDP(rho), horizon=300, counter=counter, seed=7
    )
    assert arms_played(policy, world) == linucb(world, noise, DELTA / 2).tolist()


@SIZES
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_private_linucb_walks_with_a_laplace_tree(epsilon, n_arms, dimension):
    world = problem(500, n_arms, dimension)
    noise = laplace_tree_noise(500, dimension, epsilon, SimulationNoise(7).generator("privacy"))
    policy = PrivateLinUCB(
        n_arms, dimension, budget=PureDP(epsilon), horizon=500, counter="tree", seed=7
    )
    assert arms_played(policy, world) == linucb(world, noise, DELTA / 2).tolist()


@pytest.mark.parametrize("rho", [None, 0.01, 1.0])
@SIZES
@pytest.mark.long
def test_linear_thompson_walks_with_the_same_draws(rho, n_arms, dimension):
    world, source = problem(500, n_arms, dimension), SimulationNoise(7)
    noise = (
        silence(500, dimension)
        if rho is None
        else toeplitz_noise(500, dimension, rho, source.generator("privacy"))
    )
    budget = None if rho is None else ZCDP(rho)
    policy = LinearThompson(n_arms, dimension, budget=budget, horizon=500, seed=7)
    assert arms_played(policy, world) == thompson(world, noise, source.exploration()).tolist()


def test_a_walk_with_other_noise_is_told_apart():
    # Half the noise is enough.
    noise = toeplitz_noise(1000, 2, 0.05, SimulationNoise(7).generator("privacy"))
    policy = PrivateLinUCB(3, 2, budget=ZCDP(0.05), horizon=1000, counter="toeplitz", seed=7)
    assert (
        arms_played(policy, WORLD)
        != linucb(WORLD, noise._replace(values=noise.values / 2), DELTA / 2).tolist()
    )


def test_without_a_budget_the_private_policy_is_linucb():
    assert arms_played(PrivateLinUCB(3, 2, budget=None, horizon=1000), WORLD) == arms_played(
        LinUCB(3, 2), WORLD
    )


def test_a_sample_has_the_law_of_the_posterior():
    # The share of arm 0 under N(estimate, s^2 V^-1 + v^2 V^-2), all of it in one direction; without
    # v it would be .977.
    policy = LinearThompson(2, 1, budget=ZCDP(0.5), horizon=100, seed=3, ridge=4.0)
    public, decide = public_of(policy), policy.session.gate.steps.decide
    public.estimate[0] = 0.5
    s, v = 0.5, policy.params.spread
    std = np.sqrt(s**2 / 4 + v**2 / 16)
    share, n = stats.norm.cdf(0.5 / std), 20_000
    contexts, rng = np.array([[1.0], [0.0]]), np.random.default_rng(3)
    played = sum(decide(policy.params, public, contexts, rng)[0] == 0 for _ in range(n))
    assert stats.binomtest(played, n, share).pvalue > 1e-4
    assert stats.binomtest(played, n, stats.norm.cdf(0.5 / (s / 2))).pvalue < 1e-4


@pytest.mark.parametrize("make", [LinUCB, PrivateLinUCB, LinearThompson])
def test_one_round_is_enough(make):
    options = {} if make is LinUCB else {"budget": ZCDP(0.5), "horizon": 1, "seed": 1}
    policy = make(2, 1, **options)
    decision = policy.pull([[0.3], [0.9]])
    assert policy.update(1.0, decision)
    assert policy.ledger.releases == 1
    assert np.isfinite(public_of(policy).estimate).all()


@pytest.mark.long
@pytest.mark.parametrize(
    "counter", ["tree", "honaker", "toeplitz", "buffered", "hybrid", "independent"]
)
def test_every_counter_has_the_variance_that_the_radius_knows(counter):
    # 40 runs of 200 coordinates: a standard deviation is known to 1 %; the wrong column norm of a
    # tree of 64 is off by more than 10 %.
    horizon, rng, errors = None if counter == "hybrid" else 64, np.random.default_rng(5), []
    policy = PrivateLinUCB(1, 200, budget=ZCDP(0.5), horizon=horizon, counter=counter)
    for _ in range(40):
        state = policy.new_state()
        for t in range(63):
            crossed(policy, state, t + 1, rng)
        errors.append(state.wall.release)
    measured = np.sqrt(np.mean(np.square(errors)))
    expected = np.sqrt(policy.statistic.counter.variance(63))
    assert measured == pytest.approx(expected, rel=5 / np.sqrt(2 * 8000))
    assert measured <= policy._noise_std * 1.05


def test_a_sum_without_end_has_no_horizon():
    with pytest.raises(
        ArgumentError, match=r"^horizon must be None with counter='hybrid', got 5: .* never ends"
    ):
        PrivateLinUCB(2, 3, budget=ZCDP(0.5), horizon=5, counter="hybrid")


@pytest.mark.parametrize("option", ["radius_scale", "parameter_bound", "failure_probability"])
def test_thompson_sampling_has_no_radius_to_configure(option):
    with pytest.raises(TypeError, match=f"LinearThompson takes no argument {option}"):
        LinearThompson(2, 3, budget=ZCDP(0.5), horizon=5, **{option: 0.5})


def test_a_counter_that_does_not_fit_is_refused_by_its_name():
    fitting = "'tree', 'honaker', 'hybrid', 'independent' with Laplace noise"
    with pytest.raises(ArgumentError, match=f"^counter must be one of {fitting}, got 'buffered'$"):
        PrivateLinUCB(3, 2, budget=PureDP(1.0), horizon=100, counter="buffered")
