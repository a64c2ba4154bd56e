"""Policies that take contexts: what is kept for late answers, deviations, the end of a running sum,
and a crash in the middle of one.
"""

import json

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.environments import ContextTable
from dpbandits.privacy.ledger import HEAD, WHOLE, Line
from dpbandits.session.packing import parted
from dpbandits.session.steps import release_of
from dpbandits.simulation import simulate
from dpbandits.simulation.clipping import Entering
from dpbandits.simulation.loops import context_loop
from dpbandits.simulation.tally import DONE, new_tally
from dpbandits.stores import FilePlace

RNG = np.random.default_rng(8)
CONTEXTS = RNG.uniform(-0.6, 0.6, (4000, 3, 2))
REWARDS = RNG.random((4000, 3))
SILENT = dpb.ZCDP(1e30)  # a budget that leaves no noise to speak of, and keeps a ledger


@pytest.fixture(autouse=True)
def state_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))


def public_of(policy):
    return policy.session.state.public


def wall_of(policy):
    return policy.session.state.wall


def at_once(**options):
    return dpb.algorithms.PrivateLinUCB(
        3, 2, **({"budget": SILENT, "horizon": 500, "seed": 1} | options)
    )


def episodic(**options):
    return dpb.algorithms.AdaCOFUL(
        3, 2, **({"budget": SILENT, "horizon": 500, "seed": 1} | options)
    )


def copied(side):
    return type(side)(*(array.copy() for array in side))


class Diary:
    """Plays a policy and remembers who did what."""

    def __init__(self, policy):
        self.policy, self.entries = policy, []  # (features, reward)

    def play(self, rounds):
        for _ in range(rounds):
            t = self.policy.session.rounds.pulls
            decision = self.policy.pull(CONTEXTS[t])
            if self.policy.update(REWARDS[t, decision], decision):
                self.entries.append((CONTEXTS[t, decision], REWARDS[t, decision]))
        return self

    def moment(self, first=0, last=None):
        return sum((x * r for x, r in self.entries[first:last]), np.zeros(2))

    def precision(self):
        return np.eye(2) + sum(np.outer(x, x) for x, _ in self.entries)


@pytest.mark.parametrize("make", [at_once, episodic])
def test_a_release_is_the_sum_of_all_increments_so_far(make):
    diary = Diary(make()).play(120)
    covered = int(diary.policy.ledger.frame["last"].max()) + 1
    assert diary.policy.ledger.releases > 3
    assert wall_of(diary.policy).release == pytest.approx(diary.moment(last=covered), abs=1e-9)
    assert public_of(diary.policy).precision.reshape(2, 2) == pytest.approx(
        diary.precision(), rel=1e-12
    )
    assert not wall_of(diary.policy).statistic.any()


def test_late_answers_in_any_order_enter_with_the_features_of_their_round():
    policy, total = at_once(), np.zeros(2)
    decisions = [policy.pull(CONTEXTS[t]) for t in range(40)]
    for decision in np.random.default_rng(1).permutation(np.array(decisions, dtype=object)):
        assert policy.update(REWARDS[decision.number, decision], decision)
        total += CONTEXTS[decision.number, decision] * REWARDS[decision.number, decision]
    assert wall_of(policy).release == pytest.approx(total, abs=1e-9)
    assert not policy.session.rounds.pending


@pytest.mark.parametrize("choices_public", [False, True])
def test_what_was_done_instead_counts_with_its_own_features(choices_public):
    policy = at_once(choices_public=choices_public, default_reward=0.25)
    decision = policy.pull(CONTEXTS[0])
    other = (decision.arm + 1) % 3
    assert policy.update(1.0, decision, arm=other)
    expected = CONTEXTS[0, other] if choices_public else 0.25 * CONTEXTS[0, decision]
    assert wall_of(policy).release == pytest.approx(expected, abs=1e-9)


def test_a_public_deviation_takes_the_round_back():
    policy = episodic(choices_public=True, answers_within=2)
    diary = Diary(policy).play(6)
    before = copied(public_of(policy))
    decision = policy.pull(CONTEXTS[99])
    assert decision.recorded
    assert policy.update(1.0, decision, arm=(decision.arm + 1) % 3) is False
    for name, now, then in zip(before._fields, public_of(policy), before, strict=True):
        if name != "scratch":
            assert now == pytest.approx(then, rel=1e-12, abs=1e-14), name
    diary.play(60)
    covered = int(policy.ledger.frame["last"].max()) + 1
    # Rounds count those that were recorded, and the one that was taken back has no reward.
    assert wall_of(policy).release == pytest.approx(diary.moment(last=covered - 1), abs=1e-9)


