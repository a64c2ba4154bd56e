"""``write``: a study as one HTML page that opens offline, with its figures beside it as files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from ..html import Html, items, picture, table, tag, text
from ..plotting.curves import distance_curves, regret_curves
from ..plotting.drawing import NARROW, WIDE, png, svg
from ..plotting.labels import budget_label, by_notion
from ..plotting.numbers import (
    duration,
    number,
    per_thousand,
    percent,
    reward_amount,
    signed_per_thousand,
)
from ..policies import registered
from ..simulation.settings import policy_styles, with_budget_labels
from . import claims, figures
from .cards import any_simulated, cards, stamp
from .contests import findings_in_regret, findings_in_searches, findings_on_promises
from .estimates import estimate_of
from .exhibits import Table, slug
from .findings import findings_in_people, findings_on_clipping, findings_on_spending, meaning
from .record import StudyRecord
from .replays import ReplayedTrial, replay_in_words, replayed_trials
from .searches import searches_in_words, searches_of, searches_table
from .spending import spending
from .summaries import EnvironmentSummary, environment_summaries
from .wording import REPLAY, WORDS, mean_count, promise_cell, ranged, span_of

_DASH = "A dash: no two runs differ, or the interval is narrower than the digits shown."


def write(folder: str | Path, record: StudyRecord) -> Path:
    """Write ``report.html`` and ``figures/*.svg|png`` into a folder that exists.

    Equal records give equal bytes.

    Returns:
        The path of the page.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    folder = Path(folder)
    page = _Page(folder / "figures", record)
    page.gallery.mkdir(exist_ok=True)
    source = files(__package__)
    template = Template(source.joinpath("page.html").read_text("utf-8"))
    style = source.joinpath("style.css").read_text("utf-8")
    html = template.substitute(
        title=text(record.title), style=style, head=page.head(), body=page.body(), foot=page.foot()
    )
    path = folder / "report.html"
    path.write_text(html, "utf-8")
    return path


class _Section(NamedTuple):
    key: str  # its anchor
    link: str  # the words of the link to it
    content: Iterator[Html]


class _Page:
    """One page in the making."""

    def __init__(self, gallery: Path, record: StudyRecord) -> None:
        self.gallery, self.record, self.result = gallery, record, record.detailed
        self.settings = self.result.settings
        self.summaries = environment_summaries(self.result)
        self.trials = [] if record.replay is None else list(replayed_trials(record.replay))
        self.styles = policy_styles(self.settings)

    # The frame -------------------------------------------------------------------------------

    def head(self) -> Html:
        runs = self.result.runs.groupby(["environment", "policy", "budget"]).size()
        horizons = sorted({summary.horizon for summary in self.summaries})
        facts = {
            "Policies": str(len({style.label for style in self.styles.values()})),
            "Budgets": str(len({one.budget for one in self.settings.values()} - {None})),
            "Runs of each": span_of(int(runs.min()), int(runs.max())),
            "People per run": span_of(horizons[0], horizons[-1]),
            "Seed": str(self.record.seed),
        }
        parts = [tag("h1", self.record.title)]
        if self.record.description:
            parts.append(tag("p", self.record.description, class_="lead"))
        named = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items())
        parts.append(tag("dl", *named, class_="facts"))
        if any_simulated(self.settings.values()):
            parts.append(stamp())
        links = "\n".join(tag("a", one.link, href=f"#{one.key}") for one in self._sections())
        return Html("\n".join([*parts, tag("nav", Html(links), aria_label="Contents")]))

    def body(self) -> Html:
        sections = [tag("section", *one.content, id=one.key) for one in self._sections()]
        return Html("\n".join(sections))

    def _sections(self) -> Iterator[_Section]:
        """Those that have something to say; content is made as it is asked for."""
        record = self.record
        if record.claims:
            yield _Section("claims", "Claims", claims.section(record.claims, record.notes))
        if record.tables:
            yield _Section("tables", "Tables to the claims", self._tables())
        if record.exhibits:
            yield _Section("exhibits", "Figures to the claims", self._exhibits())
        yield _Section("findings", "Main findings", self._findings())
        for i, summary in enumerate(self.summaries):
            content = self._environment(i, summary)
            yield _Section(f"results-{i + 1}", self._heading(summary), content)
        if self.trials:
            yield _Section("replay", "Replay of the real trial", self._replay())
        yield _Section("guarantees", "Guarantees", self._guarantees())
        yield _Section("reading", "How to read this page", self._reading())

    def _heading(self, summary: EnvironmentSummary) -> str:
        return "Results" if len(self.summaries) == 1 else f"Results: {summary.title}"

    def foot(self) -> Html:
        versions = ", ".join(f"{name} {version}" for name, version in self.record.versions.items())
        took = f"The simulation took {duration(self.record.elapsed)}. "
        listed = f"Versions: {versions}." if versions else ""
        return tag("p", f"Written by dpbandits. {took}{listed}")

    def _tables(self) -> Iterator[Html]:
        yield tag("h2", "Tables to the claims")
        for one in self.record.tables:
            yield tag("h3", one.heading)
            yield _written(one)

    def _exhibits(self) -> Iterator[Html]:
        yield tag("h2", "Figures to the claims")
        shown = self.record.exhibits
        panels = [panel for one in shown for panel in one.panels]
        labels = list(dict.fromkeys(line.label for panel in panels for line in panel.series))
        for one in shown:
            draw = partial(figures.exhibit, one, labels)
            yield self._figure(None, one.name, one.heading, draw, one.alt, one.caption)

    # Findings and results --------------------------------------------------------------------

    def _findings(self) -> Iterator[Html]:
        yield tag("h2", "Main findings")
        if not self.record.claims:  # beside which they stand otherwise
            for note in self.record.notes:
                yield tag("p", note, class_="note")
        yield from self._by_environment(self._found)
        if overall := [
            *findings_on_promises(self.settings, self.styles),
            *findings_on_spending(self.summaries),
        ]:
            if len(self.summaries) > 1:
                yield tag("h4", "In all environments")
            yield items(overall)
        if self.trials:
            yield tag("h3", "In the replay of the real trial")
            yield items(replay_in_words(trial, self.styles) for trial in self.trials)
        yield from self._policies()
        yield tag("h3", "The budgets in words")
        holding = by_notion(budget_label(one.holds) for one in self.settings.values())
        rows = [(one.text, [[meaning(one.budget)]]) for alike in holding for one in alike]
        yield table(
            "Every budget that holds in this study, translated.",
            ["Budget", "How much may be learnt about one person"],
            rows,
            [1],
        )
        if any(summary.reference for summary in self.summaries):
            yield tag("h3", "In the language of bandits")
            yield from self._by_environment(
                lambda summary: (
                    findings_in_regret(summary, self.styles) if summary.reference else []
                )
            )
        yield tag(
            "p",
            "Intervals hold for one number at a time and describe the chance in the simulated"
            " runs, with the mean rewards of the arms taken as true. They do not cover how well"
            " these means are known. The best setting and the policies of lowest mean regret"
            " were picked after looking, so their leads are flattered a little.",
            class_="note",
        )

    def _policies(self) -> Iterator[Html]:
        """The legend of all figures and tables, in words."""
        kinds = registered()
        titles = {
            one.policy: kinds[one.class_name].card.title if one.class_name in kinds else ""
            for one in self.settings.values()
        }
        rows = {
            self._marked(policy): [[f"{title[:1].upper()}{title[1:]}" or self.styles[policy].label]]
            for policy, title in titles.items()
        }
        yield tag("h3", "The policies")
        yield table(
            "Every policy with the mark that it has in all figures and tables.",
            ["Policy", "What it is"],
            rows.items(),
            [1],
        )

    def _marked(self, policy: str) -> Html:
        style = self.styles[policy]
        return Html(figures.swatch(style) + text(style.label))

    def _found(self, summary: EnvironmentSummary) -> list[str]:
        """The first finding: people where there are some, and else regret."""
        return [
            *findings_in_people(summary, self.styles),
            *([] if summary.reference else findings_in_regret(summary, self.styles)),
            *findings_in_searches(summary, self.styles),
            *findings_on_clipping(summary, self.styles),
        ]

    def _by_environment(self, find: Callable[[EnvironmentSummary], list[str]]) -> Iterator[Html]:
        for summary in self.summaries:
            found = find(summary)
            if found and len(self.summaries) > 1:
                yield tag("h4", summary.title)
            if found:
                yield items(found)

    def _environment(self, index: int, summary: EnvironmentSummary) -> Iterator[Html]:
        yield tag("h2", self._heading(summary))
        yield tag("p", self._setting(summary))
        yield from self._searches(index, summary)
        yield from self._regret(index, summary)
        if summary.distances is not None:
            yield from self._distance(index, summary, summary.distances)
        halves = [self._shares(index, summary)] if summary.fixed_arms else []
        if summary.baseline is not None:
            halves.append(self._helped(index, summary))
        yield tag("div", *halves, class_="halves" if len(halves) > 1 else "")
        yield tag("h3", "The numbers")
        yield self._numbers(summary)
        yield from spending(summary, self._grouped)

    def _setting(self, summary: EnvironmentSummary) -> str:
        parts = [f"{summary.title}."] if len(self.summaries) == 1 else []
        if summary.means is not None:
            rates = zip(summary.arms, map(number, summary.means), strict=True)
            means = ", ".join(f"{arm}: {rate}" for arm, rate in rates)
            parts.append(f"Mean rewards of the arms: {means}.")
        return " ".join([*parts, f"Each run has {summary.horizon:,} rounds."])

    def _regret(self, index: int, summary: EnvironmentSummary) -> Iterator[Html]:
        regrets = summary.table["regret"]
        ends = (summary.table.loc[i] for i in (regrets.idxmin(), regrets.idxmax()))
        low, high = (
            f"{reward_amount(row['regret'])} ({self.styles[row['policy']].phrase},"
            f" {row['budget_label'].text})"
            for row in ends
        )
        reach = f"After {summary.horizon:,} rounds the mean regret lies between {low} and {high}."
        yield self._figure(
            index,
            "regret",
            "Regret as people come in",
            lambda width: regret_curves(summary.curves, self.styles, width=width),
            f"Curves of mean regret over rounds, one panel per budget. {reach}",
            "Regret is the loss, in expected rewards, against always playing the best arm:"
            " lower is better, and a curve that flattens has found it. Shades are 95 %"
            " bootstrap bands of the mean over runs. Each notion of privacy has rows and a"
            " scale of its own.",
        )
        yield from self._promised(index, summary)
        if any(label.private for label in summary.table["budget_label"]):
            yield self._figure(
                index,
                "regret-by-budget",
                "What privacy costs",
                lambda width: figures.regret_by_budget(summary, self.styles, width),
                "Mean final regret against the privacy budget, one panel per notion of privacy."
                f" {reach}",
                "Bars are 95 % intervals, sometimes smaller than the marks, which are moved"
                " sideways a little to stay apart. The notions of privacy have panels of their own"
                " because their numbers are not comparable: 1-zCDP is not 1-DP. Dashed lines: the"
                " same policy with an open channel, that is without noise.",
            )

    def _promised(self, index: int, summary: EnvironmentSummary) -> Iterator[Html]:
        if self.record.bounds is None:
            return
        own = self.record.bounds[self.record.bounds["environment"] == summary.key]
        promised = with_budget_labels(own, self.settings)
        if promised.empty:
            return
        drawn = promised[promised["of"].str.endswith("regret")]
        if not drawn.empty:
            yield self._figure(
                index,
                "regret-and-bounds",
                "What theory promises",
                lambda width: regret_curves(summary.curves, self.styles, width=width, bounds=drawn),
                "Curves of mean regret over rounds, with thin lines for bounds; their values at the"
                " horizon are in the table below.",
                "Thin lines are bounds on expected regret, dashed from above and dotted from"
                " below. Upper bounds are made for the worst case, and often far away. A bound"
                " “as T grows” may be crossed at any finite time. A bound with a known order"
                " only has no constant.",
            )

        def cells(row: pd.Series) -> list[str]:
            numbers = [number(row["value"]), number(row["regret"])]
            return [promise_cell(row), row["label"], row["of"], *numbers]

        last = promised[promised["round"] == summary.horizon]
        measured = summary.table[["policy", "budget", "setting", "regret"]]
        yield table(
            f"Bounds of theory for {summary.horizon:,} rounds, beside the measured regret.",
            ["Policy", "Budget", "Bound", "On", "Its value", "Mean regret"],
            self._grouped(measured.merge(last, on=["policy", "budget"]), cells),
            [2, 3],
        )

    def _searches(self, index: int, summary: EnvironmentSummary) -> Iterator[Html]:
        rows = searches_of(summary.table)
        if rows.empty:
            return
        yield tag("h3", "Searches for the best arm")
        yield tag("p", searches_in_words(rows))
        yield searches_table(rows, self._grouped)
        if not figures.private_searches(summary).empty:
            yield self._figure(
                index,
                "search-rounds",
                "",
                lambda width: figures.search_rounds(summary, self.styles, width),
                "Mean rounds until a search for the best arm was over, against the privacy budget;"
                " the numbers are in the table above.",
                "Fewer is better, at the same failure probability. Runs that did not end within"
                f" {summary.horizon:,} rounds are left out. Bars are 95 % intervals; dashed lines:"
                " the same policy without noise.",
            )

    def _distance(
        self, index: int, summary: EnvironmentSummary, curves: pd.DataFrame
    ) -> Iterator[Html]:
        yield self._figure(
            index,
            "distance",
            "How far the estimate is from the truth",
            lambda width: distance_curves(curves, self.styles, width),
            "Curves of the mean distance between estimated and true parameter over"
            f" {summary.horizon:,} rounds, one panel per budget.",
            "The L2 distance between a policy's estimate of the parameter and the parameter of"
            " the environment, mean over runs with 95 % bands. Good play needs the parameter"
            " only in the directions that matter.",
        )

    def _shares(self, index: int, summary: EnvironmentSummary) -> Html:
        beside = f", beside {summary.reference.name}" if summary.reference else ""
        best = ""
        if summary.best is not None:
            shares = summary.table[f"share_{summary.best}"]
            low, high = percent(shares.min()), percent(shares.max())
            best = f" The best arm, {summary.arms[summary.best]}, got {low} to {high}."
        return self._figure(
            index,
            "arm-shares",
            "Who gets which arm",
            lambda width: figures.arm_shares(summary, self.styles, width),
            "Stacked bars of the share of rounds per arm, for each policy and"
            f" budget{beside}.{best}",
            f"Mean over runs, in percent{beside}.{best}",
            half=summary.baseline is not None,
        )

    def _helped(self, index: int, summary: EnvironmentSummary) -> Html:
        assert summary.baseline is not None
        name = summary.baseline.name
        low, high = summary.table["gain"].min(), summary.table["gain"].max()
        return self._figure(
            index,
            "people-helped",
            "People helped" if summary.reference else "Reward gained",
            lambda width: figures.people_helped(summary, self.styles, width),
            f"Expected {summary.gained} per 1,000 people compared with {name}, per policy and"
            f" budget: from {signed_per_thousand(low)} to {signed_per_thousand(high)}.",
            f"Expected {summary.gained} per 1,000 people, more (right) or fewer (left) than with"
            f" {name}: the share of people each arm got, times that arm's mean. Lines are 95 %"
            " intervals of the mean over runs, often hidden behind the marks; open marks have no"
            " privacy.",
            half=summary.fixed_arms,
        )

    def _numbers(self, summary: EnvironmentSummary) -> Html:
        heads = ["Policy", "Budget", f"Regret after {summary.horizon:,} rounds"]
        if summary.baseline is not None:
            unit = summary.gained.capitalize()
            heads += [
                f"{unit} per 1,000",
                f"Compared with {summary.baseline.name}",
                f"Share of {summary.arms[summary.best or 0]}",
            ]

        def cells(row: pd.Series) -> list[str]:
            regret = ranged(estimate_of(row, "regret"), reward_amount)
            found: list[str] = [promise_cell(row), regret]
            if summary.baseline is None:
                return found
            return [
                *found,
                ranged(estimate_of(row, "helped"), per_thousand),
                ranged(estimate_of(row, "gain"), signed_per_thousand),
                percent(row[f"share_{summary.best}"], 1),
            ]

        return table(
            f"Means over runs, with 95 % bootstrap intervals. {_DASH}",
            heads,
            self._grouped(summary.table, cells),
        )

    def _grouped(
        self, rows: pd.DataFrame, cells: Callable[[pd.Series], list[str]]
    ) -> Iterator[tuple[Html, list[list[str]]]]:
        for policy, group in rows.groupby("policy", sort=False):
            yield self._marked(str(policy)), [cells(row) for _, row in group.iterrows()]

    def _figure(
        self,
        index: int | None,
        name: str,
        heading: str,
        draw: Callable[[float], Figure],
        alt: str,
        caption: str,
        *,
        half: bool = False,
    ) -> Html:
        """A figure under its heading in the page, on paper on ``half`` its width, and in files."""
        prefix = (
            ""
            if index is None or len(self.summaries) == 1
            else f"{index + 1}-{slug(self.summaries[index].title)[:40].strip('-')}-"
        )
        wide = draw(WIDE)
        drawn = svg(wide)
        (self.gallery / f"{prefix}{name}.svg").write_bytes(drawn)
        (self.gallery / f"{prefix}{name}.png").write_bytes(png(wide))
        narrow = svg(draw(NARROW))
        shown = picture(drawn, narrow, alt, half=half)
        figure = tag("figure", shown, tag("figcaption", caption))
        return tag("div", *([tag("h3", heading)] if heading else []), figure, class_="shown")

    # Replay, guarantees and reading ----------------------------------------------------------

    def _replay(self) -> Iterator[Html]:
        yield tag("h2", "Replay of the real trial")
        yield tag("p", REPLAY)
        for i, trial in enumerate(self.trials):
            yield from self._trial("replay" if i == 0 else f"replay-{i + 1}", trial)

    def _trial(self, name: str, trial: ReplayedTrial) -> Iterator[Html]:
        yield self._figure(
            None,
            name,
            trial.title,
            lambda width: figures.replay_rates(trial, self.styles, width),
            f"Success rates in the replay. {replay_in_words(trial, self.styles)}",
            "Mean success rate over replays with 95 % intervals; open marks have no privacy. The"
            " replays shuffle the same people, so the intervals do not say how another trial, with"
            " other people, would have come out.",
        )

        def cells(row: pd.Series) -> list[str]:
            gap = f"{signed_per_thousand(100 * (row['rate'] - trial.own_rate))} points"
            rate = ranged(estimate_of(row, "rate"), lambda rate: percent(rate, 1))
            counts = [mean_count(row["rounds"]), mean_count(row["releases"])]
            return [promise_cell(row), rate, gap, *counts]

        heads = ["Policy", "Budget", "Success rate", "Compared with the trial"]
        yield table(
            f"Means over replays, with 95 % intervals. {_DASH}",
            [*heads, "People counted", "Releases"],
            self._grouped(trial.rates, cells),
        )

    def _guarantees(self) -> Iterator[Html]:
        yield tag("h2", "What is guaranteed")
        if any_simulated(self.settings.values()):
            yield stamp()
        yield tag(
            "p",
            "The promise of every policy in full. What several budgets have in common stands once,"
            " above the list of them.",
        )
        yield from cards(self.settings.values(), self.styles)

    def _reading(self) -> Iterator[Html]:
        yield tag("h2", "How to read this page, and how it was computed")
        seed = f"{self.record.seed}. The same seed and versions give the same numbers."
        words = {**WORDS, "Seed": seed}.items()
        yield tag("dl", *(Html(tag("dt", name) + tag("dd", meant)) for name, meant in words))
        yield tag("h3", "Environments and policies as they were configured")
        yield items(f"{summary.title}: {summary.key}" for summary in self.summaries)
        configured = {one.policy: one.configuration for one in self.settings.values()}
        yield items(f"{self.styles[key].label}: {what}" for key, what in configured.items())
        if self.record.config:
            declared = json.dumps(self.record.config, indent=2, ensure_ascii=False, default=str)
            yield tag("h3", "The study as it was declared", class_="screen")
            yield tag("pre", declared, class_="screen")


def _written(one: Table) -> Html:
    """A table of a study, whose rows stand together where their first cells are the same."""
    first = one.frame.columns[0]
    groups = [
        (str(name), [[str(cell) for cell in row] for row in rows.drop(columns=first).to_numpy()])
        for name, rows in one.frame.groupby(first, sort=False)
    ]
    heads = list(one.frame.columns)
    return table(one.caption, heads, groups, map(heads.index, one.words))
