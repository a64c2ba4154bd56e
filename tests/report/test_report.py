"""The page of a study: complete, equal to numbers computed here by other means, safe to open, the
same every time.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from dpbandits import RDP, ZCDP, ApproxDP, PureDP, simulate
from dpbandits.algorithms import MergedTopTwo, SequentialHalving
from dpbandits.environments import Bernoulli, Gaussian, RewardTable
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.plotting.curves import regret_curves
from dpbandits.plotting.drawing import png
from dpbandits.plotting.labels import budget_label
from dpbandits.plotting.looks import NARROW, WIDE
from dpbandits.privacy import Budget
from dpbandits.privacy.meaning import Meaning
from dpbandits.report import StudyRecord, figures, write
from dpbandits.report.contests import (
    findings_in_regret,
)
from dpbandits.report.exhibits import Exhibit, Panel, Series
from dpbandits.report.findings import findings_in_people, meaning
from dpbandits.report.searches import searches_in_words, searches_of
from dpbandits.report.summaries import environment_summaries
from dpbandits.simulation import ReplayResult, Result, helpers
from dpbandits.simulation.settings import PolicySetting, keyed, policy_styles
from dpbandits.simulation.tasks import packed

MEANS = np.array([0.436, 0.653, 0.555, 0.556])
SHARES = np.array([0.249, 0.244, 0.245, 0.262])
ARMS = ["zidovudine", "both", "with zalcitabine", "didanosine"]
NAME = "Trial(175)"
HORIZON, RUNS = 4000, 25
FIGURES = ["arm-shares", "people-helped", "regret", "regret-by-budget"]


class Trial(Bernoulli):
    arm_names = ARMS
    reference = ("the trial's own allocation", SHARES)

    def __repr__(self) -> str:
        return NAME


def replayed(result: Result) -> ReplayResult:
    keys = result.runs[["environment", "policy", "budget", "holds", "run"]]
    successes = 300 + np.arange(len(keys)) % 7
    runs = keys.assign(
        rounds=530, successes=successes, rate=successes / 530, releases=20, spent=0.1
    )
    facts = {"title": "Trial, 4 arms", "mean": float(SHARES @ MEANS), "means": MEANS.tolist()}
    return ReplayResult(runs, result.settings, {"environments": {NAME: facts}})


def under(result: Result, changed: dict[Budget, Budget]) -> Result:
    """A result as if other budgets had been asked for, and held."""

    def changed_setting(one: PolicySetting) -> PolicySetting:
        budget = changed.get(one.budget, one.budget)
        return replace(one, guarantee=replace(one.guarantee, asked=budget, holds=budget))

    written = {str(old): str(new) for old, new in changed.items()}
    frame, runs = (
        table.astype({"budget": str, "holds": str}).replace({"budget": written, "holds": written})
        for table in (result.frame, result.runs)
    )
    settings = keyed(map(changed_setting, result.settings.values()))
    return replace(result, frame=frame, runs=runs, settings=settings)


def only(result: Result, *budgets: str) -> Result:
    """The part of a result that has these budgets."""
    frame, runs = (table[table["budget"].isin(budgets)] for table in (result.frame, result.runs))
    settings = {key: one for key, one in result.settings.items() if key[1] in budgets}
    return replace(result, frame=frame, runs=runs, settings=settings)


@pytest.fixture(scope="module")
def result() -> Result:
    budgets = [None, ZCDP(0.02), ZCDP(1.0), ApproxDP(1.0, 1e-6)]
    policies = [
        AdaCUCB(4, budget=budget, forget=forget) for budget in budgets for forget in (True, False)
    ]
    return simulate(policies, Trial(MEANS), horizon=HORIZON, runs=RUNS, seed=7, record=40)


@pytest.fixture(scope="module")
def record(result) -> StudyRecord:
    versions = {"dpbandits": "0.1.0", "numpy": "2.9"}
    return StudyRecord(
        "A study",
        "Of four arms.",
        result,
        replayed(result),
        7,
        {"horizon": HORIZON},
        versions,
        12.0,
    )


@pytest.fixture(scope="module")
def folder(record, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write(folder, record)
    return folder


class Reader(HTMLParser):
    """Tags with their attributes, tables as rows of cell texts under their captions, and all text."""

    def __init__(self, path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.texts: dict[str, list[str]] = {
            "h1": [],
            "h2": [],
            "h3": [],
            "h4": [],
            "caption": [],
            "p": [],
            "li": [],
        }
        self.open: list[str] = []
        self.all = ""
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("meta", "img", "source"):
            return
        self.open.append(tag)
        if tag in self.texts:
            self.texts[tag].append("")
        if tag == "tr":
            self.rows().append([])
        if tag in ("td", "th"):
            self.rows()[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, "elements nest"

    def handle_data(self, data):
        if "style" in self.open:
            return
        data = data.replace("\u00a0", " ")
        self.all += data
        for tag in self.texts:
            if tag in self.open:
                self.texts[tag][-1] += data
        if self.open and {"td", "th"} & set(self.open):
            ranged = "span" in self.open and self.rows()[-1][-1]
            self.rows()[-1][-1] += (" | " if ranged else "") + data

    def rows(self) -> list[list[str]]:
        return self.tables.setdefault(self.texts["caption"][-1], [])

    def table(self, start: str) -> list[list[str]]:
        (found,) = [rows for caption, rows in self.tables.items() if caption.startswith(start)]
        return found


@pytest.fixture(scope="module")
def page(folder) -> Reader:
    return Reader(folder / "report.html")


def cells_of(rows: list[list[str]]) -> dict[tuple[str, str], list[str]]:
    """Rows under (policy, budget): the policy's name stands in the first row of its group only."""
    found, policy = {}, ""
    for row in rows[1:]:
        if len(row) == len(rows[0]):
            policy, row = row[0], row[1:]
        found[policy, row[0]] = row[1:]
    return found


