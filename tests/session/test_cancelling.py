"""Decisions that are cancelled, erased, or open: by public things alone."""

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.errors import UpdateError
from dpbandits.papers.others import AdaPTT
from dpbandits.session.saved_head import private_part, public_part
from dpbandits.testing.living import with_fixed_releases

BUDGET = dpb.ZCDP(2.0)
MAKERS = {
    "arms": lambda **o: dpb.bandit(2, BUDGET, seed=1, **o),
    "waits": lambda **o: dpb.bandit(2, BUDGET, seed=1, answers_within=None, **o),
    "every round": lambda **o: dpb.algorithms.HTINF(2, budget=BUDGET, seed=1, **o),
    "search": lambda **o: dpb.bandit(2, BUDGET, seed=1, goal="best arm", **o),
}
EVERY = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@EVERY
def test_a_cancelled_decision_is_as_if_it_had_not_been_made(make):
    """All that is released later equals what a policy releases that never made the decision."""
    cancelling, plain = make(), make()
    for t in range(150):
        if t % 4 == 1:
            assert cancelling.cancel(cancelling.pull())
        ours, theirs = cancelling.pull(), plain.pull()
        assert ours.arm == theirs.arm
        reward = float(ours.arm == t % 2)
        assert cancelling.update(reward, ours) == plain.update(reward, theirs)
    assert cancelling.ledger.releases == plain.ledger.releases > 0
    for name, array in plain.session.state.published.items():
        np.testing.assert_array_equal(cancelling.session.state.published[name], array)


def _switching():
    return dpb.algorithms.RSLinearIMED(3, 2, horizon=900, budget=BUDGET, seed=1)


def _every_answer(**options):
    return dpb.algorithms.PrivateLinUCB(3, 2, horizon=900, budget=BUDGET, seed=1, **options)


@pytest.mark.parametrize("make", [_switching, _every_answer])
def test_with_features_too(make):
    rows = np.random.default_rng(2).uniform(-0.5, 0.5, (151, 3, 2))
    cancelling, plain = make(), make()
    for t in range(150):
        if t % 4 == 1:
            assert cancelling.cancel(cancelling.pull(rows[t + 1]))
        ours, theirs = cancelling.pull(rows[t]), plain.pull(rows[t])
        assert ours.arm == theirs.arm
        cancelling.update(0.5, ours)
        plain.update(0.5, theirs)
    assert cancelling.ledger.releases == plain.ledger.releases > 3
    ours, theirs = cancelling.estimates.coefficients, plain.estimates.coefficients
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_where_contexts_are_private_a_cancelled_decision_counts_as_unanswered():
    policy = dpb.bandit(3, BUDGET, features=2, protects="contexts and rewards", horizon=500, seed=1)
    decision = policy.pull(np.zeros((3, 2)))
    assert not policy.cancel(decision)
    with pytest.raises(UpdateError):
        policy.update(1.0, decision)


def test_the_guarantee_lists_that_decisions_were_cancelled():
    policy = dpb.bandit(2, BUDGET, seed=1)
    assumed = "which decisions are cancelled depends on rewards only through releases"
    policy.pull()
    assert assumed not in policy.guarantee.assumptions
    policy.cancel(policy.pull())
    assert policy.guarantee.assumptions.count(assumed) == 1
    policy.cancel(policy.pull())
    assert policy.guarantee.assumptions.count(assumed) == 1


def test_a_decision_that_was_answered_cannot_be_cancelled():
    policy = dpb.bandit(2, BUDGET, answers_within=20, seed=1)
    decision = policy.pull()
    policy.update(1.0, decision)
    before = public_part(policy.session), private_part(policy.session)
    with pytest.raises(UpdateError, match="has been answered"):
        policy.cancel(decision)
    assert (public_part(policy.session), private_part(policy.session)) == before


def test_whether_a_decision_is_open_does_not_depend_on_its_answer():
    answered, silent = (dpb.bandit(2, BUDGET, answers_within="1h", seed=1) for _ in range(2))
    decisions = [one.pull(at=0.0) for one in (answered, silent)]
    answered.update(1.0, decisions[0], at=1.0)
    for at in (1.0, 3_000.0, 3_700.0, 10_000.0):
        ours, theirs = answered.is_open(decisions[0], at=at), silent.is_open(decisions[1], at=at)
        assert ours == theirs == (at < 3_600.0)


