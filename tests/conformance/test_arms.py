"""Arms that come and go: closed ones are never chosen, and when a release happens owes nothing to
answers all the same.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from suite import FIRST_OF_CLASS, FIRST_OF_NAME, OF_KINDS, PRIVATE, Case, over

from dpbandits import ArgumentError
from dpbandits.protocol import never
from dpbandits.testing.living import with_fixed_releases
from dpbandits.testing.playing import closed_arms_are_never_chosen, pull_among
from dpbandits.testing.walk import contexts_of, frozen, pull, releases, shown, spans

ASSUMED = re.compile("which arms are open|available arms only through")


def chooses_among(case: Case) -> bool:
    if case.cls.sees == "contexts":
        return ("models", "disjoint") not in case.variant
    return case.cls.kernels.skips_closed


CHOOSING = [case for case in FIRST_OF_CLASS if chooses_among(case)]
EPISODIC = [case for case in CHOOSING if not case.cls.card.learns_at_once]
SEARCHES = [case for case in CHOOSING if case.cls.kernels.stop is not never]
REFUSING = [case for case in FIRST_OF_NAME if not chooses_among(case)]


@over(CHOOSING, short=OF_KINDS)
def test_only_open_arms_are_chosen(case: Case):
    policy, retired = case.make(seed=1), case not in SEARCHES
    before = str(policy.guarantee)
    assert (ASSUMED.search(before) is not None) == (
        case.cls.card.hides_contexts and case in PRIVATE
    )

    def change(number: int) -> None:
        if number in (30, 60) and retired:
            policy.retire(number // 30 - 1)
        if number == 100 and retired:
            policy.add(1)

    seen = closed_arms_are_never_chosen(policy, each=change)
    for decision, open_ones in seen:
        alone = len(open_ones) == 1 and case.cls.card.randomised
        assert not alone or decision.propensity in (1, None)
    assert {decision.arm for decision, _ in seen} == {0, 1, 2}
    assert policy.retired == ((0,) if retired else ())
    assert (ASSUMED.search(str(policy.guarantee)) is not None) == (case in PRIVATE)
    # where a mask is private, so is whether there was one
    assert not case.cls.card.hides_contexts or str(policy.guarantee) == before


@over(CHOOSING, short=OF_KINDS)
def test_a_mask_that_closes_nothing_changes_nothing(case: Case):
    plain, masked = case.make(seed=1), case.make(seed=1)
    contexts, all_arms = contexts_of(plain), np.ones(plain.n_arms, bool)
    for number in range(60):
        one = pull(plain)
        seen: Any = 0 if contexts is None else masked.seen(shown(masked, contexts[number]))
        other = masked.session.pull(seen, None, all_arms)
        assert (one.arm, one.propensity, one.recorded) == (
            other.arm,
            other.propensity,
            other.recorded,
        )
        for policy, decision in ((plain, one), (masked, other)):
            policy.update(float(number % 3 == 0), decision)
    assert releases(plain) == releases(masked) > 0
    assert frozen(plain.session.state.public) == frozen(masked.session.state.public)


@over(EPISODIC, short=OF_KINDS)
@pytest.mark.parametrize("answers_within", [0, 3])
def test_the_round_of_a_release_depends_on_no_answer_while_arms_come_and_go(
    case: Case, answers_within: int
):
    """Coupled worlds: releases are the same numbers in all of them, and answers are not."""

    def history(answers: float, seed: int) -> tuple[list, list]:
        policy = with_fixed_releases(case.make(answers_within=answers_within, seed=1))
        masks, rng = np.random.default_rng(7), np.random.default_rng(seed)
        waiting, seen = [], []
        while releases(policy) < 6 and len(seen) < 400:
            if case not in SEARCHES and len(seen) % 5 == 4:  # also in mid-episode
                arm = len(seen) // 5 % policy.n_arms
                (policy.add if arm in policy.retired else policy.retire)(arm)
                if len(policy.retired) == 2:
                    policy.add(policy.retired[0])
            decision, _ = pull_among(policy, masks)
            seen.append((decision.arm, decision.recorded, releases(policy), policy.rounds))
            waiting.append(decision)
            while waiting and rng.random() < answers:
                policy.update(rng.random(), waiting.pop(rng.integers(len(waiting))))
        assert releases(policy) >= 1
        return spans(policy), seen

    first = history(0.5, 1)
    assert first == history(0.7, 2)
    assert first == history(0.0, 3)


@over(REFUSING, short=OF_KINDS)
def test_what_cannot_choose_among_some_of_its_arms_says_so(case: Case):
    policy = case.make(seed=1)
    contexts = contexts_of(policy)
    given = None if contexts is None else shown(policy, contexts[0])
    with pytest.raises(ArgumentError, match=r"^available must not be given") as error:
        policy.pull(given, available=[0, 1])
    assert error.value.argument == "available"
    for change in (policy.retire, policy.add):
        with pytest.raises(ArgumentError, match=r"^arm must not be (retired|added)"):
            change(0)
    assert policy.session.rounds.pulls == 0
    assert not policy.session.rounds.chosen_among


@over(SEARCHES, short=OF_KINDS)
def test_a_search_keeps_its_arms(case: Case):
    with pytest.raises(ArgumentError, match="in a search"):
        case.make(seed=1).retire(0)
