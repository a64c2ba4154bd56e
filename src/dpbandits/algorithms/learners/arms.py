"""Policies whose arms have fixed features: they take the table of them where others take a number
of arms.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...policies import Policy
from ...privacy.budgets import Budget

_LARGEST = 1e100


def features(name: str, value: Any, largest: float = _LARGEST) -> np.ndarray:
    """``value`` as a read-only table of shape (K, d) of numbers in [-largest, largest], K and d at
    least 1.
    """
    try:
        table = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must be a table of numbers of shape (K, d), got {value!r}", name
        ) from None
    if table.ndim != 2 or table.size == 0:
        raise ArgumentError(
            f"{name} must be a table of shape (K, d) with K and d at least 1, got shape"
            f" {table.shape}",
            name,
        )
    if not np.all(np.abs(table) <= largest):
        raise ArgumentError(
            f"{name} must hold numbers in [{-largest:g}, {largest:g}], got {table.tolist()}", name
        )
    table.flags.writeable = False
    return table


class ArmsPolicy(Policy):
    """The base of policies with fixed features.

    ``repr`` holds the whole table, by which the policy can be made again; the label a digest of it.
    """

    _arms: np.ndarray

    def __init__(
        self, arms: np.ndarray, config: dict[str, Any], *, budget: Budget | None, **options: Any
    ) -> None:
        self._arms = arms
        own = {"arms": tuple(map(tuple, arms.tolist())), **config}
        super().__init__({**own, "n_arms": len(arms)}, budget=budget, **options)
        del self._config["n_arms"]  # the constructor takes the arms in its place

    @property
    def label(self) -> str:
        """As for every policy, with a digest for the table of arms."""
        k, d = self._arms.shape
        digest = hashlib.sha256(self._arms.tobytes()).hexdigest()[:8]
        return self._written("budget", "seed").replace(
            repr(self._config["arms"]), repr(f"{k} x {d}, content {digest}")
        )
