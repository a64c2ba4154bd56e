"""Searches for the best arm: how often they err, what makes them stop, and what comes afterwards."""

from __future__ import annotations

import dataclasses
import math
import shutil
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import dpbandits as dpb
from dpbandits import ZCDP, ArgumentError, Policy, PureDP, replay, simulate
from dpbandits.algorithms import (
    LDPTopTwo,
    MergedTopTwo,
    MergedTopTwoSDP,
    SequentialHalving,
    SequentialHalvingSDP,
)
from dpbandits.algorithms.search.evidence import tilt_table
from dpbandits.environments import Bernoulli, LoggedTrial
from dpbandits.inference import Noise
from dpbandits.kernel import kernel
from dpbandits.papers.others import DPSEBAI, AdaPTT
from dpbandits.papers.others.adap_tt import price_of_batches, recommend
from dpbandits.policies import Chooser
from dpbandits.privacy import Budget
from dpbandits.privacy.ledger import WHOLE

ALPHA = 1e-4
CONFIDENT = [MergedTopTwo, AdaPTT, DPSEBAI]
FAILURE = 0.02
ONE = PureDP(1.0)


def search(cls: type[Policy], n_arms: int = 3, budget=ONE, **options) -> Policy:
    halves = cls in (SequentialHalving, SequentialHalvingSDP)
    given = {"horizon": 600} if halves else {"failure_probability": FAILURE}
    return cls(n_arms, budget=budget, **given, **options)


def released(policy: Policy) -> list[tuple[np.ndarray, int]]:
    """The rounds that each release covers, and of which part."""
    found = []
    for line in policy.ledger.frame.itertuples():
        rounds = np.arange(line.first, line.last + 1)
        found += [(span, line.part) for span in np.split(rounds, line.repeats)]
    return found


def test_weights_of_batches_sum_to_one():
    n = 100_000
    assert sum(math.exp(-price_of_batches(j)) for j in range(1, n)) == pytest.approx(1, abs=1e-3)


# How often they err ----------------------------------------------------------------------------


def too_often(policy: Policy, means: list[float], runs: int = 1000) -> bool:
    """Whether searches that stop within 20,000 rounds are wrong more often than was asked for."""
    found = simulate(policy, Bernoulli(means), horizon=20_000, runs=runs, seed=3, record=1).runs
    errors = int((found["wrong"] * found["stopped"].notna()).sum())
    return binomtest(errors, runs, FAILURE, alternative="greater").pvalue <= ALPHA


def careless(cls: type[Policy], budget: Budget | None) -> type[Policy]:
    """The same search, which stops far too soon."""
    changed = {
        MergedTopTwo: {"threshold": 0.0},
        MergedTopTwoSDP: {"threshold": 0.0},
        AdaPTT: {"level": -5.0},
        DPSEBAI: {"failure_probability": 14.0 if budget is None else 7.9},
    }[cls]

    class Careless(getattr(cls, "policy_class", cls)):  # type: ignore[misc, valid-type]
        def _params(self):
            return super()._params()._replace(**changed)

    return Careless


BUDGETS = {
    MergedTopTwo: [PureDP(1.0), PureDP(0.1), ZCDP(0.5), None],
    MergedTopTwoSDP: [PureDP(1.0)],
    AdaPTT: [PureDP(1.0), None],
    DPSEBAI: [PureDP(1.0), None],
}
SHORT = (MergedTopTwo, None)
SEARCHES = [
    pytest.param(cls, budget, marks=() if (cls, budget) == SHORT else pytest.mark.long)
    for cls, budgets in BUDGETS.items()
    for budget in budgets
]


@pytest.mark.long
@pytest.mark.parametrize(("cls", "budget"), SEARCHES)
def test_searches_err_no_more_often_than_asked(cls, budget):
    for means in ([0.8, 0.9, 0.8], [0.05, 0.01], [0.5, 0.51]):
        assert not too_often(search(cls, len(means), budget), means)


@pytest.mark.compiled
@pytest.mark.parametrize(("cls", "budget"), SEARCHES)
def test_a_threshold_that_is_far_too_low_is_seen(cls, budget):
    assert too_often(search(careless(cls, budget), 2, budget), [0.5, 0.51])


