"""Workers that learn from each other's releases."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.policies import Policy

CLASSES = [
    dpb.algorithms.MergedIMED,
    dpb.algorithms.MergedKLUCB,
    dpb.papers.concentrated.AdaCUCB,
    dpb.papers.concentrated.AdaPUCB,
    dpb.papers.concentrated.AdaPKLUCB,
]
MEANS = np.array([0.2, 0.5, 0.8])


def make(cls: type[Policy] = dpb.algorithms.MergedIMED, seed: int = 1, **options: object) -> Policy:
    budget = (
        dpb.PureDP(1.0)
        if cls in (dpb.papers.concentrated.AdaPUCB, dpb.papers.concentrated.AdaPKLUCB)
        else dpb.ZCDP(0.5)
    )
    return cls(3, **({"budget": budget, "seed": seed} | options))


def played(policy: Policy, rounds: int, seed: int = 1) -> Policy:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = policy.pull()
        policy.update(float(rng.random() < MEANS[decision.arm]), decision)
    return policy


@pytest.mark.parametrize("cls", CLASSES)
def test_who_takes_all_of_anothers_releases_knows_what_it_knows(cls):
    one, other = played(make(cls), 200), make(cls, seed=2)
    one.finish()
    for release in one.releases():
        assert other.learn_from(dpb.policies.Release(*json.loads(json.dumps(release))))
    assert len(one.releases()) == one.ledger.releases >= 8
    known, learned = (policy.session.state.public for policy in (one, other))
    for name in set(known._fields) - {"cache"}:  # values that are checked before they are used
        if name == "clock":  # of which only the rounds are known, not the last episode
            assert learned.clock[0] == known.clock[0] - known.clock[3]
        else:
            assert getattr(learned, name) == pytest.approx(getattr(known, name)), name
    assert other.ledger.releases == 0
    assert other.estimates.means == pytest.approx(one.estimates.means)


def test_a_release_is_taken_in_once_and_none_of_its_own():
    one, other = played(make(), 100), make(seed=2)
    first = one.releases()[0]
    assert other.learn_from(first)
    before = _learned(other)
    assert not other.learn_from(first)
    assert not one.learn_from(first)
    assert all(map(np.array_equal, before, _learned(other)))


def _learned(policy: Policy) -> list[np.ndarray]:
    public = policy.session.state.public._asdict()
    return [array.copy() for name, array in public.items() if name != "cache"]


def test_what_is_exchanged_and_what_was_learned_is_saved(tmp_path):
    one, other = played(make(), 60), make(seed=2)
    older = one.releases()
    assert other.learn_from(older[0])
    one = dpb.load(one.save(tmp_path / "one"))
    other = dpb.load(other.save(tmp_path / "other"))
    assert one.releases() == older
    played(one, 60)
    later = one.releases(len(older))
    assert later
    assert one.releases()[: len(older)] == older
    assert not other.learn_from(older[0])
    assert all(other.learn_from(release) for release in [*older[1:], *later])
    assert not any(one.learn_from(release) for release in one.releases())


def test_learning_in_mid_episode_and_in_flight_leaves_the_episode_as_it_was():
    one, plain, other = played(make(), 300), *(make(seed=3, answers_within=5) for _ in range(2))
    for policy in (plain, other):
        played(policy, 40)
    running = other.session.state.public.clock[1:].copy()
    flights = [flight.ended.span for flight in other.session.rounds.flights.values()]
    for release in one.releases():
        assert other.learn_from(release)
    assert other.session.state.public.clock[1:].tolist() == running.tolist()
    assert [flight.ended.span for flight in other.session.rounds.flights.values()] == flights
    assert other.session.state.raw.total.tolist() == plain.session.state.raw.total.tolist()
    made = other.ledger.releases
    played(other, 100)
    assert other.ledger.releases > made
    assert other.ledger.spent() == dpb.ZCDP(0.5)


def test_the_guarantee_says_what_has_to_be_true_of_workers():
    one, other = played(make(), 50), make(seed=2)
    assert "workers" not in str(other.guarantee)
    for release in one.releases():
        other.learn_from(release)
    assert str(other.guarantee).count("belongs to two of the workers") == 1


def test_together_they_lose_less_than_apart():
    def regret(exchange: bool) -> float:
        lost = 0.0
        for run in range(5):
            policies = [make(seed=10 * run + i) for i in range(4)]
            seen = np.zeros((4, 4), int)
            rng = np.random.default_rng(run)
            for t in range(600):
                for policy in policies:
                    decision = policy.pull()
                    lost += MEANS.max() - MEANS[decision.arm]
                    policy.update(float(rng.random() < MEANS[decision.arm]), decision)
                if exchange and t % 5 == 4:
                    for i, j in np.argwhere(~np.eye(4, dtype=bool)).tolist():
                        for release in policies[i].releases(int(seen[i, j])):
                            policies[j].learn_from(release)
                            seen[i, j] += 1
        return lost / 5

    assert regret(True) < 0.8 * regret(False)


@pytest.mark.parametrize(
    "change",
    [
        {"terms": "0" * 16},
        {"memo": (3.0, 1.0)},
        {"memo": (0.0, 0.0)},
        {"memo": (0.5, 1.0)},
        {"memo": (0.0,)},
        {"values": (float("nan"),)},
        {"values": (1.0, 2.0)},
        {"values": ("x",)},
        {"number": -1},
        {"worker": 3},
    ],
    ids=str,
)
def test_what_is_no_release_is_refused_and_changes_nothing(change):
    release, other = played(make(), 30).releases()[0], make(seed=2)
    with pytest.raises(dpb.ArgumentError, match=r"^release must"):
        other.learn_from(release._replace(**change))
    assert not other.session.exchange.learned
    assert not other.session.state.public.pulls.any()


def test_other_policies_and_other_terms_are_refused():
    release = played(make(), 30).releases()[0]
    for other in (
        make(budget=dpb.ZCDP(0.4)),
        make(alpha=0.5),
        make(dpb.papers.concentrated.AdaCUCB),
    ):
        with pytest.raises(dpb.ArgumentError, match=r"same class, arguments and budget|one of"):
            other.learn_from(release)
    alone = dpb.algorithms.HTINF(3, budget=dpb.PureDP(1.0), seed=1)
    assert played(alone, 20).releases() == []
    with pytest.raises(dpb.ArgumentError, match="learns only from its own"):
        alone.learn_from(release)
    for wrong in (None, "release", 3, ()):
        with pytest.raises(dpb.ArgumentError, match=r"^release must"):
            make().learn_from(wrong)
    with pytest.raises(dpb.ArgumentError, match=r"^after must"):
        make().releases(-1)
