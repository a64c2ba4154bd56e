"""Linear rewards: the laws of sums, contexts and rewards, regret by brute force, and what is
refused.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpbandits import ArgumentError
from dpbandits.environments import ContextTable, GaussianContexts, LinearArms, PoolContexts
from dpbandits.kernel import bind, entry, unbound

ALPHA = 1e-4

ARMS = [[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]]
THETA = [0.3, 0.5]
KINDS = ["gaussian", "bounded"]

draw = unbound


@entry
def _fill(state, arm, n, rng, sums):
    for i in range(sums.size):
        sums[i] = draw(state, arm, 0, n, rng)


def sums(environment, arm, n, repeats, seed):
    filled = np.empty(repeats)
    bind(_fill, draw=environment.kernels.draw)(
        environment.state, arm, n, np.random.default_rng(seed), filled
    )
    return filled


def z_score(sample, mean):
    return abs(sample.mean() - mean) / (sample.std() / np.sqrt(sample.size))


LIMIT = stats.norm.isf(ALPHA / 2)


def test_titles_are_short():
    worlds = [LinearArms([[1.0, 0.0]], [0.5, 0.5]), GaussianContexts.on_sphere(10, 3, seed=1)]
    assert [world.title for world in worlds] == [
        "LinearArms, 1 arm, dimension 2",
        "GaussianContexts, 10 arms, dimension 3",
    ]


def test_means_are_inner_products():
    environment = LinearArms(ARMS, THETA)
    assert environment.means() == pytest.approx([0.3, 0.58, -0.5])
    assert environment.features.tolist() == ARMS
    assert environment.parameter.tolist() == THETA


@pytest.mark.parametrize("rewards", KINDS)
def test_sums_of_arms_have_the_law_of_single_rounds(rewards):
    """3,000 against 3,000: a standard deviation that is off by 15 %, or noise of n std instead of
    sqrt(n) std, is rejected.
    """
    n, repeats, environment = 10, 3000, LinearArms(ARMS, THETA, std=0.7, rewards=rewards)
    for arm in range(3):
        whole = sums(environment, arm, n, repeats, seed=1)
        single = sums(environment, arm, 1, n * repeats, seed=2).reshape(repeats, n).sum(axis=1)
        if rewards == "bounded":
            table = np.array(
                [np.bincount(((x + n) / 2).astype(int), minlength=n + 1) for x in (whole, single)]
            )
            assert stats.chi2_contingency(table[:, table.sum(axis=0) > 10]).pvalue > ALPHA
        else:
            assert stats.ks_2samp(whole, single).pvalue > ALPHA
        assert z_score(single, n * environment.means()[arm]) < LIMIT


def test_gaussian_sums_of_arms_are_normal():
    sample = sums(LinearArms(ARMS, THETA, std=2.0), 1, 10**6, 5000, seed=4)
    assert stats.kstest(sample, stats.norm(0.58e6, 2e3).cdf).pvalue > ALPHA


def test_bounded_arms_give_one_or_minus_one():
    sample = sums(LinearArms(ARMS, THETA, rewards="bounded"), 2, 1, 1000, seed=5)
    assert set(sample) == {-1.0, 1.0}
    certain = LinearArms([[1.0], [-1.0]], [1.0], rewards="bounded")
    assert sums(certain, 0, 50, 3, seed=6).tolist() == [50.0] * 3
    assert sums(certain, 1, 50, 3, seed=6).tolist() == [-50.0] * 3


@pytest.mark.parametrize("rewards", KINDS)
def test_regret_of_arms_is_the_gap_of_every_round(rewards):
    environment = LinearArms(ARMS, THETA, rewards=rewards)
    for arm, mean in enumerate([0.3, 0.58, -0.5]):
        assert environment.kernels.regret(environment.state, arm, 3, 7) == pytest.approx(
            7 * (0.58 - mean)
        )


def test_vectors_on_the_sphere_are_uniform():
    """In dimension 3 each coordinate is uniform on [-1, 1] (Archimedes); vectors from a normalised
    cube are rejected.
    """
    environment = LinearArms.on_sphere(5000, 3, seed=1)
    assert np.linalg.norm(environment.features, axis=1) == pytest.approx(1.0)
    assert np.linalg.norm(environment.parameter) == pytest.approx(1.0)
    for i in range(3):
        assert stats.kstest(environment.features[:, i], stats.uniform(-1, 2).cdf).pvalue > ALPHA
    assert np.array_equal(environment.features, LinearArms.on_sphere(5000, 3, seed=1).features)


def test_unit_vectors_always_allow_bounded_rewards():
    for seed in range(200):
        assert np.abs(LinearArms.on_sphere(4, 1, seed=seed, rewards="bounded").means()).max() <= 1.0


def test_gaussian_contexts_have_the_stated_moments(play):
    """6,000 rounds of 10 arms and 3 coordinates: a variance of .1 taken for a standard deviation is
    rejected.
    """
    environment = GaussianContexts(10, [1.0, 0.0, 0.0])
    contexts = play(environment, np.zeros(6000), seed=1).contexts
    law = stats.norm(1 / np.sqrt(3), np.sqrt(0.1))
    for arm, i in ((0, 0), (9, 2), (4, 1)):
        assert stats.kstest(contexts[:, arm, i], law.cdf).pvalue > ALPHA
    correlations = np.corrcoef(contexts.reshape(6000, 30), rowvar=False)[np.triu_indices(30, 1)]
    assert np.abs(correlations).max() * np.sqrt(6000) < stats.norm.isf(
        ALPHA / 2 / correlations.size
    )


def test_projection_scales_what_is_too_long_and_nothing_else(play):
    arms = np.zeros(500)
    # later rounds differ: noise goes between
    free = play(GaussianContexts(10, [1.0, 0.0, 0.0]), arms, seed=2).contexts[0]
    cut = play(GaussianContexts(10, [1.0, 0.0, 0.0], project=True), arms, seed=2).contexts[0]
    lengths = np.linalg.norm(free, axis=1)
    assert (lengths > 1).any()
    assert (lengths < 1).any()
    assert cut == pytest.approx(free / np.maximum(lengths, 1.0)[:, None])


def test_projected_contexts_lie_in_the_unit_ball(play):
    environment = GaussianContexts.on_sphere(10, 3, seed=1, project=True)
    lengths = np.linalg.norm(play(environment, np.zeros(5000), seed=3).contexts, axis=2)
    assert lengths.max() <= environment.context_bound + 1e-12
    assert environment.context_bound == 1.0
    assert GaussianContexts.on_sphere(10, 3, seed=1).context_bound == np.inf


WORLDS = [
    GaussianContexts.on_sphere(4, 3, seed=2),
    GaussianContexts.on_sphere(4, 3, seed=2, std=0.3, project=True),
    GaussianContexts(4, [1.5, -0.5], variance=0.5, rewards="bounded"),
    PoolContexts.uniform(50, 4, per_round=6, seed=1),
    PoolContexts.uniform(50, 4, per_round=6, seed=1, rewards="bounded"),
]


def true_means(environment, contexts):
    means = contexts @ environment.parameter
    return np.clip(means, -1.0, 1.0) if environment.rewards == "bounded" else means


@pytest.mark.long
@pytest.mark.parametrize("environment", WORLDS, ids=repr)
def test_regret_is_against_the_best_arm_of_the_round(environment, play):
    arms = np.random.default_rng(1).integers(0, environment.n_arms, 2000)
    rounds = play(environment, arms, seed=4)
    means = true_means(environment, rounds.contexts)
    assert rounds.regrets == pytest.approx(
        means.max(axis=1) - means[np.arange(2000), arms], abs=1e-12
    )
    assert rounds.regrets.min() >= 0.0


@pytest.mark.parametrize("environment", WORLDS, ids=repr)
def test_rewards_have_the_stated_law(environment, play):
    """20,000 rounds: noise that is off by 5 %, or a probability that is not (1 + mean) / 2, is
    rejected.
    """
    arms = np.random.default_rng(2).integers(0, environment.n_arms, 20_000)
    rounds = play(environment, arms, seed=5)
    noise = rounds.rewards - true_means(environment, rounds.contexts)[np.arange(arms.size), arms]
    if environment.rewards == "bounded":
        assert set(rounds.rewards) == {-1.0, 1.0}
        assert environment.support == (-1.0, 1.0)
        assert z_score(noise, 0.0) < LIMIT
        assert z_score(noise * (rounds.rewards - noise), 0.0) < LIMIT
    else:
        assert environment.support == (-np.inf, np.inf)
        assert stats.kstest(noise, stats.norm(0, environment.std).cdf).pvalue > ALPHA


@pytest.mark.parametrize("environment", WORLDS, ids=repr)
def test_contexts_and_noise_do_not_depend_on_the_arms(environment, play):
    arms = np.random.default_rng(3).integers(0, environment.n_arms, 300)
    one, other = play(environment, arms, seed=6), play(environment, np.zeros(300), seed=6)
    assert np.array_equal(one.contexts, other.contexts)
    if environment.rewards == "gaussian":
        means = true_means(environment, one.contexts)
        assert one.rewards - means[np.arange(300), arms] == pytest.approx(
            other.rewards - means[:, 0], abs=1e-12
        )


def test_pool_subsets_are_uniform_and_ordered_at_random(play):
    """All 120 ordered triples of 6 items, 24,000 rounds: Floyd's order without the shuffle, or
    drawing with repeats, is rejected.
    """
    pool = PoolContexts([[float(i), 1.0] for i in range(6)], [0.0, 1.0], per_round=3)
    shown = play(pool, np.zeros(24_000), seed=7).contexts[:, :, 0].astype(int)
    codes, counts = np.unique(shown @ [36, 6, 1], return_counts=True)
    assert codes.size == 120
    assert stats.chisquare(counts).pvalue > ALPHA


def test_a_whole_pool_is_a_permutation(play):
    pool = PoolContexts(np.arange(1.0, 5.0)[:, None], [1.0], per_round=4)
    shown = play(pool, np.zeros(4800), seed=8).contexts[:, :, 0]
    assert (np.sort(shown, axis=1) == [1, 2, 3, 4]).all()
    _, counts = np.unique(shown @ [64, 16, 4, 1], return_counts=True)
    assert counts.size == 24
    assert stats.chisquare(counts).pvalue > ALPHA


def test_the_uniform_pool_is_normalised():
    """A coordinate of the unnormalised vectors is at most 1 and its direction lies in the positive
    orthant.
    """
    pool = PoolContexts.uniform(seed=3)
    assert pool.features.shape == (1000, 10)
    assert pool.features.min() > 0.0
    assert np.linalg.norm(pool.features, axis=1) == pytest.approx(1.0)
    assert np.linalg.norm(pool.parameter) == pytest.approx(1.0)
    assert (pool.context_bound, pool.std, pool.n_arms) == (1.0, 0.5, 10)
    # of two uniform numbers: P(ratio <= r) = r / 2 up to 1, 1 - 1 / (2 r) above
    ratios = pool.features[:, 0] / pool.features[:, 1]
    assert (
        stats.kstest(ratios, lambda r: np.where(r <= 1, r / 2, 1 - 0.5 / np.maximum(r, 1))).pvalue
        > ALPHA
    )


def test_one_arm_in_one_dimension(play):
    for environment in (GaussianContexts(1, [1.0]), PoolContexts([[0.5]], [1.0], per_round=1)):
        rounds = play(environment, [0, 0, 0], seed=1)
        assert rounds.contexts.shape == (3, 1, 1)
        assert rounds.regrets.tolist() == [0.0] * 3
    single = LinearArms([[0.5]], [1.0])
    assert single.kernels.regret(single.state, 0, 0, 10) == 0.0


@pytest.mark.long
def test_tables_of_contexts_answer_from_the_table(play):
    rng = np.random.default_rng(1)
    contexts, rewards, means = (
        rng.normal(size=(7, 3, 2)),
        rng.normal(size=(7, 3)),
        rng.normal(size=(7, 3)),
    )
    arms = rng.integers(0, 3, 7)
    rounds = play(ContextTable(contexts, rewards, means), arms, seed=1)
    assert np.array_equal(rounds.contexts, contexts)
    assert rounds.rewards.tolist() == rewards[np.arange(7), arms].tolist()
    assert rounds.regrets == pytest.approx(means.max(axis=1) - means[np.arange(7), arms])


def test_environments_of_different_content_differ_in_repr():
    names = {repr(environment) for environment in WORLDS}
    names |= {
        repr(LinearArms(ARMS, THETA)),
        repr(LinearArms(ARMS, [0.3, 0.51])),
        repr(LinearArms(ARMS, THETA, std=2.0)),
    }
    names |= {
        repr(LinearArms(ARMS, THETA, rewards="bounded")),
        repr(PoolContexts.uniform(50, 4, per_round=6, seed=2)),
    }
    assert len(names) == len(WORLDS) + 5
    assert repr(LinearArms(ARMS, THETA)).startswith(
        "LinearArms(3 arms, dimension 2, std=1, content "
    )


@pytest.mark.parametrize(
    "bad", [[], [[]], 1.0, [[np.nan, 1.0]], [["a", "b"]], [[1.0], [1.0, 2.0]], None], ids=repr
)
def test_bad_arrays_are_refused(bad):
    with pytest.raises(ArgumentError, match=r"arms must (be an array of|hold finite numbers)"):
        LinearArms(bad, THETA)
    with pytest.raises(ArgumentError, match=r"features must (be an array of|hold finite numbers)"):
        PoolContexts(bad, THETA)
    with pytest.raises(ArgumentError, match="theta must be an array of"):
        GaussianContexts(2, bad if bad != 1.0 else None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearArms(ARMS, [1.0]), r"theta must have shape \(2,\)"),
        (lambda: LinearArms([[1e300]], [1e300]), "arms must have finite inner products"),
        (
            lambda: LinearArms([[1.1]], [1.0], rewards="bounded"),
            r"arms must have means <theta, a> in \[-1, 1\]",
        ),
        (lambda: LinearArms(ARMS, THETA, std=0.0), "std must be a number in"),
        (lambda: LinearArms(ARMS, THETA, rewards="binary"), "rewards must be one of"),
        (lambda: LinearArms.on_sphere(0, 3), "n_arms must be an integer"),
        (lambda: LinearArms.on_sphere(3, 0), "dimension must be an integer"),
        (lambda: LinearArms.on_sphere(3, 3, seed=-1), "seed must be an integer"),
        (lambda: GaussianContexts(0, THETA), "n_arms must be an integer"),
        (lambda: GaussianContexts(2, THETA, variance=-0.1), "variance must be a number in"),
        (lambda: GaussianContexts(2, THETA, mean=np.inf), "mean must be a number in"),
        (lambda: GaussianContexts(2, THETA, project=1), "project must be True or False"),
        (lambda: PoolContexts(ARMS, [1.0]), r"theta must have shape \(2,\)"),
        (
            lambda: PoolContexts([[1e300]], [1e300], per_round=1),
            "features must have finite inner products",
        ),
        (
            lambda: PoolContexts(ARMS, THETA, per_round=4),
            "per_round must be an integer between 1 and 3",
        ),
        (lambda: PoolContexts(ARMS, THETA, std=np.nan, per_round=2), "std must be a number in"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
