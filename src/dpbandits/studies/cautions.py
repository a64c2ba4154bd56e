"""Cautions for the user of a study whose budgets are valid but give little protection.

There are two thresholds.  First, a mechanism that only publishes each person's record with
probability delta is (0, delta)-DP.  Over n people it exposes someone with a probability of about
delta n; from a tenth on this is no rare accident.  Second, a budget is too loose if an adversary's
belief in a true value can rise from 50 % to more than 99.995 %, which is 1 / (1 + e^-10).  Under
epsilon-DP that happens from epsilon = 10 on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ..privacy.budgets import Budget, PureDP, checked_budget
from ..privacy.meaning import Meaning

EXPOSED = 0.1  # expected number of people whose records may be exposed outright
LARGEST_EPSILON = 10.0
FEW = 100  # people, where nobody says how many there are


def cautions(budgets: Iterable[Budget | None], people: int | None = None) -> list[str]:
    """Cautions about some of the budgets, in at most two sentences.

    Args:
        budgets: None for no privacy, about which nothing is said.
        people: the number of people; None where that is unknown.

    >>> from dpbandits import ZCDP, ApproxDP
    >>> cautions([ApproxDP(1.0, 1e-3), PureDP(1.0), None], people=50_000)[0][:58]
    'The delta of (1, 0.001)-DP is not far below 1 / people. Th'
    >>> cautions([PureDP(12.0)])[0][:50]
    '12-DP promises next to nothing. The meaning of 12-'
    >>> cautions([PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-7)], people=50_000)
    []
    """
    listed = dict.fromkeys(checked_budget(budget) for budget in budgets if budget is not None)
    return [*_on_delta(listed, people), *_on_epsilon(listed)]


def _on_delta(budgets: Iterable[Budget], people: int | None) -> Iterator[str]:
    loose = [budget for budget in budgets if budget.failure * (people or FEW) >= EXPOSED]
    if loose:
        met, worst = people or FEW, max(budget.failure for budget in loose)
        chance = -math.expm1(met * math.log1p(-worst))
        yield (
            f"The delta of {_named(loose)} is not far below 1 / people. This delta even allows a"
            f" mechanism that publishes each record outright with probability {worst:g}. Over"
            f" {met:,} people, it would publish somebody's record with probability {chance:.2g}."
        )


def _on_epsilon(budgets: Iterable[Budget]) -> Iterator[str]:
    revealing = Meaning.of(PureDP(LARGEST_EPSILON)).belief
    loose = [budget for budget in budgets if Meaning.of(budget).belief > revealing]
    if loose:
        least = min(loose, key=lambda budget: Meaning.of(budget).belief)
        yield (
            f"{_named(loose)} {'promises' if loose == [least] else 'promise'} next to nothing. The"
            f" meaning of {least}: {Meaning.of(least).sentence()}"
        )


def _named(budgets: Iterable[Budget]) -> str:
    return ", ".join(map(str, budgets))
