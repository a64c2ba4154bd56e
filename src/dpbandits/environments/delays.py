"""How late answers come, counted in pulls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import ArgumentError
from ..validation import choice, real

NEVER = np.iinfo(np.int64).max  # an answer that does not come

_LATEST = 1e15  # pulls; heavy tails end here


@dataclass(frozen=True)
class Delay:
    """Distribution of delays: an answer that is n pulls late comes after n more pulls.

    The answer itself does not depend on its delay.

    Attributes:
        kind: "fixed": always ``pulls``.  "geometric": with the mean ``pulls``.  "pareto": heavy
            tails, above x with probability (1 + x / pulls) ** -tail.
        pulls: see ``kind``.
        tail: exponent of "pareto"; the mean is infinite if it is at most 1.
        lost: share of answers that never come.
        rate: people per second, for policies with a clock: the t-th pull, from 0, is at second
            t / rate.  None: there is no clock.

    Raises:
        ArgumentError: an argument is out of its range.

    Example:
        >>> Delay("fixed", 30).draw(3, np.random.default_rng(1)).tolist()
        [30, 30, 30]
        >>> Delay("geometric", 5, lost=0.1)
        Delay('geometric', 5, lost=0.1)
    """

    kind: Literal["fixed", "geometric", "pareto"] = "fixed"
    pulls: float = 0
    tail: float = 1.5
    lost: float = 0.0
    rate: float | None = None

    def __post_init__(self) -> None:
        choice("kind", self.kind, ("fixed", "geometric", "pareto"))
        real("pulls", self.pulls, 0.0, 1e9)
        if self.kind == "fixed" and self.pulls != int(self.pulls):
            raise ArgumentError(
                f"pulls must be a whole number for a fixed delay, got {self.pulls!r}", "pulls"
            )
        real("tail", self.tail, 0.01, 100.0)
        real("lost", self.lost, 0.0, 1.0)
        if self.rate is not None:
            real("rate", self.rate, 1e-6, 1e6)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the delays of n answers.

        Returns:
            Shape (n,), int64, in pulls; ``NEVER`` for answers that do not come.
        """
        lost = rng.random(n) < self.lost
        if self.kind == "fixed" or self.pulls == 0:
            late = np.full(n, int(self.pulls), np.int64)
        elif self.kind == "geometric":
            late = rng.geometric(1.0 / (1.0 + self.pulls), n) - 1
        else:
            late = np.minimum(self.pulls * rng.pareto(self.tail, n), _LATEST).astype(np.int64)
        return np.where(lost, NEVER, late)

    @property
    def words(self) -> str:
        """Description of the delay in words.

        >>> Delay("geometric", 5, lost=0.1).words
        'geometric, mean 5 pulls, 10 % lost'
        """
        said = {
            "fixed": f"{self.pulls:g} pulls",
            "geometric": f"geometric, mean {self.pulls:g} pulls",
            "pareto": f"heavy tails, scale {self.pulls:g} pulls",
        }[self.kind]
        said += f", {100 * self.lost:g} % lost" if self.lost else ""
        return said + (f", {self.rate:g} people per second" if self.rate else "")

    def __repr__(self) -> str:
        given = [repr(self.kind), f"{self.pulls:g}"]
        given += [f"tail={self.tail:g}"] if self.kind == "pareto" else []
        given += [f"lost={self.lost:g}"] if self.lost else []
        given += [f"rate={self.rate:g}"] if self.rate else []
        return f"Delay({', '.join(given)})"
