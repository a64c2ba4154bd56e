"""Protocols whose noise is that of coins: bits in random order, and sums of shares.

* ``BitSum`` (P_Vec of Chowdhury & Zhou 2022, after Cheu, Joseph, Mao & Peng 2021): a person sends
  bits, labelled by coordinate.  The number of ones among 2 ``levels`` bits is the person's integer;
  each of ``noise`` more bits is 1 with probability 1/4.  The shuffler outputs all bits of a
  coordinate in random order, which reveal no more than the number of ones.  The device also
  shuffles its own messages; the published randomiser does not, and reveals the integer.
* ``ModularSum`` (secure aggregation with binomial shares; Agarwal et al. 2018): a person sends
  their integers plus the heads of ``noise`` fair coins, modulo m.  The shuffler outputs the sum
  modulo m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ..privacy import ApproxDP
from ..rooms import papers
from .certificates import Tails
from .certified import CertifiedProtocol
from .protocols import Shares
from .randomness import Source


class _Coins(CertifiedProtocol):
    """People add the heads of their coins to their integer, which is shifted to [0, 2 levels]."""

    heads: ClassVar[float]  # probability

    @property
    def _most(self) -> int:
        return 2 * self.levels + self.noise

    @property
    def _variance(self) -> float:
        return self.noise * self.heads * (1.0 - self.heads)

    def _noise_of_std(self, std: float) -> float:
        return std**2 / ((self.batch - self.dropout) * self.heads * (1.0 - self.heads))

    def _hiding(self, people: int) -> Tails:
        return Tails(people * self.noise, self.heads)

    @property
    def noise_law(self) -> tuple[float, float]:
        return float(self.batch * self.noise), self.heads

    def _noise_of_sums(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        coins = self.batch * self.noise
        return rng.binomial(coins, self.heads, shape) - coins * self.heads

    def _centred(self, counts: np.ndarray) -> np.ndarray:
        return counts - self.batch * (self.levels + self.noise * self.heads)


@dataclass(frozen=True, kw_only=True)
class BitSum(_Coins):
    """Labelled bits, in random order: the protocol P_Vec; see ``coins`` and ``Protocol``.

    When to choose: where all that the shuffler can do is to mix.

    Example:
        >>> from dpbandits.shuffle import Analyzer, Randomizer, Shuffler
        >>> protocol = BitSum.calibrated(ApproxDP(5.0, 1e-3), batch=50, dimension=2, bound=1.0)
        >>> randomizer = Randomizer(protocol, noise="simulation", seed=1)
        >>> shuffler = Shuffler(protocol, noise="simulation", seed=2)
        >>> mixed = shuffler.shuffle([randomizer.encode([0.6, -0.8]) for person in range(50)])
        >>> Analyzer(protocol).aggregate(mixed).round(1).tolist()
        [28.8, -43.8]
    """

    fineness, heads = 5, 0.25

    @classmethod
    def published(
        cls,
        budget: ApproxDP,
        *,
        batch: int,
        features: int,
        batches: int = 1,
        level: str = "shuffle",
    ) -> Self:
        """Chowdhury & Zhou (2022), Theorem C.1, for linear bandits with ``features`` numbers in x,
        |x| <= 1 and |y| <= 1.  People send the vector x y, and the upper triangle of x x', of joint
        sensitivity sqrt(4.5).

        g is rounded up to an integer.  The paper sends g + b bits, but shifts coordinates to
        [0, 2], for which 2 g + b are needed.  For people in several ``batches`` it divides the
        budget by advanced composition (Theorem E.5).  At the local level (Corollary C.3) it takes
        the noise of batches of one.
        """
        made = papers("shuffle.published").for_bits(budget, batch, features, batches, level)
        return cls(**made)

    def messages(self, integers: np.ndarray, source: Source) -> np.ndarray:
        ones = (integers + self.levels)[..., None] > np.arange(2 * self.levels)
        bits = np.concatenate([ones, source.quarters((*integers.shape, self.noise))], axis=-1)
        # In an order that says nothing, for whoever sees them before the shuffler does.
        return source.permuted_bits(bits.reshape(-1, self._most)).reshape(bits.shape)

    @property
    def record(self) -> tuple[tuple[int, ...], int, int]:
        return (self.dimension, self._most), 0, 1

    def mixed(self, values: np.ndarray, source: Source) -> np.ndarray:
        return source.permuted_bits(values.swapaxes(0, 1).reshape(self.mixed_shape))

    @property
    def mixed_shape(self) -> tuple[int, ...]:
        return self.dimension, self.batch * self._most

    def total(self, mixed: np.ndarray) -> np.ndarray:
        return self._centred(mixed.sum(axis=1, dtype=np.int64))


@dataclass(frozen=True, kw_only=True)
class ModularSum(Shares, _Coins):
    """Shares of noise under secure aggregation; see ``coins``, ``Shares`` and
    ``Protocol``.

    When to choose: the shuffler can sum; messages are short, so the grid may be fine.

    Example:
        >>> protocol = ModularSum.calibrated(ApproxDP(1.0, 1e-3), batch=50, dimension=2, bound=1.0)
        >>> protocol.levels, round(protocol.noise_std, 2)
        (23, 5.23)
    """

    fineness, heads = 32, 0.5

    @property
    def modulus(self) -> int:
        return self.batch * self._most + 1

    def messages(self, integers: np.ndarray, source: Source) -> np.ndarray:
        return integers + self.levels + source.heads(integers.shape, self.noise)

    def total(self, mixed: np.ndarray) -> np.ndarray:
        return self._centred(mixed)
