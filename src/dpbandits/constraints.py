"""Constraints on arguments: a class declares once which values it takes.

Policies, parts, options and estimators have a table, ``constraints``, from the names of their
arguments to a constraint each.  Their checks and messages, the reference, and the tests of this
package read that table.  A class inherits the constraints of its bases.

>>> from dpbandits.algorithms import ArmsShuffled
>>> print(constraints_of(ArmsShuffled)["dropout"])
a number in [0, 0.99]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from .errors import ArgumentError
from .validation import (
    LARGEST,
    choice,
    duration,
    flag,
    integer,
    interval,
    interval_text,
    printable,
    reach_text,
    real,
    shown,
    times_of_day,
)

_OF_WRONG_KINDS: tuple[object, ...] = (None, True, "big", math.nan, math.inf, -math.inf, [1.0])


class Constraint(ABC):
    """Base class: the values that an argument may have.

    ``str`` completes "the argument must be ...".
    """

    @abstractmethod
    def __call__(self, name: str, value: object) -> object:
        """Check the value of the argument ``name``.

        Returns:
            The value, in the type in which it is kept.

        Raises:
            ArgumentError: the value is not allowed; the message names argument, value and range.
        """

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    def allowed(self) -> tuple[object, ...]:
        """Values at the edges of the allowed range, for tests."""
        return ()

    @property
    def refused(self) -> tuple[object, ...]:
        """Values just outside of the range, and of other kinds, for tests."""
        return _OF_WRONG_KINDS

    def takes(self, value: object) -> bool:
        """Whether the value is allowed."""
        try:
            self("value", value)
        except ArgumentError:
            return False
        return True

    def __or__(self, other: Constraint | None) -> Constraint:
        """One constraint or the other; ``| None`` allows None.

        >>> print(Integer(1) | None)
        an integer at least 1, or None
        """
        return Either(self, Exactly(None) if other is None else other)


@dataclass(frozen=True)
class Real(Constraint):
    """A finite number in [low, high], or in (low, high) where ``strict``.

    Args:
        low: lower end of the range.
        high: upper end of the range.
        strict: whether the ends are left out.
        as_given: whether an integer is kept as an integer.  Arguments that belong to the name of a
            policy need this: the name is the key of its random numbers.

    >>> Real(0.0, 1.0)("share", 1)
    1.0
    """

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    as_given: bool = False

    def __call__(self, name: str, value: object) -> float:
        checked = real(name, value, self.low, self.high, strict=self.strict)
        return value if self.as_given else checked  # type: ignore[return-value]  # a number, too

    def __str__(self) -> str:
        return f"a number in {interval_text(self.low, self.high, self.strict)}"

    @property
    def allowed(self) -> tuple[float, ...]:
        ends = () if self.strict else (self.low, self.high)
        return tuple(end for end in ends if math.isfinite(end))

    @property
    def refused(self) -> tuple[object, ...]:
        if self.strict:
            outside = (self.low, self.high)
        else:
            outside = (math.nextafter(self.low, -math.inf), math.nextafter(self.high, math.inf))
        return (*_OF_WRONG_KINDS, *(end for end in outside if math.isfinite(end)))


@dataclass(frozen=True)
class Integer(Constraint):
    """An integer in [low, high].

    >>> Integer(1, 10)("batch", 3)
    3
    """

    low: int
    high: int = LARGEST

    def __call__(self, name: str, value: object) -> int:
        return integer(name, value, self.low, self.high)

    def __str__(self) -> str:
        return f"an integer {reach_text(self.low, self.high)}"

    @property
    def allowed(self) -> tuple[int, ...]:
        return (self.low, self.high)

    @property
    def refused(self) -> tuple[object, ...]:
        return (*_OF_WRONG_KINDS, self.low - 1, self.high + 1, self.low + 0.5)


class Choice(Constraint):
    """One of a few words.

    Args:
        *words: the words; those of ``known`` where there are none.
        known: a collection of words that may grow.

    >>> Choice("exact", "paper")("calibration", "exact")
    'exact'
    """

    def __init__(self, *words: str, known: Collection[str] = ()) -> None:
        self._known = words if words else known  # kept itself: it may be empty, and grow

    @property
    def words(self) -> tuple[str, ...]:
        """The words of today."""
        return tuple(self._known)

    def __call__(self, name: str, value: object) -> str:
        return choice(name, value, self.words)

    def __str__(self) -> str:
        listed = ", ".join(map(repr, self.words))
        return f"one of {listed}" if len(self.words) > 1 else listed

    @property
    def allowed(self) -> tuple[str, ...]:
        return self.words

    @property
    def refused(self) -> tuple[object, ...]:
        first = self.words[0]
        return (*_OF_WRONG_KINDS, "", 3, [first], first.encode(), first.upper() + " ")


@dataclass(frozen=True)
class Flag(Constraint):
    """True or False.

    >>> Flag()("clip", True)
    True
    """

    def __call__(self, name: str, value: object) -> bool:
        return flag(name, value)

    def __str__(self) -> str:
        return "True or False"

    @property
    def allowed(self) -> tuple[bool, ...]:
        return (True, False)

    @property
    def refused(self) -> tuple[object, ...]:
        return (None, 0, 1, "yes", math.nan, [True])


@dataclass(frozen=True)
class Text(Constraint):
    """A text of 1 to ``longest`` printable characters.

    >>> Text(60)("name", "ours")
    'ours'
    """

    longest: int

    def __call__(self, name: str, value: object) -> str:
        return printable(name, value, self.longest)

    def __str__(self) -> str:
        return f"a text of 1 to {self.longest} printable characters"

    @property
    def refused(self) -> tuple[object, ...]:
        return (None, True, 3, b"ours", "", "  ", "two\nlines", "x" * (self.longest + 1))


@dataclass(frozen=True)
class Duration(Constraint):
    """A whole number of seconds, minutes, hours or days, in [low, high].

    >>> Duration("1s", "365d")("answers_within", "6h")
    '6h'
    """

    low: str
    high: str

    def __call__(self, name: str, value: object) -> str:
        return duration(name, value, self.low, self.high)

    def __str__(self) -> str:
        return f"a time from {self.low!r} to {self.high!r}, in s, min, h or d"

    @property
    def allowed(self) -> tuple[object, ...]:
        return (self.low, self.high)

    @property
    def refused(self) -> tuple[object, ...]:
        return (*_OF_WRONG_KINDS, "", "0s", "1.5h", "6 h", "6hours", "-1h", "366d")


@dataclass(frozen=True)
class TimesOfDay(Constraint):
    """One or more times of day, UTC.

    >>> TimesOfDay()("finish_at", ["16:00", "04:00"])
    ('04:00', '16:00')
    """

    def __call__(self, name: str, value: object) -> tuple[str, ...]:
        return times_of_day(name, value)

    def __str__(self) -> str:
        return "a list of times of day, such as ['04:00']"

    @property
    def allowed(self) -> tuple[object, ...]:
        return (("00:00", "23:59"),)

    @property
    def refused(self) -> tuple[object, ...]:
        wrong: tuple[object, ...] = (["24:00"], ["4:00"], ["04:00", "04:00"], [], "04:00", [4])
        return (*_OF_WRONG_KINDS, *wrong)


@dataclass(frozen=True)
class Range(Constraint):
    """A pair (lo, hi) of finite numbers with lo < hi.

    >>> Range()("reward_range", (0, 5))
    (0.0, 5.0)
    """

    def __call__(self, name: str, value: object) -> tuple[float, float]:
        return interval(name, value)

    def __str__(self) -> str:
        return "a pair (lo, hi) with lo < hi and a finite width hi - lo"

    @property
    def refused(self) -> tuple[object, ...]:
        wrong = [(1, 0), (0, 0), (0, math.inf), (math.nan, 1), (0,), (0, 1, 2), (-1e308, 1e308)]
        return (*_OF_WRONG_KINDS, *wrong, 3, "ab")


@dataclass(frozen=True)
class Exactly(Constraint):
    """One value, mostly beside another constraint.

    >>> print(Real(1.0) | Exactly(0.0))
    a number in [1, inf), or 0
    """

    value: object

    def __call__(self, name: str, value: object) -> object:
        if value is self.value or (_is_number(value) and value == self.value):
            return self.value
        raise _refusal(name, value, self)

    def __str__(self) -> str:
        return f"{self.value:g}" if isinstance(self.value, float) else repr(self.value)

    @property
    def allowed(self) -> tuple[object]:
        return (self.value,)

    @property
    def refused(self) -> tuple[object, ...]:
        return tuple(value for value in _OF_WRONG_KINDS if value is not self.value)


@dataclass(frozen=True)
class Either(Constraint):
    """One of several constraints; made by ``|``."""

    options: tuple[Constraint, ...]

    def __init__(self, *options: Constraint) -> None:
        object.__setattr__(self, "options", options)

    def __call__(self, name: str, value: object) -> object:
        for option in self.options:
            if option.takes(value):
                return option(name, value)
        raise _refusal(name, value, self)

    def __str__(self) -> str:
        return ", or ".join(map(str, self.options))

    @property
    def allowed(self) -> tuple[object, ...]:
        return tuple(value for option in self.options for value in option.allowed)

    @property
    def refused(self) -> tuple[object, ...]:
        values = (value for option in self.options for value in option.refused)
        return tuple(value for value in values if not self.takes(value))


Constraints = Mapping[str, Constraint]  # by the names of arguments


class Constrained(Protocol):
    """A preset: no class, but a table like that of a class."""

    @property
    def constraints(self) -> Constraints: ...


def constraints_of(cls: type | Constrained) -> dict[str, Constraint]:
    """All constraints of a class: those of its bases, and its own in their place.

    Returns:
        The constraints by the names of arguments.

    >>> from dpbandits.parts import Growing
    >>> {name: str(one) for name, one in constraints_of(Growing).items()}["ratio"]
    'a number in [0.01, 100], or None'
    """
    found: dict[str, Constraint] = {}
    if not isinstance(cls, type):  # a preset, which has the table of its arguments
        return dict(cls.constraints)
    for base in reversed(cls.__mro__):
        found |= vars(base).get("constraints", {})
    return found


def without_none(constraint: Constraint) -> Constraint:
    """The constraint where None is not allowed.

    >>> print(without_none(Integer(1) | None))
    an integer at least 1
    """
    if not isinstance(constraint, Either):
        return constraint
    kept = [option for option in constraint.options if option != Exactly(None)]
    return kept[0] if len(kept) == 1 else Either(*kept)


def checked(cls: type | Constrained, **given: object) -> dict[str, object]:
    """Check arguments by the constraints of a class.

    Args:
        cls: the class that declares the constraints.
        **given: arguments by name; those without a constraint are not checked.

    Returns:
        All arguments, those with a constraint in the type in which they are kept.

    Raises:
        ArgumentError: a value is not allowed.

    >>> from dpbandits.algorithms import ArmsShuffled
    >>> checked(ArmsShuffled, dropout=0)
    {'dropout': 0.0}
    """
    table = constraints_of(cls)
    return {
        name: table[name](name, value) if name in table else value for name, value in given.items()
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refusal(name: str, value: object, constraint: Constraint) -> ArgumentError:
    return ArgumentError(f"{name} must be {constraint}, got {shown(value)}", name)
