"""Sensitivity: one changed record moves the one release that covers it, by no more than was
declared.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suite import (
    ADVISED,
    BY_NORM,
    CONTEXTUAL,
    INFORMED,
    LOOKED_AT,
    MAPPED,
    REALISED,
    ROUNDING,
    WORST,
    Case,
    over,
)

import dpbandits
from dpbandits.papers.shuffle import WishartLinUCBJDP
from dpbandits.privacy import Certified
from dpbandits.testing.walk import ROUNDS, Walk, contexts_of
from dpbandits.testing.wall import (
    GRID,
    RELEASES,
    a_record_moves_one_release,
    features_stay_within_the_bound,
    movements,
    releases_are_as_declared,
    statistic_of,
)

CLOSE = 1e-12  # relative: sums of x * reward are not exact

histories = {
    "seed": st.integers(0, 2**32 - 1),
    "noise": st.sampled_from([0.0, 1.0, 1e6]),
    "where": st.floats(0.0, 1.0, exclude_max=True),
    "lo": st.sampled_from([-8.0, -1.0, 0.0, 0.5]),
    "width": st.sampled_from([0.25, 1.0, 16.0]),
}


@over(BY_NORM)
@given(new=st.integers(0, GRID), **histories)
@settings(max_examples=15)
def test_a_record_moves_its_own_release_by_at_most_the_bound(
    case: Case, seed, noise, where, lo, width, new
):
    policy = case.make(reward_range=(lo, lo + width))
    values = list(range(GRID + 1))
    moved = movements(policy, seed=seed, noise=noise, where=where, values=values, new=new)
    a_record_moves_one_release(moved, CLOSE if case in INFORMED else case.rounding)


@over(BY_NORM)
def test_releases_are_as_declared(case: Case):
    releases_are_as_declared(case.make)


# Where features are private, a record is more than a reward.
HIDDEN = [case for case in BY_NORM if case.cls.card.hides_contexts]


@over(
    [case for case in BY_NORM if case.name not in MAPPED | REALISED | WORST if case not in HIDDEN]
)
@given(**histories)
@settings(max_examples=10)
def test_extremes_attain_the_bound(case: Case, seed, noise, where, lo, width):
    policy = case.make(reward_range=(lo, lo + width))
    moved = movements(policy, seed=seed, noise=noise, where=where, values=[0, GRID], new=None)
    exact = 0.0 if case not in CONTEXTUAL else CLOSE
    assert all(
        m.distance == pytest.approx(m.bound, rel=exact, abs=0.0) if m.covered else m.distance == 0.0
        for m in moved
    )


@over([case for case in CONTEXTUAL if case in BY_NORM and case not in HIDDEN])
@given(
    longer=st.sampled_from([1.0, 1.5, 1e6, 1e40]),
    bound=st.sampled_from([0.125, 1.0, 3.0]),
    **histories,
)
@settings(max_examples=8)
def test_contexts_of_any_length_attain_the_bound_and_no_more(
    case: Case, seed, noise, where, lo, width, longer, bound
):
    policy = case.make(reward_range=(lo, lo + width), context_bound=bound)
    moved = movements(
        policy, seed=seed, noise=noise, where=where, values=[0, GRID], new=None, longer=longer
    )
    assert all(
        m.distance == pytest.approx(m.bound, rel=CLOSE) if m.covered else m.distance == 0.0
        for m in moved
    )


def turned(cosine: float, length: float) -> tuple[np.ndarray, np.ndarray]:
    sine = np.sqrt(max(0.0, 1.0 - cosine * cosine))
    return np.array([length, 0.0]), length * np.array([cosine, sine])


ranges = st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (-3.0, -1.0), (0.0, 5.0), (-0.1, 0.2)])


@over(HIDDEN, short=["LinUCBJDP", "LinUCBSDP"])
@given(
    reward_range=ranges,
    bound=st.sampled_from([0.125, 1.0, 3.0]),
    longer=st.sampled_from([1.0, 1.5, 1e40]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=30)
def test_a_record_with_its_features_moves_the_sums_by_at_most_the_bound(
    case: Case, reward_range, bound, longer, seed
):
    policy = case.make(reward_range=reward_range, context_bound=bound)
    most = policy.statistic.max_sensitivity
    rng = np.random.default_rng(seed)
    far = max(reward_range, key=abs)
    features_stay_within_the_bound(policy, rng, longer)
    if case.name in LOOKED_AT:
        return
    cosine = max(-1.0, -(far * far) / (2.0 * bound * bound))
    one, other = turned(cosine, longer * bound)
    attained = np.linalg.norm(statistic_of(policy, one, far) - statistic_of(policy, other, far))
    assert attained == pytest.approx(most, rel=1e-9)


def test_sums_of_two_sensitivities_or_one_of_them_are_not_the_joint_one():
    policy = dpbandits.algorithms.LinUCBJDP(3, 2, budget=dpbandits.ZCDP(0.5), horizon=100)
    moved = {
        cosine: float(
            np.linalg.norm(
                np.subtract(*(statistic_of(policy, x, 1.0) for x in turned(cosine, 1.0)))
            )
        )
        for cosine in (-1.0, -0.5, 0.0)
    }
    assert moved[-1.0] == pytest.approx(2.0)  # that of x r alone: the matrices are equal
    assert moved[-0.5] == pytest.approx(4.5**0.5)
    assert moved[0.0] == pytest.approx(2.0)
    assert policy.statistic.max_sensitivity == pytest.approx(4.5**0.5)


@pytest.mark.parametrize("grid", [2.0**-4, 2.0**-20])
def test_rounding_every_coordinate_of_a_record_is_within_the_bound(grid: float):
    policy = dpbandits.algorithms.LinUCBJDP(
        3, 2, budget=dpbandits.ZCDP(0.5), horizon=100, noise="secure", grid=grid
    )
    rng, most = np.random.default_rng(3), 0.0
    for _ in range(400):
        angle, cosine = rng.uniform(0, 2 * np.pi), rng.uniform(-0.6, -0.4)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        one, other = (statistic_of(policy, turn @ x, 1.0) for x in turned(cosine, 1.0))
        assert np.array_equal(one, np.rint(one / grid) * grid)
        most = max(most, float(np.linalg.norm(one - other)))
    assert most <= policy.statistic.max_sensitivity
    assert grid < 0.01 or most > 4.5**0.5  # the exact sensitivity alone is not enough


@over([case for case in BY_NORM if case.name in MAPPED])
@pytest.mark.parametrize("seed", range(5))
def test_the_arm_that_moves_a_linear_map_most_attains_its_bound(case: Case, seed: int):
    policy = case.make(reward_range=(-1.0, 3.0))
    rng = np.random.default_rng(seed)
    walk = Walk(policy, worlds=1 + policy.n_arms, seed=seed)
    changed: set[int] = set()

    def sums(first: int, arm: int, n: int) -> list[float]:
        total, new = float(rng.integers(-n, 3 * n + 1)), arm not in changed
        changed.add(arm)
        return [total, *(total + 4.0 * (new and a == arm) for a in range(policy.n_arms))]

    seen = 0
    while seen < RELEASES and walk.rounds < ROUNDS:
        release = walk.step(sums)
        if release is not None:
            base, *others = release.statistics
            farthest = max(float(np.linalg.norm(other - base)) for other in others)
            assert farthest == pytest.approx(release.bound, rel=case.rounding)
            changed.clear()
            seen += 1
    assert seen


def farthest(walk: Walk) -> list[tuple[float, float]]:
    """For each of some releases, how far one of its records moves it at most, and the bound.

    World k of the walk has another reward in the k-th round of every batch.
    """
    rng, seen = np.random.default_rng(5), []
    lo, hi = walk.policy.reward_range

    def sums(first: int, arm: int, n: int) -> list[float]:
        assert n == 1
        old = lo if rng.random() < 0.5 else hi
        return [old] + [
            lo + hi - old if k == first % walk.policy.batch_size else old
            for k in range(walk.policy.batch_size)
        ]

    for release in walk.until(RELEASES, sums):
        base, *others = release.statistics
        norm = walk.policy.channel.norm
        seen.append(
            (max(float(np.linalg.norm(other - base, norm)) for other in others), release.bound)
        )
    return seen


@over([case for case in BY_NORM if case.name in REALISED])
@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("noise", [0.0, 1.0, 1e6])
def test_the_record_that_moves_most_attains_a_realised_bound(
    case: Case, corners: bool, noise: float
):
    policy = case.make(reward_range=(-1.0, 3.0))
    walk = Walk(
        policy,
        worlds=1 + policy.batch_size,
        noise=noise,
        seed=3,
        contexts=contexts_of(policy, corners=corners),
    )
    for distance, bound in farthest(walk):
        assert distance == pytest.approx(bound, rel=ROUNDING)


@over([case for case in BY_NORM if case.name in WORST])
def test_the_worst_case_attains_its_bound(case: Case):
    # Everybody is certain of arm 0, and play is uniform: where that arm is played, its loss counts
    # K times for every expert.
    policy = case.make(reward_range=(-1.0, 3.0), mixing=1.0)
    advice = np.zeros((ROUNDS, policy.n_arms, policy.n_experts))
    advice[:, 0] = 1.0
    walk = Walk(policy, worlds=1 + policy.batch_size, seed=3, contexts=advice)
    attained = [
        distance == pytest.approx(bound, rel=ROUNDING) for distance, bound in farthest(walk)
    ]
    played = [0 in batch for batch in walk.arms.reshape(-1, policy.batch_size)]
    assert attained == played
    assert sum(played) >= 2


def test_a_bound_that_misses_the_mixture_is_caught():
    # The nearly right alternative: the longest advice, not divided by the probability of the arm.
    policy = dpbandits.algorithms.EXP4(3, 4, budget=dpbandits.ZCDP(0.5), horizon=2000, batch=4)

    def sensitivity(params, public, norm):
        return params.width * 2.0

    walk = Walk(
        policy,
        worlds=1 + policy.batch_size,
        seed=3,
        contexts=contexts_of(policy, corners=True),
        kernels=replace(policy.kernels, sensitivity=sensitivity),
    )
    assert any(distance > bound for distance, bound in farthest(walk))


@over([case for case in ADVISED if case.name in REALISED and case in BY_NORM])
def test_a_realised_bound_is_within_the_announced_noise_scale(case: Case):
    # Where bounds follow from what was played, the policy's ``noise_scale`` is that of the worst
    # case.
    policy = case.make()
    if policy.params.mixing > 0.0:
        walk = Walk(
            policy, worlds=1 + policy.batch_size, seed=3, contexts=contexts_of(policy, corners=True)
        )
        assert all(policy.channel.scale(bound) <= policy.noise_scale for _, bound in farthest(walk))


def test_the_noise_scale_belongs_to_the_declared_bound():
    # Indices use ``noise_scale``; it must be what the channel adds for the sensitivity that the
    # kernels declare.
    for case in BY_NORM:
        if case.name in REALISED:  # nothing is declared before a batch has been played
            continue
        policy = case.make(reward_range=(-1.0, 3.0))
        public = policy.new_state().public
        bound = policy.kernels.sensitivity(policy.params, public, policy.channel.norm)
        counter = policy.statistic.counter
        columns = 1.0 if counter is None else counter.exact_column_norm(policy.channel.norm)
        needed = policy.channel.scale(bound) * columns
        if isinstance(policy.channel, Certified):  # Gaussian noise that would cost as much
            # Wishart noise hides all of (x, r) (x, r)^T, of which r^2 is left out.
            most = 3.0 if case.cls is WishartLinUCBJDP else 1.1
            assert needed < policy.noise_scale < most * needed
        else:
            assert policy.noise_scale == needed


def _keeps_everything(params, raw, public, memo, statistic):
    statistic[0] = raw.total[0]


def test_a_sum_that_is_not_forgotten_is_caught():
    policy = dpbandits.papers.concentrated.AdaCUCB(3, budget=dpbandits.ZCDP(0.5))
    planted = replace(policy.kernels, summarise=_keeps_everything)
    moved = movements(
        policy, seed=1, noise=1.0, where=0.0, values=[0, GRID], new=None, kernels=planted
    )
    assert any(m.distance > 0.0 and not m.covered for m in moved)


def _twice(params, raw, arm, x, reward, n):
    raw.total[0] += 2.0 * reward


def test_a_record_that_counts_twice_is_caught():
    policy = dpbandits.papers.concentrated.AdaCUCB(3, budget=dpbandits.ZCDP(0.5))
    planted = replace(policy.kernels, accumulate=_twice)
    moved = movements(
        policy, seed=1, noise=1.0, where=0.5, values=[0, GRID], new=None, kernels=planted
    )
    assert any(m.covered and m.distance > m.bound for m in moved)
