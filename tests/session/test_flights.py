"""Episodes in flight: over, and open for answers until their deadline, while the next ones run."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.papers.others import AdaPTT, LazyDPTS
from dpbandits.policies import Policy
from dpbandits.privacy.ledger import WHOLE
from dpbandits.session.rounds import Flight

PATIENCE, DEFAULT = 5, 0.25
REWARDS = np.random.default_rng(3).random((2000, 3))


def make(cls: type[Policy], budget: Any = None, **options: Any) -> Policy:
    given = {"seed": 7, "answers_within": PATIENCE, "default_reward": DEFAULT} | options
    return cls(3, budget=budget, **given)


CLASSES = [
    dpb.papers.concentrated.AdaCUCB,
    dpb.algorithms.MergedIMED,
    dpb.algorithms.MergedThompson,
    LazyDPTS,
    AdaPTT,
    dpb.algorithms.HTINF,
]


def example(cls: type[Policy], **options: Any) -> Policy:
    own = {"failure_probability": 1e-9} if cls is AdaPTT else {}
    own |= {"batch": 3} if cls is dpb.algorithms.HTINF else {}
    return make(cls, **own, **options)


class Clinic:
    """Plays a policy without noise, whose answers are up to eight pulls late, and knows by itself
    what every release has to be.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy, self.rng = policy, np.random.default_rng(5)
        self.arrivals: dict[int, tuple[int, int, float]] = {}  # round: number, when, reward
        self.arms: list[int] = []  # by round
        self.waiting: list[tuple[int, Any, float]] = []
        self.checked = self.most = 0
        self.covered: list[int] = []

    def play(self, pulls: int) -> Clinic:
        for _ in range(pulls):
            number = self.policy.session.rounds.pulls
            for late in [one for one in self.waiting if one[0] <= number]:
                self.waiting.remove(late)
                self.policy.update(late[2], late[1])
            waiting = self.policy.session.rounds.next_flight
            decision = self.policy.pull()
            self.check(number, waiting)
            self.most = max(self.most, len(self.policy.session.rounds.flights))
            if not decision.recorded:
                continue
            reward, late = float(REWARDS[number, decision.arm]), int(self.rng.integers(0, 9))
            self.arrivals[len(self.arms)] = number, number + 1 + late, reward
            self.arms.append(decision.arm)
            self.waiting.append((number + 1 + late, decision, reward))
        return self

    def check(self, number: int, waiting: Flight | None) -> None:
        """A release that was made at this pull, of what had waited longest."""
        ledger = self.policy.ledger
        if ledger.releases == self.checked:
            return
        assert ledger.releases == self.checked + 1
        self.checked += 1
        wall = self.policy.session.state.wall
        assert waiting is not None
        first, last, part = waiting.ended.span
        rounds = [r for r in range(first, last + 1) if part in (WHOLE, self.arms[r])]
        self.covered += rounds
        assert self.arrivals[max(rounds)][0] + 1 + PATIENCE == number  # the deadline, in pulls
        in_time = [
            self.arrivals[r][2] if self.arrivals[r][1] <= number else DEFAULT for r in rounds
        ]
        assert wall.release[0] == pytest.approx(sum(in_time), abs=1e-9)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_record_is_in_one_release_with_its_answer_or_the_default(cls):
    clinic = Clinic(example(cls)).play(300)
    assert clinic.checked >= 8
    assert clinic.most >= 2  # several were in flight
    assert len(clinic.covered) == len(set(clinic.covered))


# Unbiased estimates ----------------------------------------------------------------------------

T, LOSSES = 6, np.random.default_rng(8).random((6, 2))
ADVICE = np.random.default_rng(9).dirichlet(np.ones(2), (6, 2))


def forced(policy: Policy, arms: tuple[int, ...], late: int) -> float:
    """Play these arms, with answers so many pulls late; the probability of doing so."""
    gate, chance = policy.session.gate, 1.0
    advised = isinstance(policy, dpb.algorithms.BatchedEXP4)

    def decide(params: Any, public: Any, shown: Any, _: Any) -> tuple[int, float, int]:
        arm = arms[policy.session.rounds.pulls]
        if advised:
            probability = float(shown[arm] @ public.probability)
            return arm, (1 - params.mixing) * probability + params.mixing / 2, 1
        return arm, float(public.probability[arm]), 1

    gate.steps = gate.steps._replace(decide=decide)
    asked = []
    for t in range(len(arms)):
        if t > late:
            policy.update(1.0 - LOSSES[t - 1 - late, arms[t - 1 - late]], asked[t - 1 - late])
        asked.append(policy.pull(ADVICE[t]) if advised else policy.pull())
        chance *= asked[-1].propensity
    for t in range(max(len(arms) - 1 - late, 0), len(arms)):
        policy.update(1.0 - LOSSES[t, arms[t]], asked[t])
    policy.finish()
    return chance


