"""The grid of secure noise follows the range of what is rounded to it."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpbandits as dpb
from dpbandits.algorithms import MergedIMED
from dpbandits.glm import LocalGLM, PrivateGLM
from dpbandits.privacy import ContinualSum, Independent, Laplace
from dpbandits.privacy.grids import default_grid, finest_grid
from dpbandits.privacy.randomiser import Randomiser, VectorChannel, VectorRandomiser
from dpbandits.privacy.secure import SecureNoise

pytest.importorskip("opendp")

RANGES = [
    (0.0, 1.0),
    (0.0, 5000.0),
    (0.0, 1e-9),
    (0.0, 1e9),
    (-1e9, 1e9),
    (1e6, 1e6 + 1.0),
    (-1e6 - 1.0, -1e6),
    (1e15, 1e15 + 1e9),
    (1e-3, 1e-3 + 2e-9),
    (0.1, 0.7),
]
BUDGETS = [dpb.ApproxDP(1.0, 1e-3), dpb.ZCDP(0.5), dpb.RDP(4.0, 1.0)]


def rewards(reward_range, n=300):
    return np.random.default_rng(0).uniform(*reward_range, n)


@pytest.mark.parametrize("budget", [*BUDGETS, dpb.PureDP(1.0)], ids=str)
@pytest.mark.parametrize("reward_range", RANGES, ids=str)
def test_every_range_of_simulated_noise_takes_secure_noise(reward_range, budget):
    """Nobody gives a grid, all releases are on it, and a million rewards fit into one."""
    (lo, hi), scales = reward_range, []
    for noise in ("simulation", "secure"):
        policy = MergedIMED(2, budget=budget, reward_range=reward_range, noise=noise)
        scales.append(policy.noise_scale)
        for reward in rewards(reward_range):
            policy.update(float(reward), policy.pull())
        assert policy.ledger.releases >= 4
    assert scales[1] == pytest.approx(scales[0], rel=1e-6)
    grid = policy.grid
    assert math.frexp(grid)[0] == 0.5
    assert policy.noise_source.most_records >= 2**21 - 1
    assert 2**11 <= (hi - lo) / grid <= 2**21
    names = {one: getattr(dpb, one) for one in dpb.__all__}
    assert repr(eval(repr(policy), {**names, **vars(dpb.parts)})) == repr(policy)
    assert "grid" not in repr(policy)


@given(
    width=st.floats(1e-9, 1e9),
    offset=st.floats(-1e6, 1e6),
    share=st.floats(0.0, 1.0),
)
def test_rounding_moves_a_reward_by_half_a_step(width, offset, share):
    lo = offset * width
    hi = lo + width
    if not lo < hi:
        return
    grid = default_grid((lo, hi))
    source = SecureNoise(grid, (lo, hi))
    reward = lo + share * (hi - lo)
    entered = source.to_grid(reward)
    assert lo <= entered <= hi
    assert (entered / grid).is_integer()
    inside = lo + grid <= reward <= hi - grid
    assert abs(entered - reward) <= (0.5 if inside else 1.0) * grid * (1 + 1e-9)


def test_the_grid_is_that_of_earlier_versions_where_the_width_is_one():
    for reward_range in ((0.0, 1.0), (-0.5, 0.5), (3.0, 4.0), (0.0, 1.99)):
        assert default_grid(reward_range) == 2.0**-20
    assert MergedIMED(2, budget=None).config["grid"] == 2.0**-20
    given = MergedIMED(2, budget=BUDGETS[0], noise="secure", grid=2.0**-20)
    assert given.stream_key == MergedIMED(2, budget=BUDGETS[0], noise="secure").stream_key


def test_a_grid_that_is_no_default_is_shown():
    shape = {"budget": BUDGETS[0], "reward_range": (0.0, 5.0)}
    assert "grid=9.5367431640625e-07" in repr(MergedIMED(2, noise="secure", grid=2.0**-20, **shape))
    # of simulated noise earlier versions have saved it with every policy
    assert "grid" not in repr(MergedIMED(2, grid=2.0**-20, **shape))
    assert "grid=0.25" in repr(MergedIMED(2, grid=0.25, **shape))


@pytest.mark.parametrize("noise", ["simulation", "secure"])
@pytest.mark.parametrize("grid", ["x", 0.3, -1.0, 0.0, True, math.nan])
def test_a_grid_that_is_none_is_refused_whatever_the_noise(grid, noise):
    with pytest.raises(dpb.ArgumentError, match=r"^grid must be a power of two"):
        MergedIMED(2, budget=BUDGETS[0], grid=grid, noise=noise)


def test_a_million_far_rewards_add_up_exactly():
    source = SecureNoise(default_grid((1e6, 1e6 + 1.0)), (1e6, 1e6 + 1.0))
    total = 0.0
    for reward in np.random.default_rng(1).uniform(1e6, 1e6 + 1.0, 2000):
        total += source.to_grid(float(reward)) * 1000.0
    assert (total / source.grid).is_integer()
    assert total / source.grid < 2**53


@pytest.mark.parametrize(
    ("bound", "reward_range"),
    [
        (1e-6, (0.0, 1.0)),
        (300.0, (0.0, 1.0)),
        (1.0, (0.0, 1e-9)),
        (1.0, (0.0, 1e9)),
        (300.0, (1e6, 1e6 + 1.0)),
    ],
)
def test_records_with_features_add_up_exactly_for_any_bound(bound, reward_range):
    """Squares of features are in the same sums as rewards."""
    policy = dpb.algorithms.LinUCBJDP(
        2,
        3,
        budget=BUDGETS[0],
        horizon=4000,
        batch=1000,
        context_bound=bound,
        reward_range=reward_range,
        noise="secure",
    )
    contexts = np.random.default_rng(2).normal(size=(2, 3)) * bound
    for reward in rewards(reward_range, 1100):
        policy.update(float(reward), policy.pull(contexts))
    assert policy.ledger.releases == 1
    assert policy.session.gate.most_records >= 2**16
    assert finest_grid(bound**2) <= policy.grid


def test_sums_that_could_be_inexact_are_refused_before_any_record():
    with pytest.raises(dpb.ArgumentError, match=r"^grid must be coarser"):
        dpb.algorithms.LinUCBJDP(
            2,
            3,
            budget=BUDGETS[0],
            horizon=10**6,
            batch=10**5,
            context_bound=1e3,
            grid=2.0**-20,
            noise="secure",
        )


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e6])
def test_other_channels_follow_their_bounds(size):
    randomise = Randomiser(Laplace(1.0), (0.0, size))
    assert randomise._noise.grid == default_grid((0.0, size))
    assert abs(randomise(size / 2)) < 60 * size
    vector = VectorRandomiser(dpb.privacy.Gaussian(1.0), size, size)
    assert vector._noise.grid == default_grid((0.0, size))
    channel = VectorChannel(BUDGETS[0], size)
    assert np.abs(channel(np.full(3, size))).max() < 60 * size
    assert channel._grid == default_grid((0.0, size))
    running = ContinualSum(
        Independent(), BUDGETS[0], sensitivity=size, bound=size / 2, noise="secure"
    )
    assert running._grid <= 2.0**-10
    assert abs(running.add(size / 4)) < 60 * size


@pytest.mark.parametrize("bound", [1e-6, 1.0, 50.0])
@pytest.mark.parametrize("kind", [PrivateGLM, LocalGLM])
def test_estimates_follow_the_length_of_features(kind, bound):
    model = kind(budget=BUDGETS[0], noise="secure", context_bound=bound)
    assert model.grid is None
    assert model._step == default_grid((0.0, bound))
    assert copy.copy(model)._source().most_records >= 2**20
    if kind is PrivateGLM:
        rng = np.random.default_rng(3)
        features = rng.normal(size=(200, 2)) * bound / 3
        fitted = model.fit(features, (rng.random(200) < 0.5).astype(float))
        assert fitted.ledger.spent() == BUDGETS[0]