OPEN = {
    "flights": lambda **o: dpb.algorithms.MergedIMED(2, budget=BUDGET, seed=1, **o),
    "waits": lambda **o: dpb.algorithms.GLMUCBJDP(
        2, 1, horizon=30_000, batch=4, budget=BUDGET, seed=1, **o
    ),
    "search": lambda **o: dpb.bandit(2, BUDGET, seed=1, goal="best arm", **o),
    "parts": lambda **o: AdaPTT(2, failure_probability=0.1, budget=dpb.PureDP(2.0), seed=1, **o),
    "every round": lambda **o: dpb.algorithms.HTINF(2, budget=BUDGET, seed=1, **o),
}
WITHIN = pytest.mark.parametrize("within", [3, 40, "2min", "2h"])
NIGHT, STEP = 4 * 3600.0, 7.0
START = NIGHT - 60 * STEP


def nights(make, within, answers):
    """Which decisions are open at every moment, with so many answers out of three, over a time of
    day that ticks come late to, and ``finish`` now and then.
    """
    policy = make(answers_within=within, finish_at=("04:00",))
    if not policy.card.learns_at_once:
        with_fixed_releases(policy)
    decisions, answered, seen = [], set(), []
    for t in range(120):
        at = START + STEP * t
        if not 60 <= t < 70:  # when the first tick after it comes
            shown = [np.array([[0.5], [0.4]])] * bool(policy.sees)
            decisions.append(policy.pull(*shown, at=at))
        if t in (30, 90):
            policy.finish()
        open_now = [policy.is_open(one, at=at + 1.0) for one in decisions]
        seen.append(open_now)
        if (number := len(decisions) - 1 - t % 5) % 3 < answers and number not in answered:
            answered.add(number)
            took = policy.update(0.5, decisions[number], at=at + 1.0)
            if not policy.session.gate.statistic.parts and not policy.session.rounds.exhausted:
                assert took >= open_now[number]
        assert seen[-1] == [policy.is_open(one, at=at + 1.0) for one in decisions]
    return seen


@WITHIN
@pytest.mark.parametrize("make", OPEN.values(), ids=OPEN)
def test_at_no_moment_it_shows_whether_answers_came(make, within):
    silent = nights(make, within, 0)
    assert silent == nights(make, within, 1) == nights(make, within, 3)
    assert any(map(any, silent))


@pytest.mark.parametrize("make", [OPEN["flights"], OPEN["every round"]])
def test_what_was_finished_is_not_open(make):
    policy = make(answers_within="2h")
    decisions = [policy.pull(at=float(t)) for t in range(20)]
    policy.update(0.5, decisions[0], at=20.0)
    assert all(policy.is_open(one, at=20.0) for one in decisions)
    policy.finish()
    for decision in decisions[:2]:
        assert not policy.is_open(decision, at=20.0)
        assert not policy.update(0.5, decision, at=20.0)


def test_deadlines_in_pulls_close_decisions():
    policy = dpb.bandit(2, BUDGET, answers_within=3, seed=1)
    decision = policy.pull()
    seen = []
    for _ in range(5):
        seen.append(policy.is_open(decision))
        policy.pull()
    assert seen[0]
    assert not seen[-1]
    assert sorted(seen, reverse=True) == seen


def test_an_erased_answer_that_waited_counts_as_the_default():
    """A policy that erased answers ends as one that never got them."""
    rows = np.random.default_rng(3).uniform(-0.5, 0.5, (60, 3, 2))
    erased, silent = (_every_answer(answers_within=5) for _ in range(2))
    for t in range(60):
        ours, theirs = erased.pull(rows[t]), silent.pull(rows[t])
        assert ours.arm == theirs.arm
        if t % 3 == 0:
            erased.update(1.0, ours)
            assert erased.erase(ours)
            assert erased.session.rounds.answers[ours.number] == 0.0
        else:
            erased.update(0.5, ours)
            silent.update(0.5, theirs)
    assert erased.ledger.releases == silent.ledger.releases > 0
    for name, array in silent.session.state.published.items():
        np.testing.assert_array_equal(erased.session.state.published[name], array)


def test_what_has_entered_a_sum_is_not_erased():
    policy = dpb.bandit(2, BUDGET, seed=1)
    decision = policy.pull()
    policy.update(1.0, decision)
    assert not policy.erase(decision)