@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize("kind", ["EXP3", "EXP4"])
def test_estimated_losses_are_unbiased_however_late(kind: str, late: int):
    def fresh() -> Policy:
        if kind == "EXP3":
            return dpb.algorithms.EXP3(
                2, horizon=T, budget=None, batch=1, rate=0.7, mixing=0.2, answers_within=late
            )
        return dpb.algorithms.BatchedEXP4(
            2, 2, horizon=T, budget=None, batch=1, rate=0.7, answers_within=late
        )

    mean = 0.0
    for arms in product(range(2), repeat=T):
        policy = fresh()
        chance = forced(policy, arms, late)
        assert policy.ledger.releases == T
        found = policy.session.state.public.losses
        mean += chance * (found[0] - found[1])
    truth = LOSSES if kind == "EXP3" else np.einsum("tja,ta->tj", ADVICE, LOSSES)
    assert mean == pytest.approx((truth[:, 0] - truth[:, 1]).sum(), abs=1e-9)


# Saved and lost --------------------------------------------------------------------------------


def in_flight(policy: Policy) -> Policy:
    """Play until several episodes wait for answers, which none has."""
    while len(policy.session.rounds.flights) < 3:
        policy.pull()
    return policy


def test_what_is_in_flight_is_saved(tmp_path):
    policies = [in_flight(make(dpb.algorithms.MergedIMED, dpb.ZCDP(0.5))) for _ in range(2)]
    policies[0] = dpb.load(policies[0].save(tmp_path / "a"))
    for policy in policies:
        asked = [policy.pull() for _ in range(3)]
        for reward, decision in enumerate(asked):
            policy.update(reward / 3, decision)
        while policy.ledger.releases < 9:
            policy.update(0.5, policy.pull())
    one, other = (policy.session.state for policy in policies)
    assert one.wall.release.tolist() == other.wall.release.tolist()
    assert all(map(np.array_equal, one.public, other.public))