@kernel
def stop_empirically(params, public):
    """The threshold of an implementation of AdaP-TT, whose noise term counts no episodes."""
    best = recommend(params, public)
    for a in range(params.n_arms):
        if public.episodes[a] == 0:
            return False
    for a in range(params.n_arms):
        n, m = float(public.size[best]), float(public.size[a])
        v, level = 1.0 / n + 1.0 / m, params.level
        bar = level + np.log(1.0 + np.log(n)) + np.log(1.0 + np.log(m))
        bar += v * (params.noise_scale * level) ** 2
        if a != best and 0.5 * (public.mean[best] - public.mean[a]) ** 2 / v < bar:
            return False
    return True


@pytest.mark.long
def test_a_published_threshold_errs_too_often():
    class Empirical(AdaPTT):
        kernels = dataclasses.replace(AdaPTT.kernels, stop=stop_empirically)

        def _params(self):
            return super()._params()._replace(level=math.log(1 / 0.3))

    wrong = []
    for cls in (Empirical, AdaPTT):
        policy = cls(2, failure_probability=0.3, budget=PureDP(0.01))
        runs = simulate(policy, Bernoulli([0.5, 0.499]), horizon=200_000, runs=500, seed=1).runs
        wrong.append(int((runs["wrong"] * runs["stopped"].notna()).sum()))
    assert binomtest(wrong[0], 500, 0.3, alternative="greater").pvalue < ALPHA
    assert binomtest(wrong[1], 500, 0.3, alternative="greater").pvalue > ALPHA


@pytest.mark.compiled
@pytest.mark.parametrize("budget", [PureDP(0.1), ZCDP(0.005)])
def test_noise_ignored_is_seen(budget: Budget):
    class Noiseless(MergedTopTwo.policy_class):  # type: ignore[misc]
        def _params(self):
            return super()._params()._replace(table=tilt_table(Noise(0.0, is_laplace=False)))

    assert too_often(search(Noiseless, 2, budget), [0.5, 0.51])


def ended(policy: Policy, means: list[float], runs: int, horizon: int) -> pd.DataFrame:
    found = simulate(policy, Bernoulli(means), horizon=horizon, runs=runs, seed=3, record=1).runs
    return found[found["stopped"].notna()]


@pytest.mark.compiled
@pytest.mark.parametrize("budget", [None, PureDP(0.1)])
def test_where_half_may_err_some_do(budget: Budget | None):
    policy = MergedTopTwo(2, failure_probability=0.5, budget=budget)
    found = ended(policy, [0.6, 0.5], 2000, 20_000)
    assert len(found) == 2000
    assert 0.005 < found["wrong"].mean() < 0.5


@pytest.mark.compiled
@pytest.mark.parametrize("budget", [None, PureDP(0.1)])
@pytest.mark.parametrize("mean", [0.05, 0.5])
def test_each_of_two_equal_arms_is_named_no_more_often_than_asked(budget, mean: float):
    policy, runs = MergedTopTwo(2, failure_probability=0.2, budget=budget), 2000
    named = ended(policy, [mean, mean], runs, 10_000)["recommended"].value_counts()
    for count in named:
        assert binomtest(int(count), runs, 0.2, alternative="greater").pvalue > ALPHA
    assert named.sum() > 0.02 * runs  # which says something


# Under local trust ------------------------------------------------------------------------------


@pytest.mark.compiled
def test_searches_under_local_trust_err_no_more_often_than_asked():
    class Noiseless(LDPTopTwo):
        def _params(self):
            return super()._params()._replace(table=tilt_table(Noise(0.0, is_laplace=False)))

    assert not too_often(search(LDPTopTwo, 2, PureDP(4.0)), [0.5, 0.55], 300)
    assert too_often(search(Noiseless, 2, PureDP(1.0)), [0.5, 0.51], 300)


@pytest.mark.compiled
def test_reports_end_a_search_later_than_sums():
    means, rounds = [0.8, 0.5, 0.5], []
    for cls in (LDPTopTwo, MergedTopTwo):
        found = ended(search(cls, 3, PureDP(1.0)), means, 40, 100_000)
        assert not found["wrong"].any()
        rounds.append(found["stopped"].mean())
    assert rounds[0] > 5.0 * rounds[1]
    near = search(LDPTopTwo, 2, PureDP(2.0), gap=0.2)
    assert len(ended(near, [0.5, 0.5], 50, 100_000)) == 50


