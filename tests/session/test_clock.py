"""Deadlines by the clock, against a slow model that keeps every pull's deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbandits as dpb
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.policies import Decision, Policy
from dpbandits.policies.kept import ASSUMED_OF_PLACES
from dpbandits.testing.living import with_fixed_releases
from dpbandits.testing.walk import releases, spans

WAIT, STEP = 120, 2  # seconds: the wait, and a sixtieth of it
START = 1_700_000_001


def flights(**options: Any) -> Policy:
    return AdaCUCB(2, budget=dpb.ZCDP(1.0), seed=1, **options)


def waits(**options: Any) -> Policy:
    given = {"horizon": 30_000, "batch": 4, "budget": dpb.ZCDP(1.0), "seed": 1}
    return dpb.algorithms.GLMUCBJDP(2, 1, **given, **options)


def at_once(**options: Any) -> Policy:
    return dpb.algorithms.UCB1(2, seed=1, **options)


MAKERS = {"flights": flights, "waits": waits, "at once": at_once}
EVERY = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def pull(policy: Policy, at: float | None = None) -> Decision:
    return policy.pull(*[np.array([[0.5], [0.4]])] * bool(policy.sees), at=at)


class Model:
    """All deadlines, in a list, and a clock that never runs backwards."""

    def __init__(self) -> None:
        self.now, self.deadlines = 0, []

    def tick(self, at: int) -> int:
        self.now = max(self.now, at)
        return sum(deadline <= self.now for deadline in self.deadlines)

    def pull(self, at: int) -> None:
        self.tick(at)
        end = self.now + WAIT
        self.deadlines.append(end + -end % STEP)

    def takes(self, number: int, at: int) -> bool:
        return max(self.now, at) < self.deadlines[number]


class Played:
    """A policy, and the model beside it."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.model, self.at = policy, Model(), START
        self.open: list[Decision] = []
        self.recorded: list[int] = []  # pulls, by round
        self.passed: list[tuple[int, int]] = []  # pulls past their deadline, and releases by then

    def step(self, kind: int, jump: int, reward: float) -> None:
        self.at += jump
        if kind == 0:
            self.model.pull(self.at)
            decision = pull(self.policy, self.at)
            self.open.append(decision)
            if decision.recorded:
                self.recorded.append(decision.number)
            self.look()
        elif kind == 1:
            before = self.passed[-1][0] if self.passed else 0
            passed = self.model.tick(self.at)
            assert self.policy.tick(at=self.at) == passed - before
            self.look()
        elif self.open:
            decision = self.open.pop(int(reward * len(self.open)))
            taken = self.policy.update(reward, decision, at=self.at)
            assert taken == (decision.recorded and self.model.takes(decision.number, self.at))

    def look(self) -> None:
        passed = sum(deadline <= self.model.now for deadline in self.model.deadlines)
        assert self.policy.session.rounds.deadlines.passed == passed
        if self.policy.card.learns_at_once:
            assert self.policy.rounds == passed
        self.passed.append((passed, releases(self.policy)))

    def check(self) -> None:
        """Each release came when the last pull that it covers was past its deadline."""
        for i, last in enumerate(ends(self.policy)):
            number = self.recorded[last]
            assert next(made for passed, made in self.passed if passed > number) > i
            assert max((made for passed, made in self.passed if passed <= number), default=0) <= i


def ends(policy: Policy) -> Iterator[int]:
    """The last round of every release; a line of the ledger has several of one length."""
    for first, last, _, repeats, _ in spans(policy):
        length = (last - first + 1) // repeats
        yield from range(first + length - 1, last + 1, length)


STEPS = st.tuples(
    st.integers(0, 2),
    st.one_of(st.integers(0, 15), st.sampled_from([-500, -40, WAIT, 2 * WAIT])),
    st.floats(0.0, 0.99),
)


@EVERY
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, max_size=150))
def test_pulls_pass_their_deadlines_as_in_the_model(make: Callable[..., Policy], steps):
    played = Played(make(answers_within="2min"))
    for step in steps:
        played.step(*step)
    played.check()


@EVERY
def test_a_long_run_releases_in_time_and_keeps_few_deadlines(make):
    played, rng = Played(make(answers_within="120s")), np.random.default_rng(1)
    played.policy.watch.silence()
    for _ in range(4000):
        kind = rng.choice(3, p=[0.45, 0.05, 0.5])
        played.step(kind, int(rng.integers(0, 4)), 0.99 * rng.random())
        assert len(played.policy.session.rounds.deadlines.due) <= 62
    played.check()
    if not played.policy.card.learns_at_once:
        assert releases(played.policy) > 3


def history(policy: Policy, ticks: int | None, seed: int = 1, answers: int = 2) -> list[Any]:
    """The public state at each pull, with a tick every so many seconds; equal seeds answer alike."""
    times = np.random.default_rng(7).integers(0, 30, 400).cumsum()
    times[200:] += 3600  # a quiet hour
    rng, events, seen = np.random.default_rng(seed), [], []
    for number, when in enumerate(times):
        events.append((when, 1, number, 0.0))
        if rng.random() < answers / 2:
            late = int(rng.exponential(80))
            events.append((when + late, 2, number, rng.random()))
    if ticks:
        events += [(when, 0, 0, 0.0) for when in range(0, int(times[-1]), ticks)]
    decisions: dict[int, Decision] = {}
    for when, kind, number, reward in sorted(events):
        at = START + float(when)
        if kind == 0:
            policy.tick(at=at)
        elif kind == 1:
            decisions[number] = pull(policy, at)
            public = [array.tolist() for array in policy.session.state.published.values()]
            seen.append((decisions[number].arm, decisions[number].recorded, spans(policy), public))
        else:
            policy.update(reward, decisions[number], at=at)
    return seen