def shown(policy: str, budget: str) -> tuple[str, str]:
    return (
        f"AdaCUCB (forget={'forget=True' in policy})",
        "no privacy" if budget == "none" else budget,
    )


def read(text: str) -> list[float]:
    return [
        float(part.replace("−", "-")) for part in re.findall(r"[−+]?[\d.]+", text.replace(",", ""))
    ]


# The page ------------------------------------------------------------------------------------


def test_every_section_and_figure_is_there(page, folder):
    assert page.texts["h1"] == ["A study"]
    for title in (
        "Findings in detail",
        "Results",
        "Replay of the real trial",
        "What is guaranteed",
    ):
        assert title in page.texts["h2"]
    for title in (
        "Regret as people come in",
        "What privacy costs",
        "Who gets which arm",
        "People helped",
        "Privacy spent",
    ):
        assert title in page.texts["h3"]
    names = sorted(path.name for path in (folder / "figures").iterdir())
    assert names == sorted(
        f"{name}.{kind}" for name in [*FIGURES, "replay"] for kind in ("csv", "dat", "png", "svg")
    )
    images = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(images) == 5
    assert all(len(image["alt"]) > 40 for image in images)


def test_the_picture_comes_first_and_details_are_folded(page):
    tags = [tag for tag, _ in page.tags]
    assert tags.index("picture") < min(map(tags.index, ("p", "li", "table", "details")))
    assert tags.index("li") < tags.index("details") < tags.index("table")
    folds = [attrs for tag, attrs in page.tags if tag == "details"]
    assert [fold["id"] for fold in folds] == [
        *("findings", "results-1", "replay", "guarantees", "reading"),
    ]
    assert not any("open" in fold for fold in folds)


def test_embedded_figures_are_those_of_the_files(page, folder):
    embedded = [
        base64.b64decode(attrs["src"].partition(",")[2]) for tag, attrs in page.tags if tag == "img"
    ]
    assert sorted(embedded) == sorted(
        path.read_bytes() for path in (folder / "figures").glob("*.svg")
    )
    for svg in embedded:
        root = ElementTree.fromstring(svg)
        assert not list(root.iter("{http://www.w3.org/2000/svg}text")), "text has to be paths"
    for path in (folder / "figures").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_nothing_is_loaded_from_elsewhere(page, folder):
    for _, attrs in page.tags:
        for name in ("src", "href", "srcset"):
            assert re.match(r"data:image/svg\+xml;base64,|#", attrs.get(name, "#")), attrs
    html = (folder / "report.html").read_text("utf-8")
    assert "url(" not in html
    assert "<script" not in html
    targets = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert {attrs["href"][1:] for tag, attrs in page.tags if tag == "a"} <= targets


