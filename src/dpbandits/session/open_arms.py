"""Arms by name or number, and which of them are open to a pull.

An arm is open unless it is retired, masked for this pull, or not among the candidates in the
contexts.  All three are public events, so closing an arm must not depend on unreleased rewards.
Guarantees list this assumption once an arm was closed.  Where contexts are private, a person's open
arms are one of them.  Then guarantees list the assumption from the start, because a sentence added
with the first mask would reveal it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np

from ..errors import ArgumentError
from ..validation import integer
from ..validation import shown as brief
from .decisions import Decision

Mask = np.ndarray | None  # which arms may be served, shape (K,); None: all

_KEPT = 256  # masks
ASSUMED = "which arms are open depends on rewards only through releases"


class Arms:
    """The arms of a policy, K of them, by a name for each if they have any."""

    def __init__(self, count: int, names: Sequence[str] | None) -> None:
        if names is not None and len(names) != count:
            raise ArgumentError(
                f"arm_names must hold {count} names, one for each arm, got {len(names)}",
                "arm_names",
            )
        self.count, self.names = count, names
        self._numbers = {name: arm for arm, name in enumerate(names or ())}
        # Typed, because 1 and True are equal as keys, and True is no arm.
        self._kept: Callable[..., Mask] = lru_cache(_KEPT, typed=True)(self._mask)

    def number(self, argument: str, given: object) -> int:
        """The arm of this name or number; an ``ArgumentError`` where there is none."""
        if isinstance(given, str):
            if given in self._numbers:
                return self._numbers[given]
            named = f"one of {', '.join(map(repr, self._numbers))}"
            known = named if self._numbers else "a number, as arms have no names"
            raise ArgumentError(f"{argument} must be {known}, got {given!r}", argument)
        return integer(argument, given, 0, self.count - 1)

    def number_of(self, argument: str, given: object) -> int:
        """As ``number``, also of a decision: by its name, if the arms have names here and there."""
        if isinstance(given, Decision):
            given = given.arm if self.names is None or given.name is None else given.name
        return self.number(argument, given)

    def _listed(self, given: object) -> int:
        """As ``number``, of an entry of ``available``."""
        try:
            return self.number("available", given)
        except ArgumentError:
            numbers = f"integers from 0 to {self.count - 1}"
            among = ", ".join(map(repr, self._numbers)) or numbers
            raise ArgumentError(
                f"available must list only arms among {among}, got {brief(given)}", "available"
            ) from None

    def name(self, arm: int) -> str | None:
        """The name of an arm."""
        return None if self.names is None else self.names[arm]

    def open(
        self, available: Iterable[int | str] | None, retired: tuple[int, ...], shown: int
    ) -> Mask:
        """The mask of arms that may be served, shape (K,), None for all.  These are the
        ``available`` ones that are not ``retired``, among the first ``shown``, which have
        candidates.

        Raises:
            ArgumentError: there is no such arm, or none is open.
        """
        if available is None:
            if not retired and shown == self.count:
                return None
            return self._kept(retired, shown, True)
        try:
            if not isinstance(available, str | Mapping):  # whose keys would all be open
                named = tuple(islice(available, self.count + 1))  # which has an end
                if len(named) > self.count:
                    raise ArgumentError(
                        f"available must hold at most {self.count} arms, got more", "available"
                    )
                return self._kept(retired, shown, False, *named)
        except TypeError:  # no list, or of what are no arms
            pass
        raise ArgumentError(
            f"available must be a list of arms, got {brief(available)}", "available"
        )

    def _mask(self, retired: tuple[int, ...], shown: int, every: bool, *available: object) -> Mask:
        mask = np.full(self.count, every)
        for arm in available:
            mask[self._listed(arm)] = True
        mask[list(retired)] = mask[shown:] = False
        if not mask.any():
            rows = " and has a row in contexts" if shown < self.count else ""
            raise ArgumentError(
                f"available must hold at least one arm that is not retired{rows}, got none",
                "available",
            )
        return None if mask.all() else mask


def stand_in(shown: np.ndarray, open_arms: np.ndarray) -> np.ndarray:
    """Rows for all arms, of closed ones that of the first open: to choose these is to choose it."""
    first = int(open_arms.argmax())
    seen = shown[np.where(open_arms, np.arange(len(open_arms)), first)]
    return np.ascontiguousarray(seen)


def row(shown: np.ndarray | int, arm: int) -> np.ndarray | int:
    """The row of an arm, of its own; 0 where nothing is shown."""
    return shown[arm].copy() if isinstance(shown, np.ndarray) else 0
