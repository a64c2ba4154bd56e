"""Labels and order of budgets, in every figure and table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ..privacy.budgets import NOTIONS, Budget, checked_budget
from .numbers import probability_in_words

NO_GUARANTEE = "no guarantee"
OWN_ALLOCATION = "the trial's own allocation"


@dataclass(frozen=True)
class BudgetLabel:
    """A budget as it is written, and its place on an axis."""

    budget: Budget | None
    text: str  # in titles and tables
    notion: str  # of the panel that it belongs to: budgets of one notion differ in one number
    symbol: str  # of that number
    value: float  # that number; infinite without privacy
    rank: int  # of the notion on a page

    @property
    def order(self) -> tuple[int, str, float]:
        """The sort key of labels: from strict to loose within a notion, without privacy last."""
        return self.rank, self.notion, self.value

    @property
    def private(self) -> bool:
        return self.budget is not None


def budget_label(budget: Budget | None) -> BudgetLabel:
    """The label of a budget, with at most six digits of each number, rounded up.

    >>> from dpbandits import ZCDP, ApproxDP
    >>> budget_label(ZCDP(0.123456789)).text, budget_label(ApproxDP(1.0, 1e-6)).notion
    ('0.123457-zCDP', 'Approximate DP, δ = one in a million')
    """
    if budget is None:
        return BudgetLabel(None, "no privacy", "No privacy", "", math.inf, len(NOTIONS))
    panel = checked_budget(budget).panel(probability_in_words)
    rank = list(NOTIONS).index(budget.key)
    return BudgetLabel(budget, budget.shown(), panel, budget.symbol, budget.value, rank)


def by_notion(labels: Iterable[BudgetLabel]) -> list[list[BudgetLabel]]:
    """Each label once, from strict to loose, those of one notion together.

    >>> from dpbandits import PureDP
    >>> labels = map(budget_label, [None, PureDP(1.0), PureDP(0.5), PureDP(1.0)])
    >>> [[label.text for label in alike] for alike in by_notion(labels)]
    [['0.5-DP', '1-DP'], ['no privacy']]
    """
    ordered = sorted(dict.fromkeys(labels), key=lambda label: label.order)
    return [list(alike) for _, alike in groupby(ordered, lambda label: label.notion)]


class Promise(NamedTuple):
    """The requested budget, and the one that holds instead; empty where it is the same."""

    asked: str
    instead: str

    def __str__(self) -> str:
        return f"{self.asked}, {self.instead}" if self.instead else self.asked


def promise(asked: Budget | None, holds: Budget | None) -> Promise:
    """A requested budget, and the one that holds in its place where they differ.

    >>> from dpbandits import PureDP
    >>> print(promise(PureDP(1.0), PureDP(1.0)), promise(PureDP(1.0), None), sep=" / ")
    1-DP / 1-DP, no guarantee
    """
    text = budget_label(asked).text
    if asked == holds:
        return Promise(text, "")
    if holds is None:
        return Promise(text, NO_GUARANTEE)
    return Promise(f"{text} asked for", f"{budget_label(holds).text} holds")
