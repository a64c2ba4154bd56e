"""Arms by name, masks, arms that are retired and added, and candidates that vary."""

import json
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import ArgumentError, PureDP, UpdateError
from dpbandits.algorithms.adversarial import conversion
from dpbandits.algorithms.arms.memories import AGED
from dpbandits.papers.others import LazyDPTS
from dpbandits.policies.chooser import Chooser

NAMES = ["a", "b", "c"]


def imed(**options):
    return dpb.algorithms.MergedIMED(3, budget=None, seed=1, **options)


def play(policy, rounds, means, available=None, seed=1):
    rng, counts = np.random.default_rng(seed), np.zeros(policy.n_arms)
    for _ in range(rounds):
        decision = policy.pull(available=available)
        policy.update(float(rng.random() < means[decision.arm]), decision)
        counts[decision.arm] += 1
    return counts


# Names ---------------------------------------------------------------------------------------


def test_names_are_told_and_understood_everywhere(tmp_path):
    policy = dpb.algorithms.UCB1(3, arm_names=NAMES, choices_public=True)
    decision = policy.pull(available=["b", 2])
    assert (decision.arm, decision.name) == (1, "b")
    policy.update(1.0, decision, arm="c")
    policy.update(0.5, policy.pull())
    policy.retire("a")
    told = policy.estimates
    assert told.frame.index.tolist() == NAMES
    assert told.frame["rounds"].tolist() == [1, 0, 1]
    assert told.leader == 2
    assert "arm c leads" in repr(told)
    assert [(row[0], row[-1]) for row in told.table()[1]] == [
        ("a", "dropped"),
        ("b", ""),
        ("c", "leader"),
    ]
    again = dpb.load(policy.save(tmp_path / "a"), simulation=True)
    assert (again.arm_names, again.retired) == (tuple(NAMES), (0,))
    assert again.pull().name == "b"
    assert dpb.inspect(tmp_path / "a").estimates.frame.equals(told.frame)
    assert imed().pull().name is None


def test_names_tell_no_two_policies_apart():
    assert imed().stream_key == imed(arm_names=NAMES).stream_key
    assert imed().label == imed(arm_names=NAMES).label
    assert "arm_names=('a', 'b', 'c')" in repr(imed(arm_names=NAMES))


@pytest.mark.parametrize(
    "names", [["a", "b"], ["a", "b", "b"], "abc", ["a", "b", ""], [1, 2, 3], 3]
)
def test_names_are_checked(names):
    with pytest.raises(ArgumentError) as error:
        imed(arm_names=names)
    assert error.value.argument == "arm_names"


@pytest.mark.parametrize("available", [[], ["d"], [3], [True], "a", 1, [[0]], [-1], [0.5], [None]])
def test_what_is_available_is_checked(available):
    policy = imed(arm_names=NAMES)
    policy.pull(available=[0, 1])
    with pytest.raises(ArgumentError, match=r"^available must"):
        policy.pull(available=available)
    assert policy.rounds == 1


def test_an_arm_has_to_be_left():
    policy = imed()
    policy.retire(0)
    policy.retire(0)
    with pytest.raises(ArgumentError, match="not retired"):
        policy.pull(available=[0])
    policy.retire(2)
    with pytest.raises(ArgumentError, match=r"^arm must not be the only arm left, got "):
        policy.retire(1)
    assert policy.pull().arm == 1
    for arm in (0, 0, 2):
        policy.add(arm)
    assert policy.retired == ()
    assert policy.pull(available=np.array([2])).arm == 2


# Episodes ------------------------------------------------------------------------------------


def grown(arm=2, **options):
    """A policy in mid-episode of its best arm, of which some rounds are left."""
    policy = dpb.papers.concentrated.AdaCUCB(3, budget=None, seed=1, **options)
    while policy.session.rounds.left < 6 or policy.session.rounds.current_choice.arm != arm:
        decision = policy.pull()
        policy.update(float(decision.arm == arm), decision)
    return policy


def test_a_masked_episode_goes_on_later():
    policy = grown()
    left, recorded = policy.session.rounds.left, policy.rounds
    for _ in range(3):
        other = policy.pull(available=[0, 1])
        assert other.arm in (0, 1)
        assert not other.recorded
        assert policy.update(1.0, other) is False
    assert (policy.session.rounds.left, policy.rounds) == (left, recorded)
    assert policy.pull(available=[2, 0]).recorded
    assert policy.session.rounds.left == left - 1


