"""From which budget, or from how many rounds, a policy is worth its while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..plotting.numbers import percent
from ..privacy.budgets import Budget
from ..report.estimates import Estimate
from .targets import first_enough, ladder

GAIN = 0.1  # a policy pays where it loses that share less than every yardstick
_PER_DECADE = 4  # budgets that are tried are 1.8 times apart

# Regret of the policy at a budget and a horizon, and the least of the yardsticks there.
Outcome = tuple[Estimate, float]


@dataclass(frozen=True)
class Paying:
    """Where a policy begins to pay.

    Attributes:
        budget: the smallest that was found at the horizon of the plan; None for none.
        rounds: the smallest number that was found at the budget of the plan; None for none.
        largest: the largest budget that was looked at; None where no budget was asked for.
        longest: the largest number of rounds that was looked at.
    """

    budget: Budget | None
    rounds: int | None
    largest: Budget | None
    longest: int

    def __str__(self) -> str:
        ways = [] if self.budget is None else [f"a budget of {self.budget}"]
        ways += [] if self.rounds is None else [f"{self.rounds:,} rounds"]
        apart = "Budgets were tried 1.8 times apart, rounds twofold."
        saved = f"{percent(GAIN)} less regret than with either"
        if ways:
            return f"It begins to pay from {' or '.join(ways)}: from there on with {saved}. {apart}"
        sought = [] if self.largest is None else [f"up to {self.largest}"]
        sought += [f"up to {self.longest:,} rounds"]
        return f"Nothing was found from where on it pays, {' or '.join(sought)}. {apart}"


def where_it_pays(
    budget: Budget | None,
    horizon: int,
    longest: int,
    outcome: Callable[[Budget | None, int], Outcome],
) -> Paying:
    """The smallest budget, and the smallest number of rounds, at which a policy pays.

    It pays where its mean regret is 10 % below the yardstick and its interval below it.  The search
    takes for granted that it pays at every budget above one at which it does.

    Args:
        budget: at which rounds are looked for, and above which budgets are.
        horizon: at which budgets are looked for, and above which rounds are.
        longest: number of rounds.
        outcome: what is lost.

    >>> from dpbandits import ZCDP
    >>> lost = lambda budget, t: (Estimate(*[10.0 / budget.rho] * 3), t)
    >>> found = where_it_pays(ZCDP(0.1), 50, 1000, lost)
    >>> found.budget, found.rounds
    (ZCDP(rho=0.316), 200)
    """

    def pays(budget: Budget | None, rounds: int) -> bool:
        own, rival = outcome(budget, rounds)
        return own.mean <= (1.0 - GAIN) * rival and (own.high < rival or own.low == own.high)

    looser = [] if budget is None else ladder(budget, _PER_DECADE, above=True)
    found = None
    if looser and pays(looser[-1], horizon):
        found = looser[first_enough(looser[:-1], lambda one: pays(one, horizon))]
    doubled = []
    while (rounds := horizon * 2 ** (len(doubled) + 1)) <= longest:
        doubled.append(rounds)
    enough = next((rounds for rounds in doubled if pays(budget, rounds)), None)
    largest = looser[-1] if looser else None
    return Paying(found, enough, largest, doubled[-1] if doubled else horizon)