@pytest.mark.long
def test_regret_and_people_helped_equal_the_frames(page, result):
    rows = cells_of(page.table("Means over runs"))
    groups = list(result.runs.groupby(["policy", "budget"]))
    assert len(rows) == len(groups) == 8
    for (policy, budget), group in groups:
        regret, helped, gain, best = rows[shown(policy, budget)]
        final = group["regret"].to_numpy()
        assert read(regret)[0] == pytest.approx(final.mean(), abs=0.5)
        # Normal theory as a second opinion on the bootstrap: it would notice a band of one standard
        # deviation, or of single runs.
        half = 1.96 * final.std(ddof=1) / np.sqrt(RUNS)
        assert read(regret)[1:] == pytest.approx(
            [final.mean() - half, final.mean() + half], abs=0.25 * half + 1
        )
        successes = 1000 * sum(group[f"pulls_{a}"] * MEANS[a] for a in range(4)) / HORIZON
        assert read(helped)[0] == pytest.approx(successes.mean(), abs=0.051)
        assert read(gain)[0] == pytest.approx(successes.mean() - 1000 * (SHARES @ MEANS), abs=0.051)
        assert read(best)[0] == pytest.approx(100 * group["pulls_1"].mean() / HORIZON, abs=0.051)


def test_privacy_spent_equals_the_ledgers(page, result):
    rows = cells_of(page.table("Privacy spent"))
    for (policy, budget), group in result.runs.groupby(["policy", "budget"]):
        limit, spent, releases, draws = rows[shown(policy, budget)]
        assert read(releases)[0] == pytest.approx(group["releases"].mean(), abs=0.051)
        assert read(draws)[0] == pytest.approx(group["draws"].mean(), abs=0.051)
        if budget == "none":
            assert (limit, spent) == ("no limit", "not counted")
            continue
        assert read(limit.split()[1])[0] == pytest.approx(
            result.settings[policy, budget].limit, rel=0.01
        )
        assert read(spent.split()[1])[0] == pytest.approx(group["spent"].max(), rel=0.01)

    assert "Every private policy spent all of its limit" in page.all
    assert page.all.count("are counted in μ²") == 1


@pytest.mark.long
def test_spending_is_drawn_where_it_differs(result, tmp_path):
    part = only(result, "1-zCDP", "none")
    private = part.runs["budget"] == "1-zCDP"
    runs = part.runs.assign(spent=part.runs["spent"].mask(private, 0.25))
    page = Reader(write(tmp_path, StudyRecord("t", "", replace(part, runs=runs))))
    rows = cells_of(page.table("Privacy spent"))
    assert rows["AdaCUCB (forget=True)", "1-zCDP"][2] == "25 %"
    assert "spent all of its limit" not in page.all
    assert "are counted in μ²" not in page.all


@pytest.mark.long
def test_overspending_is_called_what_it_is(result, tmp_path):
    runs = result.runs.copy()
    runs.loc[runs[runs["budget"] == "1-zCDP"].index[:2], "spent"] = 1.5
    page = Reader(write(tmp_path, StudyRecord("t", "", replace(result, runs=runs))))
    assert "2 of 150 private runs spent more than their budget" in page.all
    assert "150 %, over in 2 runs" in page.all


def test_replay_stands_beside_the_trial(page, record):
    rows = cells_of(page.table("Means over replays"))
    assert len(rows) == 8
    for (policy, budget), group in record.replay.runs.groupby(["policy", "budget"]):
        rate, gap, people, _ = rows[shown(policy, budget)]
        half = 1.96 * group["rate"].std() / np.sqrt(RUNS)
        ends = [group["rate"].mean() + width for width in (0, -half, half)]
        assert read(rate) == pytest.approx([100 * end for end in ends], abs=0.051 + 25 * half)
        assert read(gap)[0] == pytest.approx(
            100 * (group["rate"].mean() - SHARES @ MEANS), abs=0.051
        )
        assert people == "530.0"


@pytest.mark.long
def test_policies_that_never_learned_are_no_result(record, tmp_path):
    runs = record.replay.runs.copy()
    idle = runs["budget"] == "0.02-zCDP"
    runs.loc[idle, ["releases", "rate"]] = [0, 0.25]
    page = Reader(write(tmp_path, replace(record, replay=replace(record.replay, runs=runs))))
    (said,) = [text for text in page.texts["li"] if text.startswith("Success rates run")]
    assert "25.0 %" not in said
    assert (
        "AdaCUCB (forget=True), 0.02-zCDP and AdaCUCB (forget=False), 0.02-zCDP made no release"
        in said
    )
    rows = cells_of(page.table("Means over replays"))
    assert rows["AdaCUCB (forget=True)", "0.02-zCDP"][0] == "25.0 % | –"


