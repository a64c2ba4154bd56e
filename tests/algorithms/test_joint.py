"""Linear bandits with private features: schedules, weights, and the published constants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sides import public_of

import dpbandits as dpb
from dpbandits import ZCDP, ApproxDP, ArgumentError
from dpbandits.algorithms import AdaCOFULJDP, LinUCBJDP
from dpbandits.algorithms.bases.counter_choice import counter_for
from dpbandits.algorithms.hidden.model import joint_sensitivity
from dpbandits.privacy.continual import BinaryTree, BufferedToeplitz, SqrtToeplitz


def played(policy, rounds: int, seed: int = 1):
    """The features that were played, their rewards, and after which rounds something was released."""
    rng, x, r, ends = np.random.default_rng(seed), [], [], []
    for t in range(rounds):
        contexts = rng.normal(size=(policy.n_arms, policy.dimension)) / 3
        contexts /= np.maximum(1.0, np.linalg.norm(contexts, axis=1, keepdims=True))
        arm = policy.pull(contexts).arm
        x.append(contexts[arm])
        r.append(float(rng.random() < 0.5))
        policy.update(r[-1])
        if policy.ledger.releases > len(ends):  # at the first pull after the last round
            ends.append(t)
    return np.array(x), np.array(r), ends


@pytest.mark.parametrize("weight", [0.3, 1.0, 4.0])
def test_without_noise_the_estimate_is_ridge_regression_whatever_the_weight(weight: float):
    policy = LinUCBJDP(3, 4, budget=None, horizon=100, reward_weight=weight, ridge=0.5, batch=10)
    x, r, _ = played(policy, 41)
    x, r = x[:40], r[:40]
    expected = np.linalg.solve(x.T @ x + 0.5 * np.eye(4), x.T @ r)
    assert policy.estimates.coefficients == pytest.approx(expected, rel=1e-9)


@pytest.mark.long
def test_the_weight_moves_noise_between_rewards_and_features():
    """A weight of 1/2 leaves less noise on x x^T, and more on x r: sqrt(2/4 + 2 + 1/32) and twice
    that, against sqrt(4.5).
    """
    even, half = (
        LinUCBJDP(3, 2, budget=ZCDP(0.5), horizon=10, reward_weight=w, counter="independent")
        for w in (1.0, 0.5)
    )
    assert even.noise_scale == pytest.approx(math.sqrt(4.5))
    assert half.noise_scale == pytest.approx(math.sqrt(2 / 4 + 2 + 1 / 32))
    assert half.statistic.max_sensitivity == joint_sensitivity(0.5, 1.0)
    # Seen where nothing but noise is left: the estimate of nobody's rewards.
    totals = []
    for seed in range(400):
        policy = LinUCBJDP(
            1, 2, budget=ZCDP(0.5), horizon=10, reward_weight=0.5, counter="independent", seed=seed
        )
        for _ in range(2):
            policy.pull(np.zeros((1, 2)))
            policy.update(0.0)
        public = public_of(policy)
        totals.append(public.precision @ public.estimate)
    assert np.std(totals) == pytest.approx(2 * half.noise_scale, rel=0.15)


def test_releases_come_when_the_number_of_rounds_has_grown():
    policy = AdaCOFULJDP(2, 2, budget=ZCDP(0.5), horizon=100, growth=0.5, seed=1)
    _, _, ends = played(policy, 40)
    assert ends == [1, 2, 3, 5, 8, 12, 18, 27]
    assert policy.statistic.counter.horizon == 11  # 41, 62 and 93, too
    batches = LinUCBJDP(2, 2, budget=ZCDP(0.5), horizon=100, batch=15, seed=1)
    assert played(batches, 40)[2] == [15, 30]
    assert batches.statistic.counter.horizon == 6


def test_growing_batches_need_no_horizon():
    for counter, budget in (("hybrid", ZCDP(0.5)), (None, None)):
        policy = AdaCOFULJDP(2, 2, budget=budget, horizon=None, counter=counter, growth=0.5, seed=1)
        assert played(policy, 40)[2] == [1, 2, 3, 5, 8, 12, 18, 27]


def test_the_published_constants():
    """Shariff & Sheffet (2018), Section 4.2, for T = 1000, d = 3, L = R = 1: m = 10 levels."""
    epsilon, delta, alpha, d, levels = 2.0, 1e-3, 0.01, 3, 10
    policy = LinUCBJDP(
        4,
        d,
        budget=ApproxDP(epsilon, delta),
        horizon=1000,
        calibration="paper",
        failure_probability=alpha,
    )
    variance = 16 * levels * 2.0**2 * math.log(4 / delta) ** 2 / epsilon**2
    assert policy.noise_scale == pytest.approx(math.sqrt(2 * variance))  # of svec, see GOE
    log = math.log(2 * 1000 / alpha)
    bound = math.sqrt(variance * 2 * levels) * (4 * math.sqrt(d) + 2 * log)
    gamma = math.sqrt(variance * levels / bound) * (math.sqrt(d) + math.sqrt(2 * log))
    radius = 0.5 * math.sqrt(2 * math.log(2 / alpha) + d * math.log(3))
    radius += math.sqrt(3 * bound) + gamma
    public = public_of(policy)
    assert public.facts[0] == pytest.approx(radius)
    assert public.precision[0] == pytest.approx(2 * bound * np.eye(d))
    # Far more noise than the budget asks for, which is what the guarantee says.
    assert policy.guarantee.holds.delta < 1e-20
    exact = LinUCBJDP(4, d, budget=ApproxDP(epsilon, delta), horizon=1000)
    assert policy.noise_scale > 9 * exact.noise_scale


@pytest.mark.parametrize("ridge", [1.0, 1e-13])
def test_rounding_of_features_that_are_alike_ends_the_search_for_a_shift(ridge: float):
    policy = LinUCBJDP(1, 2, budget=None, horizon=3000, ridge=ridge)
    for _ in range(3000):
        policy.pull([[0.6, 0.8]])
        policy.update(1.0)
    long = LinUCBJDP(1, 2, budget=None, horizon=100, clip=False)
    for x in ([3e9, 1e9], [1e60, 1e60], [3e9, 1e9], [1.0, 0.0]):
        long.pull([x])
        long.update(1.0)
    assert np.isfinite(policy.estimates.coefficients).all()


@pytest.mark.parametrize("entry", [None, "x", 10**400, 2**70, 1j, [1, 2]])
def test_no_entry_of_hidden_raises_or_is_shown(entry):
    policy = LinUCBJDP(2, 2, budget=ZCDP(0.5), horizon=100, seed=1)
    row = [0.123456, entry]
    assert policy.pull([row, [0.0, 1.0]]).recorded
    assert policy.diagnostics.blanked == (entry != 2**70)
    with pytest.raises(ArgumentError, match=r"^contexts must") as caught:
        policy.pull([[*row, 1.0], [0.0, 1.0, 1.0]])  # another shape, which is public
    assert "0.123456" not in str(caught.value)


def test_bad_arguments_are_named():
    for wrong in ({"batch": 0}, {"reward_weight": 0.0}, {"reward_weight": math.nan}):
        with pytest.raises(ArgumentError, match=rf"^{next(iter(wrong))} must be"):
            LinUCBJDP(3, 2, budget=ZCDP(0.5), horizon=100, **wrong)
    with pytest.raises(ArgumentError, match=r"^growth must be"):
        AdaCOFULJDP(3, 2, budget=ZCDP(0.5), horizon=100, growth=0.0)
    with pytest.raises(ArgumentError, match=r"^reward_weight must be 1"):
        LinUCBJDP(
            3, 2, budget=ApproxDP(1.0, 0.1), horizon=9, calibration="paper", reward_weight=7.0
        )
    with pytest.raises(ArgumentError, match=r"^clip must be True"):
        LinUCBJDP(3, 2, budget=ApproxDP(1.0, 0.1), horizon=9, calibration="paper", clip=False)
    with pytest.raises(ArgumentError, match=r"^counter must be 'tree'"):
        LinUCBJDP(
            3, 2, budget=ApproxDP(1.0, 0.1), horizon=9, calibration="paper", counter="toeplitz"
        )
    with pytest.raises(ArgumentError, match=r"^budget must be"):
        LinUCBJDP(3, 2, budget=dpb.PureDP(1.0), horizon=100)


@pytest.mark.parametrize("cls", [LinUCBJDP, dpb.algorithms.LinUCBLDP])
def test_the_published_noise_may_have_our_radius(cls):
    shape = {"budget": ApproxDP(10.0, 0.1), "horizon": 1000, "calibration": "paper", "seed": 1}
    published, ours = (cls(4, 5, bounds=bounds, **shape) for bounds in ("published", "exact"))
    assert "bounds" not in published.arguments  # its random numbers are those of before
    assert "bounds='exact'" in repr(ours)
    assert repr(type(ours)(**ours.config)) == repr(ours)
    assert ours.guarantee == published.guarantee
    assert ours.statistic == published.statistic
    assert ours.noise_scale == published.noise_scale
    assert (published.params.published, ours.params.published) == (True, False)
    exact = {**shape, "calibration": "exact"}
    assert cls(4, 5, bounds="exact", **exact).params == cls(4, 5, **exact).params
    with pytest.raises(ArgumentError, match=r"^bounds must be one of 'exact', 'published'"):
        cls(4, 5, bounds="paper", **shape)


@pytest.mark.parametrize("cls", [LinUCBJDP, dpb.algorithms.LinUCBLDP])
def test_our_bounds_cover_the_published_noise(cls):
    """Of one release: the norm of the noise on V, as drawn on the statistic, and that of n - N
    theta for a theta of length 1; each is left once in some thousand at most, and not by far.
    """
    d, draws = 5, 4000
    policy = cls(4, d, budget=ApproxDP(10.0, 0.1), horizon=1, calibration="paper", bounds="exact")
    params, std = policy.params, policy.noise_scale
    rng = np.random.default_rng(5)
    n = rng.normal(size=(draws, d)) * std / params.weight
    matrix = np.zeros((draws, d, d))
    index = np.arange(d)
    matrix[:, index, index] = rng.normal(size=(draws, d)) * std / params.diagonal
    rows, columns = np.triu_indices(d, 1)
    matrix[:, rows, columns] = rng.normal(size=(draws, len(rows))) * std / math.sqrt(2.0)
    matrix[:, columns, rows] = matrix[:, rows, columns]
    norms = np.abs(np.linalg.eigvalsh(matrix)).max(axis=1)
    rest = np.linalg.norm(n - matrix[:, :, 0], axis=1)
    bound = params.matrix_norm
    assert np.mean(norms > bound) < 2e-3
    assert np.quantile(norms, 0.99) > 0.5 * bound
    if cls is LinUCBJDP:  # where noise adds up, the bound is that of a walk
        assert np.mean(rest > params.vector_norm) < 2e-3
        assert np.quantile(rest, 0.99) > 0.5 * params.vector_norm


@pytest.mark.parametrize(("secure", "expected"), [(False, BufferedToeplitz), (True, BinaryTree)])
def test_the_default_counter_of_long_sums_fits_in_memory(secure: bool, expected: type):
    made = {h: LinUCBJDP(2, 100, budget=ZCDP(0.5), horizon=h) for h in (3257, 3258)}
    assert isinstance(made[3257].statistic.counter, SqrtToeplitz)
    assert isinstance(made[3258].statistic.counter, BufferedToeplitz)
    size = made[3258].statistic.size
    counter = counter_for(None, 3258, made[3258].channel, secure=secure, size=size)
    assert isinstance(counter, expected)
    made[3257].statistic.counter.start(size, 2)  # of 128 MiB


def test_counters_without_memory_are_refused_when_the_policy_is_made():
    message = r"^horizon must be at most 133 for .*'toeplitz'.* got 134.*'buffered'"
    with pytest.raises(ArgumentError, match=message):
        LinUCBJDP(2, 500, budget=ZCDP(0.5), horizon=134, counter="toeplitz")
