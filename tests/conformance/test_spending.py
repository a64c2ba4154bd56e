"""Ledger: the spend is the budget from the first release on, never more, and every draw belongs to
a release.
"""

from __future__ import annotations

import dataclasses
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from suite import BY_NOTION, CASES, OF_KINDS, PRIVATE, Case, gaussian_mu_of, over

from dpbandits import BudgetExhausted, PureDP
from dpbandits.kernel import plain
from dpbandits.privacy import Certified, LaplaceVector, accounting
from dpbandits.privacy.ledger import HEAD, SPAN, Ledger
from dpbandits.testing.living import budget_is_spent_once, draws_belong_to_releases
from dpbandits.testing.walk import ROUNDS, play, pull, releases, snapshot, spans

REWARDS = np.random.default_rng(8).random(ROUNDS)


def reward(decision) -> float:
    return float(REWARDS[decision.number])


@over(BY_NOTION, short=OF_KINDS)
def test_the_first_release_spends_the_budget_and_later_ones_nothing_more(case: Case):
    budget_is_spent_once(case.make)
    policy = case.make(seed=3)
    play(policy, reward, until=2)
    assert dataclasses.astuple(policy.ledger.spent()) == pytest.approx(
        dataclasses.astuple(case.budget)
    )


@over(BY_NOTION, short=OF_KINDS)
def test_every_draw_belongs_to_a_released_coordinate(case: Case):
    draws_belong_to_releases(case.make)


@over([case for case in CASES if case.budget is None], short=["AdaCUCB", "PrivateLinUCB"])
def test_without_a_budget_the_ledger_says_that_everything_left(case: Case):
    policy = case.make()
    play(policy, reward, until=2)
    assert policy.ledger.spent() is None
    assert policy.ledger.total() == math.inf
    assert policy.ledger.draws == 0
    assert policy.session.state.noise_rng is None
    assert all(span[SPAN.family] == 0 for span in spans(policy))


@over(BY_NOTION, short=OF_KINDS)
@pytest.mark.parametrize("made", [0, 1])
def test_an_exhausted_budget_stops_releases_and_not_the_service(case: Case, made: int):
    policy = case.make(seed=5)
    play(policy, reward, until=made)
    # No registered policy can overspend by itself; a smaller limit stands for one that would.
    gate = policy.session.gate
    gate.meter = dataclasses.replace(gate.meter, limit=gate.meter.limit / 2)
    gate.always_within_budget = False
    lines, refusals = spans(policy), 0
    for number in range(ROUNDS):
        try:
            decision = pull(policy)
            policy.update(REWARDS[number], decision)
        except BudgetExhausted as error:
            refusals += "would exceed" in str(error)
        if refusals and number % 100 == 99:
            break
    assert refusals == 1
    assert spans(policy) == lines
    assert releases(policy) == made
    before, dropped = snapshot(policy), policy.diagnostics.dropped
    decision = pull(policy)
    assert not decision.recorded
    assert policy.update(1.0, decision) is False
    assert policy.diagnostics.dropped == dropped + 1
    after = snapshot(policy)
    # What a choice draws is drawn ahead of it, where nothing of the contexts may be kept.
    draws_ahead = plain(case.cls.kernels.prepare).__name__ in {
        "prepare_sample",
        "prepare_coins",
    }
    sides = ("raw", "wall") if draws_ahead else ("raw", "public", "wall")
    assert all(after[side] == before[side] for side in sides)


ACCOUNTED: dict[tuple[str, float], float] = {}  # most policies of one noise export equal events


def epsilon_of(event: dp_accounting.ComposedDpEvent, delta: float) -> float:
    """What ``dp_accounting`` makes of an event, once for equal ones."""
    key = repr(event), delta
    if key not in ACCOUNTED:
        ACCOUNTED[key] = float(accounted(event).get_epsilon(delta))
    return ACCOUNTED[key]


def accounted(event: dp_accounting.ComposedDpEvent) -> dp_accounting.PrivacyAccountant:
    if any(isinstance(part, dp_accounting.ZCDpEvent) for part in event.events):
        return rdp.RdpAccountant().compose(event)
    # The library knows randomised response, which stands for a running sum of Laplace noise,
    # between replaced records only.
    response = any(
        isinstance(part, dp_accounting.RandomizedResponseDpEvent) for part in event.events
    )
    relation = dp_accounting.NeighboringRelation
    return pld.PLDAccountant(
        relation.REPLACE_ONE if response else relation.ADD_OR_REMOVE_ONE
    ).compose(event)


@over(BY_NOTION, short=OF_KINDS)
def test_the_exported_event_costs_what_we_say(case: Case):
    policy = case.make(seed=6)
    play(policy, reward, until=2)
    if isinstance(policy.channel, Certified):  # of which that library knows nothing
        assert "UnsupportedDpEvent" in repr(policy.ledger.to_dp_event())
        return
    event = policy.ledger.to_dp_event()
    if isinstance(case.budget, PureDP):
        # The accountant rounds up to its grid of 1e-4.
        assert epsilon_of(event, 1e-12) == pytest.approx(policy.ledger.spent().epsilon, rel=1e-3)
    elif isinstance(policy.channel, LaplaceVector):
        # Both turn zCDP into (epsilon, delta) by an optimal order; the accountant has a grid of
        # orders.
        ours = accounting.zcdp_epsilon(policy.ledger.total(), 1e-6)
        assert epsilon_of(event, 1e-6) == pytest.approx(ours, rel=2e-3)
    else:
        ours = accounting.gaussian_epsilon(gaussian_mu_of(policy.ledger.spent()), 1e-6)
        assert epsilon_of(event, 1e-6) == pytest.approx(ours, rel=2e-3)


def test_lines_that_overlap_add_up_in_the_event():
    # The control of the test above: two releases of the same records cost more than one.
    case = next(case for case in PRIVATE if isinstance(case.budget, PureDP))
    policy = case.make(seed=6)
    play(policy, reward, until=2)
    arrays = policy.session.state.wall.ledger
    arrays.span[0, SPAN.repeats] = 1
    arrays.span[1], arrays.noise[1], arrays.head[HEAD.lines] = arrays.span[0], arrays.noise[0], 2
    ledger = Ledger(arrays, policy.meter)
    assert ledger.total() == pytest.approx(2 * case.budget.epsilon)
    event = ledger.to_dp_event()
    assert isinstance(event, dp_accounting.ComposedDpEvent)
    assert epsilon_of(event, 1e-12) == pytest.approx(2 * case.budget.epsilon, rel=1e-3)
