"""Policies that count the rounds of users; what holds for every algorithm is in
``tests/conformance``, what survives a crash in ``tests/stores``.
"""

from __future__ import annotations

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld

import dpbandits as dpb
from dpbandits.environments import Bernoulli
from dpbandits.session.saved_head import private_part, public_part
from dpbandits.session.saved_rows import whole_rows


def ada(**options) -> dpb.papers.concentrated.AdaCUCB:
    return dpb.papers.concentrated.AdaCUCB(
        3, **({"budget": dpb.ZCDP(0.6), "seed": 1, "max_rounds": 3} | options)
    )


def come(policy: dpb.Policy, *users) -> list[bool]:
    """Who comes in turn and answers; whether each round was recorded."""
    seen = []
    for user in users:
        decision = policy.pull(user=user)
        policy.update(1.0, decision)
        seen.append(decision.recorded)
    return seen


def counts(policy: dpb.Policy) -> dict[bytes, int]:
    """The rounds of each user, by the alias in her place."""
    return {alias: one.rounds for alias, one in policy.session.rounds.users.seen.items()}


def count(policy: dpb.Policy, user: str | int) -> int:
    return counts(policy).get(policy.session.seal.alias(user), 0)


def test_two_rounds_of_one_user_in_an_episode_are_one_record():
    policy = ada()
    while policy.session.rounds.left < 4:  # that the running episode still lasts
        come(policy, policy.rounds)
    assert come(policy, "ann", "ann", "bob", "ann") == [True, False, True, False]
    assert count(policy, "ann") == 1


def test_the_round_after_the_last_is_served_and_not_recorded():
    policy = ada()
    while count(policy, "ann") < 3:
        come(policy, "ann", object.__hash__(policy) + policy.session.rounds.pulls)
    rounds = policy.rounds
    assert come(policy, "ann", "ann", "new") == [False, False, True]
    assert policy.rounds == rounds + 1
    assert policy.diagnostics.dropped >= 2


def test_names_of_different_kinds_are_different_people():
    policy = dpb.papers.others.LDPUCB(2, budget=dpb.PureDP(1.0), max_rounds=1, seed=1)
    assert come(policy, 7, "7", np.int64(7), np.str_("7"), "") == [True, True, False, False, True]
    alias = policy.session.seal.alias
    assert counts(policy) == {alias(7): 1, alias("7"): 1, alias(""): 1}


def test_no_name_of_a_user_is_kept():
    policy, other = ada(), ada()
    come(policy, "Ms. Ann Example", 31415926)
    come(other, "Ms. Ann Example")
    (alias, _), (elsewhere,) = counts(policy), counts(other)
    assert len(alias) == len(elsewhere) == 16
    assert alias != elsewhere  # each policy has a key of its own
    rows = b"".join(row.key + (row.content or b"") for row in whole_rows(policy.session))
    written = rows + private_part(policy.session) + public_part(policy.session)
    assert alias in written
    for name in (b"Example", b"31415926", (31415926).to_bytes(4, "little")):
        assert name not in written


def test_who_is_not_recorded_is_served_from_the_latest_release():
    policy = ada(max_rounds=1)
    rewards = [0.0, 1.0, 0.0]
    for user in range(2000):
        decision = policy.pull(user=user)
        policy.update(rewards[decision.arm], decision)
    arms = [policy.pull(user=user).arm for user in range(200)]
    assert arms.count(1) == 200  # none has a round left


def test_a_draw_for_who_is_not_recorded_is_her_own():
    policy = dpb.algorithms.HTINF(4, budget=dpb.PureDP(1.0), horizon=10_000, max_rounds=1, seed=1)
    assert come(policy, "ann") == [True]
    while policy.session.rounds.left:
        come(policy, policy.session.rounds.pulls)
    assert len({policy.pull(user="ann").arm for _ in range(100)}) > 1


def test_a_round_that_is_taken_back_stays_counted():
    policy = ada(choices_public=True, answers_within=3)
    first = policy.pull(user="ann")
    assert policy.update(1.0, first, arm=2) is False
    assert (count(policy, "ann"), len(counts(policy))) == (1, 1)
    assert policy.pull(user="ann").recorded is False  # as a record of hers may be in the episode
    assert policy.pull(user="bob").recorded is True


# What it costs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "shares"),
    [
        (dpb.ZCDP(0.6), [dpb.ZCDP(0.2), dpb.ZCDP(0.4), dpb.ZCDP(0.6)]),
        (dpb.RDP(4.0, 0.6), [dpb.RDP(4.0, 0.2), dpb.RDP(4.0, 0.4), dpb.RDP(4.0, 0.6)]),
    ],
    ids=str,
)
def test_what_is_spent_is_the_loss_of_who_came_most_often(budget, shares):
    policy = ada(budget=budget)
    assert policy.ledger.spent() is None
    for number, share in enumerate(shares):
        come(policy, "ann", *range(100 * number, 100 * number + 60))
        spent = policy.ledger.spent()
        assert vars(spent) == pytest.approx(vars(share))


