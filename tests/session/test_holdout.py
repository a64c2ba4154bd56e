"""Held-out people: who they are, what they get, and that they and the bandit compose in parallel."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.algorithms import MergedIMED
from dpbandits.session.holdout import Coin
from dpbandits.session.rounds import Pending
from dpbandits.session.session import Session

HALF = dpb.Holdout(0.5, batch=4)
LOUD = dpb.ZCDP(1e26)  # whose noise is below 1e-10


def merged(**options: Any) -> dpb.Policy:
    return MergedIMED(
        options.pop("n_arms", 2),
        **({"budget": dpb.ZCDP(0.5), "seed": 1, "holdout": HALF} | options),
    )


def held_out(policy: dpb.Policy, **options: Any) -> dpb.Decision:
    """The decision of the next held-out person; others answer 0."""
    while not (decision := policy.pull(**options)).held_out:
        policy.update(0.0, decision)
    return decision


# The coin and the draw -----------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_the_coin_holds_out_the_share(share: float):
    coin, n = Coin(b"k" * 32, share), 20_000
    found = sum(coin.holds_out(None, number) for number in range(n))
    assert abs(found - n * share) < 4.0 * math.sqrt(n * share * (1.0 - share))  # p < 1e-4
    # No two pulls in a row have to do with each other.
    both = sum(coin.holds_out(None, i) and coin.holds_out(None, i + 1) for i in range(n))
    assert abs(both - n * share**2) < 6.0 * math.sqrt(n) * share


def test_a_share_is_a_holdout():
    assert merged(holdout=0.1).config["holdout"] == dpb.Holdout(0.1)
    assert merged(holdout={"share": 0.1, "batch": 7}).config["holdout"].batch == 7
    assert dpb.bandit(["a", "b"], budget=None, holdout=0.25).holdout.share == 0.25
    assert merged(holdout=None).holdout is None


def test_arms_are_drawn_with_their_weights():
    weights = (0.5, 0.3, 0.2)
    policy = merged(n_arms=3, holdout=dpb.Holdout(0.9, weights=weights))
    counts = np.zeros(3)
    for _ in range(3000):
        decision = policy.pull()
        policy.update(0.0, decision)
        if decision.held_out:
            assert decision.propensity == pytest.approx(weights[decision.arm], rel=1e-12)
            counts[decision.arm] += 1
    expected = counts.sum() * np.array(weights)
    assert ((counts - expected) ** 2 / expected).sum() < 18.4  # chi squared, p = 1e-4


def test_closed_arms_leave_the_share_and_lower_no_probability():
    weights = (0.5, 0.3, 0.2)
    holdout = dpb.Holdout(0.5, weights=weights)
    closed, masked, whole = (merged(n_arms=3, holdout=holdout) for _ in range(3))
    closed.retire(0)
    for _ in range(400):
        one, two, three = closed.pull(), masked.pull(available=[1, 2]), whole.pull()
        assert one.held_out == two.held_out == three.held_out
        for decision in (one, two) if one.held_out else ():
            assert decision.arm != 0
            assert decision.propensity == pytest.approx(weights[decision.arm] / 0.5)
            assert decision.propensity > weights[decision.arm]
    closed.add(0)
    assert {held_out(closed).arm for _ in range(60)} == {0, 1, 2}


# Minimum shares ------------------------------------------------------------------------------


def test_every_arm_gets_its_minimum_share_of_people():
    """The bandit itself soon plays the first arm alone."""
    policy = merged(n_arms=3, holdout=dpb.Holdout(min_share=0.1), budget=LOUD)
    counts, bandits, n = np.zeros(3), np.zeros(3), 6000
    for _ in range(n):
        decision = policy.pull()
        policy.update(float(decision.arm == 0), decision)
        counts[decision.arm] += 1
        bandits[decision.arm] += not decision.held_out
        assert not decision.held_out or decision.propensity == pytest.approx(1 / 3, rel=1e-12)
    below = n * 0.1 - 4.0 * math.sqrt(n * 0.1 * 0.9)  # p < 1e-4
    assert counts.min() >= below > bandits[1:].max()
    held = policy.holdout
    assert (held.share, held.rounds) == (pytest.approx(0.3), n - bandits.sum())
    assert "Every arm gets at least 10 % of people" in str(held)
    assert str(held) in policy.card_page().markdown()


def test_retiring_an_arm_holds_out_nobody_more():
    """The same people are held out, and the others' share stays that of the coin."""
    kept, retiring = (merged(n_arms=4, holdout=dpb.Holdout(min_share=0.1)) for _ in range(2))
    coin = kept.session.coin
    for number in range(600):
        if number == 200:
            retiring.retire(3)
        if number == 400:
            retiring.retire(0)
        one, other = kept.pull(), retiring.pull()
        assert one.held_out == other.held_out == coin.holds_out(None, number)
        if other.held_out:
            assert other.propensity == pytest.approx(1 / (4 - len(retiring.retired)), rel=1e-12)
        kept.update(0.0, one)
        retiring.update(0.0, other)
    assert retiring.holdout.share == kept.holdout.share == pytest.approx(0.4)