@pytest.mark.parametrize("finish_at", [None, ("22:40", "23:05")])
@EVERY
def test_how_often_it_ticks_makes_no_difference(make, finish_at):
    options = {"answers_within": "2min", "finish_at": finish_at}
    policies = [make(**options) for _ in range(3)]
    seen = [history(*one) for one in zip(policies, [None, 1, 1000], strict=True)]
    assert seen[0] == seen[1] == seen[2]
    counts = {policy.diagnostics.late for policy in policies}
    assert len(counts) == 1
    assert counts.pop() > 20


@pytest.mark.parametrize("make", [flights, waits])
def test_the_schedule_owes_nothing_to_answers(make):
    options = {"answers_within": "2min", "finish_at": ["22:40"]}

    def schedule(seed: int, answers: int) -> list[Any]:
        return history(with_fixed_releases(make(**options)), 50, seed, answers)

    assert schedule(1, 2) == schedule(2, 2) == schedule(3, 1) == schedule(4, 0)


def test_a_change_of_the_deadline_is_for_the_next_episode():
    policy = flights(answers_within="1h")
    for t in range(30):
        pull(policy, t)
    before = len(policy.session.rounds.flights)
    policy.configure(answers_within="1min")
    assert policy.answers_within == "1min"
    for t in range(30, 60):
        pull(policy, t)
    assert before < len(policy.session.rounds.flights)
    policy.tick(at=200)
    assert not releases(policy)  # an earlier pull still has an hour
    policy.tick(at=3700)
    assert releases(policy) > before
    said = " ".join(policy.guarantee.assumptions)
    assert "when deadlines of answers change depends on rewards only through releases" in said
    assert said.count("times of pull() and tick() are public") == 1


def test_pulls_become_a_clock_and_a_clock_pulls():
    policy = flights(answers_within=3)
    assert pull(policy).number == 0
    assert "tick()" not in str(policy.guarantee.assumptions)
    policy.configure(answers_within="1min")
    assert "tick()" in str(policy.guarantee.assumptions)
    for t in range(100):
        pull(policy, 10.0 * t)
    released = releases(policy)
    assert released > 3
    policy.configure(answers_within=3)
    while policy.session.rounds.deadlines.uses_clock:
        pull(policy, 100.0 * policy.session.rounds.pulls)
    for _ in range(5):
        pull(policy)
    assert releases(policy) > released
    with pytest.raises(dpb.errors.ArgumentError, match="this policy has no clock"):
        pull(policy, 1e6)
    assert policy.session.rounds.deadlines.passed == policy.session.rounds.pulls - 1 - 3


@EVERY
def test_it_goes_on_after_a_save(make, tmp_path):
    def play(policy: Policy, first: int) -> list[Any]:
        found = []
        for t in range(first, first + 60):
            decision = pull(policy, 5.0 * t)
            if t % 3:
                policy.update(0.1 * (t % 10), decision, at=5.0 * t + 2.0)
            found.append((decision.arm, decision.recorded, spans(policy)))
        return found

    policy = make(answers_within="2min", finish_at=["00:05"])
    play(policy, 0)
    policy.configure(answers_within="1min")
    again = dpb.load(policy.save(tmp_path / "saved"), simulation=True)
    assert again.session.rounds.deadlines == policy.session.rounds.deadlines
    assert {*again.guarantee.assumptions} == {*policy.guarantee.assumptions} - {ASSUMED_OF_PLACES}
    assert again.answers_within == "1min"
    assert play(again, 60) == play(policy, 60)
    assert dpb.inspect(tmp_path / "saved").card is not None


def test_times_of_day_release_what_is_over():
    policy = flights(answers_within="12h", finish_at=("04:00",))
    for t in range(40):
        policy.update(1.0, pull(policy, 3 * 3600.0 + t), at=3 * 3600.0 + t)
    waiting = len(policy.session.rounds.flights)
    assert waiting
    assert not releases(policy)
    assert policy.tick(at=4 * 3600.0 - 1) == 0
    assert not releases(policy)
    assert policy.tick(at=4 * 3600.0) == 0  # none is past its deadline
    assert releases(policy) >= waiting
    assert not policy.session.rounds.flights
    page = policy.card_page().markdown()
    assert "12h after the last decision of an episode" in page
    assert "daily at 04:00 UTC" in page


@pytest.mark.parametrize(
    ("options", "call", "message"),
    [
        ({}, lambda policy: policy.pull(at=1.0), "at must not be given: this policy has no clock"),
        ({}, lambda policy: policy.tick(), "tick.. must not be called: this policy has no clock"),
        ({"answers_within": "6h"}, lambda policy: policy.pull(at="now"), "at must be a number in"),
        ({"answers_within": None}, lambda policy: policy.configure(answers_within=3), "stay None"),
        (
            {},
            lambda policy: policy.configure(answers_within=0),
            "answers_within must be an integer",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(options, call, message):
    with pytest.raises(dpb.errors.ArgumentError, match=message):
        call(flights(**options))


@pytest.mark.parametrize("wrong", ["", "6", "6 h", "1.5h", "0s", "366d", "6H", -1, 2.5, True])
def test_no_other_deadline_is_taken(wrong):
    with pytest.raises(dpb.errors.ArgumentError, match="answers_within must be an integer"):
        flights(answers_within=wrong)


def test_without_a_time_it_is_now():
    policy = flights(answers_within="1s")
    decision = policy.pull()
    assert policy.update(1.0, decision)
    assert abs(policy.session.rounds.deadlines.now - time.time()) < 60.0