def test_missing_answers_of_an_episode_count_as_the_default_with_their_features():
    policy, total, t = episodic(default_reward=0.5, answers_within=1), np.zeros(2), 0
    while policy.ledger.releases == 0:
        decision = policy.pull(CONTEXTS[t])
        if not policy.session.rounds.flights and policy.ledger.releases == 0:
            total += 0.5 * CONTEXTS[t, decision]
        t += 1
    assert wall_of(policy).release == pytest.approx(total, abs=1e-9)


# Saved and lost ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [at_once, episodic])
def test_pending_contexts_survive(make, tmp_path):
    policies = [
        make(budget=dpb.ZCDP(0.5), answers_within=50),
        make(budget=dpb.ZCDP(0.5), answers_within=50),
    ]
    pulled = [[policy.pull(CONTEXTS[t]) for t in range(8)] for policy in policies]
    policies[0] = dpb.load(policies[0].save(tmp_path / "a"))
    for policy, decisions in zip(policies, pulled, strict=True):
        for decision in decisions[::-1]:
            policy.update(REWARDS[decision.number, decision], decision)
        Diary(policy).play(150)
    assert wall_of(policies[0]).release.tolist() == wall_of(policies[1]).release.tolist()
    assert public_of(policies[0]).precision.tolist() == public_of(policies[1]).precision.tolist()
    assert policies[0].ledger.frame.equals(policies[1].ledger.frame)


@pytest.mark.parametrize("make", [at_once, episodic])
def test_after_a_lost_draw_a_new_running_sum_starts_on_top_of_the_last_release(make, tmp_path):
    """With features that stay counted, on top of the sum that the estimate stands for."""
    diary = Diary(make()).play(40)
    policy = diary.policy
    released = wall_of(policy).release.copy()
    covered = int(policy.ledger.frame["last"].max()) + 1
    if make is episodic:
        released = public_of(policy).precision @ public_of(policy).estimate
    before = policy.ledger.releases
    family, multiplier = policy.session.gate.ledger_family, policy.channel.multiplier
    last = max(covered, policy.rounds - 1)
    policy.session.give_up(Line(covered, last, WHOLE, family, 1.0, multiplier, 2))
    assert policy.ledger.releases == before + 1
    assert wall_of(policy).earlier == pytest.approx(released, abs=1e-12)
    assert not wall_of(policy).running.total.any()
    assert int(wall_of(policy).running.clock[0]) == 0
    later = Diary(policy)
    while policy.ledger.releases == before + 1:
        later.play(1)
    after = later.entries[:-1] if make is episodic else later.entries
    expected = released + sum(x * r for x, r in after)
    assert wall_of(policy).release == pytest.approx(expected, abs=1e-9)
    assert policy.meter.allows(policy.ledger.total())
    # Another life goes on with the same base.
    again = dpb.load(policy.save(tmp_path / "b"))
    assert wall_of(again).earlier.tolist() == wall_of(policy).earlier.tolist()


# The end of a running sum --------------------------------------------------------------------


@pytest.mark.parametrize("save", [False, True])
def test_after_its_horizon_a_policy_serves_and_releases_nothing(save, tmp_path):
    policy = at_once(budget=dpb.ZCDP(0.5), horizon=5)
    if save:
        policy.save(tmp_path / "a")
    diary = Diary(policy).play(5)
    last, released = policy.pull(CONTEXTS[50]), wall_of(policy).release.copy()
    with pytest.raises(dpb.BudgetExhausted, match=r"^horizon is used up: all 5 planned releases"):
        policy.update(1.0, last)
    estimate = public_of(policy).estimate.copy()
    for t in range(60, 100):
        decision = policy.pull(CONTEXTS[t])
        assert not decision.recorded
        assert policy.update(1.0, decision) is False
    assert policy.ledger.releases == 5
    assert wall_of(policy).release.tolist() == released.tolist()
    assert public_of(policy).estimate.tolist() == estimate.tolist()
    assert public_of(policy).precision.reshape(2, 2) == pytest.approx(diary.precision(), rel=1e-12)
    assert policy.ledger.spent() == dpb.ZCDP(0.5)


