"""Merged batches that fade: what is left of old sums, when arms are tried again, and regret."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import ZCDP, ArgumentError, PureDP
from dpbandits.algorithms import DiscountedIMED, MergedIMED
from dpbandits.algorithms.arms.held import init
from dpbandits.algorithms.arms.law import MERGED, law_of
from dpbandits.algorithms.arms.memories import AGED, MEMO, close_and_count, publish_fading
from dpbandits.environments import Bernoulli, SineDrift, SwitchingBest

HALF = 64.0


def made(**options):
    return DiscountedIMED(2, budget=ZCDP(0.5), half_life=HALF, **options)


def taken(params, batches, order):
    """The public side after batches (arm, size, end, sum), released in that order."""
    public = init(params)[1]
    for i in order:
        arm, size, end, total = batches[i]
        public.awaited[AGED.rounds, arm] += size
        memo = np.zeros(len(MEMO))
        memo[[MEMO.arm, MEMO.size, MEMO.ended]] = arm, size, end
        publish_fading(params, public, memo, np.array([total]))
    return public


def test_what_is_kept_of_an_arm_are_sums_of_faded_weights():
    params = made().params
    batches = [(0, 4, 10, 3.5), (0, 9, 50, -1.0), (1, 2, 60, 1.0), (0, 20, 200, 12.0)]
    public = taken(params, batches, range(4))
    mine = [batch for batch in batches if batch[0] == 0]
    n, end, total = (np.array([one[i] for one in mine], float) for i in (1, 2, 3))
    g = 0.5 ** ((200 - end) / HALF)
    noise = params.noise_scale**2
    w = (0.25 + noise) / (0.25 / n + noise / n**2)
    merged = public.merged[:, 0]
    assert merged[MERGED.value] == pytest.approx((w * g) @ (total / n) / (w @ g))
    assert merged[AGED.fresh] == pytest.approx(w @ g**2)
    assert merged[AGED.rounds] == pytest.approx(n @ g)
    a = w * g / (w @ g) / n
    assert law_of(params, merged).rounds == pytest.approx(1 / (n @ a**2))
    assert law_of(params, merged).noise == pytest.approx(noise * (a @ a) / (n @ a**2))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_releases_may_come_in_any_order(order):
    """So several batches may be on their way at once."""
    params = made().params
    batches = [(0, 4, 10, 3.5), (0, 9, 50, -1.0), (0, 20, 90, 12.0)]
    first, second = taken(params, batches, range(3)), taken(params, batches, order)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_batch_on_its_way_counts_as_rounds_and_not_as_a_reward():
    policy = made(longest=50)
    params, kernels = policy.params, policy.kernels
    public, memo = init(params)[1], np.zeros(len(MEMO))
    chosen = []
    for _ in range(4):
        arm, _ = kernels.choose(params, public, 0, None)
        n = kernels.hold_rounds(params, public, arm)
        kernels.record_pull(params, public, arm, 0, n)
        close_and_count(params, public, memo)
        chosen.append((arm, n))
    assert [arm for arm, _ in chosen] == [0, 1, 0, 1]
    assert chosen[2][1] > chosen[0][1]  # which grows with what is on its way
    assert public.awaited[AGED.rounds].tolist() == public.pulls.tolist()
    assert not public.merged.any()


@pytest.mark.parametrize("budget", [None, ZCDP(0.5), PureDP(0.5)])
def test_every_arm_is_tried_again_however_bad_it_was(budget):
    """Also where the best arm always pays, and coins that do have no exponent."""
    policy = DiscountedIMED(3, budget=budget, half_life=100.0, seed=1)
    arms = []
    for _ in range(6000):
        arms.append(policy.pull().arm)
        policy.update(float(arms[-1] == 1))
    arms = np.array(arms)
    assert (arms == 1).mean() > 0.6
    for arm in (0, 2):
        assert np.diff(np.flatnonzero(arms == arm)).max() < 1500


@pytest.mark.parametrize("budget", [None, ZCDP(1.0), ZCDP(0.01), PureDP(0.5)])
def test_batches_are_capped(budget):
    policy = DiscountedIMED(2, budget=budget, longest=7, seed=1)
    for _ in range(500):
        policy.pull()
        policy.update(1.0)
    frame = policy.ledger.frame
    lengths = (frame["last"] - frame["first"] + 1) // frame["repeats"]
    assert lengths.max() == 7


def test_half_lives_follow_arms_changes_and_noise():
    def half_life(n_arms=4, budget=None, **options):
        return DiscountedIMED(n_arms, budget=budget, **options).half_life

    assert half_life(half_life=123.0) == pytest.approx(123.0)
    assert half_life(rounds_per_change=40_000) == pytest.approx(14 * math.sqrt(160_000))
    assert half_life(rounds_per_change=10) == pytest.approx(20.0)  # no more than two changes
    assert half_life(16) == pytest.approx(2 * half_life(4))
    noisy = [half_life(budget=budget) for budget in (None, ZCDP(1.0), ZCDP(0.01))]
    assert noisy == sorted(noisy)
    assert len(set(noisy)) == 3


def test_rewards_of_another_range_play_the_same():
    played = []
    for lo, hi in ((0.0, 1.0), (-2.0, 6.0)):
        policy = DiscountedIMED(3, budget=PureDP(4.0), reward_range=(lo, hi), seed=1)
        rng, arms = np.random.default_rng(2), []
        for _ in range(1500):
            arms.append(policy.pull().arm)
            policy.update(lo + (hi - lo) * float(rng.random() < (0.2, 0.8, 0.5)[arms[-1]]))
        played.append(arms)
    assert played[0] == played[1]


@pytest.mark.parametrize("name", ["rounds_per_change", "half_life", "longest", "alpha"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "many"])
def test_bad_arguments_are_named(name, value):
    with pytest.raises(ArgumentError, match=rf"^{name} must be"):
        DiscountedIMED(2, budget=None, **{name: value})


HORIZON = 50_000
SWITCHING = SwitchingBest(
    5, best=[1, 3, 0, 4, 2], switches=[10_000, 20_000, 30_000, 40_000], horizon=HORIZON, gap=0.3,
    regret="dynamic",
)  # fmt: skip
DRIFTING = SineDrift(
    [0.5, 0.5, 0.5], amplitude=0.3, period=20_000, horizon=HORIZON, regret="dynamic"
)


@pytest.mark.long
@pytest.mark.parametrize("world", [SWITCHING, DRIFTING], ids=["switching", "drifting"])
@pytest.mark.parametrize("budget", [ZCDP(1.0), ZCDP(0.01), PureDP(1.4142), PureDP(0.1414)], ids=str)
def test_regret_is_a_fraction_of_that_of_policies_that_do_not_fade(world, budget):
    k = world.n_arms
    policies = [
        DiscountedIMED(k, budget=budget),
        MergedIMED(k, budget=budget),
        dpb.algorithms.HTINF(k, budget=budget),
    ]
    runs = dpb.simulate(policies, world, horizon=HORIZON, runs=40, seed=3, record=[HORIZON]).runs
    regret = runs.groupby("policy", sort=False)["regret"]
    mean, error = regret.mean().to_numpy(), regret.sem().to_numpy()
    # four standard errors of a difference: alpha = 3e-5 each
    for other in (1, 2):
        assert 2 * mean[0] + 4 * math.hypot(2 * error[0], error[other]) < mean[other]


@pytest.mark.long
def test_what_fading_costs_where_nothing_changes_is_paid_once_in_a_half_life():
    """Regret is linear there: every arm is tried again for ever."""
    world = Bernoulli([0.5, 0.8])
    frame = dpb.simulate(
        DiscountedIMED(2, budget=ZCDP(1.0), half_life=2000.0),
        world,
        horizon=80_000,
        runs=100,
        seed=3,
        record=[40_000, 80_000],
    ).frame
    regret = frame.pivot(index="run", columns="round", values="regret")
    slope = regret[80_000] / regret[40_000]
    assert abs(slope.mean() - 2.0) < 0.2
