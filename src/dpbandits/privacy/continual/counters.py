"""The mechanisms: each a factorisation A = B C of the matrix that sums, with its norms and exact variances."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...errors import ArgumentError
from ...validation import integer, real
from . import buffers
from .running import BUFFERED, HONAKER, HYBRID, INDEPENDENT, TOEPLITZ, TREE, Running

_LONGEST = 2**48  # releases
_DENSE = 8192  # rows of a matrix that is written out
_ROOM = 2**24  # numbers in the memory of a square-root sum
_ROUNDED = 2**16  # rows whose rounded factor is inverted


class Counter(ABC):
    """The base of the mechanisms.  C has a row for each noise vector, B a row for each release.

    Attributes:
        horizon: the number of releases planned; None for any number.
    """

    horizon: int | None
    pure: ClassVar[bool] = True  # whether Laplace noise makes sense
    _kind: ClassVar[int]

    def column_norm(self, norm: int = 2) -> float:
        """The length of the longest column of C: by how much all rows together multiply the sensitivity.

        Args:
            norm: 2 for Gaussian noise, 1 for Laplace noise.

        Raises:
            ArgumentError: a norm that the mechanism has no use for.
        """
        if norm not in (1, 2):
            raise ArgumentError(f"norm must be 1 (Laplace) or 2 (Gaussian), got {norm!r}", "norm")
        if norm == 1 and not self.pure:
            raise ArgumentError(
                f"norm must be 2 (Gaussian) for {type(self).__name__}, got 1: a record moves all its later rows, whose sizes add up "
                "to about the square root of the horizon under Laplace noise; use BinaryTree, HonakerTree or HybridTree",
                "norm",
            )
        return self._column(norm)

    def exact_column_norm(self, norm: int = 2) -> float:
        """What privacy needs ``column_norm`` to be; the cost of a record rests on the quotient of the two."""
        return self.column_norm(norm)

    def variance(self, t: Any, norm: int = 2) -> Any:
        """The variance of each coordinate of release number ``t``, in units of (multiplier * sensitivity)^2.

        Args:
            t: an integer or an array of them, from 1 to the horizon.
            norm: 2 for Gaussian noise, 1 for Laplace noise, whose variance is twice its squared scale.

        Returns:
            A float, or an array of the shape of ``t``.
        """
        releases = np.asarray(t)
        high = self.horizon or _LONGEST
        if releases.dtype.kind not in "iu" or not np.all((releases >= 1) & (releases <= high)):
            raise ArgumentError(f"t must be integers between 1 and {high}, got {t!r}", "t")
        column = self.column_norm(norm)
        variance = (2.0 if norm == 1 else 1.0) * column * column * self._row_squares(releases, norm)
        return variance if releases.ndim else float(variance)

    def max_variance(self, n: int | None = None, norm: int = 2) -> float:
        """The largest variance of the releases 1..n; ``n`` is the horizon by default."""
        return float(np.max(self.variance(self._peaks(self._length(n)), norm)))

    def encoder(self, n: int | None = None, norm: int = 2) -> np.ndarray:
        """The factor C of the first n releases, shape (rows, n); at most 8192 releases are written out.

        >>> BinaryTree(3).encoder().astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
        """
        return self._encoder(self._dense(n), norm)

    def decoder(self, n: int | None = None, norm: int = 2) -> np.ndarray:
        """The factor B of the first n releases, shape (n, rows); at most 8192 releases are written out.

        >>> BinaryTree(3).decoder().astype(int).tolist()
        [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
        """
        return self._decoder(self._dense(n), norm)

    def start(self, n: int, norm: int = 2) -> Running:
        """A running sum of vectors of n numbers, empty, for the compiled code.

        Raises:
            ArgumentError: its memory would be too large.
        """
        table, rows = self._storage(integer("n", n, 1), norm)
        return Running(
            self._kind,
            self.horizon or 0,
            self.column_norm(norm),
            np.zeros(1, np.int64),
            table,
            np.zeros((rows, n)),
            np.zeros(n),
        )

    def _length(self, n: int | None) -> int:
        if n is None and self.horizon is None:
            raise ArgumentError(f"n must be given for {type(self).__name__}, which plans for no number of releases", "n")
        return integer("n", self.horizon if n is None else n, 1, self.horizon or _LONGEST)

    def _dense(self, n: int | None) -> int:
        return integer("n", self._length(n), 1, _DENSE)

    def _peaks(self, n: int) -> np.ndarray:
        """Releases up to n one of which has the largest variance."""
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


class _Dyadic(Counter):
    """What the trees have in common: a release adds up one node for each binary one of its number."""

    def _peaks(self, n: int) -> np.ndarray:
        # Of the numbers below n with the same digits down to some one of n, and a zero there, the one with ones only is worst.
        return np.array([n, *((n >> bit << bit) - 1 for bit in range(n.bit_length()) if n >> bit & 1 and n >> bit << bit > 1)])


@dataclass(frozen=True)
class BinaryTree(_Dyadic):
    """The binary tree (Dwork, Naor, Pitassi & Rothblum 2010; Chan, Shi & Song 2011).

    Release t draws one noise, for the sum of the increments since the last multiple of t's lowest binary digit, and adds up one
    such node for each binary one of t.  A record is in floor(log2 horizon) + 1 nodes at most.

    Args:
        horizon: the number of releases planned.
        levels: overrides the number of nodes that a record is counted in, to reproduce a published recipe; if that is too few, a
            record costs more than one release of the channel: see ``exact_column_norm``.

    Memory is logarithmic in the horizon.  Prefer it where noise must be Laplace or integer; under Gaussian noise ``SqrtToeplitz``
    and ``BufferedToeplitz`` have a tenth of its variance.

    Example:
        >>> tree = BinaryTree(20_000)
        >>> round(tree.max_variance() / 2, 1), tree.column_norm(1)  # divided by 2 rho, at rho = 1
        (105.0, 15.0)
    """

    horizon: int
    levels: float | None = None
    _kind: ClassVar[int] = TREE

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", integer("horizon", self.horizon, 1, _LONGEST))
        if self.levels is not None:
            object.__setattr__(self, "levels", real("levels", self.levels, 0.0, strict=True))

    def exact_column_norm(self, norm: int = 2) -> float:
        self.column_norm(norm)
        return float(self.horizon.bit_length()) ** (1 / norm)

    def _column(self, norm: int) -> float:
        return float(self.horizon.bit_length() if self.levels is None else self.levels) ** (1 / norm)

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        return np.bitwise_count(t).astype(np.float64)

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        c = np.zeros((n, n))
        for t in range(1, n + 1):
            c[t - 1, t - (t & -t) : t] = 1.0
        return c

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        b = np.zeros((n, n))
        for t in range(1, n + 1):
            b[t - 1] = b[t - (t & -t) - 1] if t & (t - 1) else 0.0
            b[t - 1, t - 1] = 1.0
        return b

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        return np.zeros((1, 1)), self.horizon.bit_length()


@dataclass(frozen=True)
class HonakerTree(_Dyadic):
    """The binary tree with every node noised, each averaged with what its halves say about it (Honaker 2015, from below).

    A record is in as many nodes as in ``BinaryTree``; the variance is about half.  Release t draws as many noises as t has
    trailing binary zeros, plus one.

    Args:
        horizon: the number of releases planned.

    Example:
        >>> round(HonakerTree(20_000).max_variance() / 2, 1)
        58.5
    """

    horizon: int
    _kind: ClassVar[int] = HONAKER

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", integer("horizon", self.horizon, 1, _LONGEST))

    def _column(self, norm: int) -> float:
        return float(self.horizon.bit_length()) ** (1 / norm)

    def _own_weights(self) -> np.ndarray:
        """(levels,) the weight of a node's own noisy sum in its estimate, which is also the estimate's variance."""
        return np.array([1.0 / (2.0 - 0.5**level) for level in range(self.horizon.bit_length())])

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        return sum((t >> level & 1) * own for level, own in enumerate(self._own_weights()))

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        c = np.zeros((2 * n - n.bit_count(), n))
        for row, (t, level) in enumerate(_nodes(n)):
            c[row, t - (1 << level) : t] = 1.0
        return c

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        own, rows = self._own_weights(), 2 * n - n.bit_count()
        kept, b, row = np.zeros((own.size, rows)), np.zeros((n + 1, rows)), 0
        for t in range(1, n + 1):
            estimate, top = np.zeros(rows), (t & -t).bit_length() - 1
            for level in range(top + 1):
                if level:
                    estimate = (1.0 - own[level]) * (kept[level - 1] + estimate)
                estimate[row] = own[level]
                row += 1
            kept[top] = estimate
            b[t] = b[t - (1 << top)] + estimate
        return b[1:]

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        return self._own_weights()[None, :].copy(), self.horizon.bit_length()


def _nodes(n: int) -> list[tuple[int, int]]:
    """The last increment and the level of every node of a tree, in the order in which they end."""
    return [(t, level) for t in range(1, n + 1) for level in range((t & -t).bit_length())]


@dataclass(frozen=True)
class HybridTree(_Dyadic):
    """The hybrid mechanism for an unknown number of releases (Chan, Shi & Song 2011).

    Half of the budget noises one block between neighbouring powers of two; the other half a tree in each epoch from 2^k to
    2^(k+1) - 1, calibrated to its k levels.  A Gaussian plan with ``overshoot`` has less noise from the start.

    Example:
        >>> round(HybridTree().max_variance(20_000) / 2, 1)
        183.0
    """

    horizon: None = field(default=None, init=False)
    _kind: ClassVar[int] = HYBRID

    def _column(self, norm: int) -> float:
        return 1.0

    def scales(self, norm: int) -> np.ndarray:
        """(49,) what the noise of a block, and that of a node in a tree of 1, 2, ... levels, is multiplied with."""
        return (2.0 * np.maximum(1.0, np.arange(_LONGEST.bit_length()))) ** (1 / norm)

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        depth = np.frexp(t.astype(np.float64))[1] - 1
        squares = self.scales(norm) ** 2
        return (depth + 1) * squares[0] + (np.bitwise_count(t).astype(np.int64) - 1) * squares[depth]

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        c, scales = np.zeros((n, n)), self.scales(norm)
        for t in range(1, n + 1):
            depth, inside = t.bit_length() - 1, t & (t - 1)
            if inside:
                c[t - 1, t - (t & -t) : t] = 1.0 / scales[depth]
            else:
                c[t - 1, t // 2 : t] = 1.0 / scales[0]
        return c

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        b, scales = np.zeros((n, n)), self.scales(norm)
        for t in range(1, n + 1):
            depth, before = t.bit_length() - 1, t & (t - 1)
            if before:
                b[t - 1] = b[before - 1]
                b[t - 1, t - 1] = scales[depth]
            else:
                b[t - 1, [(1 << k) - 1 for k in range(depth + 1)]] = scales[0]
        return b

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        scales = self.scales(norm)
        return scales[None, :].copy(), scales.size


@dataclass(frozen=True)
class SqrtToeplitz(Counter):
    """The square root of the summing matrix (Bennett 1977; Fichtenberger, Henzinger & Upadhyay 2023): B = C = sqrt(A).

    Its first column is f_0 = 1, f_k = f_{k-1} (1 - 1/2k); no Toeplitz factors have a smaller maximal variance.  It keeps all noise:
    a release costs time, and the whole memory, in proportion to the number of releases so far.

    Args:
        horizon: the number of releases planned.
        bits: rounds C to multiples of 2^-bits, which secure noise needs (10 are enough) and which fits at most 2^16 releases; B is
            then A times the inverse of what was rounded, so that sums remain exact.

    Example:
        >>> round(SqrtToeplitz(20_000).max_variance() / 2, 2)
        8.9
    """

    horizon: int
    bits: int | None = None
    pure: ClassVar[bool] = False
    _kind: ClassVar[int] = TOEPLITZ

    def __post_init__(self) -> None:
        high = 2**30 if self.bits is None else _ROUNDED
        object.__setattr__(self, "horizon", integer("horizon", self.horizon, 1, high))
        if self.bits is not None:
            object.__setattr__(self, "bits", integer("bits", self.bits, 1, 16))

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """The first columns of C and of B, shape (horizon,) each; read only."""
        return _square_root(self.horizon, self.bits)

    def _column(self, norm: int) -> float:
        c, _ = self.coefficients()
        return math.sqrt(c @ c)

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        _, b = self.coefficients()
        return np.cumsum(b[: np.max(t, initial=0)] ** 2)[t - 1]

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        return _toeplitz(self.coefficients()[0][:n])

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        return _toeplitz(self.coefficients()[1][:n])

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        if self.horizon * n > _ROOM:
            raise ArgumentError(
                f"horizon must be at most {_ROOM // n} for SqrtToeplitz with {n} coordinates, because it keeps all noise; got "
                f"{self.horizon}: BufferedToeplitz needs constant memory and has nearly the same variance",
                "horizon",
            )
        return self.coefficients()[1][None, :].copy(), self.horizon


@functools.lru_cache(maxsize=8)
def _square_root(horizon: int, bits: int | None) -> tuple[np.ndarray, np.ndarray]:
    c = np.cumprod(np.append(1.0, 1.0 - 0.5 / np.arange(1.0, horizon)))
    b = c
    if bits is not None:
        c = np.round(c * 2.0**bits) / 2.0**bits
        inverse = np.zeros(horizon)
        inverse[0] = 1.0
        for k in range(1, horizon):
            inverse[k] = -(c[k:0:-1] @ inverse[:k])
        b = np.cumsum(inverse)
    c.flags.writeable = b.flags.writeable = False
    return c, b


@dataclass(frozen=True)
class BufferedToeplitz(Counter):
    """Four exponentials in place of the square root (BLT: Dvijotham, McMahan, Pillutla, Steinke & Thakurta 2024).

    A release costs the same however many came before, in time and memory.  The maximal variance exceeds that of ``SqrtToeplitz``
    by 0.5 % at 20,000 releases and 3 % at a million.

    Args:
        horizon: the number of releases planned.

    Example:
        >>> round(BufferedToeplitz(20_000).max_variance() / 2, 2)
        8.94
    """

    horizon: int
    pure: ClassVar[bool] = False
    _kind: ClassVar[int] = BUFFERED

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", integer("horizon", self.horizon, 1, _LONGEST))

    def _column(self, norm: int) -> float:
        return math.sqrt(buffers.column_square(buffers.planned(self.horizon), self.horizon))

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        return buffers.row_squares(buffers.planned(self.horizon), t)

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        both = buffers.planned(self.horizon)
        decays = (1.0 - both.gaps) ** np.arange(n - 1)[:, None]
        return _toeplitz(np.append(1.0, decays @ both.weights))

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        both = buffers.planned(self.horizon)
        return _toeplitz((1.0 - both.decoder_gaps) ** np.arange(n)[:, None] @ both.decoder_weights)

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        both = buffers.planned(self.horizon)
        return np.array([1.0 - both.decoder_gaps, both.decoder_weights]), buffers.BUFFERS + 1


@dataclass(frozen=True)
class Independent(Counter):
    """Every increment has noise of its own: C = I, and the variance grows with t, up to the number of releases.

    Args:
        horizon: the number of releases planned; None for any number.

    Example:
        >>> Independent(300).max_variance() / 2
        150.0
    """

    horizon: int | None = None
    _kind: ClassVar[int] = INDEPENDENT

    def __post_init__(self) -> None:
        if self.horizon is not None:
            object.__setattr__(self, "horizon", integer("horizon", self.horizon, 1, _LONGEST))

    def _column(self, norm: int) -> float:
        return 1.0

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        return t.astype(np.float64)

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        return np.eye(n)

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        return np.tri(n)

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        return np.zeros((1, 1)), 1


def _toeplitz(column: np.ndarray) -> np.ndarray:
    """The lower triangular matrix with this first column and constant diagonals."""
    n = column.size
    lag = np.subtract.outer(np.arange(n), np.arange(n))
    return np.where(lag >= 0, column[lag], 0.0)


def overshoot(expected: int, factor: float = 32.0) -> int:
    """The horizon to plan for where the number of releases is unknown: the least power of two above ``factor * expected``.

    A mechanism refuses what goes beyond its horizon, so that the plan must be generous; and a generous one is cheap, because the
    noise grows with the logarithm of the horizon only.  With the default, release 20,000 of ``SqrtToeplitz`` has 1.3 times the
    variance that it would have had with the horizon known; the largest of ``HybridTree`` up to there is 20 times as large.

    Args:
        expected: the number of releases that you expect.
        factor: by how much you may be wrong, at least 1.

    Example:
        >>> horizon = overshoot(20_000)
        >>> horizon == 2**20
        True
        >>> round(SqrtToeplitz(horizon).variance(20_000) / SqrtToeplitz(20_000).variance(20_000), 2)
        1.3
    """
    most = real("factor", factor, 1.0) * integer("expected", expected, 1)
    if most > _LONGEST:
        raise ArgumentError(f"factor must leave factor * expected at most 2**48, got {factor!r}", "factor")
    return 1 << (math.ceil(most) - 1).bit_length()
