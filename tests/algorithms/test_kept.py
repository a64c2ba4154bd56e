"""Kept values of indices: choices are those of a recomputation of all arms, whatever happened."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpbandits as dpb
from dpbandits import ZCDP, PureDP
from dpbandits.algorithms import Arms
from dpbandits.algorithms.arms.kept import KEPT
from dpbandits.algorithms.arms.law import MERGED, ceiling_of, divergence_of, upper_bound_of
from dpbandits.algorithms.arms.memories import AGED
from dpbandits.kernel import plain
from dpbandits.parts import IMED, KLUCB, Discount, Forget, Growing, Merge
from dpbandits.session.saved_head import Layout

ARMS, STEPS = 5, 60
INDICES = [IMED(), IMED(alpha=1.3, variance="released"), KLUCB(), KLUCB(variance="released")]
CASES = list(product(INDICES, [Merge(), Forget(), Discount(200)], [None, ZCDP(2.0), PureDP(1.0)]))


def policy_of(index: Any, memory: Any, budget: Any) -> Arms:
    batches = Growing(ratio=0.3)
    return Arms(ARMS, budget=budget, index=index, memory=memory, batches=batches, seed=1)


def recomputed(policy: Arms, public: Any, opened: np.ndarray) -> int:
    """The arm of an index that is computed for every open arm."""
    params, index = policy.params, policy.config["index"]
    columns, standing = map(plain, policy.config["memory"].places.values())
    known, arms = columns(public.merged, public.awaited), np.flatnonzero(opened).tolist()
    for a in arms:
        if public.pulls[a] == 0:
            return int(a)
    values = public.merged[MERGED.value]
    if isinstance(index, IMED):
        target = min(max(0.0, *values[arms]), params.highest)

        def least(a: int) -> tuple[float, int]:
            weight, share = standing(params, public, a)
            sides = public.merged[:, a], known[:, a], values[a], target
            distance = share * divergence_of(params, *sides) if share > 0 else 0.0
            return distance / params.constant + np.log(weight), a

        return int(min(arms, key=least))
    level = params.constant * np.log(public.clock[0] + 1.0)

    def largest(a: int) -> tuple[float, float, int]:
        share = standing(params, public, a)[1]
        sides = public.merged[:, a], known[:, a], values[a]
        bound = upper_bound_of(params, *sides, level / share) if share > 0 else 1.0
        return bound, -known[AGED.rounds, a], -a

    return int(max(arms, key=largest))


@pytest.mark.parametrize(("index", "memory", "budget"), CASES)
def test_choices_are_those_of_a_recomputation(index: Any, memory: Any, budget: Any):
    """Through late releases, lost ones, other workers', and releases that are undone."""
    policy, rng = policy_of(index, memory, budget), np.random.default_rng(1)
    params, kernels, state = policy.params, policy.kernels, policy.new_state().in_blocks()
    flying: list[np.ndarray] = []
    earlier, before = state.copied(), flying

    def chosen() -> int:
        opened = rng.random(ARMS) < rng.choice([0.6, 1.1])
        opened[rng.integers(ARMS)] = True
        arm = int(kernels.choose(params, state.public, opened, None)[0])
        assert arm == recomputed(policy, state.public, opened)
        return arm

    def release(memo: np.ndarray) -> np.ndarray:
        n = int(memo[1])
        noise = params.noise_scale * rng.normal(size=state.wall.release.size)
        return np.array([rng.integers(n + 1), 0.2 * n])[: noise.size] + noise

    for _ in range(STEPS):
        arm = chosen()
        n = kernels.hold_rounds(params, state.public, arm)
        kernels.record_pull(params, state.public, arm, 0, n)
        kernels.close(params, state.public, state.memo)
        flying.append(state.memo.copy())
        chosen()
        step = rng.random()
        if step < 0.1:
            state.restore(earlier)
            flying = before.copy()
        elif step < 0.2:
            for memo in reversed(flying):
                kernels.withdraw(params, state.public, memo)
            flying = []
        elif step < 0.3:
            memo = np.array([rng.integers(ARMS), 3.0, 0.0])[: state.memo.size]
            kernels.absorb(params, state.public, memo, release(memo))
        elif step < 0.8:
            earlier, before = state.copied(), flying.copy()
            while flying:
                memo = flying.pop()
                kernels.publish(params, state.public, memo, release(memo))
                chosen()


@pytest.mark.parametrize("index", [IMED(), KLUCB()])
def test_loaded_and_cleared_policies_go_on_alike(index: Any, tmp_path: Any):
    """With masks, and a retired arm; states have the arrays of before."""
    straight, cleared = (policy_of(index, Merge(), ZCDP(2.0)) for _ in range(2))
    for t in range(240):
        decisions = []
        for policy in (straight, cleared):
            if t == 100:
                policy.retire(2)
            available = [0, 3] if t % 7 == 0 else None
            decision = policy.pull(available=available)
            policy.update(float((t * (decision.arm + 3)) % 4 == 0), decision)
            decisions.append((decision.arm, decision.recorded))
        assert decisions[0] == decisions[1]
        cleared.session.state.public.cache[:] = np.nan
        if t == 150:
            straight.save(tmp_path / "policy.dpb")
            straight = dpb.load(tmp_path / "policy.dpb")
            assert np.isnan(straight.session.state.public.cache).all()
    assert straight.ledger.releases == cleared.ledger.releases > 20
    assert "cache" not in json.dumps(Layout.of(straight.session))


def test_arms_that_have_not_changed_are_not_computed_again():
    policy = policy_of(KLUCB(), Merge(), ZCDP(2.0))
    for t in range(3000):
        decision = policy.pull()
        if decision.recorded and t > 100:
            before = policy.session.state.public.cache.copy()
            policy.update(float(decision.arm == 1), decision)
    after = policy.session.state.public.cache
    assert before.shape == after.shape
    kept = (before[KEPT.at] == after[KEPT.at]) & (before[KEPT.value] == after[KEPT.value])
    assert kept.sum() >= ARMS - 2


@given(
    sizes=st.lists(st.integers(1, 500), min_size=1, max_size=6),
    x=st.floats(-3.0, 1.5),
    level=st.floats(0.0, 30.0),
    above=st.sampled_from([0.0, 1e-15, 1e-12, 1e-9, 0.05]),
    budget=st.sampled_from([None, ZCDP(0.01), ZCDP(10.0), PureDP(0.1), PureDP(20.0)]),
    curve=st.floats(0.0, 0.25),
)
@example([1], 0.5, 1e-9, 0.0, ZCDP(10.0), 0.0)
def test_ceilings_bound_all_upper_bounds_below(sizes, x, level, above, budget, curve):
    policy = policy_of(KLUCB(variance="released"), Merge(), budget)
    state = policy.new_state()
    for n in sizes:
        memo = np.array([0.0, n])
        policy.kernels.absorb(policy.params, state.public, memo, np.array([x * n, curve * n]))
    column = state.public.merged[:, 0]
    ceiling = ceiling_of(policy.params, column, x, level * (1.0 + above))
    assert ceiling >= upper_bound_of(policy.params, column, column, x, level)
    far = ceiling_of(policy.params, column, x, 1e-3 * level)
    assert far <= ceiling