def test_a_minimum_share_is_a_holdout_with_equal_weights():
    asked = dpb.Holdout(min_share=0.05, batch=20)
    one = merged(n_arms=3, holdout=asked)
    assert merged(n_arms=3, holdout={"min_share": 0.05, "batch": 20}).config["holdout"] == asked
    other = merged(n_arms=3, holdout=dpb.Holdout(asked.share_of(3), batch=20))
    for _ in range(200):
        decisions = [policy.pull() for policy in (one, other)]
        assert decisions[0].held_out == decisions[1].held_out
        assert decisions[0].arm == decisions[1].arm
        for policy, decision in zip((one, other), decisions, strict=True):
            policy.update(1.0, decision)
    assert one.holdout.ledger.releases == other.holdout.ledger.releases
    pair = dpb.Holdout(min_share=0.2, one_sum=True)
    assert merged(holdout=pair).holdout.one_sum


def test_a_saved_policy_keeps_its_minimum_share(tmp_path):
    policy = merged(n_arms=3, holdout=dpb.Holdout(min_share=0.1))
    path = policy.save(tmp_path / "trial.dpb")
    policy.close()
    assert dpb.inspect(path).holdout.share == pytest.approx(0.3)
    loaded = dpb.load(path)
    assert loaded.config["holdout"] == dpb.Holdout(min_share=0.1)
    loaded.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: merged(n_arms=4, holdout=dpb.Holdout(min_share=0.25)), "below 1 / 4 with 4 arms"),
        (lambda: dpb.Holdout(0.1, min_share=0.05), "and not both"),
        (dpb.Holdout, "share or min_share must be given"),
        (lambda: dpb.Holdout(weights=(0.5, 0.5), min_share=0.1), "weights must be None"),
        (lambda: dpb.Holdout(min_share=0.0), "min_share must be"),
        (lambda: merged(holdout={"batch": 3}), "holdout must be"),
    ],
)
def test_minimum_shares_that_cannot_be_are_refused(make, message):
    with pytest.raises(dpb.ArgumentError, match=message):
        make()


def test_a_user_is_always_held_out_or_never():
    policy = merged(max_rounds=3)
    seen: dict[str, set[bool]] = {}
    for i in range(400):
        user = f"user {i % 80}"
        seen.setdefault(user, set()).add(policy.pull(user=user).held_out)
    assert all(len(one) == 1 for one in seen.values())
    assert 20 < sum(True in one for one in seen.values()) < 60


def test_a_refused_call_tosses_no_coin():
    one, other = merged(), merged()
    for _ in range(50):
        with pytest.raises(dpb.ArgumentError):
            one.pull(available=[7])
        assert one.pull().held_out == other.pull().held_out


# Sums ----------------------------------------------------------------------------------------


def test_sums_are_those_of_held_out_people():
    policy = merged(budget=LOUD)
    rng, of_arm = np.random.default_rng(1), {0: list[float](), 1: list[float]()}
    for _ in range(200):
        decision, reward = policy.pull(), round(rng.random(), 3)
        policy.update(reward, decision)
        if decision.held_out:
            of_arm[decision.arm].append(reward)
    policy.finish()
    sums = policy.holdout.released_sums
    for arm, rewards in of_arm.items():
        full = len(rewards) // 4
        wanted = np.sum(np.reshape(rewards[: 4 * full], (full, 4)), axis=1)
        assert sums["sum"][sums["arm"] == arm].to_numpy() == pytest.approx(wanted, abs=1e-6)
        mean = np.mean(rewards[: 4 * full])
        assert policy.holdout.estimates.means[arm] == pytest.approx(mean, abs=1e-6)


