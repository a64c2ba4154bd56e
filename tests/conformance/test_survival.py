"""Survival: late, out-of-order, repeated and missing rewards; a release happens at its round,
whatever was answered.

How saves and crashes meet stores, forks and kills is in ``tests/stores``.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from suite import (
    AT_ONCE,
    BY_MACHINE,
    EPISODIC,
    INFORMED,
    OF_KINDS,
    PRIVATE,
    REALISED,
    WORST,
    Case,
    over,
)

from dpbandits import UpdateError
from dpbandits.policies import Decision, Policy
from dpbandits.privacy.ledger import SPAN, WHOLE
from dpbandits.protocol import nothing_to_note
from dpbandits.testing.living import (
    a_crash_loses_nothing,
    pulls_are_learned_from_in_order,
    saved_policies_go_on,
    schedule_owes_nothing_to_answers,
)
from dpbandits.testing.walk import (
    ROUNDS,
    contexts_of,
    frozen,
    play,
    pull,
    releases,
    snapshot,
    spans,
)

DRAWS = np.random.default_rng(9).random(ROUNDS)


@over(BY_MACHINE, short=OF_KINDS)
def test_a_saved_policy_goes_on_and_a_crash_loses_nothing(case: Case, tmp_path: Path):
    saved_policies_go_on(case.make, tmp_path)
    a_crash_loses_nothing(case.make, tmp_path)


# Whose next episode begins while the last one waits for answers.
FLYING = [case for case in EPISODIC if case.cls.kernels.close is not nothing_to_note]


def play_episode(policy: Policy) -> list[Decision]:
    """The pulls of an episode, to its end."""
    pulled: list[Decision] = []
    while not policy.session.rounds.release_due:
        pulled.append(pull(policy))
        assert len(pulled) < ROUNDS
    return pulled


@over(EPISODIC, short=OF_KINDS)
@pytest.mark.parametrize("answers_within", [0, 3])
def test_the_round_of_a_release_depends_on_no_reward_and_no_answer(case: Case, answers_within: int):
    schedule_owes_nothing_to_answers(case.make, answers_within)


@over(EPISODIC, short=OF_KINDS)
def test_patience_is_counted_in_pulls_after_the_episode(case: Case):
    policy = case.make(answers_within=3, seed=1)
    play(policy, lambda d: 1.0, until=1)
    # The first episode ended at round ``last``; three pulls followed, and the fourth made the
    # release.  They were recorded where the next episode had begun.
    last = spans(policy)[0][1]
    assert policy.session.rounds.pulls == last + 1 + 3 + 1
    assert policy.rounds == (last + 5 if case in FLYING else last + 2)


@over(AT_ONCE, short=OF_KINDS)
def test_in_the_order_of_pulls_releases_depend_on_no_reward_and_no_answer(case: Case):
    pulls_are_learned_from_in_order(case.make)
    policy = case.make(answers_within=3, seed=1)
    assert "time at which an answer arrives" not in str(policy.guarantee)
    decisions = [pull(policy) for _ in range(4)]
    policy.update(1.0, decisions[3])
    with pytest.raises(UpdateError, match="has been answered"):
        policy.update(1.0, decisions[3])
    assert policy.finish()
    assert (policy.rounds, policy.update(1.0, decisions[0])) == (4, False)


@over(EPISODIC, short=OF_KINDS)
def test_an_episode_that_is_over_lets_the_next_one_begin_or_says_that_it_waits(case: Case):
    policy = case.make(answers_within=2, seed=1)
    play_episode(policy)
    after = pull(policy)
    assert after.recorded == (case in FLYING)
    assert len(policy.session.rounds.flights) == (case in FLYING)


@over(EPISODIC, short=OF_KINDS)
def test_without_a_deadline_the_release_waits_for_every_answer(case: Case):
    policy = case.make(answers_within=None, seed=1)
    waiting: list[Decision] = []
    while not waiting or waiting[-1].recorded:
        waiting.append(pull(policy))
        assert len(waiting) < ROUNDS
    for decision in waiting[:-1]:
        assert releases(policy) == 0
        assert not pull(policy).recorded
        assert policy.update(1.0, decision)
    assert pull(policy).recorded
    assert releases(policy) == 1
    if case in PRIVATE:
        assert "time at which an answer arrives" in str(policy.guarantee)
        assert "time at which an answer arrives" not in str(case.make().guarantee)


@over(AT_ONCE, short=OF_KINDS)
def test_policies_that_learn_at_once_take_answers_as_they_come(case: Case):
    policy = case.make(seed=1)
    decisions = [pull(policy) for _ in range(6)]
    for k, decision in enumerate(reversed(decisions), 1):
        assert policy.update(1.0, decision) is True
        assert (policy.rounds, releases(policy)) == (k, k)
    if case in PRIVATE:
        assert "time at which an answer arrives" in str(policy.guarantee)


def covered_decision(policy: Policy) -> Decision:
    """Leave everything unanswered until the first release; a decision whose record it covered."""
    pulled: list[Decision] = []
    while releases(policy) == 0:
        pulled.append(pull(policy))
        assert len(pulled) < ROUNDS
    first = spans(policy)[0]
    return next(d for d in pulled if d.recorded and first[SPAN.part] in (WHOLE, d.arm))


@over(EPISODIC, short=OF_KINDS)
def test_an_answer_past_its_deadline_is_dropped_and_says_so(case: Case):
    policy = case.make(seed=1)
    late = covered_decision(policy)
    before, dropped = snapshot(policy), policy.diagnostics.dropped
    assert policy.update(1.0, late) is False
    assert policy.diagnostics.dropped == dropped + 1
    assert {**snapshot(policy), "rounds": None} == {**before, "rounds": None}


def numbers(side: Any) -> np.ndarray:
    """All numbers of nested tuples of arrays."""
    parts = [numbers(part) if isinstance(part, tuple) else np.ravel(part) for part in side]
    return np.concatenate([np.zeros(0), *parts])


@over(EPISODIC, short=OF_KINDS)
@pytest.mark.parametrize("default", [0.0, 0.75])
def test_a_missing_answer_counts_as_the_default(case: Case, default: float):
    silent, spoken = (case.make(seed=1, default_reward=default) for _ in range(2))
    for number in range(ROUNDS):
        one, other = pull(silent), pull(spoken)
        if releases(silent) == 1:
            break
        if number % 3:
            silent.update(1.0, one)
            spoken.update(1.0, other)
        elif number % 2:
            spoken.expire(other)
        else:
            spoken.update(default, other)
    assert releases(spoken) == 1
    one, other = silent.session.state, spoken.session.state
    # Answers come in another order, in which floats are added up.
    np.testing.assert_allclose(one.wall.release, other.wall.release, rtol=1e-12)
    np.testing.assert_allclose(numbers(one.public), numbers(other.public), rtol=1e-12)
    assert frozen(one.raw) == frozen(other.raw)


@over(EPISODIC, short=OF_KINDS)
def test_the_order_of_answers_within_an_episode_is_irrelevant(case: Case):
    def release_of(order: int) -> tuple[list[np.ndarray], tuple]:
        policy = case.make(seed=1, answers_within=1)
        pulled = play_episode(policy)
        pull(policy)
        for decision in pulled[::order]:
            assert policy.update(float(DRAWS[decision.number] < 0.5), decision)
        pull(policy)
        assert releases(policy) == 1
        state = policy.session.state
        public = [array for name, array in state.arrays.items() if name.startswith("public.")]
        return [state.wall.release, *public], frozen(state.public)

    (forwards, one), (backwards, other) = release_of(1), release_of(-1)
    assert forwards[0] == pytest.approx(backwards[0], rel=1e-12)
    # Sums of weighted rewards, and of residuals, are rounded.
    if case.name in REALISED | WORST | {"GLMUCBJDP", "GLMThompsonJDP"}:
        assert all(
            a == pytest.approx(b, abs=1e-12) for a, b in zip(forwards, backwards, strict=True)
        )
    else:
        assert one == other


@over(BY_MACHINE, short=OF_KINDS)
def test_a_repeated_answer_is_refused_and_changes_nothing(case: Case):
    policy = case.make(seed=1)
    decision = pull(policy)
    policy.update(1.0, decision)
    before = snapshot(policy)
    with pytest.raises(UpdateError, match="has been answered"):
        policy.update(1.0, decision)
    with pytest.raises(UpdateError, match="has been answered"):
        policy.expire()
    assert snapshot(policy) == before


@over([case for case in EPISODIC if case not in FLYING], short=OF_KINDS)
def test_pulls_past_the_episode_repeat_the_standing_choice(case: Case):
    policy = case.make(seed=1, answers_within=4)
    recorded = play_episode(policy)
    state = policy.session.state
    stream = copy.deepcopy(state.choice_rng)
    extra = pull(policy)
    assert not extra.recorded
    if case in INFORMED:  # under other contexts the same rule stands
        seen = contexts_of(policy)[extra.number]
        assert extra.arm == policy.driven.choose(policy.params, state.public, seen, stream)[0]
    else:
        assert extra.arm == recorded[-1].arm
    before = snapshot(policy)
    assert policy.update(1.0, extra) is False
    assert snapshot(policy)["raw"] == before["raw"]


def test_taking_back_a_round_starts_the_waiting_anew():
    case = next(case for case in EPISODIC if case.name == "DPSE")
    policy = case.make(seed=1, answers_within=3, choices_public=True)
    decision = play_episode(policy)[-1]
    waiting = [pull(policy) for _ in range(2)]
    assert not any(d.recorded for d in waiting)
    done = (decision.arm + 1) % 3
    assert policy.update(1.0, decision, arm=done) is False  # the episode lasts one round longer
    assert pull(policy).recorded
    assert [pull(policy).recorded for _ in range(4)] == [False, False, False, True]
