"""Policies that see features of every arm before they choose.

Contexts are public: only rewards are behind the wall.  Feature vectors longer than
``context_bound`` are scaled to it before anything else uses them, because a record moves sums of
``x * reward`` in proportion to the length of ``x``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...kernel import Generator, Matrix, entry, kernel
from ...policies import Decision, Policy
from ...privacy.budgets import Budget
from ...stores import User
from ...tables import as_numbers, refuse
from ...tables.manners import PUBLIC_FEATURES
from ...validation import integer, real

MOST_FEATURES = 2048
# Bounds on features: their squares have to be numbers, and to leave room for a regulariser.
SHORTEST, LONGEST = 1e-50, 1e12


@kernel
def within_bound(params: Any, contexts: Matrix, seen: Matrix, rng: Generator) -> None:
    """``preprocess_contexts``: vectors longer than ``params.context_bound`` are scaled to it.

    An infinite bound leaves all as they are.
    """
    for a in range(contexts.shape[0]):
        squared = 0.0
        for i in range(contexts.shape[1]):
            squared += contexts[a, i] * contexts[a, i]
        scale = 1.0
        if squared > params.context_bound * params.context_bound:
            # Rounded down, so that the scaled vector is not longer either.
            scale = params.context_bound / np.sqrt(squared) * (1.0 - 1e-15)
        for i in range(contexts.shape[1]):
            seen[a, i] = contexts[a, i] * scale


@entry
def look_over(entries: Matrix, longest: float) -> int:
    """Put 0 where an entry is not finite, or too large to be squared.

    Returns:
        How many rows are longer than ``longest``, but for rounding; -1 minus that, where an entry
        was replaced.
    """
    found, scaled = False, 0
    for row in entries:
        squared = 0.0
        for i in range(row.size):
            if not abs(row[i]) < 1e100:
                row[i], found = 0.0, True
            squared += row[i] * row[i]
        scaled += squared > longest * longest * (1.0 + 1e-9)
    return -1 - scaled if found else scaled


class SideInformationPolicy(Policy):
    """The base of policies that see something of every arm before they choose: a matrix with a row
    of numbers for each.

    A subclass sets ``dimension``, the length of the rows, before this constructor runs, and gives
    ``seen``.
    """

    dimension: int

    if TYPE_CHECKING:

        def pull(  # type: ignore[override]
            self,
            contexts: ArrayLike,
            *,
            user: User | None = None,
            available: Iterable[int | str] | None = None,
        ) -> Decision: ...

    def alters(self, context_bound: float) -> bool:
        """Whether ``preprocess_contexts`` may change what an environment with that bound shows."""
        return False

    @property
    def effective_bound(self) -> float:
        """The length to which rows are scaled."""
        return math.inf

    def _entries(
        self,
        given: Any,
        name: str,
        shape: tuple[int, int],
        *,
        one_row: bool = False,
        fewer: bool = False,
    ) -> np.ndarray:
        """What a user shows, as a matrix of finite numbers of its own; with ``one_row`` it may be
        one that holds for every arm, with ``fewer`` there may be fewer rows.
        """
        array = as_numbers(given)
        if one_row and array.shape in (shape[1:], (1, shape[1])):
            array = np.broadcast_to(array, shape)
        hidden, rounds = self.card.hides_contexts, self.session.rounds
        wanted = _wanted(shape, one_row)
        if fewer and array.ndim == 2 and 1 <= len(array) < shape[0]:
            shape = (len(array), shape[1])
        elif fewer and hidden and array.ndim == 2 and self._is_odd(array.shape, shape):
            rounds.blanked += 1
            return np.zeros(shape)
        if array.shape != shape:
            if array.ndim == 0:
                ragged = array.dtype == object
                alone = "nothing" if given is None else f"a {type(given).__name__}"
                got = "rows of several lengths" if ragged else alone
                raise ArgumentError(
                    f"{name} must be an array of numbers of shape {wanted}, got {got}", name
                )
            raise ArgumentError(f"{name} must have shape {wanted}, got {array.shape}", name)
        entries = np.array(array, dtype=np.float64, order="C")
        scaled = look_over(entries, self.effective_bound)
        if scaled < 0:
            if not hidden:
                refuse(name, given, PUBLIC_FEATURES)
            # An error would shift the schedule for reasons that are private.
            rounds.blanked, scaled = rounds.blanked + 1, -1 - scaled
        if scaled > 0:
            rounds.scaled += scaled
            self.watch.look_at_features(rounds.scaled, self.effective_bound, hidden)
        return entries

    @staticmethod
    def _is_odd(shape: tuple[int, ...], wanted: tuple[int, int]) -> bool:
        """Whether there are no candidates, or too many: how many there are is private."""
        return shape[1] == wanted[1] and shape[0] != wanted[0]


def _wanted(shape: tuple[int, int], one_row: bool) -> str:
    return f"{shape[1:]} or {shape}" if one_row else f"{shape}"


class ContextualPolicy(SideInformationPolicy):
    """The base of policies whose ``pull`` takes contexts.

    A subclass passes ``dimension`` and ``context_bound`` in its ``config``, and its ``params``
    carry ``context_bound``.
    """

    _takes_one_row = False  # whether one vector may be shown for all arms

    def __init__(self, config: dict[str, Any], *, budget: Budget | None, **options: Any) -> None:
        self.dimension = integer("dimension", config["dimension"], 1, MOST_FEATURES)
        bound = real("context_bound", config["context_bound"], SHORTEST, LONGEST)
        self.context_bound: float = bound
        own = {**config, "dimension": self.dimension, "context_bound": bound}
        super().__init__(own, budget=budget, **options)

    @property
    def _largest_entry(self) -> float:
        return self.context_bound * max(map(abs, self.reward_range))

    @property
    def takes_masks(self) -> bool:
        # Rows of arms that are closed are copies of another's, which one model takes for the same.
        return not self._takes_one_row

    @property
    def effective_bound(self) -> float:
        """The length to which feature vectors are scaled; infinite with ``clip=False``."""
        return self.context_bound if self.clip else math.inf

    def alters(self, context_bound: float) -> bool:
        return context_bound > self.effective_bound

    def _assumed(self) -> list[str]:
        return [
            "contexts are public, and owe nothing to rewards that were not released; feature"
            f" vectors are at most {self.context_bound:g} long, which scaling enforces"
        ]

    def takes_shape(self, shape: tuple[int, ...], arm: int) -> bool:
        *rows, length = shape
        if self._takes_one_row:
            return rows in ([], [1], [self.n_arms]) and length == self.dimension
        return len(rows) == 1 and arm < rows[0] <= self.n_arms and length == self.dimension

    def seen(self, contexts: Any) -> np.ndarray:
        shape = (self.n_arms, self.dimension)
        single = self._takes_one_row
        entries = self._entries(contexts, "contexts", shape, one_row=single, fewer=not single)
        return self.preprocessed(entries)