@pytest.mark.parametrize("answers_within", [0, 4])
def test_an_arm_retired_in_mid_episode_is_released_with_defaults(answers_within):
    policy = grown(answers_within=answers_within, default_reward=0.25)
    for _ in range(answers_within):  # until nothing else is in flight
        policy.update(1.0, policy.pull())
    pending, public = policy.pull(), policy.session.state.public  # of the episode
    rounds, size = policy.session.rounds, policy.session.state.public.clock[2]
    total, left = float(policy.session.state.raw.total[0]), rounds.left
    assert 0 < left < size
    policy.retire(2)
    assert (rounds.left, rounds.release_due, rounds.flights) == (0, True, {})
    before = public.estimate[2]
    for _ in range(answers_within):
        assert policy.pull().arm != 2
        assert public.estimate[2] == before  # not yet released
    assert policy.update(1.0, pending)  # what was on its way is taken
    assert policy.pull().arm != 2
    assert public.estimate[2] * size == pytest.approx(total + 1.0 + 0.25 * left)
    assert public.merged[AGED.rounds, 2] == size
    assert policy.update(1.0, pending) is False


def test_a_round_taken_back_from_an_arm_that_was_retired_is_filled_again():
    policy = grown(choices_public=True)
    pending = policy.pull()
    policy.retire(2)
    assert policy.session.rounds.release_due
    policy.update(0.0, pending, arm=0)
    rounds = policy.session.rounds
    assert (rounds.release_due, rounds.left) == (True, 0)
    assert policy.pull().arm != 2


def test_batches_of_each_arm_wait_for_the_arm_to_come_back():
    policy = LazyDPTS(3, budget=None, seed=1)
    play(policy, 300, [0.1, 0.5, 0.9])
    fresh = policy.session.state.public.fresh[2]
    policy.retire(2)
    assert play(policy, 50, [0.1, 0.5, 0.9])[2] == 0
    assert policy.session.state.public.fresh[2] == fresh > 0
    policy.add(2)
    assert play(policy, 50, [0.1, 0.5, 0.9])[2] > 25


def test_retired_arms_outlast_a_crash(tmp_path):
    policy = grown(answers_within=3)
    late = [policy.pull() for _ in range(2)]
    policy.save(tmp_path / "a")
    policy.retire(0)
    policy.add(0)
    policy.retire(2)
    policy.pull()  # the episode of the retired arm is in flight
    assert len(policy.session.rounds.flights) == 1
    policy = dpb.load(tmp_path / "a")
    assert policy.retired == (2,)
    assert len(policy.session.rounds.flights) == 1
    assert policy.update(1.0, late[0])
    assert policy.session.rounds.chosen_among
    for _ in range(200):
        decision = policy.pull()
        assert decision.arm != 2
        policy.update(1.0, decision)
    with pytest.raises(UpdateError):
        policy.update(1.0, decision)


def test_a_crash_after_a_release_leaves_nothing_hanging(tmp_path):
    policy = dpb.papers.concentrated.AdaCUCB(3, budget=dpb.ZCDP(1.0), seed=1, answers_within=2)
    play(policy, 40, [0.1, 0.5, 0.9])
    arm = policy.session.rounds.current_choice.arm
    policy.save(tmp_path / "a")
    policy.retire(arm)
    made = policy.ledger.releases
    play(policy, 5, [0.1, 0.5, 0.9])
    spent, releases = policy.ledger.spent(), policy.ledger.releases
    assert releases > made
    del policy
    policy = dpb.load(tmp_path / "a")
    assert policy.retired == (arm,)
    assert policy.ledger.releases == releases
    assert play(policy, 60, [0.1, 0.5, 0.9])[arm] == 0
    assert policy.ledger.spent() == spent


def test_choosers_know_who_is_retired():
    policy = dpb.algorithms.LinUCBLDP(3, 2, budget=dpb.ApproxDP(5.0, 1e-5), horizon=100, seed=1)
    assert "retired" not in json.loads(policy.chooser().to_json())
    contexts = np.array([[0.9, 0.0], [0.5, 0.0], [0.1, 0.0]])
    best = policy.chooser().choose(contexts)
    policy.retire(best)
    chooser = Chooser.from_json(policy.chooser().to_json())
    assert chooser.retired == (best,)
    assert chooser.choose(contexts) != best
    device = policy.device()
    assert device.choose(contexts[:2]) in {0, 1} - {best}


# Learning ------------------------------------------------------------------------------------

MEANS = [0.5, 0.9, 0.2, 0.7]


