"""Findings: the verdict and the section of a page that says in sentences what the study found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..html import Html, items, table, tag
from ..plotting.labels import budget_label, by_notion
from ..policies import registered
from ..simulation.replaying import ReplayedTrial
from .contests import findings_in_regret, findings_in_searches, findings_on_promises
from .findings import findings_in_people, findings_on_clipping, findings_on_spending, meaning
from .record import StudyRecord
from .replays import replay_in_words
from .sheet import Sheet
from .summaries import EnvironmentSummary

_FIRST = 3  # environments of the verdict


class MainFindings:
    """The findings of a study.

    Args:
        sheet: where policies have their marks.
        record: the study.
        summaries: what was measured in each environment.
        trials: the logs that were replayed.
    """

    def __init__(
        self,
        sheet: Sheet,
        record: StudyRecord,
        summaries: Sequence[EnvironmentSummary],
        trials: Sequence[ReplayedTrial],
    ) -> None:
        self.sheet, self.record, self.settings = sheet, record, record.detailed.settings
        self.summaries, self.trials = summaries, trials

    def verdict(self) -> Iterator[Html]:
        """The first findings, of several environments those of the first ones; none where claims
        were measured, which are the verdict.
        """
        if self.record.claims:
            return
        several = len(self.summaries) > 1
        for summary in self.summaries[:_FIRST]:
            found = self._found(summary)[: 2 if several else None]
            if found and several:
                yield tag("h4", summary.title)
            if found:
                yield items(found)

    def content(self) -> Iterator[Html]:
        """All that the verdict leaves out."""
        if not self.record.claims:  # beside which they stand otherwise
            for note in self.record.notes:
                yield tag("p", note, class_="note")
        if len(self.summaries) > 1 or self.record.claims:
            yield from self._by_environment(self._found)
        if overall := [
            *findings_on_promises(self.settings, self.sheet.styles),
            *findings_on_spending(self.summaries),
        ]:
            if len(self.summaries) > 1:
                yield tag("h4", "In all environments")
            yield items(overall)
        if self.trials:
            yield tag("h3", "In the replay of the real trial")
            yield items(replay_in_words(trial, self.sheet.styles) for trial in self.trials)
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
                    findings_in_regret(summary, self.sheet.styles) if summary.reference else []
                )
            )
        yield tag(
            "p",
            "Intervals hold for one number at a time. They describe the chance in the simulated"
            " runs, and take the mean rewards of the arms as true. They do not cover how well"
            " these means are known. The best setting and the policies of lowest mean regret"
            " were picked after looking, so their leads look a little larger than they are.",
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
            self.sheet.marked(policy): [
                [f"{title[:1].upper()}{title[1:]}" or self.sheet.styles[policy].label]
            ]
            for policy, title in titles.items()
        }
        yield tag("h3", "The policies")
        yield table(
            "Every policy with the mark that it has in all figures and tables.",
            ["Policy", "What it is"],
            rows.items(),
            [1],
        )

    def _found(self, summary: EnvironmentSummary) -> list[str]:
        """The first finding: people where there are some, and else regret."""
        return [
            *findings_in_people(summary, self.sheet.styles),
            *([] if summary.reference else findings_in_regret(summary, self.sheet.styles)),
            *findings_in_searches(summary, self.sheet.styles),
            *findings_on_clipping(summary, self.sheet.styles),
        ]

    def _by_environment(self, find: Callable[[EnvironmentSummary], list[str]]) -> Iterator[Html]:
        for summary in self.summaries:
            found = find(summary)
            if found and len(self.summaries) > 1:
                yield tag("h4", summary.title)
            if found:
                yield items(found)
