"""Held-out people of a service: replies, deferred decisions, estimates and pages."""

from __future__ import annotations

from operators import Page
from services import NOISY, START

from dpbandits.html import written
from dpbandits.service.console import pages
from dpbandits.service.console.facts import Facts

HOLDOUT = {"share": 0.5, "batch": 4}
WORDS = {
    **NOISY,
    "name": "trial",
    "arms": ["a", "b"],
    "holdout": HOLDOUT,
    "answers_within": 3,
}


def first_held_out(trial, **body):
    while not (made := trial.decide(**body))["held_out"]:
        pass
    return made


def test_replies_say_who_is_held_out(served):
    trial = served.declare(**WORDS)
    seen = [trial.decide(decision_id=f"d{i}") for i in range(60)]
    assert 15 < sum(one["held_out"] for one in seen) < 45
    assert {one["propensity"] for one in seen if one["held_out"]} == {0.5}
    assert [trial.decide(decision_id=f"d{i}") for i in range(60)] == seen


def test_a_held_out_decision_is_active_at_once_and_cannot_be_cancelled(served):
    trial = served.declare(**WORDS)
    made = first_held_out(trial, deferred=True)
    assert made["active"]
    problem = trial.post("/cancel", 409, decision_id=made["decision_id"]).told
    assert "cannot be cancelled" in problem["detail"]
    assert trial.reward(1.0, decision_id=made["decision_id"]) == {"learned": True, "why": None}


def test_readers_see_estimates_and_ledger_of_the_holdout(served):
    trial = served.declare(**WORDS)
    for _ in range(120):
        made = trial.decide()
        trial.reward(float(made["arm"]), decision_id=made["decision_id"])
    told = trial.get("/estimates").told["holdout"]
    assert told["says"].startswith("50 % of people get an arm by chance")
    assert told["low"][1] > told["high"][0]
    assert told["releases"] > 5
    assert trial.get("/ledger").told["holdout"]["lines"]
    assert trial.get("/ledger").told["spent"] == "1-zCDP"


def test_the_clock_releases_held_out_people_in_quiet_hours(served):
    trial = served.declare(**{**WORDS, "answers_within": "1h"})
    while trial.get("/estimates").told["holdout"]["people"] < 20:
        made = trial.decide()
        trial.reward(1.0, decision_id=made["decision_id"])
    assert trial.get("/estimates").told["holdout"]["releases"] == 0
    served.pass_time(4000.0)
    assert trial.get("/estimates").told["holdout"]["releases"] >= 3


def test_pages_show_the_holdout(served):
    one = served.declare(**WORDS)
    effect = served.declare(**{**WORDS, "name": "effect", "holdout": {**HOLDOUT, "one_sum": True}})
    for trial in (one, effect):
        for _ in range(60):
            made = trial.decide()
            trial.reward(float(made["arm"]), decision_id=made["decision_id"])
    told = effect.get("/estimates").told["holdout"]
    assert told["means"] is None
    assert told["difference"]["intervals"][0]["low"] > 0.0
    for name in ("trial", "effect"):
        shown = Facts.of(served.experiment(name), served.clock.now)
        page = str(pages.experiment(shown, lambda _: ""))
        assert "get an arm by chance" in page
        held = page.partition("<h2>Holdout</h2>")[2]
        assert held.count("b - a") == (2 if name == "effect" else 1)
        assert "Decided at 95 %: b has the highest mean" in page.replace("&nbsp;", " ")
        assert ("Retire an arm" in page) == (name == "trial")  # one sum takes both arms
        lines = str(pages.ledger(shown))
        assert lines.index("<h2>Bandit</h2>") < lines.index("<h2>Holdout</h2>")


def test_readers_see_whether_it_is_decided(served):
    trial = served.declare(**{**WORDS, "holdout": {"min_share": 0.25, "batch": 4}})
    assert trial.get("/estimates").told["decided"]["decided"] is False
    for _ in range(160):
        made = trial.decide()
        trial.reward(float(made["arm"]), decision_id=made["decision_id"])
    told, policy = trial.get("/estimates").told, served.experiment("trial").policy
    assert told["decided"] == policy.decided().to_dict()
    assert told["holdout"]["decided"] == policy.holdout.decided().to_dict()
    assert told["decided"]["decided"] is told["holdout"]["decided"]["decided"] is True
    assert told["holdout"]["says"].startswith("50 % of people get an arm by chance. Every arm gets")
    page = str(
        pages.experiment(Facts.of(served.experiment("trial"), served.clock.now), lambda _: "")
    )
    for words in ("Is it decided?", "b has the highest mean", "A control has to be chosen before"):
        assert words in page


def test_where_there_is_no_verdict_readers_see_none(served):
    one = served.declare(**{**WORDS, "name": "one", "arms": ["a"]})
    told = one.get("/estimates").told
    assert told["decided"] is told["holdout"]["decided"] is None
    goal = {"goal": "best arm", "failure_probability": 0.1}
    search = served.declare(**NOISY, **goal, name="search", arms=["a", "b"])
    assert search.get("/estimates").told["decided"] is None  # it ends by a rule of its own
    shown = Facts.of(served.experiment("search"), served.clock.now)
    assert "Is it decided?" not in str(pages.experiment(shown, lambda _: ""))


def test_an_archived_experiment_takes_answers_of_held_out_people_until_their_deadline(served):
    trial = served.declare(**{**WORDS, "answers_within": "1h"})
    made = first_held_out(trial)
    trial.because("/archive")
    served.pass_time(1800.0)
    assert trial.reward(1.0, decision_id=made["decision_id"])["learned"]
    assert trial.get().told["finished"] is None
    served.pass_time(1900.0)
    assert trial.get().told["finished"] is not None
    assert not any(served.experiment().policy.session.holdout.rounds.rows)


def test_a_bandits_decision_does_not_hide_that_held_out_people_are_due(served):
    trial = served.declare(**{**WORDS, "answers_within": "1h"})
    session = served.experiment().policy.session
    while not session.holdout.rounds.flights or session.coin.holds_out(None, session.rounds.pulls):
        trial.decide()
    served.clock.now += 4000.0
    # It passes the bandit's deadlines.  The owner may have ticked before, which does not matter.
    assert not trial.decide()["held_out"]
    served.pass_time(1.0)
    assert not session.holdout.rounds.flights


def test_targets_get_their_arms_with_each_request(served):
    own = {**HOLDOUT, "batch": 10, "targets": ["rule"]}
    trial = served.declare(**{**WORDS, "holdout": own})
    problem = trial.post("/decisions", 422).told
    assert "'rule'" in problem["detail"]
    for i in range(200):
        made = trial.decide(targets={"rule": "ab"[i % 2]})
        trial.reward(float(made["arm"] == i % 2), decision_id=made["decision_id"])
    told = trial.get("/estimates").told["holdout"]
    (value,) = told["values"]["intervals"]
    assert value["of"] == "rule"
    assert value["low"] > 0.5 > told["low"][0]
    page = Page(str(pages.experiment(Facts.of(served.experiment(), START), lambda _: "")))
    ends = [written(value[name]) for name in ("mean", "low", "high")]
    assert f"target value low high people rule {' '.join(ends)} {value['rounds']:.0f}" in page.text
    assert "Intervals assume that the mean of each target stays the same" in page.text
    assert "retire" not in page.forms
