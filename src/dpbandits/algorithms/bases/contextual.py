"""Policies that see features of every arm, or hear experts, before they choose.

Contexts are public, and only rewards behind the wall, unless the card of a policy hides them, too.
Feature vectors longer than ``context_bound`` are scaled to it before anything else uses them,
because a record moves sums of ``x * reward`` in proportion to the length of ``x``.

An expert advises with a probability for every arm.  Advice is public: only rewards are behind the
wall.  Users give it in shape (N, K), a row for each expert; kernels see its transpose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ...constraints import Constraints, Integer, Real
from ...errors import ArgumentError
from ...kernel import Generator, Matrix, entry, kernel
from ...policies import Decision, Policy
from ...stores import User
from ...tables import as_numbers, refuse
from ...tables.manners import PUBLIC_FEATURES

MOST_FEATURES = 2048
# Bounds on features: their squares have to be numbers, and to leave room for a regulariser.
SHORTEST, LONGEST = 1e-50, 1e12
MOST_EXPERTS = 10**5
_TOLERANCE = 1e-6  # by which the probabilities of an expert may miss one


@kernel
def within_bound(params: Any, contexts: Matrix, seen: Matrix, rng: Generator) -> None:
    """``preprocess_contexts``: vectors longer than ``params.context_bound`` are scaled to it."""
    for a in range(contexts.shape[0]):
        squared = 0.0
        for i in range(contexts.shape[1]):
            squared += contexts[a, i] * contexts[a, i]
        scale = 1.0
        if squared > params.context_bound * params.context_bound:
            # Sensitivity rests on this length, so it holds whatever was shown.
            # Rounded down, so that the scaled vector is not longer either.
            scale = params.context_bound / np.sqrt(squared) * (1.0 - 1e-15)
        for i in range(contexts.shape[1]):
            seen[a, i] = contexts[a, i] * scale


@entry
def look_over(entries: Matrix, longest: float) -> int:
    """Number of rows longer than ``longest``, up to rounding.  If an entry was not finite or too
    large to be squared, it is replaced by 0, and the result is -1 minus that number.
    """
    found, scaled = False, 0
    for row in entries:
        squared = 0.0
        for i in range(row.size):
            if not abs(row[i]) < 1e100:  # also for NaN
                row[i], found = 0.0, True
            squared += row[i] * row[i]
        scaled += squared > longest * longest * (1.0 + 1e-9)
    return -1 - scaled if found else scaled


def shown_matrix(
    policy: Policy,
    given: ArrayLike,
    name: str,
    shape: tuple[int, int],
    *,
    one_row: bool = False,
    fewer: bool = False,
    longest: float = math.inf,
) -> np.ndarray:
    """Copy a user's features to a matrix of finite numbers: of the given shape, of one row for
    every arm, or of fewer rows.  Also counts the rows that are longer than ``longest``.

    Raises:
        ArgumentError: the shape is wrong, or a number is not finite.  With private contexts such
            numbers count as 0, and so do all numbers if there are too many rows.
    """
    array = as_numbers(given)
    if one_row and array.shape in (shape[1:], (1, shape[1])):
        array = np.broadcast_to(array, shape)
    hidden, rounds, asked = policy.card.hides_contexts, policy.session.rounds, shape
    if fewer and array.ndim == 2 and 1 <= len(array) < shape[0]:
        shape = (len(array), shape[1])
    elif fewer and hidden and array.shape[1:] == shape[1:] and len(array) != shape[0]:
        # No candidates, or too many.  Their number is private, so no error may tell of it.
        rounds.blanked += 1
        return np.zeros(shape)
    if array.shape != shape:
        wanted = f"{asked[1:]} or {asked}" if one_row else f"{asked}"
        if array.ndim == 0:
            ragged = array.dtype == object
            alone = "nothing" if given is None else f"a {type(given).__name__}"
            got = "rows of different lengths" if ragged else alone
            raise ArgumentError(
                f"{name} must be an array of numbers of shape {wanted}, got {got}", name
            )
        raise ArgumentError(f"{name} must have shape {wanted}, got {array.shape}", name)
    entries = np.array(array, dtype=np.float64, order="C")
    scaled = look_over(entries, longest)
    if scaled < 0:
        if not hidden:
            refuse(name, given, PUBLIC_FEATURES)
        # An error would shift the schedule for reasons that are private.
        rounds.blanked, scaled = rounds.blanked + 1, -1 - scaled
    if scaled > 0:
        rounds.scaled += scaled
        policy.watch.look_at_features(rounds.scaled, longest, hidden)
    return entries


def bounded_features(bound: float, by: str) -> str:
    """The assumption on the lengths of feature vectors, and who enforces it."""
    return f"feature vectors have a length of at most {bound:g}, which {by} enforces"


def influence_through(channel: str) -> str:
    """The assumption on people's influence on each other, where contexts are private."""
    return (
        "a person's record and decision can influence other people's contexts, rewards and"
        f" available arms only through {channel}"
    )