def test_findings_start_with_people_and_a_budget_that_protects(page, result):
    helped = {}
    for (policy, budget), group in result.runs.groupby(["policy", "budget"]):
        helped[policy, budget] = (
            1000 * sum(group[f"pulls_{a}"].mean() * MEANS[a] for a in range(4)) / HORIZON
        )
    # 1-zCDP: 99.9 %
    private = {
        key: value for key, value in helped.items() if key[1] in ("0.02-zCDP", "(1, 1e-06)-DP")
    }
    policy, budget = max(private, key=private.get)
    first, second, third = page.texts["li"][:3]
    assert f"{1000 * (SHARES @ MEANS):.1f}" in first
    assert second.startswith(
        f"With privacy, a variant of AdaCUCB at {budget} would bring {private[policy, budget]:.1f}"
        " successes"
    )
    assert (
        f"{helped[policy, 'none'] - private[policy, budget]:.1f} successes per 1,000 people"
        in third
    )
    plain = " ".join([first, second, third])
    assert "regret" not in plain
    assert "forget" not in plain


def test_who_released_nothing_is_no_headline(result):
    """Playing the best arm without having learnt anything is luck."""
    idle = result.runs["policy"].str.contains("forget=True")
    lucky = {f"pulls_{a}": HORIZON * (a == 1) for a in range(4)}
    runs = result.runs.copy()
    runs.loc[idle, [*lucky, "releases"]] = [*lucky.values(), 0]
    named = {
        key: replace(one, name="idle" if "True" in key[0] else "learned")
        for key, one in result.settings.items()
    }
    (summary,) = environment_summaries(replace(result, runs=runs))
    said = findings_in_people(summary, policy_styles(named))
    (headline,) = [one for one in said if one.startswith("With privacy")]
    assert headline.startswith("With privacy, “learned” at")


@pytest.mark.parametrize("budget", [ZCDP(1.0), PureDP(5.0)])
def test_budgets_that_reveal_are_no_headline(result, budget):
    changed = under(only(result, "1-zCDP", "none"), {ZCDP(1.0): budget})
    (summary,) = environment_summaries(changed)
    said = " ".join(findings_in_people(summary, policy_styles(changed.settings)))
    assert Meaning.of(budget).belief > 0.99
    assert "can rise from 50 % to 99 % or more" in said
    assert "With privacy" not in said


@pytest.mark.long
def test_budgets_may_have_all_their_digits(result, tmp_path):
    exact = ZCDP(0.0200000000000004)
    page = Reader(write(tmp_path, StudyRecord("t", "", under(result, {ZCDP(0.02): exact}))))
    assert ("AdaCUCB (forget=True)", "0.02-zCDP") in cells_of(page.table("Means over runs"))
    assert str(exact) not in page.all


def test_guarantees_are_complete_and_stamped(page, result):
    whole = [*page.texts["p"], *page.texts["li"]]
    for one in result.settings.values():
        said = str(one.guarantee).replace(f"with {one.budget} ", "with the budget listed below ")
        said = said.replace(f"{one.guarantee.means} ", "")
        assert whole.count(said) == 1, "once for all budgets"
        if one.budget is not None:
            listed = [text for text in whole if text.startswith("AdaCUCB (forget=")]
            assert any(str(one.budget) in text for text in listed)
    assert sum("Simulated noise protects nobody." in text for text in page.texts["p"]) == 2
    assert page.all.count("simulated noise: protects nobody") == 1


def test_page_says_how_it_was_made(page):
    assert "numpy 2.9" in page.all
    assert "12 s" in page.all
    assert '"horizon": 4000' in page.all
    assert "AdaCUCB(n_arms=4, beta=1.0, forget=False)" in page.all
    assert NAME in page.all


@pytest.mark.long
def test_same_record_same_bytes(record, folder, tmp_path, monkeypatch):
    asked, helper = [], helpers.Helper()
    helper.ask(packed(len))  # it has started, and imported this package
    monkeypatch.setitem(matplotlib.rcParams, "axes.facecolor", "#ffeeaa")
    ask = helper.ask
    monkeypatch.setattr(helper, "ask", lambda what: asked.append(what) or ask(what))
    helpers.RESTING.append(helper)
    try:
        write(tmp_path, record, n_jobs=2)
    finally:
        helper.kill()
    assert len(asked) > 1, "another process draws some of the figures"
    names = [path.relative_to(folder) for path in folder.rglob("*.*")]
    assert len(names) == 21
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_folder_has_to_exist(record, tmp_path):
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "nowhere", record)


# Other studies -------------------------------------------------------------------------------