@pytest.mark.parametrize("within", [0, 20, None])
def test_reports_that_come_after_the_end_are_not_learned(within: int | None):
    policy = LDPTopTwo(2, failure_probability=0.3, budget=None, answers_within=within, seed=1)
    waiting: list[Any] = []
    while not policy.stopped:
        waiting.append(policy.pull())
        if len(waiting) > 5:
            late = waiting.pop(0)
            policy.update(float(late.arm), late)
    known = policy.estimates.rounds.sum()
    assert not any(policy.update(1.0, late) for late in waiting)
    assert not policy.pull().recorded
    assert not policy.finish()
    assert policy.estimates.rounds.sum() == known == policy.ledger.releases
    assert (policy.stopped, policy.recommendation) == (True, 1)


# What is near enough ----------------------------------------------------------------------------


@pytest.mark.compiled
def test_a_gap_ends_a_search_over_equal_arms():
    policy = search(MergedTopTwo, 3, gap=0.05)
    assert len(ended(policy, [0.5, 0.5, 0.5], 100, 200_000)) == 100


@pytest.mark.compiled
@pytest.mark.parametrize("budget", [None, PureDP(0.1)])
def test_arms_that_are_worse_by_more_than_the_gap_are_seldom_named(budget: Budget | None):
    def errs_too_often(gap: float) -> bool:
        policy = MergedTopTwo(2, failure_probability=0.1, gap=gap, budget=budget)
        found = ended(policy, [0.6, 0.5], 2000, 100_000)
        assert len(found) == 2000
        wrong = int(found["wrong"].sum())
        return binomtest(wrong, 2000, 0.1, alternative="greater").pvalue <= ALPHA

    assert not errs_too_often(0.099)
    assert errs_too_often(0.5)  # which is another question


@pytest.mark.compiled
def test_a_gap_is_in_units_of_rewards():
    world = Bernoulli([0.55, 0.5])
    one = search(MergedTopTwo, 2, gap=0.1)
    other = search(MergedTopTwo, 2, gap=0.2, reward_range=(0.0, 2.0))
    assert one.params.gap == other.params.gap == 0.1
    plain = search(MergedTopTwo, 2)
    rounds = [
        simulate(each, world, horizon=100_000, runs=50, seed=1).runs["stopped"].mean()
        for each in (one, plain)
    ]
    assert rounds[0] < 0.5 * rounds[1]
    message = "^gap must be less than the width of reward_range, which is 2, got 2.5"
    with pytest.raises(ArgumentError, match=message):
        search(MergedTopTwo, 2, gap=2.5, reward_range=(0.0, 2.0))
    with pytest.raises(ArgumentError, match=r"^gap must be None for rule=Halving\(\), got 0.1"):
        dpb.BestArm(2, horizon=100, gap=0.1, budget=None)


# Lengths of batches -----------------------------------------------------------------------------


def test_batches_have_the_length_that_is_given():
    policy = search(MergedTopTwo, 2, growth=1.0, first=7, seed=1)
    play(policy, np.tile([0.5, 0.5], (500, 1)), 500)
    spans = [len(span) for span, _ in released(policy)]
    assert spans[:2] == [7, 7]
    assert all(math.log2(span / 7).is_integer() for span in spans)


@pytest.mark.parametrize(("budget", "first"), [(None, 10), (PureDP(0.1), 40), (PureDP(1.0), 10)])
def test_first_batches_are_longer_than_noise(budget: Budget | None, first: int):
    policy = search(MergedTopTwo, 2, budget, seed=1)
    play(policy, np.tile([0.5, 0.5], (100, 1)), 2 * first + 1)
    assert [len(span) for span, _ in released(policy)] == [first, first]


@pytest.mark.compiled
def test_a_search_over_close_arms_of_equal_means_need_not_stop():
    policy = search(MergedTopTwo, 2)
    found = simulate(policy, Bernoulli([0.5, 0.5]), horizon=20_000, runs=50, seed=1).runs
    assert found["stopped"].isna().mean() > 0.8
    assert (found["simple_regret"] == 0).all()