if TYPE_CHECKING:

    class Shown(Policy):
        """Policies whose ``pull`` needs an argument, declared for type checkers."""

        def pull(  # type: ignore[override]
            self,
            contexts: ArrayLike,
            *,
            user: User | None = None,
            available: Iterable[int | str] | None = None,
            at: float | None = None,
            on_store_failure: Literal["raise", "serve"] = "raise",
            targets: Mapping[str, int | str | Decision] | None = None,
        ) -> Decision: ...

else:
    Shown = Policy


class ContextualPolicy(Shown):
    """Base class of policies whose ``pull`` takes contexts.

    ``config`` has ``dimension`` and ``context_bound``, and ``params`` have the second.
    """

    sees = "contexts"
    constraints: ClassVar[Constraints] = {
        "dimension": Integer(1, MOST_FEATURES),
        "context_bound": Real(SHORTEST, LONGEST),
    }

    @cached_property
    def dimension(self) -> int:
        """The length of feature vectors."""
        return int(self.config["dimension"])

    @cached_property
    def context_bound(self) -> float:
        """The length to which longer feature vectors are scaled."""
        return float(self.config["context_bound"])

    @property
    def _takes_one_row(self) -> bool:
        """Whether one vector may be shown for all arms."""
        return False

    @property
    def _largest_entry(self) -> float:
        largest = self.context_bound * max(map(abs, self.reward_range))
        return max(largest, self.context_bound**2) if self.card.hides_contexts else largest

    @property
    def takes_masks(self) -> bool:
        # A mask copies the row of an open arm to closed ones, which models of their own tell apart.
        return not self._takes_one_row

    @property
    def effective_bound(self) -> float:
        """The length to which feature vectors are scaled; infinite with ``clip=False``."""
        return self.context_bound if self.clip else math.inf

    def alters(self, context_bound: float) -> bool:
        return context_bound > self.effective_bound

    def _assumed(self) -> list[str]:
        if not self.card.hides_contexts:
            return [
                "contexts are public, and depend on rewards only through releases",
                bounded_features(self.context_bound, "scaling"),
            ]
        return [
            bounded_features(self.context_bound, "scaling"),
            "only the person (and, under central trust, the party that runs the policy) learns the"
            " person's arm and its probability",
            "nobody (except, under central trust, the party that runs the policy) learns how often"
            " each arm was chosen, because these counts depend on private features",
            influence_through("releases"),
        ]

    def takes_shape(self, shape: tuple[int, ...], arm: int) -> bool:
        *rows, length = shape
        if self._takes_one_row:
            return rows in ([], [1], [self.n_arms]) and length == self.dimension
        return len(rows) == 1 and arm < rows[0] <= self.n_arms and length == self.dimension

    def seen(self, contexts: ArrayLike) -> np.ndarray:
        shape, one = (self.n_arms, self.dimension), self._takes_one_row
        entries = shown_matrix(
            self,
            contexts,
            "contexts",
            shape,
            one_row=one,
            fewer=not one,
            longest=self.effective_bound,
        )
        return self.preprocessed(entries)


# Advice ----------------------------------------------------------------------------------------


@entry
def _as_probabilities(given: Matrix, seen: Matrix) -> bool:
    """Whether rows hold probabilities; writes them to ``seen``, scaled to a sum of exactly one,
    with a row for each arm.
    """
    for e in range(given.shape[0]):
        total = 0.0
        for a in range(given.shape[1]):
            if given[e, a] < 0.0:
                return False
            total += given[e, a]
        if abs(total - 1.0) > _TOLERANCE:
            return False
        for a in range(given.shape[1]):
            seen[a, e] = given[e, a] / total
    return True


class AdvicePolicy(Shown):
    """Base class of policies whose ``pull`` takes advice; ``config`` has ``n_experts``."""

    sees = "advice"
    constraints: ClassVar[Constraints] = {"n_experts": Integer(1, MOST_EXPERTS)}

    @cached_property
    def n_experts(self) -> int:
        """Number of experts."""
        return int(self.config["n_experts"])

    @property
    def dimension(self) -> int:
        """The length of an arm's feature vector."""
        return self.n_experts

    def _assumed(self) -> list[str]:
        return [
            "the experts' advice is public, and depends on rewards only through releases (nothing"
            " protects what the advice says about a person)"
        ]

    def takes_shape(self, shape: tuple[int, ...], arm: int) -> bool:
        return shape == (self.n_experts, self.n_arms)

    def seen(self, advice: ArrayLike) -> np.ndarray:
        given = shown_matrix(self, advice, "advice", (self.n_experts, self.n_arms))
        seen = np.empty((self.n_arms, self.n_experts))
        if not _as_probabilities(given, seen):
            raise ArgumentError(
                "advice must hold a probability for every arm in each row, with a sum of 1",
                "advice",
            )
        return seen
