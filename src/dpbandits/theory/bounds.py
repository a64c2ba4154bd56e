"""Bounds: plain functions of numbers, and a table with the source of each.

Every function takes the quantities of its theorem.  Logarithms have base e, regret is in units of
the reward range, and ``horizon`` is a number or an array.  Where the assumptions of the proof fail,
an upper bound is infinite and a lower bound is zero.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from ..errors import ArgumentError

Values = float | np.ndarray  # one per horizon
Array = Sequence[float] | np.ndarray

Kind = Literal["upper", "lower"]
Constants = Literal["explicit", "order", "asymptotic"]
Holds = Literal["proved", "corrected", "void"]


@dataclass(frozen=True)
class Bound:
    """One result of a paper.

    Attributes:
        name: the name of its function, in ``BOUNDS`` and on the command line.
        function: its value.
        source: its authors, and the number of the theorem.
        kind: ``"upper"`` or ``"lower"``.
        of: the bounded quantity: "expected regret", "regret" with a probability, "minimax regret"
            (over all settings and, of a lower bound, all policies), or something else, in words.
        constants: ``"explicit"``, or ``"order"`` where only the order is published: its value is
            then that of the order with constants 1, and no bound; or ``"asymptotic"``: a bound on
            the limit of regret over this value, and none at a finite horizon.
        holds: ``"proved"``; ``"corrected"``: the formula here differs from the printed one;
            ``"void"``: the published proof has a gap.
        because: the correction, or why the proof is void.
        assumes: the assumptions of the theorem, in words.
    """

    name: str
    function: Callable[..., Any]
    source: str
    kind: Kind
    of: str
    constants: Constants
    holds: Holds
    because: str
    assumes: str

    @property
    def parameters(self) -> list[str]:
        """The parameters of its function."""
        return list(inspect.signature(self.function).parameters)

    @property
    def required(self) -> set[str]:
        """Those of them without a default."""
        found = inspect.signature(self.function).parameters.values()
        return {one.name for one in found if one.default is one.empty}

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return (inspect.getdoc(self.function) or "").partition("\n\n")[0].replace("\n", " ")

    @property
    def is_binding(self) -> bool:
        """Whether its value is a bound that is proved, constants and all."""
        return self.constants == "explicit" and self.holds != "void"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Its value."""
        return self.function(*arguments, **named)


BOUNDS: dict[str, Bound] = {}
F = TypeVar("F", bound=Callable[..., Any])


def bound(
    kind: Kind,
    of: str = "expected regret",
    *,
    source: str,
    constants: Constants = "explicit",
    holds: Holds = "proved",
    because: str = "",
    assumes: str = "",
) -> Callable[[F], F]:
    """Enter a function in the table ``BOUNDS``, under its own name; see ``Bound``.

    Raises:
        ArgumentError: another bound has that name, or ``because`` is missing for a proof that does
            not hold.
    """

    def enter(function: F) -> F:
        name = function.__name__
        if name in BOUNDS:
            raise ArgumentError(f"there is a bound {name} already", "name")
        if (holds == "proved") != (because == ""):
            raise ArgumentError(f"because must say why {name} is {holds}", "because")
        BOUNDS[name] = Bound(name, function, source, kind, of, constants, holds, because, assumes)
        return function

    return enter


def valid(holds: bool | np.ndarray, value: Values, kind: Kind = "upper") -> Any:
    """The value where the assumptions of the proof hold, and elsewhere a trivial bound."""
    return np.where(holds, value, np.inf if kind == "upper" else 0.0)[()]


def positive(gaps: Array) -> np.ndarray:
    """The gaps of arms that are worse than the best."""
    gap = np.asarray(gaps, float)
    return gap[gap > 0.0]