@pytest.mark.parametrize(
    ("cls", "share"),
    [
        (dpb.algorithms.MergedIMED, 0.9),
        pytest.param(dpb.algorithms.MergedThompson, 0.9, marks=pytest.mark.long),
        (dpb.algorithms.HTINF, 0.75),
        pytest.param(dpb.algorithms.EXP3, 0.55, marks=pytest.mark.long),
        pytest.param(dpb.algorithms.FTPL, 0.75, marks=pytest.mark.long),
    ],
)
def test_the_best_open_arm_is_found_again_and_again(cls, share):
    policy = cls(4, budget=PureDP(1.0), seed=1)
    play(policy, 4_000, MEANS)
    policy.retire(1)
    play(policy, 4_000, MEANS, seed=2)
    counts = play(policy, 2_000, MEANS, seed=3)
    assert counts[1] == 0
    assert counts[3] > share * 2_000
    policy.add(1)
    play(policy, 4_000, MEANS, seed=4)
    assert play(policy, 2_000, MEANS, seed=5)[1] > share * 2_000
    masked = play(policy, 1_000, MEANS, available=[0, 2], seed=6)
    assert masked[[1, 3]].sum() == 0


def weigh(params, public, memo, loss):
    """As every learner does."""
    public.losses[int(memo[conversion.MEMO.arm])] += loss / memo[conversion.MEMO.probability]


class FixedDraw(NamedTuple):
    """Instead of a generator."""

    number: float

    def random(self):
        return self.number


@pytest.mark.parametrize("mask", list(product([True, False], repeat=3))[:-1])
@pytest.mark.parametrize("probability", [(0.2, 0.5, 0.3), (1.0, 0.0, 0.0)])
def test_estimates_of_open_arms_are_unbiased_by_enumeration(mask, probability):
    """Over all arms that may be drawn: an open arm gains its loss in expectation, and a closed one
    what the learner loses.
    """
    losses, policy = np.array([0.3, -0.7, 2.0]), dpb.algorithms.TsallisINF(3, seed=1)
    params, is_open = policy.params, np.array(mask)
    weights = np.where(is_open, np.maximum(probability, 0.0 if is_open.all() else 1e-200), 0.0)
    drawn_with, gained = weights / weights.sum(), np.zeros(3)
    for arm in np.flatnonzero(drawn_with > 1e-100):
        public = policy.new_state().public
        public.probability[:] = probability
        contexts = 0 if is_open.all() else is_open

        drawn = FixedDraw(drawn_with[:arm].sum() + drawn_with[arm] / 2)
        interpreted = {
            name: dpb.kernel.interpreted(getattr(policy.kernels, name))
            for name in ("prepare", "choose", "record_pull", "close")
        }
        interpreted["prepare"](params, public, contexts, None)
        chosen, propensity = interpreted["choose"](params, public, contexts, drawn)
        assert chosen == arm
        assert propensity == pytest.approx(drawn_with[arm], rel=1e-12)
        interpreted["record_pull"](params, public, chosen, 0, 1)
        memo = np.zeros(policy.statistic.memo)
        interpreted["close"](params, public, memo)
        assert memo[conversion.MEMO.probability] == propensity
        before = public.losses.copy()
        publish = dpb.kernel.interpreted(conversion.publish, learn=weigh)
        publish(params, public, memo, np.array([params.high - losses[arm] * params.width]))
        gained += drawn_with[arm] * (public.losses - before)
    expected = np.where(is_open, losses, drawn_with @ losses)
    reached = drawn_with > 1e-100
    assert gained[reached] == pytest.approx(expected[reached], rel=1e-12)
    assert gained[~is_open] == pytest.approx(expected[~is_open], rel=1e-12)


# Candidates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cls", [dpb.algorithms.LinearIMED, dpb.algorithms.LinearThompson, dpb.algorithms.AdaCOFUL]
)
def test_fewer_candidates_are_those_of_a_policy_with_fewer_arms(cls):
    """And closed arms are as if they had not been shown."""
    budget = dpb.ZCDP(0.5)
    many, few, masked = (cls(k, 2, horizon=200, budget=budget, seed=1) for k in (7, 3, 7))
    rng = np.random.default_rng(2)
    for _ in range(80):
        rows = rng.normal(size=(7, 2)) * 0.5
        at = np.sort(rng.choice(7, 3, replace=False))
        decisions = many.pull(rows[at]), few.pull(rows[at]), masked.pull(rows, available=at)
        assert decisions[0].arm == decisions[1].arm
        assert decisions[2].arm == at[decisions[1].arm]
        reward = float(rng.random() < 0.5)
        for policy, decision in zip((many, few, masked), decisions, strict=True):
            policy.update(reward, decision)
    assert many.estimates.coefficients == pytest.approx(masked.estimates.coefficients)


def test_an_arm_that_was_not_shown_cannot_have_been_done():
    policy = dpb.algorithms.LinUCB(4, 2, choices_public=True)
    rows = np.array([[0.9, 0.0], [0.0, 0.5], [0.3, 0.3], [0.2, 0.1]])
    decision = policy.pull(rows[:2])
    with pytest.raises(ArgumentError, match="arm must have a row in the contexts"):
        policy.update(1.0, decision, arm=3)
    assert policy.update(1.0, decision, arm=1 - decision.arm)
    closed = policy.pull(rows, available=[1, 2])  # shown, and not recommended
    assert policy.update(1.0, closed, arm=0)
    assert policy.session.state.public.precision[0] == pytest.approx(
        np.eye(2)
        + np.outer(rows[1 - decision.arm], rows[1 - decision.arm])
        + np.outer(rows[0], rows[0])
    )


