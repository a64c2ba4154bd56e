"""Shares of discrete Laplace noise: noisy sums of a batch in pure DP.

Guarantee: pure DP of the shuffler's output, which is the sum modulo m, for one person's integers.
It assumes the noise of n = ``batch`` - ``dropout`` people.

People add to their integers the difference of two Polya variables with parameters 1/n and
exp(-1/b), modulo m (Goryczka & Xiong 2015).  In bandits this is due to Chowdhury & Zhou 2023,
Distributed Differential Privacy in Multi-Armed Bandits.

*Noise of the sum.*  n such variables add up to a geometric one.  The difference of two of these is
discrete Laplace with weights exp(-|k| / b).  This law is exact, not a limit, and so are the draws
(``randomness``).  The noise of any n people is enough.  The noise of the others is independent of
it, or missing, or known: adding it is post-processing.

*Shift of the sum.*  In the L1 norm.  With the coupling of ``protocols`` coordinate i moves by at
most d_i + 1 for a difference d_i in steps.  Hence all D coordinates move by at most sqrt(D) S + D,
and by no more than 2 ``levels`` each.  An unrestricted scalar moves by at most 2 ``levels``:
rounding costs nothing.  Weights change by a factor of at most exp(shift / b), for every U:
mixtures, and batches, are (shift / b)-DP.

*Modulus.*  Taking the sum modulo m is post-processing.  It changes the sum only if the noise is
larger than t with m = 2 n ``levels`` + 2 t + 1.  A sum X of r n Polya variables with r = ``batch``
/ n has E exp(X / 2b) <= 2^r.  So |X - X'| > t has probability at most 2 2^r exp(-t / 2b), which is
2^-64 for t = 2 b (r + 65) log 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import ArgumentError
from ..privacy import Budget, PureDP
from ..validation import real
from .protocols import Shares
from .randomness import Source

_UP = 1.0 + 2.0**-30
_LARGEST = 40.0


@dataclass(frozen=True, kw_only=True)
class LaplaceShares(Shares):
    """Shares of discrete Laplace noise under secure aggregation; see this module, ``Shares`` and
    ``Protocol``.

    When to choose: for pure DP.  Of vectors every coordinate pays for itself: for many of them
    ``ModularSum`` needs less noise.

    Example:
        >>> protocol = LaplaceShares.calibrated(PureDP(1.0), batch=50, dimension=1, bound=0.5)
        >>> protocol.levels, protocol.noise, round(protocol.noise_std, 4)
        (512, 1024, 1.4142)
    """

    fineness: ClassVar[int] = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch * self.modulus >= 2**62:
            raise ArgumentError(
                f"batch, levels or noise must be smaller, because sums modulo {self.modulus}"
                " overflow"
            )

    @property
    def shift(self) -> int:
        """Sensitivity of the sum of integers to one person, in the L1 norm."""
        moved = math.sqrt(self.dimension) * self.sensitivity / self.step * _UP
        return min(math.floor(moved) + self.dimension, 2 * self.levels * self.dimension)

    @property
    def epsilon(self) -> float:
        """Epsilon of the shuffler's output, in pure DP, for a person in one batch."""
        return self.shift / self.noise

    def delta_at(self, epsilon: float, batches: int = 1) -> float:
        total = self.epsilon * batches
        over = total - real("epsilon", epsilon, 0.0)  # randomised response is the worst case
        return max(0.0, -math.expm1(-over) / (1.0 + math.exp(-total)))

    @property
    def modulus(self) -> int:
        reach = 2.0 * self.noise * (self.batch / self._enough + 65.0) * math.log(2.0)
        return 2 * (self.batch * self.levels + math.ceil(reach)) + 1

    @property
    def _enough(self) -> int:
        return self.batch - self.dropout

    def _least_noise(self, budget: Budget, batches: int, level: str) -> int:
        if level == "local":
            raise ArgumentError("level must be 'shuffle' for LaplaceShares, got 'local'", "level")
        if not (isinstance(budget, PureDP) and budget.epsilon <= _LARGEST):
            what = f"PureDP with epsilon at most {_LARGEST:g} for LaplaceShares"
            raise ArgumentError(f"budget must be {what}, got {budget!r}")
        shift = self.shift * batches
        # A division may round down, and the noise would then miss the budget by a little.
        noise = math.ceil(shift / budget.epsilon)
        return noise if shift / noise <= budget.epsilon else noise + 1

    @property
    def _variance(self) -> float:
        # One person's part of the variance of the discrete Laplace law.
        return 0.5 / math.sinh(0.5 / self.noise) ** 2 / self._enough

    def _noise_of_sums(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        law = self.batch / self._enough, -math.expm1(-1.0 / self.noise)
        return rng.negative_binomial(*law, shape) - rng.negative_binomial(*law, shape)

    def messages(self, integers: np.ndarray, source: Source) -> np.ndarray:
        up, down = source.polyas(self.noise, self._enough, (2, *integers.shape))
        return (integers + up - down) % self.modulus

    def total(self, mixed: np.ndarray) -> np.ndarray:
        # The upper half of the residues stands for negative sums.
        return np.where(mixed > self.modulus // 2, mixed - self.modulus, mixed)
