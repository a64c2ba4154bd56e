"""LinUCB with Wishart noise: bounds on norms, the published constants, and Gaussian noise at the
same budget.
"""

import math

import numpy as np
import pytest
from scipy import stats
from sides import public_of

from dpbandits import ZCDP, ApproxDP, ArgumentError
from dpbandits.algorithms import LinUCBJDP
from dpbandits.papers.shuffle import WishartLinUCBJDP
from dpbandits.papers.shuffle.wishart import wishart_image_norm, wishart_norm

BUDGET = ApproxDP(1.0, 1e-6)


def noise(d: int, freedom: int, n: int) -> np.ndarray:
    """Centred matrices of side d + 1."""
    law = stats.wishart(freedom, np.eye(d + 1))
    return law.rvs(n, random_state=1) - freedom * np.eye(d + 1)


@pytest.mark.parametrize(("d", "freedom"), [(1, 5), (3, 6), (5, 400)])
def test_norms_of_noise_stay_below_their_bounds(d: int, freedom: int):
    """One in a hundred may exceed them; a quarter of them is exceeded more often."""
    whole, theta = noise(d, freedom, 20_000), np.full(d, 0.8 / math.sqrt(d))
    norms = np.linalg.norm(whole[:, :d, :d], 2, axis=(1, 2))
    images = np.linalg.norm(1.5 * whole[:, :d, d] - whole[:, :d, :d] @ theta, axis=1)
    for seen, bound in (
        (norms, wishart_norm(d, freedom, 1, 0.01)),
        (images, wishart_image_norm(d, freedom, 1, 0.01, 0.8, 1.5)),
    ):
        assert (seen > bound).mean() < 0.01
        assert np.quantile(seen, 0.99) > 0.25 * bound
    # Fewer nodes have less noise.
    assert wishart_norm(d, freedom - 1, 1, 0.01) < wishart_norm(d, freedom, 1, 0.01)
    assert wishart_norm(d, 0, 1, 0.01) == wishart_image_norm(d, 0, 1, 0.01, 0.8, 1.5) == 0.0


def test_noise_is_for_the_longest_record_and_all_its_nodes():
    """Rewards up to 3, with weight 1/2: L^2 = 4 + 2.25, and seven nodes for 100 releases."""
    policy = WishartLinUCBJDP(
        3,
        2,
        budget=BUDGET,
        horizon=1000,
        batch=10,
        context_bound=2.0,
        reward_range=(-3.0, 1.0),
        reward_weight=0.5,
    )
    tree = policy.statistic.counter
    assert (tree.horizon, tree.scale, tree.freedom) == (100, 6.25, policy.freedom)
    assert len(tree.start(5).memory) == 7
    plain = WishartLinUCBJDP(3, 2, budget=BUDGET, horizon=1000, batch=10)
    assert plain.freedom == policy.freedom
    # Against m / mu^2, what Gaussian noise of the same shape needs.
    assert 1.2 < (plain.freedom - 4) / (7 / BUDGET.mu**2) < 1.4
    several = WishartLinUCBJDP(3, 2, budget=BUDGET, horizon=1000, batch=10, max_rounds=3)
    assert several.freedom > 7 * plain.freedom


@pytest.mark.long
def test_gaussian_noise_is_less_at_the_same_budget():
    shape = {"budget": BUDGET, "horizon": 20_000, "batch": 20}
    ours = WishartLinUCBJDP(3, 5, **shape)
    tree, best = LinUCBJDP(3, 5, counter="tree", **shape), LinUCBJDP(3, 5, **shape)
    assert 1.5 < ours._noise_std / tree._noise_std < 1.7
    assert 4.0 < ours._noise_std / best._noise_std < 5.0
    published = (cls(3, 5, calibration="paper", **shape) for cls in (WishartLinUCBJDP, LinUCBJDP))
    wishart, gaussian = (policy._noise_std for policy in published)
    assert 4.0 < wishart / gaussian < 5.0
    assert wishart > 50 * ours._noise_std


def test_the_published_constants():
    """For T = 1000, d = 3, L = R = 1: k, the shift of N - c I for as many nodes as a release has,
    rho_min and 2 rho_min, and gamma after the shift.
    """
    epsilon, delta, alpha, d, levels = 1.0, 1e-3, 0.01, 3, 11
    policy = WishartLinUCBJDP(
        4,
        d,
        budget=ApproxDP(epsilon, delta),
        horizon=1000,
        calibration="paper",
        failure_probability=alpha,
    )
    k = d + 1 + math.ceil(224 * levels * math.log(8 * levels / delta) * math.log(2 / delta))
    assert policy.freedom == k
    root, reach = math.sqrt(levels * k), math.sqrt(d) + math.sqrt(2 * math.log(8000 / alpha))
    c = 2.0 * ((root - reach) ** 2 - 4 * root * reach)
    low = 2.0 * 4 * root * reach
    gamma = math.sqrt(2.0) * (math.sqrt(d) + math.sqrt(2 * math.log(2000 / alpha)))
    gamma *= math.sqrt(2.0 * (root - reach) ** 2 / low)
    radius = 0.5 * math.sqrt(2 * math.log(2 / alpha) + d * math.log(2)) + math.sqrt(2 * low) + gamma
    public = public_of(policy)
    assert public.facts[0] == pytest.approx(radius)
    assert public.precision[0] == pytest.approx((2.0 * levels * k - c) * np.eye(d))
    assert policy.guarantee.holds.delta < 1e-250
    assert "but provides the guarantee" in str(policy.guarantee)


def test_gamma_before_the_shift_is_none_after_it():
    """|n| in the norm of (N - c I)^-1: a bound for N^-1 fails mostly, one for both never."""
    d, k, alpha = 3, 10**6, 0.01
    law = stats.wishart(k, np.eye(d + 1)).rvs(2000, random_state=3)
    reach = math.sqrt(d) + math.sqrt(2 * math.log(8 / alpha))
    root = math.sqrt(k)
    c = (root - reach) ** 2 - 4 * root * reach
    shifted = law[:, :d, :d] - c * np.eye(d)
    values = np.linalg.eigvalsh(shifted)
    assert (values > 4 * root * reach).all()
    assert (values < 8 * root * reach).all()
    column = law[:, :d, d]
    before, after = (
        np.sqrt(np.einsum("ni,nij,nj->n", column, np.linalg.inv(one), column))
        for one in (law[:, :d, :d], shifted)
    )
    gamma = math.sqrt(d) + math.sqrt(2 * math.log(2 / alpha))
    assert (before < gamma).all()
    assert (after > gamma).mean() > 0.8
    assert (after < gamma * (root - reach) / math.sqrt(4 * root * reach)).all()


def test_bad_arguments_are_named():
    def made(**wrong):
        return WishartLinUCBJDP(3, 2, **{"budget": BUDGET, "horizon": 100, **wrong})

    paper = {"calibration": "paper"}
    for name, wrong in (
        ("budget", {"budget": ZCDP(0.5)}),
        ("budget", {"budget": ApproxDP(1e-9, 1e-9)}),
        ("budget", {"budget": ApproxDP(1e4, 0.1), **paper}),
        ("horizon", {"horizon": None}),
        ("batch", {"batch": 0}),
        ("reward_weight", {"reward_weight": 0.0}),
        ("reward_weight", {"reward_weight": 2.0, **paper}),
        ("clip", {"clip": False, **paper}),
    ):
        with pytest.raises(ArgumentError, match=rf"^{name} must be"):
            made(**wrong)