@pytest.mark.long
def test_after_its_changes_an_episodic_policy_serves_and_releases_nothing():
    policy = episodic(budget=dpb.ZCDP(0.5), horizon=3, growth=0.2)
    most, refusals, arms = policy.most_changes, 0, []
    for t in range(400):
        try:
            decision = policy.pull(CONTEXTS[t])
        except dpb.BudgetExhausted as error:
            refusals += str(error).startswith(f"horizon is used up: all {most} planned releases")
            decision = policy.pull(CONTEXTS[t])
        policy.update(REWARDS[t, decision], decision)
        arms.append(decision.arm)
    assert refusals == 1
    assert policy.ledger.releases == most
    assert len(set(arms[-50:])) > 1
    table = ContextTable(CONTEXTS[:400], REWARDS[:400])
    assert simulate(policy, table, horizon=400).runs["releases"].item() == most


@pytest.mark.long
def test_the_compiled_loop_stops_releasing_after_the_horizon_too():
    policy = at_once(budget=dpb.ZCDP(0.5), horizon=5)
    table = ContextTable(CONTEXTS[:50], REWARDS[:50])
    with pytest.raises(dpb.ArgumentError, match=r"^horizon must be at most 5, the rounds that"):
        simulate(policy, table, horizon=50)
    state, contexts = policy.new_state(), np.zeros((3, 2))
    tally = new_tally(np.array([50]), 3)
    rngs = [np.random.default_rng(k) for k in range(3)]
    crossing = release_of(policy.driven, policy.mechanism, inside=True)
    loop = context_loop(policy.driven, crossing, table.kernels)
    sides = (policy.params, state.raw, state.public, state.memo, state.wall)
    world = (table.state, np.zeros(0), tally, contexts, contexts, False, Entering(False, 0.0, 1.0))
    assert loop(sides, (*world, 50, 6), *rngs) != DONE
    estimate = state.public.estimate.copy()
    assert loop(sides, (*world, 50, 50), *rngs) == DONE
    assert state.wall.ledger.head[HEAD.releases] == 5
    assert state.public.estimate.tolist() == estimate.tolist()


@pytest.mark.parametrize("make", [at_once, episodic])
def test_secure_noise_releases_the_running_sum(make):
    diary = Diary(make(budget=dpb.ZCDP(1e6), noise="secure", seed=None)).play(120)
    covered = int(diary.policy.ledger.frame["last"].max()) + 1
    assert wall_of(diary.policy).release == pytest.approx(diary.moment(last=covered), abs=0.1)


def test_a_saved_file_holds_no_noise_of_a_secure_policy(tmp_path):
    def streams(**options):
        policy = Diary(at_once(**options)).play(3).policy
        held = FilePlace(policy.save(tmp_path / "a")).read()
        told, _, _, states, _ = parted(parted(held.head[:-12])[1])
        return json.loads(told)["streams"], len(states)

    assert streams(noise="secure", seed=None) == ([], 0)
    names, size = streams()
    assert "noise_rng" in names
    assert size >= 32  # which a secure one would show


def test_open_running_sums_do_not_care_about_the_noise_source():
    pytest.importorskip("opendp")
    plain, exact = (
        Diary(dpb.algorithms.LinUCB(3, 2, **options)).play(30)
        for options in ({"seed": 1}, {"noise": "secure"})
    )
    assert public_of(exact.policy).estimate == pytest.approx(
        public_of(plain.policy).estimate, abs=1e-4
    )


def test_a_bound_whose_square_is_no_number_is_refused():
    # Features of length 1e-163 would pass a bound of 1e-170 as they are.
    for bound in (1e-170, 1e170):
        with pytest.raises(dpb.ArgumentError, match=r"^context_bound must be"):
            at_once(context_bound=bound)
    seen = at_once(context_bound=1e-50).preprocessed(np.full((3, 2), 1e-44))
    assert np.all(np.linalg.norm(seen, axis=1) <= 1e-50 * (1 + 1e-15))