@pytest.mark.long
def test_text_of_users_stays_text(result, tmp_path):
    evil = '<script>alert("$x$")</script>&'
    facts = {
        **result.info["environments"][NAME],
        "arm_names": [evil, "_b", "$c$ $\\frac$", "d" * 200],
    }
    facts["reference"] = {"name": evil, "shares": SHARES.tolist()}
    facts["title"] = evil
    changed = keyed(
        replace(one, name=evil, guarantee=replace(one.guarantee, source=evil, caveats=(evil,)))
        for one in result.settings.values()
    )
    info = {**result.info, "environments": {evil: facts}}
    parts = [frame.assign(environment=evil) for frame in (result.frame, result.runs)]
    mine = Result(*parts, changed, info)
    path = write(tmp_path, StudyRecord(evil, evil, mine, None, 7, {evil: evil}, {evil: evil}))
    page = Reader(path)
    assert "script" not in {tag for tag, _ in page.tags}
    assert page.texts["h1"] == [evil]
    assert page.all.count(evil) > 10


@pytest.mark.long
def test_study_without_extras(tmp_path):
    policies = [AdaCUCB(3, budget=budget) for budget in (None, PureDP(1.0).to_zcdp())]
    results = [
        simulate(policies, Bernoulli(means), horizon=300, runs=3, seed=1)
        for means in ([0.9, 0.5, 0.1], [0.4, 0.5, 0.3])
    ]
    page = Reader(write(tmp_path, StudyRecord("Plain", "", Result.combined(results))))
    assert "Results: Bernoulli, 3 arms (2 of 2)" in page.texts["h2"]
    assert "equal shares" in page.all
    assert "successes" not in page.all
    assert "replay" not in page.all.lower()
    assert sum(tag == "img" for tag, _ in page.tags) == 8
    assert len(list((tmp_path / "figures").glob("2-bernoulli-3-arms-2-of-2-*.svg"))) == 4


def test_tables_can_be_beaten():
    rewards = np.zeros((400, 2))
    rewards[:200, 0], rewards[200:, 1] = 1.0, 1.0
    result = simulate(
        AdaCUCB(2, budget=ZCDP(1.0)), RewardTable(rewards), horizon=400, runs=2, record=20
    )
    below = result.frame.assign(regret=-result.frame["regret"].abs() - 1.0)
    figure = replace(result, frame=below).plot()
    assert figure.axes[0].get_ylim()[0] <= below["regret"].min()


def test_a_study_without_privacy_has_no_price_of_it(tmp_path):
    result = simulate(AdaCUCB(2, budget=None), Bernoulli([0.9, 0.1]), horizon=100, runs=1)
    page = Reader(write(tmp_path, StudyRecord("Bare", "", result)))
    assert "What privacy costs" not in page.texts["h3"]
    assert sum(tag == "img" for tag, _ in page.tags) == 3
    assert "interval " not in " ".join(page.texts["li"])
    assert not re.search(r"\bnan\b", page.all)


def test_one_run_claims_no_uncertainty_and_no_winner(result):
    frame, runs = (table[table["run"] == 0] for table in (result.frame, result.runs))
    (summary,) = environment_summaries(replace(result, frame=frame, runs=runs))
    styles = policy_styles(result.settings)
    said = " ".join(findings_in_people(summary, styles) + findings_in_regret(summary, styles))
    assert "interval" not in said
    assert "One run does not tell them apart" in said
    assert "price of its privacy" not in said


def test_equal_policies_are_not_told_apart(result):
    # Both policies get the same runs in another order: a lead of one would be chance.
    part = only(result, "1-zCDP")
    first = next(iter(part.settings.values()))
    other = replace(first, policy="other", class_name="Other", arguments={})
    pair = []
    for table in (part.frame, part.runs):
        mine = table[table["policy"] == first.policy]
        theirs = mine.assign(policy="other", run=(mine["run"] + 1) % RUNS)
        pair.append(pd.concat([mine, theirs], ignore_index=True))
    settings = keyed([first, other])
    (summary,) = environment_summaries(Result(*pair, settings, result.info))
    said = " ".join(findings_in_regret(summary, policy_styles(settings)))
    assert "The runs do not separate it from" in said


@pytest.mark.long
def test_many_arms_share_a_colour_for_the_rest(tmp_path):
    means = np.linspace(0.1, 0.9, 12)
    result = simulate(AdaCUCB(12, budget=ZCDP(1.0)), Bernoulli(means), horizon=500, runs=2)
    (summary,) = environment_summaries(result)
    figure = figures.arm_shares(summary, policy_styles(result.settings))
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [f"arm {a}" for a in range(5, 12)] + ["5 other arms"]
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert sum(widths) == pytest.approx(1.0)


# Figures and words ---------------------------------------------------------------------------


