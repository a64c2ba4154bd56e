"""Protocols with a privacy proof in ``certificates``: the least noise that meets a budget, and the
levels that are proved of wider noise.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from ..errors import ArgumentError
from ..privacy import ApproxDP, Budget
from ..validation import choice, integer, real
from .certificates import WIDEST, DiscreteGaussian, Shifts, Tails, shifts
from .protocols import LEVELS, Protocol

_LARGEST = 40.0  # epsilon
_WIDE, _WIDEST = 2.0**13, 0.9 * WIDEST  # steps; proofs for more noise take longer
_NEVER = 1e-30  # a delta that nobody asks to be less


class CertifiedProtocol(Protocol):
    """Base class of protocols with a privacy proof in ``certificates``."""

    def delta_at(self, epsilon: float, batches: int = 1, level: str = "shuffle") -> float:
        epsilon = real("epsilon", epsilon, 0.0)
        moved = self._moved(batches)
        return self._tails_at(level).delta(epsilon, moved, self.dimension, batches)

    def epsilon_at(self, delta: float, batches: int = 1, level: str = "shuffle") -> float:
        """A proved epsilon for a person in the given number of batches; infinite if none is known.
        It holds for the shuffler's output, or at the local level for one person's messages, even if
        all others reveal theirs to the server.
        """
        most, tails, moved = 60.0, self._tails_at(level), self._moved(batches)
        real("delta", delta, 0.0, 1.0, strict=True)

        def excess(epsilon: float) -> float:
            return tails.delta(epsilon, moved, self.dimension, batches) - delta

        if excess(most) > 0.0:
            return math.inf
        return 0.0 if excess(0.0) <= 0.0 else _crossing(excess, most)

    def _moved(self, batches: int) -> Shifts:
        batches = integer("batches", batches, 1)
        return shifts(self.distance, self.dimension, self.shift, batches)

    def _tails_at(self, level: str) -> Tails | DiscreteGaussian:
        alone = choice("level", level, LEVELS) == "local"
        return self._hiding(1 if alone else self.batch - self.dropout)

    def _least_noise(self, budget: Budget, batches: int, level: str) -> int:
        if not (isinstance(budget, ApproxDP) and budget.epsilon <= _LARGEST):
            what = f"ApproxDP with epsilon at most {_LARGEST:g} for {type(self).__name__}"
            raise ArgumentError(f"budget must be {what}, got {budget!r}")
        return _least_certified(self, budget, batches, level)

    @property
    @abstractmethod
    def noise_law(self) -> tuple[float, float]:
        """Number of coins of a batch, and their probability of heads; if that is 0, the standard
        deviation of rounded normals.
        """

    @abstractmethod
    def _noise_of_std(self, std: float) -> float:
        """The ``noise`` with which what hides one person has that standard deviation, in steps."""

    @abstractmethod
    def _hiding(self, people: int) -> Tails | DiscreteGaussian:
        """The noise of so many people, by which one is hidden."""


def proved_delta(protocol: CertifiedProtocol, epsilon: float, batches: int, level: str) -> float:
    """``delta_at``, also of protocols with more noise than ``certificates`` computes with."""
    for widest in (_WIDE, _WIDEST):
        delta = _provable(protocol, level, widest).delta_at(epsilon, batches, level)
        if delta < _NEVER:
            break
    return delta


def proved_epsilon(protocol: CertifiedProtocol, delta: float, batches: int, level: str) -> float:
    """``epsilon_at``, also of protocols with more noise than ``certificates`` computes with."""
    return _provable(protocol, level, _WIDEST).epsilon_at(delta, batches, level)


def _provable(protocol: CertifiedProtocol, level: str, widest: float) -> CertifiedProtocol:
    """With no more coins than have that standard deviation: those beyond take no privacy away."""
    amount, heads = protocol.noise_law
    people = protocol.batch if level == "local" else 1  # each tosses coins of their own
    if heads == 0.0:  # a discrete Gaussian is no sum of others
        return protocol
    most = widest**2 * people / (amount * heads * (1.0 - heads))
    return replace(protocol, noise=math.floor(protocol.noise * min(1.0, most)))


@lru_cache(maxsize=256)  # every chooser makes its policy anew
def _least_certified(
    protocol: CertifiedProtocol, budget: ApproxDP, batches: int, level: str
) -> int:
    def keeps(noise: int) -> bool:
        made = replace(protocol, noise=noise)
        return made.delta_at(budget.epsilon, batches, level) <= budget.delta

    # Normal noise would need that much for the least shift: where to begin to look.
    std = float(protocol._moved(batches).norms[0]) * math.sqrt(batches) / budget.mu
    alone = replace(protocol, batch=1, dropout=0) if level == "local" else protocol
    return _smallest(keeps, min(math.ceil(alone._noise_of_std(std)), 2**40))


def _smallest(keeps: Callable[[int], bool], start: int) -> int:
    """The least noise from ``start`` on that keeps the budget, to one part in a thousand."""
    low, high, more = start - 1, start, 1 + start // 512
    while not keeps(high):
        low, high, more = high, high + more, 2 * more
    while high - low > 1 + high // 1024:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def _crossing(excess: Callable[[float], float], most: float) -> float:
    """From above, to one part in a thousand, where a decreasing function changes its sign."""
    low, high = 0.0, most
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return high