def test_models_of_their_own_need_all_rows():
    policy = dpb.algorithms.LinUCB(3, 2, models="disjoint")
    with pytest.raises(ArgumentError, match="must have shape"):
        policy.pull(np.eye(2))
    with pytest.raises(ArgumentError, match=r"^available must not"):
        policy.pull(np.ones(2), available=[0])


@pytest.mark.parametrize(
    ("contexts", "got"),
    [
        ({"a": 1.0}, "got a dict"),
        ((one for one in (1.0, 2.0)), "got a generator"),
        (0.5, "got a float"),
        (None, "got nothing"),
        ([[1.0], [1.0, 2.0]], "got rows of different lengths"),
        (np.eye(3)[:2], r"got \(2, 3\)"),
    ],
)
def test_contexts_of_another_shape_are_named_by_it(contexts, got):
    private = dpb.algorithms.LinUCBJDP(3, 2, budget=dpb.ZCDP(0.5), horizon=100, seed=1)
    for policy in (private, dpb.algorithms.LinUCB(3, 2, seed=1)):
        with pytest.raises(ArgumentError, match=rf"^contexts must .*\(3, 2\).*{got}"):
            policy.pull(contexts)


@pytest.mark.parametrize("row", [None, "x", {"a": 1.0}, [0.5, [1.0]], [0.5, {}], [None, 1.0]])
def test_one_private_vector_of_any_kind_counts_as_zeros_and_a_public_one_is_refused(row):
    rows = [[0.1, 0.2], row, [0.3, 0.4]]
    private = dpb.algorithms.LinUCBJDP(3, 2, budget=dpb.ZCDP(0.5), horizon=100, seed=1)
    assert private.pull(rows).arm in range(3)
    assert private.diagnostics.blanked == 1
    with pytest.raises(ArgumentError, match=r"^contexts must hold numbers .* in row 1, column"):
        dpb.algorithms.LinUCB(3, 2, seed=1).pull(rows)


def test_a_name_is_no_arm_where_arms_have_none():
    policy = dpb.algorithms.UCB1(2, choices_public=True)
    decision = policy.pull()
    with pytest.raises(ArgumentError, match=r"^arm must be a number, as arms have no names, got"):
        policy.update(1.0, decision, arm="drug")


def test_under_private_contexts_no_number_of_candidates_is_an_error():
    """It would shift the schedule for reasons that are a person's own."""

    def schedule(rows: list[int]) -> list[tuple[int, int]]:
        policy = dpb.algorithms.LinUCBJDP(3, 2, horizon=200, batch=10, budget=dpb.ZCDP(1.0), seed=1)
        policy.retire(0)
        seen = []
        for k in rows:
            decision = policy.pull(np.full((k, 2), 0.3))
            assert decision.recorded
            assert decision.arm != 0
            policy.update(0.5, decision)
            seen.append((policy.rounds, policy.ledger.releases))
        return seen

    assert schedule([3] * 40) == schedule([0, 1, 5, 2] * 10)


def test_what_masks_assume_outlives_a_crash(tmp_path):
    policy = dpb.algorithms.MergedIMED(3, budget=dpb.ZCDP(0.5), seed=1)
    path = policy.save(tmp_path / "a")
    policy.update(0.5, policy.pull(available=[1, 2]))
    del policy
    assert "which arms are open" in str(dpb.load(path).guarantee)


def test_a_batch_keeps_its_length_when_its_first_round_is_taken_back():
    options = {"half_life": 40.0, "longest": 500, "answers_within": 20, "choices_public": True}
    policy = dpb.algorithms.DiscountedIMED(3, budget=dpb.ZCDP(1.0), seed=1, **options)
    rng = np.random.default_rng(1)
    for _ in range(1500):
        decision = policy.pull()
        clock = policy.session.state.public.clock
        assert clock[1] == decision.arm  # the arm of the batch in which the round is
        assert policy.session.rounds.left == clock[2] - clock[3]
        if rng.random() < 0.4:
            policy.update(0.5, decision, arm=(decision.arm + 1) % 3)
        else:
            policy.update(float(rng.random()), decision)


def test_a_mapping_of_arms_is_no_list_of_those_that_are_open():
    """Its keys would all be, whatever stands beside them."""
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5), arm_names=["a", "b"], seed=1)
    with pytest.raises(dpb.ArgumentError, match="available must be a list of arms"):
        policy.pull(available={"a": False, "b": True})