def test_result_plots_itself(result):
    figure = result.plot()
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        "0.02-zCDP",
        "1-zCDP",
        "(1, 1e-06)-DP",
        "no privacy",
    ]
    line = figure.axes[3].lines[0]
    first = result.frame[
        (result.frame["policy"] == result.frame["policy"].iloc[0])
        & (result.frame["round"] == HORIZON)
    ]
    assert line.get_xdata()[-1] == HORIZON
    assert line.get_ydata()[-1] == pytest.approx(
        first.loc[first["budget"] == "none", "regret"].mean()
    )


def test_logarithmic_axes_of_less_than_two_decades_can_be_read() -> None:
    x, y = np.array([4.0, 16.0, 64.0]), np.array([2500.0, 9000.0, 21_000.0])
    line = Series("policy", x, y, y, y, marks=True)
    panel = Panel("experts", "experts", "regret", [line], y_scale="log")
    figure = figures.exhibit(Exhibit("name", "title", "caption", "words", [panel]), ["policy"])
    png(figure)  # draws
    (ax,) = figure.axes
    low, high = ax.get_ylim()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["4", "16", "64"]
    shown = [
        label.get_text()
        for label, at in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)
        if low <= at <= high
    ]
    assert shown == ["5,000", "10,000", "20,000"]


LONG = "a name of sixty letters, which is as long as any name can be"


def with_long_name(result: Result, name: str = LONG) -> Result:
    first = result.runs["policy"].iloc[0]
    settings = {
        key: replace(one, name=name) if one.policy == first else one
        for key, one in result.settings.items()
    }
    return replace(result, settings=settings)


@pytest.mark.long
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_nothing_overlaps_or_is_cut_off(result, width):
    assert len(LONG) == 60
    result = with_long_name(result)
    (summary,) = environment_summaries(result)
    styles = policy_styles(result.settings)
    drawn = [
        regret_curves(summary.curves, styles, width=width),
        figures.regret_by_budget(summary, styles, width),
        figures.arm_shares(summary, styles, width),
        figures.people_helped(summary, styles, width),
    ]
    for figure in drawn:
        png(figure)
        box = figure.get_tightbbox()
        assert box.x0 >= -0.02
        assert box.x1 <= width + 0.02
        renderer = figure.canvas.get_renderer()
        legend = figure.legends[0].get_window_extent(renderer)
        for ax in figure.axes:
            assert not legend.overlaps(ax.get_window_extent(renderer))
        rows = [label.get_text() for ax in figure.axes for label in ax.get_yticklabels()]
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        assert LONG in [text.replace("\n", " ") for text in rows + names]


def test_names_stand_between_quotation_marks_in_sentences(result):
    named = with_long_name(result)
    (summary,) = environment_summaries(only(named, "0.02-zCDP", "1-zCDP"))
    said = " ".join(findings_in_regret(summary, policy_styles(named.settings)))
    assert said.count(LONG) == said.count(f"“{LONG}”") == 1


def test_meaning_of_budgets():
    assert "73.2 %" in meaning(PureDP(1.0))  # e / (1 + e) = 0.7311, rounded up
    assert "It implies ε = 0.9 with δ = one in a million" in meaning(ZCDP(0.02))
    assert meaning(ApproxDP(1.0, 1e-5)).startswith("Suppose an adversary knows everything except")
    assert "It implies" in meaning(RDP(8.0, 0.25))
    assert "may reveal" in meaning(None)


@pytest.mark.long
def test_equal_titles_are_numbered_and_nothing_is_headed_by_code(tmp_path):
    worlds = [Bernoulli([0.9, 0.1]), RewardTable(np.eye(2)), Bernoulli([0.8, 0.2])]
    policies = [AdaCUCB(2, budget=ZCDP(1.0), name="ours"), AdaCUCB(2, budget=None, beta=2.0)]
    results = [simulate(policies, world, horizon=2, runs=1) for world in worlds]
    result = Result.combined(results)
    titles = ["Bernoulli, 2 arms (1 of 2)", "RewardTable, 2 arms", "Bernoulli, 2 arms (2 of 2)"]
    page = Reader(write(tmp_path, StudyRecord("t", "", result)))
    headings = [heading for level in ("h2", "h3", "h4") for heading in page.texts[level]]
    assert [heading for heading in headings if heading.startswith("Results: ")] == [
        f"Results: {title}" for title in titles
    ]
    assert any(heading.startswith("ours") for heading in headings)
    figure = result.plot()
    headings += [ax.get_title(loc="left") for ax in figure.axes]
    headings += [text.get_text() for text in figure.legends[0].get_texts()]
    assert f"1-zCDP\n{titles[0]}" in headings
    assert "AdaCUCB (beta=2)" in headings
    raw = [repr(world) for world in worlds] + ["AdaCUCB(", "n_arms="]
    assert [heading for heading in headings if any(code in heading for code in raw)] == []
    assert all(repr(world) in page.all for world in worlds)


