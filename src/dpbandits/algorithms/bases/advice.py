"""Policies that hear experts before they choose.

An expert advises with a probability for every arm.  Advice is public: only rewards are behind the
wall.  Users give it as experts do, shape (N, K), a row for each expert; kernels and environments
see its transpose, a row for each arm.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...kernel import Matrix, entry
from ...privacy.budgets import Budget
from ...validation import integer
from .contextual import Shown, shown_matrix

MOST_EXPERTS = 10**5
_TOLERANCE = 1e-6  # by which the probabilities of an expert may miss one


@entry
def _as_probabilities(given: Matrix, seen: Matrix) -> bool:
    """Whether rows hold probabilities; what they are of exactly one, with a row for each arm."""
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
    """The base of policies whose ``pull`` takes advice, shape (N, K).  A subclass passes
    ``n_experts`` in its ``config``.
    """

    sees = "advice"

    def __init__(self, config: dict[str, Any], *, budget: Budget | None, **options: Any) -> None:
        experts = integer("n_experts", config["n_experts"], 1, MOST_EXPERTS)
        super().__init__({**config, "n_experts": experts}, budget=budget, **options)

    @cached_property
    def n_experts(self) -> int:
        """How many experts advise."""
        return int(self.config["n_experts"])

    @property
    def dimension(self) -> int:
        """The length of what is seen of an arm."""
        return self.n_experts

    def _assumed(self) -> list[str]:
        return [
            "the experts' advice is public, and owes nothing to rewards but what was released: what"
            " it says about a person is not protected"
        ]

    def takes_shape(self, shape: tuple[int, ...], arm: int) -> bool:
        return shape == (self.n_experts, self.n_arms)

    def seen(self, advice: Any) -> np.ndarray:
        given = shown_matrix(self, advice, "advice", (self.n_experts, self.n_arms))
        seen = np.empty((self.n_arms, self.n_experts))
        if not _as_probabilities(given, seen):
            raise ArgumentError(
                "advice must hold a probability for every arm in each row: none negative, and 1"
                " in all",
                "advice",
            )
        return seen