def test_one_sum_adds_up_rewards_of_arm_1_and_turned_rewards_of_arm_0():
    holdout = dpb.Holdout(0.5, batch=6, one_sum=True)
    policy = merged(budget=LOUD, holdout=holdout, reward_range=(-1.0, 3.0))
    rng, entered = np.random.default_rng(1), list[float]()
    for _ in range(200):
        decision, reward = policy.pull(), round(4.0 * rng.random() - 1.0, 3)
        policy.update(reward, decision)
        if decision.held_out:
            entered.append(reward if decision.arm == 1 else 2.0 - reward)
    policy.finish()
    full = len(entered) // 6
    wanted = np.sum(np.reshape(entered[: 6 * full], (full, 6)), axis=1)
    assert policy.holdout.released_sums["sum"].to_numpy() == pytest.approx(wanted, abs=1e-6)
    assert (policy.holdout.released_sums["rounds"] == 6).all()
    # The mean of a sum is 1 + effect / 2.
    found = policy.holdout.intervals(difference=(1, 0))
    assert found.means[0] == pytest.approx(2.0 * (np.mean(entered[: 6 * full]) - 1.0), abs=1e-6)
    assert found.low[0] < found.means[0] < found.high[0]
    turned = policy.holdout.intervals(difference=(0, 1))
    assert (turned.low[0], turned.high[0]) == (-found.high[0], -found.low[0])


LOST: dict[str, Callable[[dpb.Policy, dpb.Decision], bool]] = {
    "expired": lambda policy, decision: policy.expire(decision),
    "cancelled": lambda policy, decision: policy.cancel(decision),
    "another arm": lambda policy, decision: policy.update(1.0, decision, arm=1 - decision.arm),
    "missing": lambda policy, decision: policy.update(math.nan, decision),
    "late": lambda policy, decision: True,
}


@pytest.mark.parametrize("how", LOST)
def test_an_answer_that_does_not_count_is_the_default(how: str):
    policy = merged(budget=LOUD, default_reward=0.25, choices_public=True)
    while policy.session.holdout.rounds.recorded < 40:
        decision = policy.pull()
        if not decision.held_out:
            policy.update(0.0, decision)
        else:
            assert LOST[how](policy, decision) == (how != "cancelled")
    policy.finish()
    sums = policy.holdout.released_sums
    assert len(sums) > 4
    assert (sums["rounds"] == 4).all()
    assert sums["sum"].to_numpy() == pytest.approx(1.0, abs=1e-6)


def test_answers_are_awaited_as_declared():
    policy = merged(budget=LOUD, answers_within=30)
    decision = held_out(policy)
    for _ in range(25):
        policy.update(0.0, policy.pull())
    assert policy.is_open(decision)
    assert policy.update(1.0, decision)
    late = held_out(policy)
    for _ in range(60):
        policy.update(0.0, policy.pull())
    assert not policy.is_open(late)
    assert not policy.update(1.0, late)
    assert policy.holdout.released_sums["sum"].sum() == pytest.approx(1.0, abs=1e-6)


def test_people_are_drawn_for_anew_while_answers_are_awaited():
    """Without deadlines a full batch waits, and the arm of its last person is not repeated."""
    policy = merged(holdout=dpb.Holdout(0.9, batch=2), answers_within=None)
    decisions = [policy.pull() for _ in range(200)]
    waiting = [one for one in decisions if one.held_out and not one.recorded]
    assert len(waiting) > 100
    assert 0.3 < np.mean([one.arm for one in waiting]) < 0.7
    assert {one.propensity for one in waiting} == {0.5}


def test_one_sum_records_nobody_to_whom_an_arm_is_closed():
    policy = merged(holdout=dpb.Holdout(0.5, batch=2, one_sum=True))
    decision = held_out(policy, available=[1])
    assert (decision.arm, decision.propensity, decision.recorded) == (1, 1.0, False)
    with pytest.raises(dpb.ArgumentError, match="one_sum"):
        policy.retire(0)