@pytest.mark.long
def test_clipping_is_told_where_it_happens(tmp_path):
    wide = Gaussian([0.2, 0.8])
    policies = [AdaCUCB(2, budget=ZCDP(1.0)), AdaCUCB(2, budget=ZCDP(1.0), clip=False)]
    results = [
        simulate(policies, world, horizon=20, runs=1) for world in (wide, Bernoulli([0.2, 0.8]))
    ]
    page = Reader(write(tmp_path, StudyRecord("t", "", Result.combined(results))))
    # Once beside the picture, and once in detail.
    assert [text for text in page.texts["li"] if "are clipped" in text] == 2 * [
        "Rewards outside [0, 1] are clipped: rewards of this environment have no bounds. This biases"
        " what AdaCUCB learnt."
    ]


@pytest.mark.long
def test_a_budget_that_does_not_hold_is_marked_wherever_it_is_shown(tmp_path):
    """Unclipped rewards void the guarantee, and the published calibration of (5, 0.01)-DP gives
    less than it was asked for.
    """
    policies = [
        AdaCUCB(2, budget=ApproxDP(5.0, 0.01), clip=False),
        AdaCUCB(2, budget=ApproxDP(5.0, 0.01), calibration="paper"),
        AdaCUCB(2, budget=ApproxDP(5.0, 0.01)),
        AdaCUCB(2, clip=False, budget=None),
    ]
    result = simulate(policies, Bernoulli([0.9, 0.1]), horizon=200, runs=2, record=3)
    really = str(policies[1].guarantee.holds)
    held = ["none", really, "(5, 0.01)-DP", "none"]
    assert really not in held[2:]
    assert result.runs["holds"].drop_duplicates(keep="first").tolist() == held[:3]
    for table in (result.frame, result.runs, result.summary()):
        assert [
            holds
            for _, holds in table.groupby(["policy", "budget"], sort=False)["holds"].first().items()
        ] == held
    page = Reader(write(tmp_path, StudyRecord("t", "", result)))
    cells = cells_of(page.table("Means over runs"))
    shown = budget_label(policies[1].guarantee.holds).text
    assert set(cells) == {
        ("AdaCUCB (clip=False, no guarantee)", "(5, 0.01)-DP | no guarantee"),
        ("AdaCUCB (clip=False, no guarantee)", "no privacy"),
        ("AdaCUCB (calibration='paper')", f"(5, 0.01)-DP asked for | {shown} holds"),
        ("AdaCUCB", "(5, 0.01)-DP"),
    }
    translated = [row[0] for row in page.table("Every budget that holds")[1:]]
    assert sorted(translated) == sorted(["no privacy", shown, "(5, 0.01)-DP"])


# Searches for the best arm -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def searched() -> Result:
    budgets = [PureDP(0.3), PureDP(1.0), None]
    searches = [
        MergedTopTwo(3, failure_probability=0.05, budget=budget, name="ours") for budget in budgets
    ]
    halving = SequentialHalving(3, horizon=90, budget=ZCDP(0.01))
    playing = AdaCUCB(3, budget=ZCDP(1.0))
    world = Bernoulli([0.9, 0.5, 0.5])
    return simulate([*searches, halving, playing], world, horizon=400, runs=40, seed=1, record=20)


def test_searches_have_a_table_of_rounds_and_errors(searched, tmp_path):
    write(tmp_path, StudyRecord("A search", "", searched))
    page = Reader(tmp_path / "report.html")
    caption = next(one for one in page.tables if one.startswith("Rounds until the search ended"))
    rows = [row for row in page.tables[caption] if len(row) > 5]
    groups = searched.runs.groupby(["policy", "budget"], sort=False)
    cells = {tuple(row[-4:]) for row in rows[1:]}
    assert len(rows) == 5  # with the heads, and without the policy that plays for reward
    for (policy, _), group in groups:
        if group["recommended"].isna().all():
            continue
        ended = group["stopped"].notna()
        errors = int((group["wrong"] * ended).sum())
        exact = binomtest(errors, len(group)).proportion_ci(0.95, "exact")
        rate = [f"{100 * value:.2f} %" for value in (errors / len(group), exact.low, exact.high)]
        asked = "5 %" if policy == "ours" else "–"
        shown = (
            f"{ended.sum()} of {len(group)}",
            str(errors),
            f"{rate[0]} | {rate[1]} to {rate[2]}",
            asked,
        )
        assert shown in cells
    halved = next(row for row in rows if row[-1] == "–")
    assert int(halved[-3]) > 0  # so that errors are counted
    assert (tmp_path / "figures" / "search-rounds.png").exists()
    assert "No setting of 3 erred more often than was asked for" in page.all


