"""``write``: a study as one HTML page that opens offline, with its figures beside it as files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

import pandas as pd

from ..html import Html, items, table, tag, text
from ..plotting.numbers import (
    duration,
    percent,
    signed_per_thousand,
)
from ..plotting.rows import replay_rates
from ..simulation.parallel import job_count
from ..simulation.replaying import ReplayedTrial, replayed_trials
from ..simulation.settings import policy_styles
from . import claims, figures
from .cards import any_simulated, cards, stamp
from .exhibits import Exhibit, Table
from .main_findings import MainFindings
from .means import estimate_of
from .record import StudyRecord
from .replays import replay_in_words
from .results import Results
from .sheet import DASH, Sheet
from .summaries import environment_summaries
from .wording import REPLAY, WORDS, mean_count, promise_cell, ranged, span_of


def write(folder: str | Path, record: StudyRecord, n_jobs: int = 1) -> Path:
    """Write ``report.html`` and ``figures/*.svg|png`` into a folder that exists.

    Equal records give equal bytes.

    Args:
        folder: where to write.
        record: what was measured.
        n_jobs: number of processes that draw figures; -1 for one per core.

    Returns:
        The path of the page.

    Raises:
        ArgumentError: ``n_jobs`` is out of range.
        FileNotFoundError: there is no such folder.

    Warns:
        JobsWarning: figures cannot be sent to another process.
    """
    folder, n_jobs = Path(folder), job_count(n_jobs)
    page = _Page(folder / "figures", record)
    page.sheet.gallery.mkdir(exist_ok=True)
    parts = page.head(), page.body(), page.foot()
    return write_page(folder, record.title, *parts, sheet=page.sheet, n_jobs=n_jobs)


def write_page(
    folder: Path, title: str, head: Html, body: Html, foot: Html, *, sheet: Sheet, n_jobs: int = 1
) -> Path:
    """Write ``report.html`` with the style of all reports, and return its path.  The figures of the
    sheet are drawn into it.
    """
    source = files(__package__)
    template = Template(source.joinpath("page.html").read_text("utf-8"))
    style = source.joinpath("style.css").read_text("utf-8") + figures.dark_swatches()
    html = template.substitute(title=text(title), style=style, head=head, body=body, foot=foot)
    path = folder / "report.html"
    path.write_text(sheet.filled(html, n_jobs), "utf-8")
    return path


def facts_of(facts: Mapping[str, str]) -> Html:
    """A list of facts in a row."""
    named = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items())
    return tag("dl", *named, class_="facts")


def folded(key: str, heading: str, content: Iterable[Html]) -> Html:
    """A section behind its heading: the rest is seen on demand, and on paper."""
    return tag("details", tag("summary", tag("h2", heading)), *content, id=key)


class _Section(NamedTuple):
    key: str  # its anchor
    heading: str  # which is seen while it is folded
    content: Iterator[Html]


class _Page:
    """One page in the making."""

    def __init__(self, gallery: Path, record: StudyRecord) -> None:
        self.record, self.result = record, record.detailed
        self.settings = self.result.settings
        self.summaries = environment_summaries(self.result)
        self.trials = [] if record.replay is None else list(replayed_trials(record.replay))
        self.sheet = Sheet(gallery, policy_styles(self.settings))
        self.results, self.exhibits = list(self._results()), list(record.exhibits)
        self.findings = MainFindings(self.sheet, record, self.summaries, self.trials)

    # The frame -------------------------------------------------------------------------------

    def head(self) -> Html:
        """The title, the picture that answers the question, and the answer in sentences."""
        parts = [tag("h1", self.record.title), self._answer()]
        if self.record.claims:
            parts.append(tag("p", claims.tally(self.record.claims), class_="lead"))
        parts += self.findings.verdict()
        if any_simulated(self.settings.values()):
            parts.append(stamp())
        return Html("\n".join(parts))

    def _answer(self) -> Html:
        """The first figure to the claims, or else what privacy costs."""
        if self.exhibits:
            return self._exhibit(self.exhibits.pop(0))
        return self.results[0].answer()

    def body(self) -> Html:
        return Html("\n".join(folded(*one) for one in self._sections()))

    def _sections(self) -> Iterator[_Section]:
        """Those that have something to say; content is made as it is asked for."""
        record = self.record
        if record.claims:
            yield _Section("claims", "Claims", claims.section(record.claims, record.notes))
        if record.tables:
            yield _Section("tables", "Tables to the claims", self._tables())
        if self.exhibits:
            shown = map(self._exhibit, self.exhibits)
            yield _Section("exhibits", "Figures to the claims", shown)
        yield _Section("findings", "Findings in detail", self.findings.content())
        for i, one in enumerate(self.results, 1):
            yield _Section(f"results-{i}", one.heading, one.content())
        if self.trials:
            yield _Section("replay", "Replay of the real trial", self._replay())
        yield _Section("guarantees", "What is guaranteed", self._guarantees())
        yield _Section("reading", "About this study, and how to read this page", self._reading())

    def _facts(self) -> Html:
        runs = self.result.runs.groupby(["environment", "policy", "budget"]).size()
        horizons = sorted({summary.horizon for summary in self.summaries})
        return facts_of(
            {
                "Policies": str(len({style.label for style in self.sheet.styles.values()})),
                "Budgets": str(len({one.budget for one in self.settings.values()} - {None})),
                "Runs of each": span_of(int(runs.min()), int(runs.max())),
                "People per run": span_of(horizons[0], horizons[-1]),
                "Seed": str(self.record.seed),
            }
        )

    def _results(self) -> Iterator[Results]:
        several, bounds = len(self.summaries) > 1, self.record.bounds
        for i, summary in enumerate(self.summaries, 1):
            number = i if several else None
            yield Results(self.sheet, summary, self.settings, bounds, number)

    def foot(self) -> Html:
        versions = ", ".join(f"{name} {version}" for name, version in self.record.versions.items())
        took = f"The simulation took {duration(self.record.elapsed)}. "
        listed = f"Versions: {versions}." if versions else ""
        return tag("p", f"Written by dpbandits. {took}{listed}")

    def _tables(self) -> Iterator[Html]:
        for one in self.record.tables:
            yield tag("h3", one.heading)
            yield _written(one)

    def _exhibit(self, one: Exhibit) -> Html:
        panels = [panel for shown in self.record.exhibits for panel in shown.panels]
        labels = list(dict.fromkeys(line.label for panel in panels for line in panel.series))
        draw = partial(figures.exhibit, one, labels)
        return self.sheet.figure(one.name, one.heading, draw, one.alt, one.caption)

    # Replay, guarantees and reading ----------------------------------------------------------

    def _replay(self) -> Iterator[Html]:
        yield tag("p", REPLAY)
        for i, trial in enumerate(self.trials):
            yield from self._trial("replay" if i == 0 else f"replay-{i + 1}", trial)

    def _trial(self, name: str, trial: ReplayedTrial) -> Iterator[Html]:
        styles = self.sheet.styles
        yield self.sheet.figure(
            name,
            trial.title,
            partial(replay_rates, trial.rates, trial.own_rate, styles),
            f"Success rates in the replay. {replay_in_words(trial, styles)}",
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
            f"Means over replays, with 95 % intervals. {DASH}",
            [*heads, "People counted", "Releases"],
            self.sheet.grouped(trial.rates, cells),
        )

    def _guarantees(self) -> Iterator[Html]:
        if any_simulated(self.settings.values()):
            yield stamp()
        yield tag(
            "p",
            "The promise of every policy in full. What several budgets have in common stands once,"
            " above the list of them.",
        )
        yield from cards(self.settings.values(), self.sheet.styles)

    def _reading(self) -> Iterator[Html]:
        if self.record.description:
            yield tag("p", self.record.description, class_="lead")
        yield self._facts()
        seed = f"{self.record.seed}. The same seed and versions give the same numbers."
        words = {**WORDS, "Seed": seed}.items()
        yield tag("dl", *(Html(tag("dt", name) + tag("dd", meant)) for name, meant in words))
        yield tag("h3", "Environments and policies as they were configured")
        yield items(f"{summary.title}: {summary.key}" for summary in self.summaries)
        configured = {one.policy: one.configuration for one in self.settings.values()}
        yield items(f"{self.sheet.styles[key].label}: {what}" for key, what in configured.items())
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
