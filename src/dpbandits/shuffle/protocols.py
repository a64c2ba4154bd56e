"""Protocols that sum vectors of a batch of people: what they share, and the server's view.

A vector is shortened to the L2 norm ``bound``, clipped to ``largest`` in every coordinate, and put
on a grid of ``levels`` steps by unbiased random rounding.  To these integers devices add noise: as
``reports``, ``coins`` or ``laplace`` says.

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

Hardly any U moves all coordinates that far.  ``certificates`` counts with the law of the shift.  So
each coordinate has a U of its own, which is drawn anew for every batch and stays secret.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import ArgumentError
from ..privacy import Budget
from ..tables import as_numbers
from ..validation import choice, integer, real
from .randomness import Source

LEVELS = ("shuffle", "local")
_UP = 1.0 + 2.0**-30  # outweighs the rounding of floats on the way to the grid
_UNIT = 2**32  # parts of a step


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
        dropout: people of a batch whose noise may be missing or known.  They are protected, too, if
            the random bits that rounded their vectors stay secret.

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

        >>> from dpbandits.privacy import ApproxDP
        >>> from dpbandits.shuffle import BitSum
        >>> budget = ApproxDP(1.0, 0.1)
        >>> BitSum.calibrated(budget, batch=20, dimension=20, bound=1.0, levels=9).noise
        122
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
    def distance(self) -> float:
        """Of two vectors of one person, in steps of the grid, before they are rounded."""
        return self.sensitivity / self.step * _UP

    @property
    def bias(self) -> float:
        """The most by which random rounding moves the mean of a coordinate: half a part of a step,
        and for the rounding of floats as much again.
        """
        return self.step / _UNIT

    @property
    def shift(self) -> float:
        """Sensitivity of the sum of integers to one person, in the L2 norm, for any rounding."""
        root = math.sqrt(self.dimension)
        return min(self.distance + root, 2.0 * self.levels * root)

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on a coordinate of the sum; rounding adds at most
        ``batch step^2 / 4`` to its square.
        """
        return self.step * math.sqrt(self.batch * self._variance)

    def to_dict(self) -> dict[str, Any]:
        """All parameters for a program in another language that makes messages, for JSON.

        To round a coordinate it must draw 32 random bits, use them once, and keep them secret.
        """
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