@pytest.mark.long
def test_merged_batches_stop_soonest():
    policies = [search(cls, 5) for cls in CONFIDENT]
    found = simulate(
        policies, Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25]), horizon=200_000, runs=40, seed=1
    ).runs
    rounds = found.groupby(found["policy"].str.split("(").str[0])["stopped"].mean()
    assert rounds["MergedTopTwo"] < 0.4 * rounds.drop("MergedTopTwo").min()


# A given number of rounds ----------------------------------------------------------------------


@pytest.mark.parametrize("n_arms", [1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize("horizon", [40, 1000, 1003])
def test_halving_uses_the_rounds_at_hand(n_arms: int, horizon: int):
    policy = SequentialHalving(n_arms, horizon=horizon, budget=ZCDP(0.5), seed=1)
    world = np.random.default_rng(2)
    left, lengths = n_arms, []
    for _ in range(horizon + 5):
        policy.update(float(world.random() < 0.5), policy.pull())
    phases = math.ceil(math.log2(n_arms)) if n_arms > 1 else 0
    assert policy.ledger.releases == phases
    assert policy.stopped
    assert n_arms == 1 or horizon - 1 <= policy.rounds <= horizon
    if n_arms == 1:
        return
    spans = [len(span) for span, _ in released(policy)]
    assert sum(spans) == policy.rounds
    for span in spans:
        lengths.append(span / left)
        left = math.ceil(left / 2)
    assert left == 1
    assert all(one == int(one) for one in lengths)  # each arm as often
    assert max(spans) - min(spans) <= 2 * n_arms  # an equal share for each phase


def test_halving_needs_a_round_of_each_arm_in_each_phase():
    SequentialHalving(8, horizon=24, budget=None)
    with pytest.raises(ArgumentError, match=r"^horizon must be an integer at least 24"):
        SequentialHalving(8, horizon=23, budget=None)


def test_halving_errs_less_with_more_rounds_and_with_all_its_sums():
    world, errors = Bernoulli([0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]), []
    for horizon in (400, 4000):
        policy = SequentialHalving(8, horizon=horizon, budget=PureDP(1.0))
        found = simulate(policy, world, horizon=horizon, runs=1000, seed=1, record=1).runs
        assert (found["stopped"] >= horizon - 1).all()
        assert (found["releases"] == 3).all()
        errors.append(found["wrong"].mean())
    assert errors[1] < 0.5 * errors[0]
    assert errors[0] < 0.8  # seven of eight for a guess


# What makes them stop, and afterwards ----------------------------------------------------------


def play(policy: Policy, answers: np.ndarray, rounds: int) -> list[int]:
    arms = []
    for t in range(rounds):
        decision = policy.pull()
        policy.update(float(answers[t, decision.arm]), decision)
        arms.append(decision.arm)
    return arms


ALL = [*CONFIDENT, SequentialHalving, MergedTopTwoSDP, SequentialHalvingSDP]


@pytest.mark.parametrize("cls", ALL)
def test_what_was_never_released_has_no_part_in_stopping(cls):
    answers = (np.random.default_rng(4).random((8_000, 3)) < [0.95, 0.1, 0.1]).astype(float)
    one, other = (search(cls, seed=2) for _ in range(2))
    arms = play(one, answers, 8_000)
    assert one.stopped
    covered = np.zeros(8_000, bool)
    for span, part in released(one):
        covered[span] |= (part == WHOLE) | (np.array(arms)[span] == part)
    open_ = ~covered[: one.rounds]
    assert open_.any() == (cls is AdaPTT)  # whose episodes fill up side by side
    flipped = np.where(covered[:, None], answers, 1 - answers)
    assert play(other, flipped, 8_000) == arms
    assert other.rounds == one.rounds


@pytest.mark.parametrize("cls", [*ALL, LDPTopTwo])
def test_the_recommended_arm_is_served_and_nothing_more_is_learned(cls, tmp_path):
    answers = (np.random.default_rng(4).random((30_000, 3)) < [0.1, 0.95, 0.1]).astype(float)
    policy, rounds = search(cls, seed=2), 0
    while not policy.stopped:
        play(policy, answers[rounds : rounds + 1], 1)
        rounds += 1
        assert rounds < 30_000
    lines = policy.ledger.releases
    policy = dpb.load(policy.save(tmp_path / "search"))
    assert policy.recommendation == 1
    for _ in range(500):
        decision = policy.pull()
        assert decision.arm == 1
        assert not decision.recorded
        assert not policy.update(0.0, decision)
    assert (policy.stopped, policy.recommendation) == (True, 1)
    assert policy.ledger.releases == lines
    assert Chooser.from_json(policy.chooser().to_json()).choose() == 1


@pytest.mark.parametrize("cls", [*ALL, LDPTopTwo])
@pytest.mark.parametrize("within", [None, 40])
def test_after_the_end_no_reward_is_kept(cls, within: int | None):
    policy = search(cls, seed=2, answers_within=within)
    while not policy.stopped:
        decision = policy.pull()
        policy.update((0.25, 0.75, 0.25)[decision.arm], decision)
    session = policy.session
    assert not any(side.any() for side in session.state.raw)
    assert not session.state.wall.statistic.any()
    assert not any(session.rounds.rows)
    assert not session.rounds.release_due


@pytest.mark.parametrize("cls", [*ALL, LDPTopTwo])
def test_a_restored_search_serves_its_arm_and_is_charged_no_more(cls, tmp_path):
    policy = search(cls, seed=2)
    while not policy.stopped:
        decision = policy.pull()
        policy.update(float(decision.arm == 2), decision)
    copy = tmp_path / "copy"
    shutil.copy(policy.save(tmp_path / "search"), copy)
    restored = dpb.restore(copy)
    assert restored.recommendation == restored.pull().arm == 2
    assert not restored.pull().recorded
    assert restored.ledger.frame.equals(policy.ledger.frame)


@pytest.mark.parametrize("cls", [*ALL, LDPTopTwo])
@pytest.mark.parametrize("within", [None, 40])
def test_batches_whose_rewards_were_lost_count_no_more(cls, within: int | None):
    rewards = np.array([1.0, 0.5, 0.0])
    policy = search(cls, budget=None, default_reward=0.25, answers_within=within, seed=2)
    waiting = list[Any]()
    for t in range(5_000):
        if t in (44, 101, 444, 1_001) and not policy.stopped:
            policy.session.give_up()
        waiting.append(policy.pull())
        if within is None or len(waiting) > 20:
            answered = waiting.pop(0)
            policy.update(rewards[answered.arm], answered)
    means = policy.estimates.means
    assert np.isfinite(means).any()
    assert means[np.isfinite(means)] == pytest.approx(rewards[np.isfinite(means)])


# What is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [MergedTopTwo, MergedTopTwoSDP, LDPTopTwo])
def test_rewards_outside_of_the_range_are_refused(cls):
    with pytest.raises(ArgumentError, match="clip must be True with failure_probability"):
        search(cls, budget=None, clip=False)
    assert not search(SequentialHalving, budget=None, clip=False).clip


def test_a_coarse_grid_lets_no_search_err():
    """Rewards of .45 are rounded to 0, so that arm 0 looks worse."""
    world = np.random.default_rng(1)
    for _ in range(3):
        policy = search(MergedTopTwo, 2, noise="secure", grid=1.0)
        for _ in range(1_000):
            decision = policy.pull()
            policy.update(0.45 if decision.arm == 0 else float(world.random() < 0.3), decision)
        assert not policy.stopped


@pytest.mark.compiled
def test_simulations_tell_how_searches_ended():
    policies = [search(MergedTopTwo), MergedTopTwo(3, failure_probability=1e-9, budget=PureDP(0.1))]
    policies += [dpb.papers.concentrated.AdaCUCB(3, budget=ZCDP(0.5))]
    world = Bernoulli([0.2, 0.6, 0.5])
    runs = simulate(policies, world, horizon=1500, runs=40, seed=1).runs
    asked, long, played = (group for _, group in runs.groupby("policy", sort=False))
    assert asked["stopped"].notna().any()
    stopped = asked[asked["stopped"].notna()]
    assert (stopped["stopped"] <= 1500).all()
    assert long["stopped"].isna().all()
    assert long["recommended"].isin([0, 1, 2]).all()
    lost = asked["recommended"].map({0: 0.4, 1: 0.0, 2: 0.1})
    assert np.allclose(asked["simple_regret"], lost)
    assert ((asked["simple_regret"] > 0) == (asked["wrong"] == 1)).all()
    assert played[["stopped", "recommended", "wrong", "simple_regret"]].isna().all(axis=None)
    alone = simulate(policies[2], world, horizon=100).runs
    assert "stopped" not in alone
    # What follows is the recommended arm: of all rounds only the search plays others.
    others = stopped.apply(
        lambda row: 1500 - row[f"pulls_{int(row['recommended'])}"] < row["stopped"], axis=1
    )
    assert others.all()


@pytest.mark.compiled
def test_a_replay_goes_on_with_the_recommended_arm():
    rng = np.random.default_rng(5)
    arms = rng.integers(0, 2, 20_000)
    log = LoggedTrial(arms, (rng.random(20_000) < np.where(arms == 1, 0.9, 0.1)).astype(float))
    found = replay(search(MergedTopTwo, 2), log, runs=20, seed=1).runs
    assert (found["rounds"] > 9000).all()
    assert (found["pulls_0"] < 1000).all()
    assert (found["releases"] < 40).all()


def test_a_study_may_end_with_its_last_person():
    policy = SequentialHalving(2, horizon=100, budget=ZCDP(5.0), seed=1)
    assert not policy.finish()
    for _ in range(100):
        decision = policy.pull()
        policy.update(float(decision.arm == 1))
    assert (policy.stopped, policy.ledger.releases) == (False, 0)
    assert policy.finish()
    assert (policy.stopped, policy.recommendation, policy.rounds) == (True, 1, 100)
    assert policy.ledger.releases == 1
    assert not policy.finish()
    assert policy.pull().arm == 1
    assert policy.ledger.releases == 1


def batches(search: Policy) -> list[int]:
    """How many people its batches have; the mean of arm 1 is about 0.75, of others 0.5."""
    sizes = list[int]()
    while not search.stopped:
        device, shuffler = search.device(), search.shuffler()
        sizes.append(search.protocol.batch)
        rewards = np.arange(sizes[-1]) % 4 < (3 if device.arm == 1 else 2)
        search.receive(shuffler.shuffle([device.report_many(rewards.astype(float))]))
    return sizes


def test_no_batch_of_a_search_is_larger_than_devices_take(monkeypatch: pytest.MonkeyPatch):
    given = {"budget": PureDP(1.0), "messages": True, "seed": 1}
    failure = {"failure_probability": 1e-9}
    assert max(batches(MergedTopTwoSDP(2, **failure, **given))) > 30
    monkeypatch.setattr(dpb.BestArmShuffled, "_largest_batch", 30)
    assert max(batches(MergedTopTwoSDP(2, **failure, **given))) == 30
    for n_arms in (2, 3, 5, 8):
        longest = 2 * (n_arms - 1).bit_length() * (30 - n_arms)
        found = max(batches(SequentialHalvingSDP(n_arms, horizon=longest, **given)))
        assert 30 - 2 * n_arms <= found <= 30
        with pytest.raises(ArgumentError, match=f"horizon must be at most {longest}"):
            SequentialHalvingSDP(n_arms, horizon=longest + 1, **given)
        SequentialHalvingSDP(n_arms, horizon=longest + 1, budget=PureDP(1.0))


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (dpb.algorithms.MergedTopTwo, {"failure_probability": 0.1}),
        (AdaPTT, {"failure_probability": 0.1}),
        (DPSEBAI, {"failure_probability": 0.1}),
        (dpb.algorithms.SequentialHalving, {"horizon": 100}),
        (MergedTopTwoSDP, {"failure_probability": 0.1}),
    ],
)
def test_of_one_arm_nothing_is_left_to_find_out(cls, options):
    search = cls(1, budget=PureDP(1.0), **options)
    assert (search.stopped, search.recommendation) == (True, 0)