def test_searches_that_err_too_often_are_named(searched):
    worse = searched.runs.assign(
        wrong=searched.runs["wrong"].where(searched.runs["budget"] != "1-DP", 1.0)
    )
    summary = environment_summaries(replace(searched, runs=worse))[0]
    told = searches_in_words(searches_of(summary.table))
    assert told == "1 of 3 settings erred more often than was asked for."


def test_results_of_searches_are_saved(searched, tmp_path):
    again = Result.load(searched.save(tmp_path / "searches.parquet"))
    pd.testing.assert_frame_equal(again.runs, searched.runs, check_dtype=False)


def test_studies_without_searches_have_no_table_of_them(folder):
    page = Reader(folder / "report.html")
    assert "Searches for the best arm" not in page.texts["h3"]


# Narrow screens and paper --------------------------------------------------------------------

CHROME = shutil.which("chromium") or shutil.which("google-chrome")
PHONE = 390  # pixels

# What reaches beyond the screen, and what beyond its own cell.
MEASURE = """<script>
addEventListener("load", () => {
  const wide = [...document.querySelectorAll("body *")].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width && box.right > innerWidth + 0.5;
  });
  const spilt = [...document.querySelectorAll("td, th")].filter(
    (one) => one.scrollWidth > one.clientWidth + 1);
  const scroll = document.documentElement.scrollWidth;
  parent.postMessage(`measured ${innerWidth} ${scroll} ${wide.length} ${spilt.length}.`, "*");
});
</script>"""
FRAME = """<iframe src="page.html" style="width: 390px; height: 844px; border: 0"></iframe>
<script>addEventListener("message", (told) => { document.title = told.data; });</script>"""


def chrome(folder, *options: str) -> str:
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    quiet.append(f"--user-data-dir={folder / 'profile'}")
    done = subprocess.run(
        [CHROME, *quiet, *options], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def on_a_phone(page: str, folder) -> list[int]:
    """Width of the screen, of the page, and how many elements and texts are too wide."""
    (folder / "page.html").write_text(page.replace("</body>", f"{MEASURE}</body>"), "utf-8")
    (folder / "frame.html").write_text(FRAME, "utf-8")
    url = (folder / "frame.html").as_uri()
    told = chrome(folder, "--virtual-time-budget=20000", "--dump-dom", url)
    (found,) = re.findall(r"measured ([\d ]+)\.", told)
    return list(map(int, found.split()))


def pages_of(path) -> int:
    pdf = path.with_suffix(".pdf")
    chrome(path.parent, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", path.as_uri())
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


@pytest.mark.long
@pytest.mark.skipif(CHROME is None, reason="there is no browser")
def test_nothing_scrolls_sideways_on_a_phone(result, record, searched, tmp_path):
    unbroken = with_long_name(result, LONG.replace(" ", "_"))
    for shown in (unbroken, searched):
        html = write(tmp_path, replace(record, result=shown, replay=None)).read_text("utf-8")
        assert on_a_phone(html, tmp_path) == [PHONE, PHONE, 0, 0]
    # and the measure finds what is too wide
    wide = html.replace("<footer>", '<footer><div style="width: 500px">x</div>')
    assert on_a_phone(wide, tmp_path)[1:3] == [516, 1]


@pytest.mark.long
@pytest.mark.skipif(CHROME is None, reason="there is no browser")
def test_paper_has_no_page_without_need(record, tmp_path):
    assert 4 <= pages_of(write(tmp_path, record)) <= 9, "what is folded is printed, too"


def test_tables_fit_a_phone_by_their_structure(folder):
    """At most six numbers stand side by side, and nothing has a width of its own."""
    html = (folder / "report.html").read_text("utf-8")
    columns = re.findall(r'<table style="--columns: (\d+)">', html)
    assert len(columns) == html.count("<table")
    assert all(1 <= int(count) <= 6 for count in columns)
    style, body = html.split("</style>")
    assert re.findall(r'style="(?!--columns: )', body) == []
    phone = style.partition("@media screen and (max-width: 820px)")[2].partition("@media print")[0]
    assert "minmax(0, 1fr)" in phone
    assert not re.search(r"nowrap|(?<!max-)width: *\d{3}", phone)
