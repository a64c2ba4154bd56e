"""Protocols that sum vectors of a batch of people: their noise, and the server's view.

A vector is shortened to the L2 norm ``bound``, clipped to ``largest`` in every coordinate, and put
on a grid of ``levels`` steps by unbiased random rounding.  To these integers devices add noise.

* ``BitSum`` (P_Vec of Chowdhury & Zhou 2022, after Cheu, Joseph, Mao & Peng 2021): a person sends
  bits, labelled by coordinate.  The number of ones among 2 ``levels`` bits is the person's integer;
  each of ``noise`` more bits is 1 with probability 1/4.  The shuffler outputs all bits of a
  coordinate in random order, which reveal no more than the number of ones.  The device also
  shuffles its own messages; the published randomiser does not, and reveals the integer.
* ``ModularSum`` (secure aggregation with binomial shares; Agarwal et al. 2018): a person sends
  their integers plus the heads of ``noise`` fair coins, modulo m.  The shuffler outputs the sum
  modulo m.
* ``GaussianReports`` (P_Amp): a person sends their integers plus discrete Gaussian noise with
  parameter ``noise``.  The shuffler outputs all reports in random order.  ``delta_at`` is that of a
  single report: amplification by shuffling is not counted.
* ``LaplaceShares``, for pure DP, is in ``laplace``.

*Noise of the sum.*  B people with b coins each make one binomial with exactly B b coins.
``dropout`` people may be absent, leave out their noise, or reveal it to the server.  The bound uses
the coins of the others only, and treats messages of these people as constants.

*Shift of the sum.*  One person's vector changes from x to x', in steps of the grid, by |x - x'|_2
<= S.  Coordinates are rounded to floor(x + U), U uniform.  Couple both worlds by the same U: a
bound that holds for every U holds for the mixture, since (epsilon, delta)-DP is jointly convex.
The integers floor(x + U) and floor(x' + U) differ by at most ceil(|x - x'|) < |x - x'| + 1.  Hence
all of them move by at most S + sqrt(D).  (Without the coupling x and x' are each rounded by up to
1, which costs 2 sqrt(D).)  In code U has 32 bits, and x is rounded to as many, which adds at most
2^-32 to |x - x'|.  In return the ceiling of a multiple of 2^-32 adds at most 1 - 2^-32.  For any
vector, integers stay in [-levels, levels].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import ArgumentError
from ..privacy import ApproxDP, Budget
from ..rooms import papers
from ..tables import as_numbers
from ..validation import choice, integer, real
from .certificates import DiscreteGaussian, Tails
from .randomness import Source

LEVELS = ("shuffle", "local")
_UP = 1.0 + 2.0**-30  # outweighs the rounding of floats on the way to the grid
_UNIT = 2**32  # parts of a step
_LARGEST = 40.0  # epsilon


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """Base class of protocols; ``calibrated`` makes one for a budget.

    Attributes:
        batch: people in a batch, B.
        dimension: coordinates of a vector, D.
        bound: of the L2 norm of a vector.
        levels: steps of the grid from 0 to ``largest``.
        noise: bits or coins per person and coordinate.  For ``GaussianReports`` the parameter, and
            for ``LaplaceShares`` the scale of the noise, in steps.
        sensitivity: the most by which two possible vectors of one person differ in the L2 norm; at
            most, and unless given, 2 ``bound``.  The caller who makes the vectors must guarantee
            it.
        largest: of a coordinate in absolute value; at most, and unless given, ``bound``.
        dropout: people of a batch whose noise may be missing or known.

    Raises:
        ArgumentError: a number is out of its range.
    """

    batch: int
    dimension: int
    bound: float
    levels: int
    noise: int
    sensitivity: float = math.nan
    largest: float = math.nan
    dropout: int = 0

    fineness: ClassVar[int]  # steps of a sensitivity in proportion to sqrt(D), what rounding adds

    def __post_init__(self) -> None:
        integer("batch", self.batch, 1)
        integer("dimension", self.dimension, 1)
        integer("levels", self.levels, 1, 2**20)
        integer("noise", self.noise, 1, 2**40)
        integer("dropout", self.dropout, 0, self.batch - 1)
        real("bound", self.bound, 0.0, strict=True)
        for name, most in (("sensitivity", 2.0 * self.bound), ("largest", self.bound)):
            value = getattr(self, name)
            given = most if value != value else real(name, value, most * 1e-6, most)
            object.__setattr__(self, name, given)

    @classmethod
    def calibrated(
        cls,
        budget: Budget,
        *,
        levels: int | None = None,
        batches: int = 1,
        level: str = "shuffle",
        **shape: Any,
    ) -> Self:
        """Protocol with the least noise that is proved to keep the budget.

        Args:
            budget: of one person over all batches: ``PureDP`` for ``LaplaceShares``, ``ApproxDP``
                for others.
            batches: maximal number of batches of one person.
            level: "shuffle" if the shuffler's output keeps the budget; "local" if a person's
                messages do so alone, for any behaviour of others.
            levels: a larger number makes rounding cheaper, and messages longer.
            **shape: the other attributes, without ``noise``.

        Raises:
            ArgumentError: a number is out of its range, or no noise is known to be enough.

        >>> budget = ApproxDP(1.0, 0.1)
        >>> from dpbandits.shuffle import BitSum
        >>> BitSum.calibrated(budget, batch=20, dimension=20, bound=1.0, levels=9).noise
        170
        """
        bare = cls(levels=levels or 1, noise=1, **shape)
        if levels is None:
            ratio = math.sqrt(bare.dimension) * bare.largest / bare.sensitivity
            bare = replace(bare, levels=min(2**20, math.ceil(cls.fineness * ratio)))
        choice("level", level, LEVELS)
        return replace(bare, noise=bare._least_noise(budget, integer("batches", batches, 1), level))

    @property
    def step(self) -> float:
        """The width of a step of the grid."""
        return self.largest / self.levels

    @property
    def shift(self) -> float:
        """Sensitivity of the sum of integers to one person, in the L2 norm."""
        root = math.sqrt(self.dimension)
        return min(self.sensitivity / self.step * _UP + root, 2.0 * self.levels * root)

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on a coordinate of the sum; rounding adds at most
        ``batch step^2 / 4`` to its square.
        """
        return self.step * math.sqrt(self.batch * self._variance)

    def to_dict(self) -> dict[str, Any]:
        """All parameters for a program in another language that makes messages, for JSON."""
        return {"class": type(self).__name__, **asdict(self)}

    def simulate_sums(self, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Noisy sums in the law of ``Analyzer.aggregate``, without messages; for simulations.

        Args:
            vectors: of shape (..., n, D) with n at most ``batch``; missing people add only noise.
            rng: a generator; an attacker with its state can remove the noise.

        Returns:
            An array of shape (..., D).
        """
        table = self.table(vectors)
        words = rng.integers(0, _UNIT, table.shape, np.uint32)
        sums = self.rounded(table, words).sum(axis=-2)
        return self.step * (sums + self._noise_of_sums(sums.shape, rng))

    def table(self, vectors: Any) -> np.ndarray:
        """Vectors as an array of shape (..., n, D), with NaN for entries that are no numbers;
        ``ArgumentError`` if the shape is wrong.
        """
        table = as_numbers(vectors)
        if table.ndim > 1 and table.shape[-1] == self.dimension and table.shape[-2] <= self.batch:
            return table.astype(np.float64, copy=False)
        shape = f"(n, {self.dimension}) with n at most {self.batch}"
        raise ArgumentError(f"vectors must have shape {shape}, got {table.shape}", "vectors")

    def rounded(self, vectors: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Integers in [-levels, levels] whose means are the vectors in steps of the grid.

        Entries that are no finite numbers count as 0: an exception would reveal them.
        """
        x = np.where(np.isfinite(vectors), vectors, 0.0)
        longest = np.abs(x).max(axis=-1, keepdims=True)
        x = x * (self.bound / np.maximum(longest, self.bound))  # so that squares do not overflow
        # Added up from left to right, as every device does; NumPy's sums have orders of their own.
        length = np.sqrt(np.cumsum(x * x, axis=-1)[..., -1:])
        x = x * (self.bound / np.maximum(length, self.bound))
        x = np.clip(x, -self.largest, self.largest)
        fine = np.rint(x * (self.levels / self.largest * _UNIT)).astype(np.int64)
        return (fine + words) >> 32

    # What a protocol has of its own ---------------------------------------------------------------

    @abstractmethod
    def delta_at(self, epsilon: float, batches: int = 1) -> float:
        """A proved delta for which the shuffler's output is (epsilon, delta)-DP for a person in the
        given number of batches.
        """

    @abstractmethod
    def _least_noise(self, budget: Budget, batches: int, level: str) -> int: ...

    @property
    @abstractmethod
    def _variance(self) -> float: ...  # of the noise of one person, in squared steps

    @abstractmethod
    def _noise_of_sums(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """The noise of whole batches, in steps, with mean 0."""

    @abstractmethod
    def messages(self, integers: np.ndarray, source: Source) -> np.ndarray:
        """Messages of devices for integers of shape (n, D), one record per row."""

    @property
    @abstractmethod
    def record(self) -> tuple[tuple[int, ...], int, int]:
        """The shape of a record, its least and its largest value."""

    @abstractmethod
    def mixed(self, values: np.ndarray, source: Source) -> np.ndarray:
        """The shuffler's output for the records of a full batch."""

    @property
    @abstractmethod
    def mixed_shape(self) -> tuple[int, ...]:
        """The shape of the shuffler's output."""

    @abstractmethod
    def total(self, mixed: np.ndarray) -> np.ndarray:
        """The noisy sum in steps, shape (D,), computed from the shuffler's output."""


class CertifiedProtocol(Protocol):
    """Base class of protocols with a privacy proof in ``certificates``."""

    def delta_at(self, epsilon: float, batches: int = 1, level: str = "shuffle") -> float:
        epsilon = real("epsilon", epsilon, 0.0)
        return self._tails_at(level).delta(epsilon, self.shift, self.dimension, batches)

    def epsilon_at(self, delta: float, batches: int = 1, level: str = "shuffle") -> float:
        """A proved epsilon for a person in the given number of batches; infinite if none is known.
        It holds for the shuffler's output, or at the local level for one person's messages, even if
        all others reveal theirs to the server.
        """
        most, tails = 60.0, self._tails_at(level)
        real("delta", delta, 0.0, 1.0, strict=True)

        def excess(epsilon: float) -> float:
            return tails.delta(epsilon, self.shift, self.dimension, batches) - delta

        if excess(most) > 0.0:
            return math.inf
        return 0.0 if excess(0.0) <= 0.0 else _crossing(excess, most)

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


@lru_cache(maxsize=256)  # every chooser makes its policy anew
def _least_certified(
    protocol: CertifiedProtocol, budget: ApproxDP, batches: int, level: str
) -> int:
    def keeps(noise: int) -> bool:
        made = replace(protocol, noise=noise)
        return made.delta_at(budget.epsilon, batches, level) <= budget.delta

    # Normal noise would need that much: where to begin to look.
    std = protocol.shift * math.sqrt(batches) / budget.mu
    alone = replace(protocol, batch=1, dropout=0) if level == "local" else protocol
    return _smallest(keeps, min(math.ceil(alone._noise_of_std(std)), 2**40))


class Shares(Protocol):
    """Protocols whose shuffler outputs the sum of messages modulo ``modulus``.

    ``Shuffler`` adds up in the clear; cryptography may compute the same sum in its place.
    """

    @property
    @abstractmethod
    def modulus(self) -> int:
        """A modulus larger than any sum of a batch: no sum wraps around."""

    @property
    def record(self) -> tuple[tuple[int, ...], int, int]:
        return (self.dimension,), 0, self.modulus - 1

    def mixed(self, values: np.ndarray, source: Source) -> np.ndarray:
        return values.sum(axis=0) % self.modulus

    @property
    def mixed_shape(self) -> tuple[int, ...]:
        return (self.dimension,)


@dataclass(frozen=True, kw_only=True)
class GaussianReports(CertifiedProtocol):
    """Reports with Gaussian noise of their own: the protocol P_Amp; see this module.

    When to choose: where people do not trust the others of their batch to add noise.

    Example:
        >>> budget = ApproxDP(1.0, 1e-3)
        >>> protocol = GaussianReports.calibrated(budget, batch=50, dimension=2, bound=1.0)
        >>> round(protocol.noise_std, 1)  # sqrt(50) times what a curator's Gaussian noise would be
        36.6
    """

    fineness: ClassVar[int] = 256

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
        """Chowdhury & Zhou (2022), Theorem 3.2, for the same vectors as ``BitSum.published``; or at
        the local level Corollary B.3.

        It covers epsilon <= sqrt(log(2 / delta) / batch) only, and promises an unnamed multiple of
        (epsilon, delta); ``delta_at`` returns the true delta of a report.  For people in several
        ``batches`` it divides the budget by advanced composition (the proof of Theorem E.3, which
        gives log(4 batches / delta); the statement has log(2 / delta)).
        """
        made = papers("shuffle.published").for_reports(budget, batch, features, batches, level)
        return cls(**made)

    @property
    def _variance(self) -> float:
        return float(self.noise) ** 2

    def _noise_of_std(self, std: float) -> float:
        return std

    def _hiding(self, people: int) -> DiscreteGaussian:
        return DiscreteGaussian(self.noise)

    @property
    def noise_law(self) -> tuple[float, float]:
        return self.noise * math.sqrt(self.batch), 0.0

    def _noise_of_sums(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        everybody = (*shape[:-1], self.batch, shape[-1])
        return np.rint(rng.normal(0.0, self.noise, everybody)).sum(axis=-2)

    def to_dict(self) -> dict[str, Any]:
        # As numerator and denominator, which no float could hold.
        return {**super().to_dict(), "sigma_squared": [str(self.noise**2), "1"]}

    def messages(self, integers: np.ndarray, source: Source) -> np.ndarray:
        return integers + source.gaussians(self.noise, integers.shape)

    @property
    def record(self) -> tuple[tuple[int, ...], int, int]:
        most = self.levels + 64 * self.noise  # honest noise is never that large
        return (self.dimension,), -most, most

    def mixed(self, values: np.ndarray, source: Source) -> np.ndarray:
        return values[source.order(self.batch)]

    @property
    def mixed_shape(self) -> tuple[int, ...]:
        return self.batch, self.dimension

    def total(self, mixed: np.ndarray) -> np.ndarray:
        return mixed.sum(axis=0)


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
    """Labelled bits, in random order: the protocol P_Vec; see ``protocols`` and ``Protocol``.

    When to choose: where all that the shuffler can do is to mix.

    Example:
        >>> from dpbandits.shuffle import Analyzer, Randomizer, Shuffler
        >>> protocol = BitSum.calibrated(ApproxDP(5.0, 1e-3), batch=50, dimension=2, bound=1.0)
        >>> randomizer = Randomizer(protocol, noise="simulation", seed=1)
        >>> shuffler = Shuffler(protocol, noise="simulation", seed=2)
        >>> mixed = shuffler.shuffle([randomizer.encode([0.6, -0.8]) for person in range(50)])
        >>> Analyzer(protocol).aggregate(mixed).round(1).tolist()
        [31.5, -39.2]
    """

    fineness, heads = 4, 0.25

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
    """Shares of noise under secure aggregation; see ``protocols``, ``Shares`` and
    ``Protocol``.

    When to choose: the shuffler can sum; messages are short, so the grid may be fine.

    Example:
        >>> protocol = ModularSum.calibrated(ApproxDP(1.0, 1e-3), batch=50, dimension=2, bound=1.0)
        >>> protocol.levels, round(protocol.noise_std, 2)
        (23, 5.31)
    """

    fineness, heads = 32, 0.5

    @property
    def modulus(self) -> int:
        return self.batch * self._most + 1

    def messages(self, integers: np.ndarray, source: Source) -> np.ndarray:
        return integers + self.levels + source.heads(integers.shape, self.noise)

    def total(self, mixed: np.ndarray) -> np.ndarray:
        return self._centred(mixed)


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
