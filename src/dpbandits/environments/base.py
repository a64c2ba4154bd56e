"""What answers a pull in the loop over arms.

An environment is a named tuple of arrays and two kernels, so that one compiled loop serves every
instance of a kind:

* ``draw(state, arm, start, n, rng) -> float``: the sum of the rewards of n rounds of an arm,
  exactly distributed;
* ``regret(state, arm, start, n) -> float``: what those rounds cost in expectation against the best
  arm.

Rounds count from 0.  Both change nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..kernel import Kernel, kernel
from ..validation import shortest


class ArmsKernels(NamedTuple):
    """The two kernels of a kind of environment."""

    draw: Kernel
    regret: Kernel


class ArmsEnvironment(ABC):
    """The base of the environments without contexts.

    Attributes:
        n_arms: number of arms.
        state: what the kernels see.
        support: (lo, hi), which holds every reward; infinite where rewards are not bounded.
        horizon: how many rounds there are; None for any number.
        arm_names: what the arms are called in tables and figures.
        reference: a name and the shares of arms, shape (K,), of an allocation to compare with; None
            where there is none.
    """

    kernels: ClassVar[ArmsKernels]
    state: Any
    n_arms: int
    support: tuple[float, float]
    horizon: int | None = None
    reference: tuple[str, np.ndarray] | None = None

    @property
    def arm_names(self) -> list[str]:
        return [f"arm {a}" for a in range(self.n_arms)]

    @property
    def title(self) -> str:
        """What it is called in headings; ``repr`` is what tells it from others."""
        return f"{type(self).__name__}, {count_of_arms(self.n_arms)}"

    @abstractmethod
    def means(self) -> np.ndarray:
        """The mean reward of every arm, shape (K,); over the whole table for tables."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._arguments()})"

    def _arguments(self) -> str:
        return ", ".join(map(shortest, self.means()))


def count_of_arms(n_arms: int) -> str:
    """As one says it."""
    return "1 arm" if n_arms == 1 else f"{n_arms} arms"


def vector(name: str, values: Any, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """``values`` as a read-only vector of at least one finite number in [low, high]."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a list of numbers, got {values!r}", name) from None
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(
            f"{name} must be a list of at least one number, got shape {array.shape}", name
        )
    if not np.all((array >= low) & (array <= high) & np.isfinite(array)):
        raise ArgumentError(
            f"{name} must hold finite numbers in [{low:g}, {high:g}], got {array.tolist()}", name
        )
    array.flags.writeable = False
    return array


class StationaryState(NamedTuple):
    """Arms that do not change: up to two parameters each, and what a round of each costs."""

    first: np.ndarray  # (K,)
    second: np.ndarray  # (K,)
    gaps: np.ndarray  # (K,)


@kernel
def stationary_regret(state, arm, start, n):
    return state.gaps[arm] * n


def stationary(first: np.ndarray, second: np.ndarray, means: np.ndarray) -> StationaryState:
    """The state of a stationary environment."""
    return StationaryState(
        np.ascontiguousarray(first), np.ascontiguousarray(second), means.max() - means
    )