def lose_a_draw(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pull up to a release whose noise is drawn, and lost."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(policy.noise_source, "add_noise", interrupted)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            for _ in range(1000):
                policy.pull()


def test_after_a_lost_draw_flights_are_dropped_and_no_round_is_covered_twice(monkeypatch):
    policy = make(dpb.algorithms.MergedIMED, dpb.ZCDP(0.5), noise="secure", seed=None)
    answered = in_flight(policy).session.last
    while len(policy.session.rounds.flights) < 4:
        answered = policy.pull()
        policy.update(1.0, answered)
    lose_a_draw(policy, monkeypatch)
    assert policy.ledger.releases == 1  # it is charged
    assert not policy.session.rounds.flights
    assert policy.update(0.0, answered) is False
    for _ in range(60):
        policy.update(1.0, policy.pull())
    lines = policy.ledger.frame.sort_values("first")
    assert (lines["first"].to_numpy()[1:] > lines["last"].to_numpy()[:-1]).all()
    assert policy.ledger.spent() == dpb.ZCDP(0.5)


def test_a_search_that_is_over_releases_nothing_that_was_in_flight():
    search = dpb.algorithms.MergedTopTwo(
        2, failure_probability=0.1, budget=None, answers_within=40, seed=1
    )
    waiting: list[Any] = []
    while not search.stopped:
        waiting.append(search.pull())
        if len(waiting) > 5:
            late = waiting.pop(0)
            search.update(float(late.arm), late)
    made = search.ledger.releases
    assert not search.session.rounds.flights
    assert not any(search.update(1.0, late) for late in waiting)  # too late, and no error
    assert not search.finish()
    for _ in range(100):
        assert not search.pull().recorded
    assert search.ledger.releases == made


def test_a_deviation_after_the_end_of_an_episode_counts_as_the_default():
    policy = make(dpb.papers.concentrated.AdaCUCB, choices_public=True)
    first = policy.pull()
    policy.pull()
    assert policy.update(1.0, first, arm=2)
    while policy.ledger.releases == 0:
        policy.pull()
    assert policy.session.state.wall.release.tolist() == [DEFAULT]


@pytest.mark.parametrize("forget", [True, False])
def test_what_is_awaited_changes_no_estimate(forget: bool):
    """Every reward is 5.5: so is what is released, whatever else is in flight."""
    for policy in (
        make(
            dpb.algorithms.MergedIMED,
            answers_within=50,
            reward_range=(5.0, 6.0),
            default_reward=5.5,
        ),
        make(
            dpb.papers.concentrated.AdaCUCB,
            answers_within=50,
            reward_range=(5.0, 6.0),
            default_reward=5.5,
            forget=forget,
        ),
        make(LazyDPTS, answers_within=50, reward_range=(5.0, 6.0), default_reward=5.5),
    ):
        policy.update(5.5, policy.pull())
        policy.pull()
        assert np.isnan(policy.estimates.means).all()  # before the first release
        for _ in range(400):
            policy.update(5.5, policy.pull())
            known = policy.estimates.means[~np.isnan(policy.estimates.means)]
            assert known == pytest.approx(5.5)
        assert policy.ledger.releases >= 8


@pytest.mark.parametrize(
    "cls",
    [
        dpb.papers.concentrated.AdaCUCB,
        dpb.papers.concentrated.AdaPUCB,
        dpb.algorithms.MergedIMED,
        LazyDPTS,
    ],
)
def test_where_rewards_lie_decides_nothing(cls: type[Policy]):
    def arms(low: float) -> list[int]:
        policy = make(cls, answers_within=3, reward_range=(low, low + 1.0), default_reward=low)
        waiting, played = [], []
        for t in range(200):
            waiting.append(policy.pull())
            played.append(waiting[-1].arm)
            if len(waiting) > 2:
                late = waiting.pop(0)
                policy.update(low + round(float(REWARDS[t, late.arm]) * 64) / 64, late)
        return played

    assert arms(0.0) == arms(-128.0)


def test_a_choice_that_stands_is_weighed_by_the_probability_of_its_draw():
    """A round is taken back, and a batch released, before the choice is played again."""
    options = {"rate": 0.7, "mixing": 0.2, "answers_within": 1, "choices_public": True}
    for seed in range(20):
        policy = dpb.algorithms.EXP3(2, horizon=9, budget=None, batch=1, seed=seed, **options)
        policy.update(0.0, policy.pull())
        second = policy.pull()
        policy.update(1.0, second, arm=1 - second.arm)  # taken back: the choice stands
        third = policy.pull()
        assert policy.ledger.releases == 1
        drawn = policy.session.state.public.drawn
        assert (third.arm, third.propensity) == (second.arm, second.propensity)
        assert drawn[1] == pytest.approx(second.propensity)


def test_a_deviation_in_turn_can_be_saved(tmp_path):
    shown = np.random.default_rng(1).uniform(-0.5, 0.5, (3, 2))
    options = {"horizon": 100, "answers_within": 3, "choices_public": True, "seed": 1}
    policy = dpb.algorithms.PrivateLinUCB(3, 2, budget=dpb.ZCDP(0.5), **options)
    first = policy.pull(shown)
    policy.pull(shown)
    policy.update(1.0, first, arm=(first.arm + 1) % 3)
    found = dpb.load(policy.save(tmp_path / "a"))
    assert found.finish()
    assert found.rounds == 2


def test_answers_to_lost_records_are_dropped_and_stay_so(monkeypatch, tmp_path):
    policy = make(dpb.algorithms.MergedIMED, dpb.ZCDP(0.5), noise="secure", seed=None)
    old = in_flight(policy).pull()
    lose_a_draw(policy, monkeypatch)
    for _ in range(30):
        assert policy.update(1.0, old) is False
        policy.pull()
    assert policy.ledger.releases > 3
    found = dpb.load(policy.save(tmp_path / "a"))
    assert found.update(1.0, old.token) is False


def test_finish_releases_all_that_is_over():
    policy = in_flight(make(dpb.papers.concentrated.AdaCUCB))
    assert policy.finish()
    assert policy.ledger.releases >= 3
    assert not policy.session.rounds.flights
    assert not policy.finish()
