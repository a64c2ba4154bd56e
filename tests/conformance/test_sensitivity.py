"""Sensitivity: one changed record moves the one release that covers it, by no more than was declared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suite import CLAIMED, CONTEXTUAL, MAPPED, ROUNDS, Case, Walk, contexts_of, over

import dpbandits
from dpbandits.kernel import kernel

RELEASES = 5
GRID = 64  # rewards are multiples of width / 64 with dyadic ends: sums are exact, and "does not move" means equal
ROUNDING = 1e-12  # relative: sums of x * reward are not exact


class Movement(NamedTuple):
    distance: float
    covered: bool  # whether the ledger says that the release covers the changed record
    bound: float


def movements(
    policy, *, seed: int, noise: float, where: float, values: list[int], new: int | None, longer: float = 1.0
) -> list[Movement]:
    """How the record at the fraction ``where`` of a random history moves every release when it becomes ``new``.

    Rewards are drawn from ``values``, in grid steps above the lower end; ``new`` = None turns the record to the other end.  Contexts,
    where there are any, are ``longer`` than the policy's bound by this factor.
    """
    corners = contexts_of(policy, corners=True)
    contexts = None if corners is None else longer * policy.context_bound * corners
    lo, hi = policy.reward_range
    step = (hi - lo) / GRID
    table = np.random.default_rng([seed, 1]).choice(values, ROUNDS)
    sums = np.concatenate([[0], np.cumsum(table)])

    def total(first: int, n: int) -> float:
        return n * lo + step * float(sums[first + n] - sums[first])

    rehearsal = Walk(policy, noise=noise, seed=seed, contexts=contexts)
    rehearsal.until(RELEASES, lambda first, arm, n: [total(first, n)])
    row = int(where * rehearsal.rounds)
    shift = step * float((GRID - table[row] if new is None else new) - table[row])
    walk = Walk(policy, worlds=2, noise=noise, seed=seed, contexts=contexts)
    seen = walk.until(
        RELEASES, lambda first, arm, n: [total(first, n), total(first, n) + (shift if first <= row < first + n else 0.0)]
    )
    return [
        Movement(float(np.linalg.norm(r.statistics[1] - r.statistics[0], policy.channel.norm)), walk.covers(r, row), r.bound)
        for r in seen
    ]


histories = {
    "seed": st.integers(0, 2**32 - 1),
    "noise": st.sampled_from([0.0, 1.0, 1e6]),
    "where": st.floats(0.0, 1.0, exclude_max=True),
    "lo": st.sampled_from([-8.0, -1.0, 0.0, 0.5]),
    "width": st.sampled_from([0.25, 1.0, 16.0]),
}


@over(CLAIMED)
@given(new=st.integers(0, GRID), **histories)
@settings(max_examples=15, deadline=None)
def test_a_record_moves_its_own_release_by_at_most_the_bound(case: Case, seed, noise, where, lo, width, new):
    policy = case.make(reward_range=(lo, lo + width))
    values = list(range(GRID + 1))
    moved = movements(policy, seed=seed, noise=noise, where=where, values=values, new=new)
    assert sum(m.covered for m in moved) <= 1
    slack = ROUNDING if case in CONTEXTUAL else case.rounding
    assert all(m.distance <= m.bound * (1 + slack) if m.covered else m.distance == 0.0 for m in moved)


@over([case for case in CLAIMED if case.name not in MAPPED])
@given(**histories)
@settings(max_examples=10, deadline=None)
def test_extremes_attain_the_bound(case: Case, seed, noise, where, lo, width):
    policy = case.make(reward_range=(lo, lo + width))
    moved = movements(policy, seed=seed, noise=noise, where=where, values=[0, GRID], new=None)
    exact = 0.0 if case not in CONTEXTUAL else ROUNDING
    assert all(m.distance == pytest.approx(m.bound, rel=exact, abs=0.0) if m.covered else m.distance == 0.0 for m in moved)


@over([case for case in CONTEXTUAL if case in CLAIMED])
@given(longer=st.sampled_from([1.0, 1.5, 1e6, 1e40]), bound=st.sampled_from([0.125, 1.0, 3.0]), **histories)
@settings(max_examples=8, deadline=None)
def test_contexts_of_any_length_attain_the_bound_and_no_more(case: Case, seed, noise, where, lo, width, longer, bound):
    policy = case.make(reward_range=(lo, lo + width), context_bound=bound)
    moved = movements(policy, seed=seed, noise=noise, where=where, values=[0, GRID], new=None, longer=longer)
    assert all(m.distance == pytest.approx(m.bound, rel=ROUNDING) if m.covered else m.distance == 0.0 for m in moved)


@over([case for case in CLAIMED if case.name in MAPPED])
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


def test_the_noise_scale_belongs_to_the_declared_bound():
    # Indices use ``noise_scale``; it must be what the channel adds for the sensitivity that the kernels declare.
    for case in CLAIMED:
        policy = case.make(reward_range=(-1.0, 3.0))
        _, public, _ = policy.new_state()
        bound = policy.kernels.sensitivity(policy.params, public, policy.channel.norm)
        counter = policy._counter()
        columns = 1.0 if counter is None else counter.exact_column_norm(policy.channel.norm)
        assert policy.noise_scale == policy.channel.scale(bound) * columns


@kernel
def _keeps_everything(params, raw, public, statistic):
    statistic[0] = raw.total[0]


def test_a_sum_that_is_not_forgotten_is_caught():
    policy = dpbandits.AdaCUCB(3, budget=dpbandits.ZCDP(0.5))
    vars(policy)["kernels"] = policy.kernels._replace(summarise=_keeps_everything)
    moved = movements(policy, seed=1, noise=1.0, where=0.0, values=[0, GRID], new=None)
    assert any(m.distance > 0.0 and not m.covered for m in moved)


def test_a_record_that_counts_twice_is_caught():
    policy = dpbandits.AdaCUCB(3, budget=dpbandits.ZCDP(0.5))
    collect = policy.kernels.collect

    def twice(params, raw, public, arm, x, reward, n):
        collect(params, raw, public, arm, x, 2.0 * reward, n)

    vars(policy)["kernels"] = policy.kernels._replace(collect=twice)
    moved = movements(policy, seed=1, noise=1.0, where=0.5, values=[0, GRID], new=None)
    assert any(m.covered and m.distance > m.bound for m in moved)
