"""Which budget a regret affords: a search among budgets of one notion."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import ArgumentError
from ..plotting.numbers import reward_amount
from ..privacy.budgets import Budget
from ..report.estimates import Estimate, estimate

_PER_DECADE = 20  # neighbours differ by 12 %


@dataclass(frozen=True)
class Affordable:
    """What ``Plan.budget_for`` returns.

    Attributes:
        policy: its title.
        target: the regret that was asked for.
        budget: the smallest one that was found with mean regret at most the target.
        low, high: the smallest one where the interval of mean regret reaches the target, and where
            all of it is at most the target; None where no budget is that large.  The true one lies
            between, as far as regret falls while budgets grow.
        tried: every budget that was simulated: ``budget``, ``value`` (its number that varies),
            ``mean`` regret with the interval ``low`` to ``high``; without privacy in the last row.
    """

    policy: str
    target: float
    budget: Budget
    low: Budget
    high: Budget | None
    tried: pd.DataFrame

    def __str__(self) -> str:
        surely = "surely with none that is tried"
        if self.high:
            surely = f"and surely from {self.high} on"
        return (
            f"{self.policy} loses at most {reward_amount(self.target)} from {self.budget} on"
            f" (perhaps from {self.low} on, {surely})."
        )


def cheapest(
    policy: str, like: Budget, target: float, losses: Callable[[Budget | None], np.ndarray]
) -> Affordable:
    """The smallest budget of the notion of ``like`` with mean regret at most the target, where
    ``losses`` are those of all runs at a budget, None for no privacy.

    Raises:
        ArgumentError: no budget is large enough.

    >>> from dpbandits import PureDP
    >>> found = cheapest("X", PureDP(1.0), 20.0, lambda b: np.ones(9) * (2 / b.epsilon if b else 0))
    >>> str(found.budget)
    '0.1-DP'
    """
    budgets = ladder(like, _PER_DECADE)
    tried: dict[Budget | None, Estimate] = {}

    def regret(budget: Budget | None) -> Estimate:
        if budget not in tried:
            tried[budget] = estimate(losses(budget))
        return tried[budget]

    for most in (None, budgets[-1]):
        if (least := regret(most).mean) > target:
            raise ArgumentError(
                f"regret must be at least {reward_amount(least)}, which {policy} loses"
                f" {f'at {most}' if most else 'without privacy'}, got {reward_amount(target)}",
                "regret",
            )
    place = first_enough(budgets, lambda budget: regret(budget).mean <= target)
    low = first_enough(budgets[:place], lambda budget: regret(budget).low <= target)
    sure = regret(budgets[-1]).high <= target
    high = first_enough(budgets, lambda budget: regret(budget).high <= target) if sure else None
    rows = [
        {"budget": str(one or "none"), "value": one.value if one else math.inf, **found._asdict()}
        for one, found in tried.items()
    ]
    return Affordable(
        policy,
        target,
        budgets[place],
        budgets[low],
        None if high is None else budgets[high],
        pd.DataFrame(rows).sort_values("value", ignore_index=True),
    )


def ladder(like: Budget, per_decade: int, *, above: bool = False) -> list[Budget]:
    """Budgets of the notion of ``like``, from strict to loose, as far as one may want them: so many
    to a factor of ten, and only looser ones than that where they are to be ``above`` it.

    >>> from dpbandits import PureDP
    >>> [budget.epsilon for budget in ladder(PureDP(10.0), 2, above=True)]
    [31.6, 100.0]
    """
    lowest, highest = like.decades
    steps = np.arange(lowest * per_decade, highest * per_decade + 1)
    values = [float(f"{10 ** (step / per_decade):.3g}") for step in steps]
    least = like.value if above else 0.0
    return [like.at(value) for value in values if value > least]


def first_enough(ladder: Sequence[Budget], enough: Callable[[Budget], bool]) -> int:
    """The place of the first budget that is enough, as all after it are; if none is, their number.

    >>> first_enough([1, 2, 4, 8], lambda one: one > 3), first_enough([1, 2], lambda one: False)
    (2, 2)
    """
    return bisect_left(ladder, True, key=enough)
