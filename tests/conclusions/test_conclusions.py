"""The report of a trial: its numbers are those of intervals, and it shows nothing private."""

import html.parser
import json
import math
import re
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits import ZCDP, ArgumentError, PureDP
from dpbandits.algorithms import (
    ArmsLocal,
    ArmsShuffled,
    BestArm,
    LinUCBJDP,
    MergedIMED,
    MergedThompson,
    SequentialHalving,
)
from dpbandits.cli import app
from dpbandits.conclusions import Conclusion
from dpbandits.conclusions.checklist import BY_HAND
from dpbandits.html import written
from dpbandits.papers.others import LDPUCB
from dpbandits.policies import registered
from dpbandits.policies.sums import no_intervals

MEANS = (0.2, 0.5, 0.7)
NAMES = ["old", "new", "other"]
KEYS = {
    *("policy", "title", "arms", "retired", "rounds", "releases", "guarantee", "spent", "warning"),
    *("confidence", "means", "differences", "decided", "control", "leader", "search"),
    *("failure_probability", "reason", "answers", "effects", "holdout", "values"),
    *("breaks", "checklist"),
}
ROW = {"of", "mean", "low", "high", "rounds", "half_width", "half_width_without_noise"}


def served(policy, rounds=1500, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = policy.pull()
        policy.update(float(rng.random() < MEANS[decision.arm]), decision)
    return policy


@pytest.fixture(scope="module")
def policy():
    return served(MergedIMED(3, budget=PureDP(1.0), arm_names=NAMES, seed=1))


def section(found: Conclusion, title: str):
    (one,) = [one for one in found.sections if one.title == title]
    return one


# Numbers ----------------------------------------------------------------------------------------


def test_means_and_differences_to_a_control_are_those_of_intervals(policy):
    found = dpb.conclude(policy, control="old", confidence=0.9)
    for own, asked in [
        (found.means, policy.intervals(0.9)),
        (found.differences, policy.intervals(0.9, control="old")),
    ]:
        told, expected = own.to_dict()["intervals"], asked.to_dict()["intervals"]
        shown = zip(told, expected, strict=True)
        assert [{name: row[name] for name in one} for row, one in shown] == expected
        assert [row["half_width"] for row in told] == [
            (one["high"] - one["low"]) / 2 for one in expected
        ]
    assert (found.means.among, found.differences.among) == (3, 2)


def test_without_a_control_the_error_is_divided_among_all_pairs(policy):
    found = dpb.conclude(policy)
    leader = NAMES[policy.estimates.leader]
    others = [name for name in NAMES if name != leader]
    assert list(found.differences.intervals.labels) == [f"{leader} - {one}" for one in others]
    for i, other in enumerate(others):
        alone = policy.intervals(1 - 0.05 / 3, (leader, other))
        ends = found.differences.intervals
        assert (ends.low[i], ends.high[i]) == pytest.approx((alone.low[0], alone.high[0]))
    said = " ".join(section(found, "Differences").points)
    assert "divided among all pairs" in said
    assert "chosen beforehand" not in " ".join(found.breaks)


def test_width_without_noise_is_that_of_exact_sums(policy):
    found = dpb.conclude(policy)
    ends = policy.intervals()
    exact = {"arm": [0, 1, 2], "rounds": ends.rounds, "sum": ends.means * ends.rounds}
    plain = dpb.intervals(exact)
    assert found.means.without_noise == pytest.approx((plain.high - plain.low) / 2, rel=1e-6)
    assert (found.means.half_widths >= found.means.without_noise).all()
    assert (found.means.half_widths[0] > 1.1 * found.means.without_noise[0]).all()
    free = dpb.conclude(served(MergedIMED(3, budget=None, seed=1)))
    assert free.means.without_noise == pytest.approx(free.means.half_widths, rel=1e-6)
    assert "Noise makes" not in free.markdown()


def test_a_saved_trial_gives_the_same_report(tmp_path):
    policy = MergedIMED(3, budget=ZCDP(0.5), arm_names=NAMES, seed=1)
    path = policy.save(tmp_path / "trial.dpb")
    with policy.batch():
        served(policy, 300)
    told = dpb.conclude(policy, "old").to_dict()
    assert dpb.conclude(path, "old").to_dict() == told
    policy.close()


def test_a_copy_says_that_it_is_not_the_last_word(tmp_path):
    policy = served(MergedIMED(2, budget=PureDP(1.0), seed=1), 50)
    path, copy = policy.save(tmp_path / "trial.dpb"), tmp_path / "copy.dpb"
    shutil.copy(path, copy)
    policy.close()
    loaded = dpb.load(path)
    rows = dict(map(tuple, section(dpb.conclude(copy), "Privacy spent").rows))
    assert "may have spent more" in rows["warning"]
    assert dpb.conclude(loaded).warning == ""
    loaded.close()


def test_nothing_is_compared_before_a_release():
    found = dpb.conclude(MergedIMED(3, budget=PureDP(1.0), seed=1))
    assert (found.leader, found.differences) == (None, None)
    assert "picked from the results" not in found.markdown()
    assert dpb.conclude(MergedIMED(1, budget=None, seed=1)).differences is None


def test_a_retired_arm_is_named(policy):
    retiring = served(MergedIMED(3, budget=None, arm_names=NAMES, seed=1), 300)
    retiring.retire("new")
    found = dpb.conclude(retiring, "old")
    assert found.retired == ("new",)
    assert len(found.differences.intervals.labels) == 2  # its releases count all the same
    retiring.retire("other")
    found = dpb.conclude(retiring)
    means = dict(zip(NAMES, found.means.intervals.means, strict=True))
    assert found.leader == "old" != max(means, key=means.get)
    said = " ".join(section(found, "Differences").points)
    assert "old, which leads of the arms that were not retired, is compared" in said


# Searches ---------------------------------------------------------------------------------------


def test_a_search_tells_the_probability_of_an_error():
    search = BestArm(3, failure_probability=0.1, budget=None, arm_names=NAMES, seed=1)
    running = dpb.conclude(search)
    assert (running.leader, running.differences) == (None, None)
    assert "has not ended" in " ".join(running.search)
    served(search, 3000)
    assert search.recommendation == 2
    found = dpb.conclude(search)
    assert (found.leader, found.failure_probability) == ("other", 0.1)
    assert "recommends other" in " ".join(found.search)
    assert "at most 0.1" in " ".join(found.search)


def test_the_verdict_is_that_of_the_policy(policy):
    for control in (None, "old"):
        found = dpb.conclude(policy, control=control, confidence=0.9)
        own = policy.decided(0.9, control=control)
        assert found.decided.to_dict() == own.to_dict()
        assert (found.decided.name, found.decided.control) == (found.leader, control)
        told = found.to_dict()["decided"]
        assert told == {name: own.to_dict()[name] for name in told}
        said = section(found, "Is it decided?").points
        assert said[0] == f"{own.words}."
        assert (len(said) > 1) == (not own.decided or control is None)
        # Where the intervals of the report tell all arms apart, the verdict does, too.
        apart = (found.differences.intervals.low > 0.0).all()
        assert own.decided or not apart


def test_a_search_that_promises_an_error_has_no_second_verdict():
    search = served(BestArm(3, failure_probability=0.1, budget=None, seed=1), 3000)
    assert dpb.conclude(search).decided is None
    assert "Is it decided?" not in dpb.conclude(search).markdown()
    limited = served(SequentialHalving(3, horizon=300, budget=None, seed=1), 400)
    assert dpb.conclude(limited).decided.arm == limited.recommendation


def test_a_search_in_a_number_of_rounds_promises_no_probability():
    search = served(SequentialHalving(3, horizon=300, budget=None, seed=1), 400)
    found = dpb.conclude(search)
    assert found.failure_probability is None
    assert "promises no bound on its error" in " ".join(found.search)


def test_what_is_no_search_has_no_such_section(policy):
    assert dpb.conclude(policy).search == ()


# Privacy ----------------------------------------------------------------------------------------


def test_no_counts_of_arms_where_contexts_are_private():
    policy = LinUCBJDP(3, 2, horizon=400, budget=ZCDP(1.0), arm_names=NAMES, seed=1)
    rng, counts = np.random.default_rng(1), [0, 0, 0]
    for _ in range(300):
        decision = policy.pull(rng.normal(size=(3, 2)) / 2)
        policy.update(1.0, decision)
        counts[decision.arm] += 1
    found = dpb.conclude(policy, control="old")
    assert (found.means, found.differences, found.leader) == (None, None, None)
    assert found.rounds == 300
    assert "who got which arm" in found.reason
    rows = dict(map(tuple, section(found, "People").rows))
    assert rows["rounds of each arm"].startswith("none are shown")
    shown = set(map(int, re.findall(r"\d+", found.markdown() + json.dumps(found.to_dict()))))
    assert min(counts) > 9
    assert 300 in shown
    assert not shown & set(counts)


def test_counts_of_missing_answers_are_never_shown():
    policy = MergedIMED(2, budget=PureDP(1.0), seed=1)
    for i in range(4321):
        decision = policy.pull()
        policy.update(math.nan if i < 777 else 9.0, decision)
    assert policy.diagnostics.missing == 777
    found = dpb.conclude(policy)
    said = f"{found.markdown()} {found.html()} {json.dumps(found.to_dict())}"
    assert "777" not in said
    assert str(policy.diagnostics.clipped) not in said.replace(",", "")
    assert "counts as 0" in found.answers


@pytest.mark.parametrize("answers_within", [0, 5])
def test_no_counts_where_they_are_those_of_answers(answers_within):
    policy = LDPUCB(2, budget=PureDP(1.0), answers_within=answers_within, seed=1)
    rng, pulls, answered = np.random.default_rng(1), [0, 0], [0, 0]
    for _ in range(1000):
        decision = policy.pull()
        pulls[decision.arm] += 1
        if rng.random() < 0.74:
            answered[decision.arm] += 1
            policy.update(float(rng.random() < 0.5), decision)
    found = dpb.conclude(policy, control=0)
    said = f"{found!r} {found.markdown()} {found.html()} {found._repr_html_()}"
    said = (said + json.dumps(found.to_dict())).replace(",", "")
    shown = set(re.findall(r"(?<![\d.])\d+(?![\d.])", said))
    counts = {str(n) for n in [*answered, sum(answered)]}
    if answers_within:  # missing answers count, so counts are those of decisions
        assert found.rounds is not None
        assert str(found.rounds) in shown
        assert not shown & counts
        return
    assert (found.rounds, found.releases) == (None, None)
    assert not shown & counts
    plain = {written(one) for one in found.means.without_noise}
    assert not any(one in said for one in plain)  # a function of counts
    assert "about how many answers of each arm are missing" in said
    assert {str(n) for n in policy.intervals().rounds} <= counts
    assert any("how many answers of each arm are missing" in s for s in policy.intervals().breaks)


def test_the_probability_has_a_condition_where_users_return():
    for most in (None, 1, 3):
        more = {} if most is None else {"max_rounds": most}
        policy = dpb.bandit(NAMES, PureDP(1.0), seed=1, **more)
        for person in range(1500):
            who = {} if most is None else {"user": str(person)}
            decision = policy.pull(**who)
            policy.update(float(decision.arm == 1), decision)
        text = dpb.conclude(policy, "old").markdown()
        flat = text.count("With a probability of at least 95 %")
        conditions = text.count("If each user comes only once, then with a probability")
        assert (flat, conditions) == ((0, 2) if most == 3 else (2, 0)), most
        assert ("under the same condition" in text) == (most == 3)
        assert ("The same user may return" in text) == (most == 3)


def test_rounds_that_are_in_no_sum_are_counted(policy):
    missing = policy.rounds - policy.intervals().rounds.sum()
    assert missing > 0
    said = " ".join(section(dpb.conclude(policy), "Means").points)
    assert f"{missing:,} of the {policy.rounds:,} recorded rounds are not in these means" in said
    assert "biased" in said
    fresh = dpb.conclude(MergedIMED(3, budget=None, seed=1))
    assert "are not in these means" not in fresh.markdown()


def test_a_report_releases_nothing():
    policy = served(MergedIMED(3, budget=PureDP(1.0), seed=1), 500)
    before = policy.ledger.releases, policy.rounds, policy.pull().arm
    dpb.conclude(policy)
    assert (policy.ledger.releases, policy.rounds - 1, policy.pull().arm) == before


def test_simulated_noise_is_said_to_protect_nobody(policy):
    assert "protects nobody" in dpb.conclude(policy).markdown()


@pytest.mark.parametrize(
    "policy",
    [
        ArmsLocal(2, budget=PureDP(1.0), reports=True, seed=1),
        ArmsShuffled(2, budget=PureDP(1.0), messages=True, seed=1),
    ],
    ids=["local", "shuffle"],
)
def test_devices_are_told_of(policy):
    found = dpb.conclude(policy)
    rows = dict(map(tuple, section(found, "People").rows))
    assert ("empty places" in rows) == (policy._serving == "messages")
    assert (
        policy.guarantee.trust in dict(map(tuple, section(found, "What was tried").rows)).values()
    )


# Every policy -----------------------------------------------------------------------------------


def test_every_policy_has_a_report_of_one_shape():
    for cls in registered().values():
        policy = cls(**cls.example, budget=None)
        found = dpb.conclude(policy)
        told = json.loads(json.dumps(found.to_dict()))
        assert set(told) == KEYS, cls
        assert (told["means"] is None) == bool(no_intervals(policy)) == bool(told["reason"]), cls
        if told["means"] is not None:
            assert {frozenset(row) for row in told["means"]["intervals"]} == {frozenset(ROW)}
        if told["differences"] is not None:
            assert set(told["differences"]) == {"among", "intervals"}
        assert {frozenset(item) for item in told["checklist"]} == {
            frozenset({"number", "asks", "here"})
        }


def test_it_says_why_there_are_no_intervals():
    policy = dpb.Arms(3, budget=PureDP(1.0), memory=dpb.parts.Discount(100), seed=1)
    found = dpb.conclude(served(policy, 300))
    assert "expects that means change" in repr(found)
    assert "no means and no differences" in found.markdown()
    assert "0." not in section(found, "Means").points[0]
    assert found.breaks == ()


@pytest.mark.parametrize("one_sum", [False, True])
def test_effects_are_those_of_the_holdout(one_sum):
    own = dpb.Holdout(0.3, one_sum=one_sum)
    policy = served(dpb.bandit(["old", "new"], ZCDP(0.5), holdout=own, seed=1))
    report = dpb.conclude(policy, control="old")
    expected = policy.holdout.intervals(difference=("new", "old"))
    assert report.holdout.to_dict() == expected.to_dict()
    assert report.spent == policy.spent
    assert "Effects, from the holdout" in report.markdown()
    assert report.to_dict()["holdout"]["intervals"][0]["of"] == "new - old"
    assert "Effects, from the holdout" in report.html()
    effects = section(report, "Effects, from the holdout")
    assert effects.heads[1] == "difference"
    assert "at least 95 %, none of these intervals is ever wrong" in " ".join(effects.points)
    assert "hold together with at least 85 %" in " ".join(effects.points)
    assert "The mean of old is subtracted" in " ".join(effects.points)
    assert f"{policy.holdout.decided(control='old').words}." in effects.points
    undeclared = section(dpb.conclude(policy), "Effects, from the holdout")
    assert "No control was declared, so it is the first arm" in " ".join(undeclared.points)


def test_values_are_those_of_the_holdouts_targets():
    own = dpb.Holdout(0.5, batch=60, targets=["rule", "<other>"])
    policy = dpb.bandit(["old", "new"], ZCDP(0.5), holdout=own, seed=1)
    for person in range(1500):
        best = person % 2
        decision = policy.pull(targets={"rule": best, "<other>": 1})
        policy.update(float(decision.arm == best), decision)
    report = dpb.conclude(policy, "old", 0.9)
    assert report.to_dict()["values"] == policy.holdout.values(0.9).to_dict()
    shown = section(report, "Values of targets, from the holdout")
    assert shown.heads == ["target", "value", "low", "high", "people"]
    assert [row[0] for row in shown.rows] == ["rule", "<other>"]
    (rule, _) = policy.holdout.values(0.9).low
    assert rule > 0.8
    for title in ("Effects, from the holdout", "Values of targets, from the holdout"):
        assert "hold together with at least 60 %" in " ".join(section(report, title).points)
    assert r"\<other\>" in report.markdown()
    assert "<other>" not in report.html()
    assert dpb.conclude(served(dpb.bandit(NAMES, None, holdout=0.5), 9)).values is None


def test_nothing_is_called_an_effect(policy):
    found = dpb.conclude(policy, "old").markdown()
    assert re.findall(r"[^.*]*\beffect", found) == [" No difference is called an effect"]
    assert "significan" not in found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"control": "none"}, "control must be one of"),
        ({"control": 3}, "control must be"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_arguments_are_checked(policy, given, message):
    with pytest.raises(ArgumentError, match=message):
        dpb.conclude(policy, **given)


def test_choices_are_said_to_be_drawn_where_they_are(policy):
    drawn = dpb.conclude(MergedThompson(2, budget=None, seed=1))
    items = {item.number: item.here for item in drawn.checklist}
    assert "drawn at random" in items["8"]
    items = {item.number: item.here for item in dpb.conclude(policy).checklist}
    assert "do not call the trial randomised" in items["8"]
    assert items["14a"] == items["3c"] == items["18, 19"] == BY_HAND


# The page ---------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Tags and attributes of a page, which must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.links = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in ("meta", "img", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else_and_has_both_themes(policy):
    text = dpb.conclude(policy, "old").html()
    page = Page(text)
    assert page.open == page.links == []
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "prefers-color-scheme: dark" in text
    assert "url(" not in text
    assert page.tags.count("h1") == 1
    assert page.tags.count("b") == 5  # a dot for each mean and each difference


def test_names_of_arms_are_escaped():
    policy = MergedIMED(2, budget=None, arm_names=["<b>|x", "y&z"], seed=1)
    found = dpb.conclude(policy)
    assert "<b>|x" not in found.html()
    assert "&lt;b&gt;|x" in found.html()
    assert r"\<b\>\|x" in found.markdown()
    assert "<b>|x" not in found._repr_html_()


def test_the_figure_shows_the_intervals(policy):
    found = dpb.conclude(policy, "old")
    (plot,) = re.findall(r'aria-label="([^"]*)"', section(found, "Differences").figure)
    ends = found.differences.intervals
    assert plot == "; ".join(
        f"{label}: {low:.4g} to {high:.4g}"
        for label, low, high in zip(ends.labels, ends.low, ends.high, strict=True)
    )


def test_the_command_reports_as_text_json_and_page(policy, tmp_path):
    trial = served(MergedIMED(3, budget=PureDP(1.0), arm_names=NAMES, seed=1), 400)
    path, target = trial.save(tmp_path / "trial.dpb"), tmp_path / "report.html"
    ran = CliRunner().invoke(app, ["conclude", str(path), "--control", "old", "--json"])
    assert json.loads(ran.output) == json.loads(json.dumps(dpb.conclude(trial, "old").to_dict()))
    ran = CliRunner().invoke(app, ["conclude", str(path), "--html", str(target)])
    assert "Checklist for reports" in ran.output
    assert target.read_text() == dpb.conclude(trial).html()
    wrong = CliRunner().invoke(app, ["conclude", str(path), "--control", "nobody"])
    assert wrong.exit_code == 2
    trial.close()