def test_tokens_and_the_last_decision_find_their_stream():
    policy = merged(budget=LOUD, holdout=dpb.Holdout(0.5, batch=1))
    for i in range(60):
        decision = policy.pull()
        assert len(decision.token) == 64
        assert policy.update(1.0, decision.token if i % 2 else None)
        with pytest.raises(dpb.UpdateError, match="answered already"):
            policy.update(1.0, decision.token)
    policy.finish()
    assert policy.holdout.released_sums["sum"].to_numpy() == pytest.approx(1.0, abs=1e-6)


def test_the_end_holds_out_nobody_more():
    policy = merged()
    held_out(policy)
    policy.end()
    decisions = [policy.pull() for _ in range(60)]
    assert not any(one.held_out or one.recorded for one in decisions)
    assert not any(rows for rows in policy.session.holdout.rounds.rows)


# Privacy -------------------------------------------------------------------------------------


class Scripted:
    """Releases from a script, whatever is true: the statistics under one transcript."""

    def __init__(self, policy: dpb.Policy) -> None:
        self.statistics: list[tuple[str, np.ndarray]] = []
        sessions = {"bandit": policy.session, "holdout": policy.session.holdout}
        for name, session in sessions.items():
            session.gate.noise = copy.copy(session.gate.noise)
            session.gate.noise.add_noise = self.noting(name)
        policy.session.holdout.state.choice_rng = np.random.default_rng(3)
        policy.session.coin = replace(policy.session.coin, key=b"k" * 32)

    def noting(self, name: str) -> Callable[..., None]:
        def add_noise(_: Any, scale: float, exact: Any, noisy: Any, rng: Any) -> None:
            self.statistics.append((name, exact.copy()))
            noisy[:] = 0.75 * len(self.statistics)

        return add_noise


def played(rewards: np.ndarray, users: np.ndarray | None, **options: Any) -> Scripted:
    policy = merged(noise="secure", seed=None, **options)
    script = Scripted(policy)
    for i, reward in enumerate(rewards):
        decision = policy.pull(user=None if users is None else int(users[i]))
        policy.update(reward, decision)
    policy.finish()
    return script


def moved(one: Scripted, other: Scripted) -> dict[str, list[float]]:
    """How far each release moves that does, by streams; both have the same releases."""
    found: dict[str, list[float]] = {}
    assert len(one.statistics) == len(other.statistics)
    for (name, before), (same, after) in zip(one.statistics, other.statistics, strict=True):
        assert name == same
        if (far := float(np.abs(before - after).sum())) > 0.0:
            found.setdefault(name, []).append(far)
    return found


