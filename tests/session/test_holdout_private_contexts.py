"""Held-out people whose contexts are private: nothing but one sum depends on their record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.algorithms import LinUCBJDP
from dpbandits.policies import Policy
from dpbandits.session.session import Session

PEOPLE = 40
OWN = dpb.Holdout(0.5, batch=3)
Transcript = dict[str, Any]


def make(**options: Any) -> dpb.Policy:
    given = {"budget": dpb.ZCDP(0.5), "horizon": 200, "holdout": OWN, "seed": 1}
    return LinUCBJDP(3, 2, **(given | options))


def records(seed: int) -> list[tuple[np.ndarray, float]]:
    rng = np.random.default_rng(seed)
    return [(0.5 * rng.standard_normal((3, 2)), float(rng.random() < 0.5)) for _ in range(PEOPLE)]


def played(people: list[tuple[np.ndarray, float]], **options: Any) -> Transcript:
    """All decisions and releases; noise and coins are the same in each call."""
    policy = make(**options)
    decisions = []
    for i, (contexts, reward) in enumerate(people):
        user = {"user": i % 13} if policy.max_rounds else {}
        decision = policy.pull(contexts, **user)
        policy.update(reward, decision)
        fields = decision.number, decision.arm, decision.propensity, decision.recorded
        decisions.append((*fields, decision.held_out))
    policy.finish()
    held = policy.session.holdout
    return {
        "decisions": decisions,
        "bandit": (policy.session.state.wall.release.tolist(), policy.ledger.frame.to_dict()),
        "sums": [one.values[0] for one in held.exchange.made],
        "batches": [one.batches for one in held.exchange.made],
        "ledger": policy.holdout.ledger.frame.to_dict(),
        "counts": (policy.rounds, policy.holdout.rounds),
    }


def changed(i: int, **options: Any) -> tuple[Transcript, Transcript]:
    """Two transcripts, where the whole record of a person, or of a user, differs."""
    before, other = records(1), records(2)
    mine = [j for j in range(PEOPLE) if (j % 13 == i if "max_rounds" in options else j == i)]
    after = [
        (other[j][0], 1.0 - reward) if j in mine else (contexts, reward)
        for j, (contexts, reward) in enumerate(before)
    ]
    return played(before, **options), played(after, **options)


def check_a_record_moves_one_sum(most: int = 1, **options: Any) -> None:
    """A held-out record moves ``most`` sums by 1 at most, and nothing else that anybody sees; no
    other record moves anything of the holdout.
    """
    met = set()
    for i in range(13 if most > 1 else PEOPLE):
        one, other = changed(i, **options)
        held_out = one["decisions"][i][-1]
        moved = np.abs(np.subtract(one.pop("sums"), other.pop("sums")))
        met.add((held_out, bool((moved > 1e-9).any())))
        assert (moved > 1e-9).sum() <= (most if held_out else 0), "too many sums move"
        assert moved.max(initial=0.0) <= 1.0 + 1e-9
        if not held_out:  # whose own and later decisions may differ, as without a holdout
            for told in (one, other):
                del told["bandit"]
                told["decisions"] = [made for made in told["decisions"] if made[-1]]
        assert one == other, "something else than a sum depends on a record"
    assert {(True, True), (False, False)} <= met


def test_a_held_out_record_moves_one_sum_and_nothing_else():
    check_a_record_moves_one_sum()


def test_with_one_sum():
    def two(**options: Any) -> dpb.Policy:
        own = dpb.Holdout(0.5, batch=3, one_sum=True)
        return LinUCBJDP(2, 2, budget=dpb.ZCDP(0.5), horizon=200, holdout=own, seed=1, **options)

    policy = two()
    for contexts, reward in records(1):
        policy.update(reward, policy.pull(contexts[:2]))
    assert policy.holdout.ledger.spent() == dpb.ZCDP(0.5)
    assert policy.spent == dpb.ZCDP(0.5)


def test_the_records_of_a_user_move_a_sum_each():
    check_a_record_moves_one_sum(most=4, max_rounds=4)


def test_a_draw_that_sees_contexts_is_caught(monkeypatch: pytest.MonkeyPatch):
    right = Policy._offered

    def masked(self: Policy, shown: Any, available: Any = None) -> tuple[Any, Any]:
        rows, _ = right(self, shown, available)
        mask = rows[:, 0] >= np.sort(rows[:, 0])[1]  # the private contexts close an arm
        return rows, mask

    monkeypatch.setattr(Policy, "_offered", masked)
    with pytest.raises(AssertionError, match=r"too many sums|something else"):
        check_a_record_moves_one_sum()


def test_a_held_out_record_that_the_bandit_counts_is_caught(monkeypatch: pytest.MonkeyPatch):
    right = Session._draw

    def counted(self: Session, *given: Any) -> Any:
        OWNER[0].rounds.recorded += bool(OWNER[0].choices.fresh(SHOWN[0], None)[0].arm)
        return right(self, *given)

    pulls = Session.pull

    def noting(self: Session, shown: Any, *rest: Any) -> dpb.Decision:
        OWNER[0], SHOWN[0] = self, shown
        return pulls(self, shown, *rest)

    monkeypatch.setattr(Session, "pull", noting)
    monkeypatch.setattr(Session, "_draw", counted)
    with pytest.raises(AssertionError, match="something else"):
        check_a_record_moves_one_sum()


OWNER: list[Any] = [None]
SHOWN: list[Any] = [None]


def test_arms_are_drawn_whatever_contexts_say():
    policy = make(holdout=dpb.Holdout(0.9, weights=(0.5, 0.3, 0.2)))
    contexts = np.array([[0.0, 0.0], [0.9, 0.0], [0.0, 0.0]])
    counts = np.zeros(3)
    for _ in range(150):
        decision = policy.pull(contexts)
        policy.update(float(decision.arm == 1), decision)
        counts[decision.arm] += decision.held_out
    expected = counts.sum() * np.array([0.5, 0.3, 0.2])
    assert ((counts - expected) ** 2 / expected).sum() < 18.4  # chi squared, p = 1e-4


def test_retired_arms_are_public():
    policy = make(holdout=dpb.Holdout(0.5, weights=(0.5, 0.3, 0.2)))
    policy.retire(0)
    for contexts, reward in records(1):
        decision = policy.pull(contexts)
        assert decision.arm != 0
        if decision.held_out:
            assert decision.propensity == pytest.approx([0.6, 0.4][decision.arm - 1])
        policy.update(reward, decision)


def test_the_guarantee_is_that_of_the_bandit():
    policy, plain = make(), make(holdout=None)
    one, other = policy.guarantee, plain.guarantee
    assert (one.holds, one.view, one.protects) == (other.holds, "joint", "contexts and rewards")
    assert set(one.assumptions) - set(other.assumptions) == {
        "chance decides who is held out, and neither contexts nor rewards do",
        "nobody is in releases of both bandit and holdout, which the policy enforces",
    }
    assert "session.holdout" in one.source
    assert "## Holdout" in policy.card_page().markdown()


def test_secure_noise_keeps_the_budget_of_both():
    policy = make(noise="secure", seed=None)
    for contexts, reward in records(1):
        policy.update(reward, policy.pull(contexts))
    policy.finish()
    assert policy.holdout.ledger.spent() == dpb.ZCDP(0.5)
    assert not policy.guarantee.simulated
    assert policy.holdout.intervals(difference=(1, 0)).low[0] >= -1.0


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: make().pull(np.zeros((3, 2)), available=[0, 1]), "available"),
        (lambda: make().pull(np.zeros((2, 2))), "a row for each"),
        (lambda: make(holdout=dpb.Holdout(0.1, targets=["rule"])), "without targets"),
    ],
)
def test_what_depends_on_contexts_is_refused(call: Callable[[], Any], why: str):
    with pytest.raises(dpb.ArgumentError, match=why):
        call()


def test_a_model_for_each_arm_takes_one_vector():
    policy = make(models="disjoint")
    for contexts, reward in records(1):
        policy.update(reward, policy.pull(contexts[0]))
    assert policy.holdout.ledger.releases > 2
