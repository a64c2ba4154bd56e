"""Searches among budgets of one notion: which one a regret affords, and from which one, or from how
many rounds, learning is worth its while.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..errors import ArgumentError
from ..plotting.numbers import percent, reward_amount
from ..privacy.budgets import Budget
from ..report.means import Estimate, estimate

_PER_DECADE = 20  # neighbours differ by 12 %
_FEW_PER_DECADE = 4  # neighbours are 1.8 times apart
_GAIN = 0.1  # a policy pays where it loses that share less than the yardstick


@dataclass(frozen=True)
class Affordable:
    """The result of ``Plan.budget_for``.

    Attributes:
        policy: its title.
        target: the regret that was asked for.
        budget: the smallest budget found with mean regret at most the target.
        low, high: the smallest budgets at which the interval of mean regret reaches the target, and
            lies entirely below it; None where no budget is that large.  The true budget lies
            between, if regret falls while budgets grow.
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
        surely = (
            f"and surely from {self.high} on" if self.high else "surely with none that is tried"
        )
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
                f"regret must be at least {reward_amount(least)}, the regret of {policy}"
                f" {f'at {most}' if most else 'without privacy'}, got {reward_amount(target)}",
                "regret",
            )
    place = first_enough(budgets, lambda budget: regret(budget).mean <= target)
    low = first_enough(budgets[:place], lambda budget: regret(budget).low <= target)
    high = None
    if regret(budgets[-1]).high <= target:
        high = budgets[first_enough(budgets, lambda budget: regret(budget).high <= target)]
    rows = [
        {"budget": str(one or "none"), "value": one.value if one else math.inf, **found._asdict()}
        for one, found in tried.items()
    ]
    table = pd.DataFrame(rows).sort_values("value", ignore_index=True)
    return Affordable(policy, target, budgets[place], budgets[low], high, table)


def ladder(like: Budget, per_decade: int, *, above: bool = False) -> list[Budget]:
    """Budgets of the notion of ``like``, from strict to loose: so many to a factor of ten.  With
    ``above``, only budgets looser than ``like``.

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


# From where on learning pays -------------------------------------------------------------------


class Outcome(NamedTuple):
    """The regret at a budget and a horizon."""

    own: Estimate  # of the policy
    random: float  # the mean, of choosing at random
    exploring: float  # of exploring first, then staying; infinite where it has no meaning


class Start(NamedTuple):
    """The point from which on a policy is ahead, at the horizon or the budget of the plan; None:
    nowhere.
    """

    budget: Budget | None
    rounds: int | None

    def __str__(self) -> str:
        ways = [] if self.budget is None else [f"a budget of {self.budget}"]
        ways += [] if self.rounds is None else [f"{self.rounds:,} rounds"]
        return " or ".join(ways)


@dataclass(frozen=True)
class Paying:
    """The points at which learning begins to pay.

    Attributes:
        random: the point from which on the policy has 10 % less regret than random choice.
        both: the point from which on it also has 10 % less than exploring first at its best length;
            None where that has no meaning.
        largest: the largest budget that was looked at; None where no budget was asked for.
        longest: the largest number of rounds that was looked at.
    """

    random: Start
    both: Start | None
    largest: Budget | None
    longest: int

    def __str__(self) -> str:
        sought = [] if self.largest is None else [f"up to {self.largest}"]
        nothing = f"nothing was found {' or '.join([*sought, f'up to {self.longest:,} rounds'])}"
        saved = f"{percent(_GAIN)} less regret than"
        starts = f"begins to pay from {self.random},"
        found = starts if any(self.random) else f"does not begin to pay: {nothing}"
        begins = f"It {found} with {saved} choosing at random"
        if self.both is not None:
            ahead = str(self.both) or nothing
            begins += f". With {saved} exploring first at its best length, too: {ahead}"
        return f"{begins}. Budgets were tried 1.8 times apart, rounds twofold."


def where_it_pays(
    budget: Budget | None,
    horizon: int,
    longest: int,
    outcome: Callable[[Budget | None, int], Outcome],
    *,
    exploring: bool = True,
) -> Paying:
    """The smallest budget above ``budget`` at the horizon, and the smallest number of rounds above
    ``horizon``, up to ``longest``, at the budget, at which a policy pays.

    It pays where its mean regret is 10 % below that of the yardstick, and its 95 % interval below
    it.  The search for a budget takes for granted that it pays at every larger one, too.
    ``exploring`` is whether exploring first has a meaning.

    >>> from dpbandits import ZCDP
    >>> def lost(budget, rounds):
    ...     return Outcome(Estimate(*[10.0 / budget.rho] * 3), rounds, rounds / 2)
    >>> found = where_it_pays(ZCDP(0.1), 50, 1000, lost)
    >>> str(found.random), str(found.both)
    ('a budget of 0.316-zCDP or 200 rounds', 'a budget of 0.562-zCDP or 400 rounds')
    """
    known = cache(outcome)
    looser = [] if budget is None else ladder(budget, _FEW_PER_DECADE, above=True)
    doubled: list[int] = []
    while (rounds := horizon * 2 ** (len(doubled) + 1)) <= longest:
        doubled.append(rounds)

    def start(yardstick: Callable[[Outcome], float]) -> Start:
        def pays(budget: Budget | None, rounds: int) -> bool:
            found = known(budget, rounds)
            most = yardstick(found)
            return found.own.mean <= (1.0 - _GAIN) * most and not found.own.high >= most

        place = len(looser)
        if looser and pays(looser[-1], horizon):
            place = first_enough(looser[:-1], lambda one: pays(one, horizon))
        enough = next((rounds for rounds in doubled if pays(budget, rounds)), None)
        return Start(looser[place] if place < len(looser) else None, enough)

    return Paying(
        start(lambda found: found.random),
        start(lambda found: min(found.random, found.exploring)) if exploring else None,
        looser[-1] if looser else None,
        doubled[-1] if doubled else horizon,
    )
