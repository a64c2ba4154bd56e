"""The base of mechanisms: a factorisation A = B C of the matrix that sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...validation import integer
from .running_sums import INDEPENDENT, INTEGERS, RunningSum

LONGEST = 2**48  # releases
_DENSE = 8192  # rows of a matrix that is written out


class Counter(ABC):
    """The base of the mechanisms.  C has a row for each noise vector, B a row for each release.

    The ``norm`` of all methods is 2 for Gaussian noise, 1 for Laplace noise.

    Attributes:
        horizon: the number of releases planned; None for any number.
    """

    horizon: int | None
    pure: ClassVar[bool] = True  # whether Laplace noise makes sense
    kind: ClassVar[int]

    def column_norm(self, norm: int = 2) -> float:
        """The length of the longest column of C: the factor of the sensitivity in all rows.

        Raises:
            ArgumentError: a norm that the mechanism has no use for.
        """
        if norm not in (1, 2):
            raise ArgumentError(f"norm must be 1 (Laplace) or 2 (Gaussian), got {norm!r}", "norm")
        if norm == 1 and not self.pure:
            raise ArgumentError(
                f"norm must be 2 (Gaussian) for {type(self).__name__}, got 1: Laplace noise would"
                " grow with about the square root of the horizon. Use BinaryTree, HonakerTree or"
                " HybridTree",
                "norm",
            )
        return self._column(norm)

    def exact_column_norm(self, norm: int = 2) -> float:
        """The ``column_norm`` that privacy requires: a record's cost depends on their quotient."""
        return self.column_norm(norm)

    def growth(self, records: int, norm: int = 2) -> float:
        """The ratio of two distances: so many records of one user, each in its own increment,
        against one record.  A distance is that of all rows together.

        Where a sum ends and another begins, as after a crash, a user may have records in both.
        They cost no more than if all were in one sum.  The squares of growths (Laplace noise:
        growths) of j and of k records add up to at most that of j + k.

        Returns:
            At least max |sum of so many columns of C| / ``exact_column_norm``.

        Raises:
            ArgumentError: ``records`` is not between 1 and the horizon, or as for ``column_norm``.

        >>> Independent(10).growth(4), Independent(10).growth(4, norm=1)
        (2.0, 4.0)
        """
        self.column_norm(norm)  # which refuses other norms
        return self._growth(integer("records", records, 1, self.horizon or LONGEST), norm)

    def _growth(self, records: int, norm: int) -> float:
        # The triangle inequality; in the L1 norm it is attained, since entries are not negative,
        # by columns of full length.
        return float(records)

    def widening(self, n: int, norm: int = 2) -> float:
        """The largest coefficient of a noise variable of scale ``column_norm`` in releases 1..n."""
        return 1.0

    def variance(self, t: ArrayLike, norm: int = 2) -> float | np.ndarray:
        """The variance of coordinates of release ``t``, in units of (multiplier * sensitivity)^2.

        Args:
            t: an integer or an array of them, from 1 to the horizon.
            norm: of Laplace noise the variance is twice the squared scale.

        Returns:
            A float, or an array of the shape of ``t``.

        Raises:
            ArgumentError: an entry of ``t`` is out of range, or as for ``column_norm``.
        """
        releases = np.asarray(t)
        high = self.horizon or LONGEST
        if releases.dtype.kind not in "iu" or not np.all((releases >= 1) & (releases <= high)):
            raise ArgumentError(f"t must be integers between 1 and {high}, got {t!r}", "t")
        column = self.column_norm(norm)
        variance = (2.0 if norm == 1 else 1.0) * column * column * self._row_squares(releases, norm)
        return variance if releases.ndim else float(variance)

    def max_variance(self, n: int | None = None, norm: int = 2) -> float:
        """The largest variance of the releases 1..n; ``n`` is the horizon by default."""
        return float(np.max(self.variance(self._peaks(self._length(n)), norm)))

    def encoder(self, n: int | None = None, norm: int = 2) -> np.ndarray:
        """The factor C of the first n releases, by default of all, for at most 8192.

        Returns:
            Shape (rows, n).

        Raises:
            ArgumentError: ``n`` is out of range, or missing without a horizon.

        See also: ``decoder``.

        >>> from dpbandits.privacy import BinaryTree
        >>> BinaryTree(3).encoder().astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
        """
        return self._encoder(self._dense(n), norm)

    def decoder(self, n: int | None = None, norm: int = 2) -> np.ndarray:
        """The factor B of the first n releases, by default of all.

        Returns:
            Shape (n, rows), rows as of ``encoder``.

        Raises:
            ArgumentError: as for ``encoder``.

        >>> from dpbandits.privacy import BinaryTree
        >>> BinaryTree(3).decoder().astype(int).tolist()
        [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
        """
        return self._decoder(self._dense(n), norm)

    def start(self, n: int, norm: int = 2) -> RunningSum:
        """A running sum of vectors of n numbers, empty, for the compiled code.

        Raises:
            ArgumentError: its memory would be too large.
        """
        table, rows = self._storage(integer("n", n, 1), norm)
        public = self.kind, self.horizon or 0, self.column_norm(norm)
        return RunningSum(*public, np.zeros(1, np.int64), table, np.zeros((rows, n)), np.zeros(n))

    def _length(self, n: int | None) -> int:
        if n is None and self.horizon is None:
            name = type(self).__name__
            raise ArgumentError(
                f"n must be given for {name}, which is not planned for a number of releases", "n"
            )
        return integer("n", self.horizon if n is None else n, 1, self.horizon or LONGEST)

    def _dense(self, n: int | None) -> int:
        return integer("n", self._length(n), 1, _DENSE)

    def _peaks(self, n: int) -> np.ndarray:
        """Releases up to n that include the one with the largest variance."""
        return np.array([n])

    @abstractmethod
    def _column(self, norm: int) -> float: ...

    @abstractmethod
    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        """The squared L2 norm of rows t of B."""

    @abstractmethod
    def _encoder(self, n: int, norm: int) -> np.ndarray: ...

    @abstractmethod
    def _decoder(self, n: int, norm: int) -> np.ndarray: ...

    @abstractmethod
    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        """The table of coefficients, and the rows of memory."""


@dataclass(frozen=True)
class Independent(Counter):
    """Every increment has noise of its own: C = I, and the variance grows with t.

    Args:
        horizon: the number of releases planned; None for any number.

    Example:
        >>> Independent(300).max_variance() / 2
        150.0
    """

    horizon: int | None = None
    kind: ClassVar[int] = INDEPENDENT

    def __post_init__(self) -> None:
        if self.horizon is not None:
            object.__setattr__(self, "horizon", integer("horizon", self.horizon, 1, LONGEST))

    def _column(self, norm: int) -> float:
        return 1.0

    def _growth(self, records: int, norm: int) -> float:
        return float(records) ** (1 / norm)  # columns have no row in common

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        return t.astype(np.float64)

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        return np.eye(n)

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        return np.tri(n)

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        return np.zeros((1, 1)), 1


@dataclass(frozen=True)
class IndependentIntegers(Independent):
    """Sums to which people have added integer noise of their own: coins, or rounded normals."""

    amount: float = 0.0  # how many coins, or the standard deviation of normals, in steps
    heads: float = 0.0  # the probability with which a coin shows heads; 0 for normals
    step: float = 1.0  # of the grid
    rounding: float = 0.0  # the standard deviation of what rounding to it adds, in steps
    kind: ClassVar[int] = INTEGERS

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        return np.array([[self.amount, self.heads, self.step, self.rounding]]), 1
