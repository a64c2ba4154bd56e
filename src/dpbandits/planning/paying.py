"""From which budget, or from how many rounds, learning is worth its while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ..plotting.numbers import percent
from ..privacy.budgets import Budget
from ..report.estimates import Estimate
from .targets import first_enough, ladder

GAIN = 0.1  # a policy pays where it loses that share less than the yardstick
_PER_DECADE = 4  # budgets that are tried are 1.8 times apart


class Outcome(NamedTuple):
    """The regret at a budget and a horizon."""

    own: Estimate  # of the policy
    random: float  # the mean, of choosing at random
    exploring: float  # of exploring first, then staying; infinite where it has no meaning


class Start(NamedTuple):
    """From where on a policy is ahead, at the horizon or the budget of the plan; None: nowhere."""

    budget: Budget | None
    rounds: int | None

    def __str__(self) -> str:
        ways = [] if self.budget is None else [f"a budget of {self.budget}"]
        ways += [] if self.rounds is None else [f"{self.rounds:,} rounds"]
        return " or ".join(ways)


@dataclass(frozen=True)
class Paying:
    """Where learning begins to pay.

    Attributes:
        random: from where on the policy has 10 % less regret than choosing at random.
        both: from where on it has 10 % less than exploring first at its best length, too;
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
        saved = f"{percent(GAIN)} less regret than"
        found = f"does not begin to pay: {nothing}"
        if any(self.random):
            found = f"begins to pay from {self.random},"
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
    looser = [] if budget is None else ladder(budget, _PER_DECADE, above=True)
    doubled: list[int] = []
    while (rounds := horizon * 2 ** (len(doubled) + 1)) <= longest:
        doubled.append(rounds)

    def start(yardstick: Callable[[Outcome], float]) -> Start:
        def pays(budget: Budget | None, rounds: int) -> bool:
            found = known(budget, rounds)
            most = yardstick(found)
            return found.own.mean <= (1.0 - GAIN) * most and not found.own.high >= most

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
