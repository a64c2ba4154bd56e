"""Results: what a page says of one environment, in figures and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from ..html import Html, table, tag
from ..plotting.behind import slug
from ..plotting.curves import distance_curves, regret_curves
from ..plotting.numbers import (
    number,
    per_thousand,
    percent,
    reward_amount,
    signed_per_thousand,
)
from ..simulation.settings import SettingsByKey, with_budget_labels
from . import figures
from .deciding import answers_of, answers_table
from .means import estimate_of
from .searches import searches_in_words, searches_of, searches_table
from .sheet import DASH, Sheet
from .spending import spending
from .summaries import EnvironmentSummary
from .wording import promise_cell, ranged


class Results:
    """The results in one environment.

    Args:
        sheet: where figures are drawn.
        summary: the environment, and what was measured there.
        settings: what was compared.
        bounds: theoretical bounds of all environments; None for none.
        number: that of the environment, from 1; None where it is the only one.
    """

    def __init__(
        self,
        sheet: Sheet,
        summary: EnvironmentSummary,
        settings: SettingsByKey,
        bounds: pd.DataFrame | None,
        number: int | None,
    ) -> None:
        self.sheet, self.summary, self.settings = sheet, summary, settings
        self.bounds, self.number = bounds, number
        self.answered = False  # whether the page shows the answer already

    @property
    def alone(self) -> bool:
        """Whether there is no other environment."""
        return self.number is None

    @property
    def heading(self) -> str:
        """The heading of the section."""
        return "Results" if self.alone else f"Results: {self.summary.title}"

    def _heading_of(self, answer: str) -> str:
        """The heading of an answer, which stands at the top without its environment."""
        return answer if self.alone or not self.answered else f"{answer}: {self.summary.title}"

    def _figure(self, *arguments: Any, **options: Any) -> Html:
        short = slug(self.summary.title)[:40].strip("-")
        prefix = "" if self.alone else f"{self.number}-{short}-"
        return self.sheet.figure(*arguments, prefix=prefix, **options)

    def answer(self) -> Html:
        """What privacy costs here, in one figure; without privacy, how regret grows.  It stands at
        the top of the page, and ``content`` leaves it out.
        """
        self.answered = True
        if not figures.private_searches(self.summary).empty:
            return self._rounds()
        return self._price() if self._private else self._curves()

    def content(self) -> Iterator[Html]:
        """All that the page says of the environment beside the ``answer``."""
        summary = self.summary
        yield tag("p", self._setting())
        yield from self._searches()
        yield from self._answers()
        yield from self._regret()
        if summary.distances is not None:
            yield from self._distance(summary.distances)
        halves = [self._shares()] if summary.fixed_arms else []
        if summary.baseline is not None:
            halves.append(self._helped())
        yield tag("div", *halves, class_="halves" if len(halves) > 1 else "")
        yield tag("h3", "The numbers")
        yield self._numbers()
        yield from spending(summary, self.sheet.grouped)

    def _setting(self) -> str:
        summary = self.summary
        parts = [f"{summary.title}."] if self.alone else []
        if summary.means is not None:
            rates = zip(summary.arms, map(number, summary.means), strict=True)
            means = ", ".join(f"{arm}: {rate}" for arm, rate in rates)
            parts.append(f"Mean rewards of the arms: {means}.")
        return " ".join([*parts, f"Each run has {summary.horizon:,} rounds."])

    @property
    def _private(self) -> bool:
        return any(label.private for label in self.summary.table["budget_label"])

    def _reach(self) -> str:
        regrets = self.summary.table["regret"]
        ends = (self.summary.table.loc[i] for i in (regrets.idxmin(), regrets.idxmax()))
        low, high = (
            f"{reward_amount(row['regret'])} ({self.sheet.styles[row['policy']].phrase},"
            f" {row['budget_label'].text})"
            for row in ends
        )
        rounds = f"{self.summary.horizon:,}"
        return f"After {rounds} rounds the mean regret lies between {low} and {high}."

    def _regret(self) -> Iterator[Html]:
        searching = not figures.private_searches(self.summary).empty
        if self._private or not self.answered:
            yield self._curves()
        yield from self._promised()
        if self._private and (searching or not self.answered):
            yield self._price()

    def _curves(self) -> Html:
        summary = self.summary
        return self._figure(
            "regret",
            "Regret as people come in",
            partial(regret_curves, summary.curves, self.sheet.styles),
            f"Curves of mean regret over rounds, one panel per budget. {self._reach()}",
            "Regret is the loss, in expected rewards, against always playing the best arm: lower is"
            " better, and a curve that flattens has found it. Shades are 95 % bootstrap bands of"
            " the mean over runs. Each notion of privacy has rows and a scale of its own.",
        )

    def _price(self) -> Html:
        return self._figure(
            "regret-by-budget",
            self._heading_of("What privacy costs"),
            partial(figures.regret_by_budget, self.summary, self.sheet.styles),
            "Mean final regret against the privacy budget, one panel per notion of privacy."
            f" {self._reach()}",
            "Regret is the reward lost against always playing the best arm. Bars are 95 %"
            " intervals, often smaller than the marks, which stand side by side. Numbers of"
            " different notions do not compare: 1-zCDP is not 1-DP. Dashed lines: the same policy"
            " without noise.",
        )

    def _promised(self) -> Iterator[Html]:
        if self.bounds is None:
            return
        summary = self.summary
        own = self.bounds[self.bounds["environment"] == summary.key]
        promised = with_budget_labels(own, self.settings)
        if promised.empty:
            return
        drawn = promised[promised["of"].str.endswith("regret")]
        if not drawn.empty:
            yield self._figure(
                "regret-and-bounds",
                "What theory promises",
                partial(regret_curves, summary.curves, self.sheet.styles, bounds=drawn),
                "Curves of mean regret over rounds, with thin lines for bounds; their values at the"
                " horizon are in the table below.",
                "Thin lines are bounds on expected regret, dashed from above and dotted from below."
                " Upper bounds are made for the worst case, and are often far above regret. Regret"
                " may cross a bound “as T grows” at any finite time. Of some bounds only the order"
                " is known, so they have no constant.",
            )

        def cells(row: pd.Series) -> list[str]:
            numbers = [number(row["value"]), number(row["regret"])]
            return [promise_cell(row), row["label"], row["of"], *numbers]

        last = promised[promised["round"] == summary.horizon]
        measured = summary.table[["policy", "budget", "setting", "regret"]]
        yield table(
            f"Bounds of theory for {summary.horizon:,} rounds, beside the measured regret.",
            ["Policy", "Budget", "Bound", "On", "Its value", "Mean regret"],
            self.sheet.grouped(measured.merge(last, on=["policy", "budget"]), cells),
            [2, 3],
        )

    def _searches(self) -> Iterator[Html]:
        summary = self.summary
        rows = searches_of(summary.table)
        if rows.empty:
            return
        yield tag("h3", "Searches for the best arm")
        yield tag("p", searches_in_words(rows))
        yield searches_table(rows, self.sheet.grouped)
        if not (self.answered or figures.private_searches(summary).empty):
            yield self._rounds()

    def _rounds(self) -> Html:
        return self._figure(
            "search-rounds",
            self._heading_of("What privacy costs a search") if self.answered else "",
            partial(figures.search_rounds, self.summary, self.sheet.styles),
            "Mean rounds until a search for the best arm was over, against the privacy budget; the"
            " numbers are in the table of searches.",
            "Fewer is better, at the same failure probability. Runs that did not end within"
            f" {self.summary.horizon:,} rounds are left out. Bars are 95 % intervals; dashed lines:"
            " the same policy without noise.",
        )

    def _answers(self) -> Iterator[Html]:
        rows, asked = answers_of(self.summary.table), self.summary.asked
        if asked is not None and not rows.empty:
            yield tag("h3", "Is it decided which arm is best?")
            yield answers_table(rows, asked, self.sheet.grouped)

    def _distance(self, curves: pd.DataFrame) -> Iterator[Html]:
        summary = self.summary
        yield self._figure(
            "distance",
            "How far the estimate is from the truth",
            partial(distance_curves, curves, self.sheet.styles),
            "Curves of the mean distance between estimated and true parameter over"
            f" {summary.horizon:,} rounds, one panel per budget.",
            "The L2 distance between a policy's estimate of the parameter and the parameter of"
            " the environment, mean over runs with 95 % bands. Good play needs the parameter"
            " only in the directions that matter.",
        )

    def _shares(self) -> Html:
        summary = self.summary
        beside = f", beside {summary.reference.name}" if summary.reference else ""
        best = ""
        if summary.best is not None:
            shares = summary.table[f"share_{summary.best}"]
            low, high = percent(shares.min()), percent(shares.max())
            best = f" The best arm, {summary.arms[summary.best]}, got {low} to {high}."
        return self._figure(
            "arm-shares",
            "Who gets which arm",
            partial(figures.arm_shares, summary, self.sheet.styles),
            "Stacked bars of the share of rounds per arm, for each policy and"
            f" budget{beside}.{best}",
            f"Mean over runs, in percent{beside}.{best}",
            half=summary.baseline is not None,
        )

    def _helped(self) -> Html:
        summary = self.summary
        assert summary.baseline is not None
        name = summary.baseline.name
        low, high = summary.table["gain"].min(), summary.table["gain"].max()
        return self._figure(
            "people-helped",
            "People helped" if summary.reference else "Reward gained",
            partial(figures.people_helped, summary, self.sheet.styles),
            f"Expected {summary.gained} per 1,000 people compared with {name}, per policy and"
            f" budget: from {signed_per_thousand(low)} to {signed_per_thousand(high)}.",
            f"Expected {summary.gained} per 1,000 people, more (right) or fewer (left) than with"
            f" {name}: the share of people each arm got, times that arm's mean. Lines are 95 %"
            " intervals of the mean over runs, often hidden behind the marks; open marks have no"
            " privacy.",
            half=summary.fixed_arms,
        )

    def _numbers(self) -> Html:
        summary = self.summary
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
            f"Means over runs, with 95 % bootstrap intervals. {DASH}",
            heads,
            self.sheet.grouped(summary.table, cells),
        )
