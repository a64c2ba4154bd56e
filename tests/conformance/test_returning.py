"""Users: a person who comes back has so many recorded rounds, one in a release, and all of them
together cost no more than the budget.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from suite import BY_MACHINE, BY_NOTION, OF_KINDS, PRIVATE, PRIVATE_BY_FAMILY, Case, over

from dpbandits import RDP, ArgumentError
from dpbandits.policies import Policy
from dpbandits.privacy.channels import Hemisphere, unit_cost
from dpbandits.privacy.continual import Independent
from dpbandits.privacy.ledger import SPAN, WHOLE
from dpbandits.testing.walk import (
    ROUNDS,
    Walk,
    contexts_of,
    frozen,
    pull,
    releases,
    snapshot,
    spans,
)

MOST = 3  # rounds of a user


# What is recorded ----------------------------------------------------------------------------


@over(BY_MACHINE, short=OF_KINDS)
def test_a_user_has_so_many_rounds_and_one_in_a_release(case: Case):
    """The policy against a registry of our own: a person who comes in every other round, and
    others who come once.
    """
    policy = case.make(seed=1, max_rounds=MOST)
    counted, waiting, kept, arms, made = 0, set(), [], [], 0
    while counted < MOST:
        number = policy.session.rounds.pulls
        assert number < ROUNDS, "no release in sight"
        user = "ann" if number % 2 else number
        decision = pull(policy, user)
        if policy.session.rounds.exhausted:  # a search that is over, or all planned releases
            assert not decision.recorded
            break
        if releases(policy) > made and not policy.card.learns_at_once:
            part, made = spans(policy)[-1][SPAN.part], releases(policy)
            waiting = {one for one in waiting if part not in (WHOLE, one)}
        part = decision.arm if policy.statistic.parts else 0
        assert decision.recorded == (user != "ann" or part not in waiting)
        if decision.recorded:
            kept.append(user)
            arms.append(decision.arm)
        if decision.recorded and user == "ann":
            counted += 1
            waiting |= set() if policy.card.learns_at_once else {part}
        assert policy.update(0.5, decision) is decision.recorded
    else:
        assert not pull(policy, "ann").recorded
    ann = policy.session.rounds.users.seen.get(policy.session.seal.alias("ann"))
    assert (0 if ann is None else ann.rounds) == counted == kept.count("ann")
    for span in spans(policy):
        length = (span[SPAN.last] + 1 - span[SPAN.first]) // span[SPAN.repeats]
        for first in range(span[SPAN.first], span[SPAN.last] + 1, length):
            covered = [
                kept[row]
                for row in range(first, first + length)
                if span[SPAN.part] in (WHOLE, arms[row])
            ]
            assert covered.count("ann") <= 1


@over(BY_MACHINE, short=OF_KINDS)
def test_rounds_beyond_are_served_and_change_nothing_private(case: Case):
    policy = case.make(seed=1, max_rounds=1)
    first = pull(policy, 7)
    assert first.recorded
    policy.update(0.5, first)
    policy.update(0.5, pull(policy, 8))
    assert not pull(policy, 7).recorded  # by which what was due has been released
    before = snapshot(policy)
    for _ in range(3):
        decision = pull(policy, 7)
        assert not decision.recorded
        assert 0 <= decision.arm < policy.n_arms
        assert policy.update(1.0, decision) is False
    after = snapshot(policy)
    assert (after["raw"], after["wall"]) == (before["raw"], before["wall"])
    seen, alias = policy.session.rounds.users.seen, policy.session.seal.alias
    assert {user: one.rounds for user, one in seen.items()} == {alias(7): 1, alias(8): 1}


@over(BY_MACHINE, short=OF_KINDS)
def test_one_round_of_each_user_is_what_a_policy_without_users_does(case: Case):
    one, other = case.make(seed=1), case.make(seed=1, max_rounds=1)
    assert other.channel == one.channel
    count = 40 if one.card.learns_at_once else 400
    rewards = np.random.default_rng(3).random(count)
    for number in range(count):
        pulled = pull(one), pull(other, f"user {number}")
        assert pulled[0].arm == pulled[1].arm
        assert pulled[0].recorded == pulled[1].recorded
        for policy, decision in zip((one, other), pulled, strict=True):
            policy.update(rewards[number], decision)
    sides = [policy.session.state for policy in (one, other)]
    for side in ("raw", "public", "wall"):
        assert frozen(getattr(sides[0], side)) == frozen(getattr(sides[1], side))


@over(BY_MACHINE, short=OF_KINDS)
def test_a_user_without_a_name_is_refused(case: Case):
    policy = case.make(seed=1, max_rounds=2)
    before = snapshot(policy)
    nobodies: list[Any] = [None, 1.5, True, b"ann", ["ann"], math.nan, ("ann", 1)]
    for user in nobodies:
        with pytest.raises(
            ArgumentError, match=r"^user must name the person, as a string or an integer"
        ) as error:
            pull(policy, user)
        assert error.value.argument == "user"
        assert "got" in str(error.value)
        assert snapshot(policy) == before


@over(BY_MACHINE, short=OF_KINDS)
def test_a_user_is_refused_where_nobody_counts_rounds(case: Case):
    policy = case.make(seed=1)
    before = snapshot(policy)
    with pytest.raises(ArgumentError, match=r"^user must be None if the policy has no max_rounds"):
        pull(policy, "ann")
    assert snapshot(policy) == before


# What it costs -------------------------------------------------------------------------------


def cost_of_a_user(policy: Policy) -> float:
    """What all rounds of a user cost by our own arithmetic, in the currency of the meter: line by
    line, or for running sums by the worst of their first releases.
    """
    counter, most, meter = policy.statistic.counter, policy.max_rounds or 1, policy.meter
    assert meter is not None
    alpha = policy.budget.alpha if isinstance(policy.budget, RDP) else math.nan
    family, multiplier = policy.session.gate.ledger_family, policy.channel.multiplier
    if counter is None:
        return most * unit_cost(family, multiplier, meter.currency, alpha)
    n, norm = min(counter.horizon or 12, 12), policy.channel.norm
    columns = counter.encoder(n, norm)
    patterns = itertools.combinations(range(n), most)
    farthest = max(np.linalg.norm(columns[:, one].sum(axis=1), norm) for one in patterns)
    moved = farthest / counter.column_norm(norm)
    return unit_cost(family, multiplier / moved, meter.currency, alpha)


@over(BY_NOTION)
def test_all_rounds_of_a_user_cost_at_most_the_budget(case: Case):
    one, policy = case.make(), case.make(max_rounds=MOST)
    assert one.meter is not None
    assert policy.meter is not None
    assert policy.meter.limit == one.meter.limit
    assert policy.meter.allows(cost_of_a_user(policy))
    counter, norm = policy.statistic.counter, policy.channel.composition_norm
    growth = Independent() if counter is None else counter
    assert policy.channel.multiplier == one.channel.multiplier * growth.growth(MOST, norm)
    if counter is None:
        root = math.sqrt(MOST) if norm == 2 else MOST
        assert policy.channel.multiplier / one.channel.multiplier == pytest.approx(root, rel=1e-12)
        assert cost_of_a_user(policy) == pytest.approx(policy.meter.limit, rel=1e-9)
    guarantee = policy.guarantee
    assert (guarantee.unit, one.guarantee.unit) == ("user", "round")
    assert guarantee.holds == one.guarantee.holds
    assert " of one user would be protected" in str(guarantee)
    assert "participation is public" in str(guarantee)
    assert f"at most {MOST} rounds" in str(guarantee)
    assert "participation is public" not in str(one.guarantee)


@pytest.mark.parametrize("norm", [1, 2])
def test_too_little_noise_for_a_user_is_caught(norm: int, monkeypatch: pytest.MonkeyPatch):
    # the root of the number of rounds, which is enough for Gaussian noise only
    monkeypatch.setattr(Independent, "_growth", lambda _, records, norm: math.sqrt(records))
    cases = [case for case in PRIVATE if case.make().statistic.counter is None]
    for case in [case for case in cases if case.make().channel.composition_norm == norm]:
        policy = case.make(max_rounds=MOST)
        assert policy.meter is not None
        assert policy.meter.allows(cost_of_a_user(policy)) == (norm == 2)


class _User:
    """Rewards in two worlds, in which all that differs are the rounds of one user: she comes again
    as soon as she may.
    """

    def __init__(self, most: int) -> None:
        self.rows: list[int] = []
        self.most, self.may_come = most, True

    def rewards(self, first: int, arm: int, n: int) -> list[float]:
        if not self.may_come or len(self.rows) == self.most:
            return [0.0, 0.0]
        self.rows.append(first)
        self.may_come = False
        return [0.0, 1.0]


def loss_of_a_user(policy: Policy, most: int) -> float:
    """What the releases of a policy tell of which world it is, in the currency of its meter."""
    corners = contexts_of(policy, corners=True)
    walk = Walk(policy, worlds=2, seed=3, contexts=corners)
    user, moved, bounds = _User(most), [], []
    while (len(user.rows) < most or not user.may_come) and walk.rounds < ROUNDS:
        release = walk.step(user.rewards)
        if release is not None:
            moved.append(release.statistics[1] - release.statistics[0])
            bounds.append(release.bound)
            user.may_come |= walk.covers(release, user.rows[-1])
        if policy.statistic.counter is not None and len(moved) == policy.statistic.counter.horizon:
            break
    counter, channel, meter = policy.statistic.counter, policy.channel, policy.meter
    assert meter is not None
    rows = np.array([m / (channel.multiplier * b) for m, b in zip(moved, bounds, strict=True)])
    if counter is not None:
        rows = counter.encoder(len(rows), channel.norm) @ rows / counter.column_norm(channel.norm)
    if isinstance(channel, Hemisphere):
        return np.count_nonzero(np.any(moved, axis=1)) / channel.multiplier
    if channel.norm == 1:
        return float(np.abs(rows).sum())
    squared = float(np.sum(rows**2))
    alpha = policy.budget.alpha if isinstance(policy.budget, RDP) else math.nan
    return {"gdp": squared, "zcdp": squared / 2, "rdp": alpha * squared / 2}[meter.currency]


@over(PRIVATE_BY_FAMILY, short=OF_KINDS)
def test_two_worlds_that_differ_in_all_rounds_of_a_user_are_as_close_as_accounted(case: Case):
    policy = case.make(max_rounds=MOST)
    assert policy.meter is not None
    loss = loss_of_a_user(policy, MOST)
    assert loss > 0.0
    assert policy.meter.allows(loss)


def test_what_a_user_loses_without_a_limit_is_caught():
    case = next(case for case in PRIVATE if case.name == "AdaCUCB")
    assert case.make().meter is not None
    limit = case.make().meter.limit
    assert loss_of_a_user(case.make(max_rounds=MOST), MOST) == pytest.approx(limit, rel=1e-9)
    assert loss_of_a_user(case.make(), MOST) == pytest.approx(MOST * limit, rel=1e-9)