def neighbours(n: int, users: np.ndarray | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rewards that differ in all rounds of one unit, as far as they can."""
    rewards = np.random.default_rng(7).integers(0, 2, n).astype(float)
    for unit in range(n if users is None else int(users.max()) + 1):
        mine = np.arange(n) == unit if users is None else users == unit
        yield rewards, np.where(mine, 1.0 - rewards, rewards)


def check_composition(users: np.ndarray | None, most: int, **options: Any) -> set[str]:
    """Each unit moves releases of one stream, at most ``most`` of them, each by at most 1."""
    met, n = set[str](), 48
    for one, other in neighbours(n, users):
        found = moved(played(one, users, **options), played(other, users, **options))
        assert len(found) <= 1, "a record is in releases of both streams"
        for name, far in found.items():
            assert len(far) <= most
            assert max(far) <= 1.0
            met.add(name)
    return met


@pytest.mark.parametrize("one_sum", [False, True])
def test_a_record_moves_one_release_of_one_stream(one_sum: bool):
    holdout = dpb.Holdout(0.5, batch=3, one_sum=one_sum)
    assert check_composition(None, 1, holdout=holdout) == {"bandit", "holdout"}


def test_a_user_moves_releases_of_one_stream():
    users = np.random.default_rng(4).integers(0, 16, 48)
    holdout = dpb.Holdout(0.5, batch=2)
    met = check_composition(users, 2, holdout=holdout, max_rounds=2)
    assert met == {"bandit", "holdout"}


def test_a_record_that_also_enters_the_bandit_is_caught(monkeypatch: pytest.MonkeyPatch):
    right = Session.take

    def both(self: Session, value: Any, decision: dpb.Decision, *rest: Any) -> bool:
        learned = right(self, value, decision, *rest)
        if decision.held_out and value is not None:
            self.intake.take(Pending(decision.arm), value)
        return learned

    monkeypatch.setattr(Session, "take", both)
    with pytest.raises(AssertionError, match="both streams"):
        check_composition(None, 1)


def test_a_coin_that_is_tossed_at_each_visit_is_caught(monkeypatch: pytest.MonkeyPatch):
    right = Coin.holds_out
    monkeypatch.setattr(Coin, "holds_out", lambda self, _, number: right(self, None, number))
    users = np.random.default_rng(4).integers(0, 16, 48)
    with pytest.raises(AssertionError, match="both streams"):
        check_composition(users, 2, holdout=dpb.Holdout(0.5, batch=2), max_rounds=2)


@pytest.mark.parametrize("budget", [dpb.PureDP(0.3), dpb.ZCDP(0.2), dpb.ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("most", [None, 4])
def test_each_stream_spends_the_whole_budget(budget: dpb.privacy.Budget, most: int | None):
    policy = merged(budget=budget, max_rounds=most)
    rng = np.random.default_rng(1)
    for _ in range(400):
        policy.pull(user=None if most is None else int(rng.integers(90)))
        policy.update(0.5)
    assert policy.ledger.spent() == policy.holdout.ledger.spent() == policy.spent == budget
    bandit, held = policy.ledger.frame, policy.holdout.ledger.frame
    assert set(held["family"]) == set(bandit["family"])
    assert held["noise_scale"].unique() == pytest.approx(bandit["noise_scale"].unique())


def test_the_guarantee_and_the_card_tell_of_it():
    policy, plain = merged(), merged(holdout=None)
    assert policy.guarantee.holds == plain.guarantee.holds
    added = set(policy.guarantee.assumptions) - set(plain.guarantee.assumptions)
    assert added == {
        "chance decides who is held out, and rewards do not",
        "nobody is in releases of both bandit and holdout, which the policy enforces",
    }
    assert "session.holdout" in policy.guarantee.source
    card = policy.card_page().markdown()
    assert "50 % of people get an arm by chance" in card
    assert "## Holdout" in card
    assert "## Holdout" not in plain.card_page().markdown()


# What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: dpb.bandit(2, budget=dpb.PureDP(1.0), trust="local", holdout=0.1), "central"),
        (lambda: dpb.bandit(2, budget=dpb.PureDP(1.0), trust="shuffle", holdout=0.1), "central"),
        (lambda: merged(clip=False), "clip=True"),
        (lambda: merged(calibration="paper", budget=dpb.ApproxDP(1.0, 1e-6)), "calibration"),
        (lambda: merged(n_arms=3, holdout=dpb.Holdout(0.1, one_sum=True)), "one_sum"),
        (lambda: merged(holdout=dpb.Holdout(0.1, (0.4, 0.6), one_sum=True)), "one_sum"),
        (lambda: merged(holdout=dpb.Holdout(0.1, (0.2, 0.3, 0.5))), "2 numbers, one for each arm"),
        (lambda: dpb.Holdout(0.1, (0.001, 0.999)), "weights"),
        (lambda: dpb.Holdout(0.1, (0.5, 0.4)), "add up to 1"),
        (lambda: dpb.Holdout(1.0), "share"),
        (lambda: dpb.Holdout(0.1, batch=0), "batch"),
        (lambda: merged(holdout=2.0), "holdout"),
        (lambda: merged(holdout={"shares": 0.1}), "holdout"),
    ],
)
def test_what_has_no_proof_is_refused(make: Callable[[], Any], why: str):
    with pytest.raises(dpb.ArgumentError, match=why):
        make()


def test_one_sum_tells_of_a_difference_alone():
    policy = merged(holdout=dpb.Holdout(0.5, batch=2, one_sum=True))
    with pytest.raises(dpb.ArgumentError, match="difference"):
        policy.holdout.intervals()
    assert policy.holdout.estimates.means is None


def test_a_search_goes_on_holding_people_out():
    search = dpb.bandit(2, budget=dpb.ZCDP(5.0), goal="best arm", holdout=HALF, seed=1)
    while not search.stopped:
        decision = search.pull()
        search.update(float(decision.arm == 1), decision)
    before = search.holdout.rounds
    decisions = [search.pull() for _ in range(100)]
    assert search.holdout.rounds == before + sum(one.held_out for one in decisions) > before
    assert {(one.arm, one.recorded) for one in decisions if not one.held_out} == {(1, False)}
