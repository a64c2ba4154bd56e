"""How each caller treats entries that are no numbers, or outside its range: declared here alone.

A caller with public data refuses, and says where.  With private data, one person's entry must not
decide whether there is an error: such entries are replaced.  Only a property of a whole column, its
type, is refused there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

Answer = Literal["refuse", "keep"]  # keep: NaN, for the caller to replace


@dataclass(frozen=True)
class Manner:
    """How one caller reads entries.

    Attributes:
        missing: how missing entries are treated; kept ones are NaN.
        wrong: with entries that are no numbers, likewise.
        infinite: with infinite ones; kept as they are.
        low, high: the allowed range; entries outside it are refused.
        open_low: whether ``low`` itself lies outside of the range.
        whole: whether entries must be whole numbers.
        typed: whether a column is refused in which nothing is a number.  Which columns hold numbers
            is then taken for public.
        shown: whether messages tell the number that is refused: of arguments, never of data.
    """

    missing: Answer = "refuse"
    wrong: Answer = "refuse"
    infinite: Answer = "refuse"
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    whole: bool = False
    typed: bool = True
    shown: bool = False

    @cached_property
    def takes_all(self) -> bool:
        """Whether no entry is refused for itself."""
        anything = self.missing == self.wrong == self.infinite == "keep"
        return anything and not self.whole and (self.low, self.high) == (-math.inf, math.inf)

    @property
    def wanted(self) -> str:
        """Requirement on an entry, in words."""
        kind = "whole numbers" if self.whole else "numbers"
        if self.low == -math.inf and self.high == math.inf:
            return kind if self.infinite == "keep" else f"finite {kind}"
        if self.high == math.inf:
            return f"{kind} {'above' if self.open_low else 'of at least'} {self.low:g}"
        return f"{kind} in {'(' if self.open_low else '['}{self.low:g}, {self.high:g}]"


# Of features, whose squares have to be numbers: below 1e100.
LARGEST = math.nextafter(1e100, 0.0)

# Public tables: environments, replays, plans.
PUBLIC = Manner()
WHOLE_NUMBERS = Manner(low=0.0, high=2.0**53, whole=True)  # which floats tell apart
TIMES = Manner(low=0.0, high=1e11)  # in seconds, as ``pull`` takes them
TIMES_OF_ANSWERS = replace(TIMES, missing="keep", typed=False)  # of which some never came
PUBLIC_FEATURES = Manner(low=-LARGEST, high=LARGEST)
# Logs.  A missing reward counts as the default, as in ``update``.
LOGGED_REWARDS = Manner(missing="keep", infinite="keep")
UNCLIPPED_REWARDS = Manner(missing="keep", low=-LARGEST, high=LARGEST)  # for ``clip=False``
PROPENSITIES = Manner(low=0.0, high=1.0, open_low=True)
CHANCES = Manner(low=0.0, high=1.0)  # that a target plays an arm
# Keys of decisions, and whether they were recorded; missing for records of other sources.
NUMBERS_OF_DECISIONS = replace(WHOLE_NUMBERS, missing="keep", typed=False)
FLAGS = Manner(missing="keep", low=0.0, high=1.0, whole=True, typed=False)
# Private tables: an error would tell of one person's entry.
PRIVATE = Manner(missing="keep", wrong="keep", infinite="keep")
PRIVATE_RECORD = replace(PRIVATE, typed=False)  # of one person, whose entries are the column


def parameters(low: float = -math.inf, high: float = math.inf) -> Manner:
    """Parameters of simulated environments: arguments, which are no person's data."""
    return Manner(low=low, high=high, shown=True)


def arms(count: int | None = None) -> Manner:
    """Arm numbers from 0, below ``count`` where it is known."""
    return Manner(low=0.0, high=math.inf if count is None else count - 1.0, whole=True)
