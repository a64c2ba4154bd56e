"""Findings in sentences: the best policy at every budget, its lead, and its price of privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

import pandas as pd

from ..plotting.labels import BudgetLabel, budget_label, by_notion
from ..plotting.numbers import number, reward_amount
from ..plotting.styles import Styles
from ..simulation.settings import SettingsByKey
from .findings import enumeration
from .means import Estimate, estimate_of, interval_in_words
from .searches import asked_for, searches_of
from .summaries import EnvironmentSummary


class _Contest(NamedTuple):
    """The compared quantity, and the words for it."""

    column: str
    best: str
    alone: str
    verb: str
    who: str


_REGRET = _Contest(
    "regret", "had the least mean regret", "had a mean regret of {}", "lost", "policies"
)
_ROUNDS = _Contest(
    "stopped",
    "needed the fewest rounds on average",
    "needed this many rounds on average: {}",
    "needed",
    "searches",
)


class _Verdict(NamedTuple):
    """The best policy at one budget; gaps are paired differences to it, run by run."""

    label: BudgetLabel  # of the budget that holds
    best: pd.Series  # its row
    rivals: int  # how many compete
    open: tuple[str, ...]  # between which others and the best the runs do not decide
    next: str | None  # the second, whoever decides
    behind: Estimate | None  # how far that one is
    price: Estimate | None  # how far the best is from the best without privacy, if that was played

    @property
    def like(self) -> tuple[object, ...]:
        """The key that verdicts in one sentence have in common."""
        return self.best["policy"], self.rivals, self.open, self.next


def findings_in_regret(summary: EnvironmentSummary, styles: Styles) -> list[str]:
    """The policy of least regret at every budget, its lead, and its price of privacy."""
    playing = summary.table.drop(index=searches_of(summary.table).index)
    return list(_findings(_REGRET, summary, playing, styles))


def findings_in_searches(summary: EnvironmentSummary, styles: Styles) -> list[str]:
    """The policy with the fewest rounds, for searches at a confidence that ended; the errors of
    each.
    """
    searches = searches_of(summary.table)
    racing = [
        i for i, row in searches.iterrows() if asked_for(row) > 0 and row["ended"] == row["runs"]
    ]
    found = list(_findings(_ROUNDS, summary, searches.loc[racing], styles))
    for policy, rows in searches.groupby("policy", sort=False):
        errors, runs, over = (int(rows[name].sum()) for name in ("errors", "runs", "ended"))
        asked = asked_for(rows.iloc[0])
        most = f"; it was asked for at most {number(100 * asked)} % of them" if asked > 0 else ""
        unfinished = f" {runs - over:,} did not end." if over < runs else ""
        found.append(
            f"{styles[str(policy)].phrase} named a wrong arm in {errors:,} of {runs:,} runs, at all"
            f" budgets together{most}.{unfinished}"
        )
    return found


def findings_on_promises(settings: SettingsByKey, styles: Styles) -> list[str]:
    """The policies that promise less than they were asked for, or nothing at all."""
    broken = [one for one in settings.values() if one.holds != one.budget]
    void = list(dict.fromkeys(styles[one.policy].phrase for one in broken if one.holds is None))
    promising = [one for one in broken if one.holds is not None]
    weaker = list(dict.fromkeys(styles[one.policy].phrase for one in promising))
    found = []
    if void:
        promise, them = ("promises", "it") if len(void) == 1 else ("promise", "them")
        found.append(
            f"{enumeration(void)} {promise} nothing: no proof holds for the budgets that were asked"
            f" for. No policy is compared with {them} at these budgets."
        )
    if weaker:
        promise, are = ("promises", "is") if len(weaker) == 1 else ("promise", "are")
        found.append(
            f"{enumeration(weaker)} {promise} other budgets than were asked for, and {are} compared"
            " at the budgets that hold."
        )
    return found


def _findings(
    contest: _Contest, summary: EnvironmentSummary, rows: pd.DataFrame, styles: Styles
) -> Iterator[str]:
    holding = rows[rows["setting"].map(lambda one: one.holds is not None).astype(bool)]
    idle = holding[holding["releases"] == 0]
    compared = holding.drop(index=idle.index)
    labels = [budget_label(one.holds) for one in compared["setting"]]
    compared = compared.assign(budget_label=labels)
    free = rows[~rows["budget_label"].map(lambda label: label.private).astype(bool)]
    champion = None if free.empty else free.loc[free[contest.column].idxmin()]
    if champion is not None:
        value = _value(estimate_of(champion, contest.column))
        name = styles[champion["policy"]].phrase
        yield (
            f"Without privacy, {name} {contest.best} of {len(free)} {contest.who}: {value}."
            if len(free) > 1
            else f"Without privacy, {name} {contest.alone.format(value)}."
        )
    for alike in by_notion(compared["budget_label"]):
        verdicts = [_verdict(contest, summary, one, compared, champion, styles) for one in alike]
        for _, same in groupby(verdicts, lambda verdict: verdict.like):
            yield _sentences(contest, list(same), champion, styles)
    for policy, still in idle.groupby("policy", sort=False):
        at = enumeration([label.text for label in still["budget_label"]])
        yield (
            f"{styles[str(policy)].phrase} released nothing in any run at {at}: it did not learn"
            " from any answer, and is not compared there."
        )


def _verdict(
    contest: _Contest,
    summary: EnvironmentSummary,
    label: BudgetLabel,
    compared: pd.DataFrame,
    champion: pd.Series | None,
    styles: Styles,
) -> _Verdict:
    ranked = compared[compared["budget_label"] == label]
    ranked = ranked.sort_values(contest.column, kind="stable")
    best = ranked.iloc[0]

    def gap(one: pd.Series, other: pd.Series) -> Estimate:
        return summary.paired_difference(contest.column, one, other)

    gaps = {styles[row["policy"]].phrase: gap(row, best) for _, row in ranked.iloc[1:].iterrows()}
    undecided = tuple(name for name, behind in gaps.items() if not behind.low > 0)
    second, behind = next(iter(gaps.items()), (None, None))
    price = None if champion is None else gap(best, champion)
    return _Verdict(label, best, len(ranked), undecided, second, behind, price)


def _sentences(
    contest: _Contest, verdicts: list[_Verdict], champion: pd.Series | None, styles: Styles
) -> str:
    """Sentences for equal verdicts, with the numbers of the first and of the last."""
    first, last = verdicts[0], verdicts[-1]
    ends = verdicts if len(verdicts) <= 2 else [first, last]

    def numbers(tell: Callable[[_Verdict], str]) -> str:
        if len(ends) == 1:
            return tell(first)
        return ", ".join(f"{tell(one)} at {one.label.text}" for one in ends)

    at = f"At {enumeration([one.label.text for one in ends])}"
    if len(verdicts) > 2:
        at = f"From {first.label.text} to {last.label.text} ({len(verdicts)} budgets)"
    name = styles[first.best["policy"]].phrase
    value = numbers(lambda one: _value(estimate_of(one.best, contest.column)))
    told = [
        f"{at}, {name} {contest.best} of {first.rivals} private {contest.who}: {value}."
        if first.rivals > 1
        else f"{at}, {name} {contest.alone.format(value)}."
    ]
    if first.next is not None:
        behind = numbers(lambda one: _gap(one.behind))
        if first.best["runs"] < 2:
            told.append("One run does not tell them apart.")
        else:
            if first.open:
                told.append(f"The runs do not separate it from {enumeration(list(first.open))}.")
            told.append(f"The next, {first.next}, {contest.verb} {behind}.")
    if champion is not None and first.best["runs"] >= 2:
        price = numbers(lambda one: _gap(one.price))
        rival = styles[champion["policy"]].phrase
        rival = "itself" if champion["policy"] == first.best["policy"] else rival
        told.append(f"Against {rival} without privacy it {contest.verb} {price}.")
    return " ".join(told)


def _value(value: Estimate) -> str:
    return f"{reward_amount(value.mean)}{interval_in_words(value, reward_amount)}"


def _gap(gap: Estimate | None) -> str:
    """A difference in words; undecided where its interval holds zero.

    >>> _gap(Estimate(-3.0, -5.0, -1.0)), _gap(Estimate(1.0, -1.0, 3.0))
    ('3 less (1 to 5)', '1 more (undecided: −1 to 3)')
    """
    assert gap is not None
    sign = -1 if gap.mean < 0 else 1
    low, high = sorted((sign * gap.low, sign * gap.high))
    size = f"{reward_amount(abs(gap.mean))} {'less' if gap.mean < 0 else 'more'}"
    undecided = "undecided: " if low <= 0 <= high else ""
    return f"{size} ({undecided}{reward_amount(low)} to {reward_amount(high)})"
