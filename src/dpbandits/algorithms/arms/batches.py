"""Batches: the number of rounds that an arm is played before its sum is released.

Lengths are public: they depend on parameters, and on how often an arm was played.

**Growth.**  If rewards vary more than noise, the information in an arm's sums depends on its
rounds, not on the number of sums.  If noise varies more, a batch of n rounds is worth n^2 over the
variance of its noise.  Then few long batches are worth more than many short ones.  Hence a batch
has 1/3 of the arm's rounds before it in the first case, and 3/2 in the second.  Between them the
ratio of the two variances decides.  The variance of a reward is taken as 1/10, so lengths are known
beforehand.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...constraints import Constraints, Integer, Real
from ...errors import ArgumentError
from ...kernel import kernel
from ...policies import Part
from ..bases.counter_choice import MOST_ROUNDS
from .law import noise_variance

GROWTH, GROWTH_IN_NOISE = 1.0 / 3.0, 1.5
_SCATTER = 0.1  # the variance of a reward that batches are planned for


@kernel
def batch_rounds(params: Any, n: float) -> int:
    """Length of the next batch of an arm with n rounds."""
    noise = noise_variance(params)
    # Of the variance of a sum of n rounds, the share that is noise.
    share = noise / (noise + _SCATTER * n) if noise > 0.0 else 0.0
    growth = params.growth + (params.growth_in_noise - params.growth) * share
    return max(params.first, int(np.ceil(growth * n)))


@kernel
def weight_of(params: Any, n: float) -> float:
    """Weight of a batch's noisy sum, relative to that of a single round."""
    noise = noise_variance(params)
    # 1/4 bounds the variance of a reward in [0, 1]; the weight is one over that of the mean.
    return (0.25 + noise) / (0.25 / n + noise / (n * n))


class Plan(NamedTuple):  # what kernels know of a schedule
    first: int  # rounds of the shortest batch
    longest: int | None  # None: as the memory has it
    growth: float  # in proportion to an arm's rounds before, where rewards scatter more than noise
    growth_in_noise: float


@dataclass(frozen=True, repr=False)
class Batches(Part, base=True):
    """Base class of schedules of batches, which have a ``plan``."""

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """Parameters of the schedule for kernels."""


@dataclass(frozen=True, repr=False)
class Growing(Batches):
    """A batch has ``ratio`` times as many rounds as its arm had before: max(first, ratio n)
    after n rounds.  Doubling is common (Azize & Basu 2022); the default ratio is of this package.

    Args:
        ratio: see above.  Default: 1/3 where rewards scatter more than the noise of the budget,
            3/2 where noise does, and between them.  With 1, batches double.
        first: rounds of an arm's first batch, and of the shortest.
        longest: rounds of the longest batch.  Default: any, but for memories that fade.

    When to choose: the default has least regret.

    >>> Growing(ratio=0.5)
    Growing(ratio=0.5)
    """

    ratio: float | None = None
    first: int = 1
    longest: int | None = None

    constraints: ClassVar[Constraints] = {
        "ratio": Real(0.01, 100.0) | None,
        "first": Integer(1, MOST_ROUNDS),
        "longest": Integer(1, MOST_ROUNDS) | None,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest is not None and self.longest < self.first:
            raise ArgumentError(
                f"longest must be at least first, which is {self.first}, got {self.longest}",
                "longest",
            )

    @property
    def plan(self) -> Plan:
        growth = (GROWTH, GROWTH_IN_NOISE) if self.ratio is None else (self.ratio, self.ratio)
        return Plan(self.first, self.longest, *growth)


@dataclass(frozen=True, repr=False)
class Fixed(Batches):
    """All batches have the same number of rounds.

    Args:
        rounds: that number.

    When to choose: choices are deployed on a schedule of your own.
    """

    rounds: int

    constraints: ClassVar[Constraints] = {"rounds": Integer(1, MOST_ROUNDS)}

    @property
    def plan(self) -> Plan:
        return Plan(self.rounds, self.rounds, 0.0, 0.0)
