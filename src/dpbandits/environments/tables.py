"""Rewards fixed in advance: one row per person, one column per arm.  For tests, audits and
adversarial sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..kernel import kernel
from .base import ArmsEnvironment, ArmsKernels


class TableState(NamedTuple):
    """Prefix sums, so that the rewards of any window of rounds cost one subtraction."""

    prefix: np.ndarray  # (T + 1, K): sums of the rows before
    best: np.ndarray  # (1,): the arm of the largest column sum


@kernel
def _draw_table(state, arm, start, n, rng):
    return state.prefix[start + n, arm] - state.prefix[start, arm]


@kernel
def _table_regret(state, arm, start, n):
    best = state.best[0]
    return (state.prefix[start + n, best] - state.prefix[start, best]) - (
        state.prefix[start + n, arm] - state.prefix[start, arm]
    )


class RewardTable(ArmsEnvironment):
    """A fixed table of potential rewards; regret is against the best column.

    Args:
        rewards: shape (T, K).
        arm_names: what the arms are called, one name each; numbered by default.
        name: what the table is called in reports.

    Raises:
        ArgumentError: this is no table of finite numbers, or there are more or fewer names than
            columns.

    >>> RewardTable([[0, 1], [1, 1]]).horizon
    2
    """

    kernels = ArmsKernels(_draw_table, _table_regret)

    def __init__(
        self, rewards: Any, *, arm_names: Sequence[str] | None = None, name: str | None = None
    ) -> None:
        try:
            table = np.asarray(rewards, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"rewards must be a table (rounds, arms) of finite numbers, got {rewards!r}"
            ) from None
        if table.ndim != 2 or 0 in table.shape or not np.all(np.isfinite(table)):
            raise ArgumentError(
                f"rewards must be a table (rounds, arms) of finite numbers, got shape {table.shape}"
            )
        self.horizon: int = table.shape[0]
        self.n_arms = table.shape[1]
        self._name = name
        self._names = None if arm_names is None else [str(name) for name in arm_names]
        if self._names is not None and len(self._names) != self.n_arms:
            raise ArgumentError(
                f"arm_names must hold {self.n_arms} names, one per column, got {len(self._names)}",
                "arm_names",
            )
        self.support = (float(table.min()), float(table.max()))
        prefix = np.vstack([np.zeros(self.n_arms), np.cumsum(table, axis=0)])
        if not np.all(np.isfinite(prefix)):
            raise ArgumentError("rewards must have finite sums over rounds")
        self.state = TableState(prefix, np.array([int(prefix[-1].argmax())]))
        self._means = table.mean(axis=0)
        self._digest = sha256(np.ascontiguousarray(table).tobytes()).hexdigest()[:8]

    @property
    def arm_names(self) -> list[str]:
        return super().arm_names if self._names is None else list(self._names)

    def means(self) -> np.ndarray:
        return self._means

    def _arguments(self) -> str:
        title = "" if self._name is None else f"{self._name}: "
        return f"{title}{self.horizon} rounds, {self.n_arms} arms, content {self._digest}"