def test_pure_budgets_are_divided_by_the_number_of_rounds():
    policy = dpb.papers.others.LDPUCB(3, budget=dpb.PureDP(0.9), max_rounds=3, seed=1)
    assert policy.channel == dpb.privacy.Laplace(1 / 0.9 * 3)
    for number in (1, 2, 3):
        come(policy, "ann", f"other {number}")
        assert policy.ledger.spent().epsilon == pytest.approx(0.3 * number)
    come(policy, "ann", "ann")
    assert policy.ledger.spent() == dpb.PureDP(0.9)


def test_approximate_budgets_compose_by_gaussian_dp():
    # 9 rounds divide mu by 3; to divide epsilon and delta by 9 would cost more noise
    one, nine = (ada(budget=dpb.ApproxDP(1.0, 1e-6), max_rounds=m) for m in (None, 9))
    assert nine.channel.multiplier == pytest.approx(3 * one.channel.multiplier)
    worse = dpb.privacy.Gaussian.calibrated(dpb.ApproxDP(1.0 / 9, 1e-6 / 9))
    assert nine.channel.multiplier < 0.4 * worse.multiplier


@pytest.mark.parametrize("budget", [dpb.PureDP(0.9), dpb.ApproxDP(0.9, 1e-6)], ids=str)
def test_the_exported_event_holds_all_rounds_of_a_user(budget):
    policy = dpb.papers.others.LDPUCB(3, budget=budget, max_rounds=3, seed=1)
    for number in range(3):
        come(policy, "ann", number)
    event = policy.ledger.to_dp_event()
    accountant = pld.PLDAccountant().compose(event)
    delta = budget.delta if isinstance(budget, dpb.ApproxDP) else 1e-12
    assert accountant.get_epsilon(delta) == pytest.approx(0.9, rel=1e-3)
    assert isinstance(event, dp_accounting.ComposedDpEvent)


def test_published_constants_tell_what_holds_for_users_too():
    given = {"budget": dpb.ApproxDP(10.0, 0.1), "calibration": "paper"}
    one, user = ada(**given, max_rounds=None), ada(**given)
    assert user.effective_budget == one.effective_budget != given["budget"]
    come(user, *["ann", *range(60)] * 3)
    assert user.ledger.total() <= user.meter.limit * (1 + 1e-9)


def test_more_rounds_than_releases_are_refused():
    with pytest.raises(dpb.ArgumentError, match=r"^max_rounds must be at most 10, .* got 11"):
        dpb.algorithms.PrivateLinUCB(3, 2, budget=dpb.ZCDP(0.5), horizon=10, max_rounds=11)
    with pytest.raises(dpb.ArgumentError, match=r"^budget must be less extreme"):
        ada(budget=dpb.ZCDP(1e-199), max_rounds=1000)


def test_radii_follow_the_noise():
    one, user = (
        dpb.algorithms.PrivateLinUCB(3, 2, budget=dpb.ZCDP(0.5), horizon=100, max_rounds=m)
        for m in (None, 4)
    )
    growth = user.statistic.counter.growth(4)
    assert growth > 3.0  # nearly four, as consecutive columns have much in common
    assert user.noise_scale == pytest.approx(growth * one.noise_scale)
    assert user.params.noise_norm == pytest.approx(growth * one.params.noise_norm)


# What is promised ----------------------------------------------------------------------------


def test_who_enforces_the_number_of_rounds_is_said():
    central = str(ada().guarantee)
    assert "the rewards of one user would be protected" in central
    assert "at most 3 rounds recorded over the whole run, and at most one in a release" in central
    assert "which the policy enforces" in central
    assert "a person always comes under the same name" in central
    assert "participation is public: whether and when a person returns" in central
    assert central.endswith("for all rounds of a user: see docs/privacy/returning.md.")
    assert "at most 1 round recorded" in str(ada(max_rounds=1).guarantee)
    local = dpb.papers.others.LDPUCB(
        2, budget=dpb.PureDP(1.0), reports=True, max_rounds=3
    ).guarantee
    assert (local.trust_model, local.unit) == ("local", "user")
    assert "which their device must enforce" in str(local)
    assert "protects nobody from the party that runs the policy" in str(local)
    assert "which the policy enforces" not in str(local)


def test_devices_add_the_noise_of_users():
    one, user = (
        dpb.papers.others.LDPUCB(2, budget=dpb.PureDP(1.0), reports=True, max_rounds=m, seed=1)
        for m in (None, 5)
    )
    assert user.randomiser().channel.multiplier == 5 * one.randomiser().channel.multiplier


def test_without_a_budget_rounds_are_counted_and_nothing_is_promised():
    policy = ada(budget=None)
    assert come(policy, "ann", "ann", "bob", "ann")[0] is True
    assert policy.guarantee.holds is None
    assert policy.guarantee.assumptions == ()


def test_simulations_take_every_round_for_another_user():
    result = dpb.simulate([ada(), ada(max_rounds=None)], Bernoulli([0.9, 0.1, 0.1]), horizon=2000)
    with_users, without = result.runs.sort_values("policy")["regret"]
    assert with_users != without
    assert (result.runs["spent"] <= 0.6 * (1 + 1e-9)).all()
    assert (result.runs["releases"] > 3).all()