def test_sums_behind_secure_noise_stay_exact():
    pytest.importorskip("opendp")
    policy = episodic(
        noise="secure",
        seed=None,
        budget=dpb.ZCDP(1.0),
        counter="tree",
        context_bound=2.0**20,
        grid=2.0**-20,
    )
    # of up to 2^40 grid units each: more than 2^53 in all, less than 2^61 / releases
    gate, state = policy.session.gate, policy.session.state
    assert gate.sum.largest > 2**53 + 2**41
    gate.refuse_overspending(state, 2**13 - 1)
    with pytest.raises(dpb.ArgumentError, match=r"^grid must be coarser"):
        gate.refuse_overspending(state, 2**13 + 1)


@pytest.mark.parametrize("d", [1, 30, 2048])
def test_the_sensitivity_knows_of_rounding_before_the_grid(d):
    options = {"horizon": 8, "noise": "secure", "grid": 2.0**-10, "reward_range": (1000.0, 1001.0)}
    pytest.importorskip("opendp")
    for budget, root in ((dpb.PureDP(1.0), np.sqrt(d)), (dpb.ZCDP(1.0), 1.0)):
        policy = dpb.algorithms.PrivateLinUCB(2, d, budget=budget, **options)
        ideal = root + (d if isinstance(budget, dpb.PureDP) else np.sqrt(d)) * 2.0**-10
        assert (
            ideal + root * 1001.0 * 2.0**-52
            <= policy.statistic.max_sensitivity
            <= ideal * (1 + 1e-9)
        )


def test_noise_that_is_too_wide_for_the_grid_is_refused_at_once():
    pytest.importorskip("opendp")
    for make in (at_once, episodic):
        with pytest.raises(dpb.ArgumentError, match=r"^grid must be coarser"):
            make(noise="secure", seed=None, budget=dpb.PureDP(1e-10))


@pytest.mark.parametrize("counter", ["tree", "honaker", "hybrid", "independent"])
def test_the_noise_scale_is_that_of_every_variable_that_a_release_combines(counter):
    policy = dpb.algorithms.PrivateLinUCB(
        2, 2, budget=dpb.ZCDP(0.5), horizon=None if counter == "hybrid" else 20, counter=counter
    )
    mechanism, movement = policy.statistic.counter, policy.statistic.max_sensitivity
    combined = (mechanism.decoder(20) ** 2).sum(axis=1) * policy.noise_scale**2
    stated = mechanism.variance(np.arange(1, 21)) * (policy.channel.multiplier * movement) ** 2
    np.testing.assert_allclose(combined, stated)
    assert np.abs(mechanism.decoder(20)).max() == pytest.approx(mechanism.widening(20))


# Estimates -----------------------------------------------------------------------------------


def test_the_estimate_is_a_copy_of_the_ridge_estimate_of_what_was_released():
    policy, rng = dpb.algorithms.LinUCB(3, 2, ridge=0.5), np.random.default_rng(4)
    precision, moment = 0.5 * np.eye(2), np.zeros(2)
    assert policy.estimates.coefficients.tolist() == [0.0, 0.0]
    for _ in range(30):
        contexts = rng.uniform(-0.7, 0.7, size=(3, 2))
        arm, reward = policy.pull(contexts).arm, float(rng.uniform())
        policy.update(reward)
        precision += np.outer(contexts[arm], contexts[arm])
        moment += contexts[arm] * reward
    np.testing.assert_allclose(
        policy.estimates.coefficients, np.linalg.solve(precision, moment), rtol=1e-9
    )
    policy.estimates.coefficients[:] = 7.0
    assert policy.estimates.coefficients.max() < 7.0


def test_the_estimate_changes_with_releases_only():
    policy, contexts, seen = episodic(budget=dpb.ZCDP(0.5)), np.eye(3)[:, :2] / 2, []
    for _ in range(40):
        before = policy.ledger.releases
        policy.pull(contexts)
        seen.append((policy.ledger.releases - before, policy.estimates.coefficients.tolist()))
        policy.update(1.0)
        assert policy.estimates.coefficients.tolist() == seen[-1][1]
    changes = [seen[i][1] != seen[i - 1][1] for i in range(1, 40)]
    assert changes == [bool(released) for released, _ in seen[1:]]
    assert 0 < sum(changes) < 39


def test_policies_without_a_linear_model_have_no_estimate():
    assert not hasattr(dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5)), "estimate")
