"""Policies whose arms have fixed features, which take their table and no number of arms."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ...policies import Policy
from ...privacy.budgets import Budget


class FixedFeaturesPolicy(Policy):
    """``repr`` holds the whole table, by which it can be made again; ``arguments`` a digest."""

    _arms: np.ndarray

    def __init__(
        self, arms: np.ndarray, config: dict[str, Any], *, budget: Budget | None, **options: Any
    ) -> None:
        self._arms = arms
        own = {"arms": tuple(map(tuple, arms.tolist())), **config}
        super().__init__(own, budget=budget, n_arms=len(arms), **options)

    @property
    def _coefficients(self) -> tuple[int, ...]:
        return self._arms.shape[1:]

    @property
    def arguments(self) -> dict[str, Any]:
        """As for every policy, with a digest for the table of arms."""
        k, d = self._arms.shape
        digest = hashlib.sha256(self._arms.tobytes()).hexdigest()[:8]
        return {**super().arguments, "arms": f"{k} x {d}, content {digest}"}
