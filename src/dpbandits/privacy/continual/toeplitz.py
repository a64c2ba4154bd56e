"""Toeplitz factors: the noise of each release is spread over all later ones.

Buffered Toeplitz mechanisms are by Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024).  The
encoder C is lower triangular and Toeplitz, with first column 1, w, w theta, w theta^2, ... summed
over the buffers.  It is written in gaps d = 1 - theta, which keep their digits where theta is close
to one.  Its generating function at x = 1 / (1 - s) is 1 + sum_j w_j / (d_j - s).  The zeros s_i of
that function interlace with the gaps.  The decoder B = A C^-1 has the first column b_k = sum_i
beta_i (1 - s_i)^k, with one more zero, s = 0, from summing.  All beta are positive, with sum one.

Both norms are geometric sums in closed form: everything costs the same for any horizon.
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...validation import integer, real
from .counters import LONGEST, Counter
from .running_sums import BUFFERED, TOEPLITZ

ROOM = 2**24  # numbers in the memory of a square-root sum
_ROUNDED = 2**16  # rows whose rounded factor is inverted
BUFFERS = 4

# Logarithms of (gaps, weights) for 2^4, 2^6, ..., 2^32 releases, found by ``fitted`` in
# ``tests/privacy/test_continual.py``.  Three digits are enough: at the optimum a small error costs
# its square, and both factors and their norms are computed from what stands here, so that privacy
# rests on no digit.
TABLE = np.array(
    [
        [-3.865, -1.689, -0.720, -0.183, -1.704, -1.829, -2.168, -3.146],  # 2^4
        [-4.880, -2.560, -1.278, -0.364, -2.188, -2.040, -1.853, -2.292],  # 2^6
        [-5.982, -3.503, -1.898, -0.582, -2.719, -2.337, -1.778, -1.784],  # 2^8
        [-7.168, -4.501, -2.549, -0.827, -3.293, -2.674, -1.832, -1.467],  # 2^10
        [-8.399, -5.534, -3.232, -1.104, -3.889, -3.050, -1.969, -1.268],  # 2^12
        [-9.635, -6.560, -3.914, -1.396, -4.487, -3.440, -2.151, -1.157],  # 2^14
        [-10.860, -7.559, -4.579, -1.693, -5.076, -3.832, -2.358, -1.108],  # 2^16
        [-12.068, -8.522, -5.220, -1.988, -5.651, -4.220, -2.576, -1.102],  # 2^18
        [-13.271, -9.456, -5.842, -2.280, -6.219, -4.605, -2.801, -1.125],  # 2^20
        [-14.484, -10.384, -6.460, -2.576, -6.791, -4.997, -3.036, -1.171],  # 2^22
        [-15.711, -11.317, -7.083, -2.877, -7.373, -5.398, -3.281, -1.235],  # 2^24
        [-16.949, -12.258, -7.709, -3.182, -7.963, -5.811, -3.537, -1.315],  # 2^26
        [-18.193, -13.202, -8.339, -3.492, -8.561, -6.233, -3.801, -1.408],  # 2^28
        [-19.441, -14.149, -8.970, -3.803, -9.164, -6.661, -4.072, -1.511],  # 2^30
        [-20.689, -15.095, -9.601, -4.116, -9.769, -7.096, -4.349, -1.623],  # 2^32
    ]
)
_FIRST, _STEP = 4, 2


class _Toeplitz(Counter):
    """The base of Toeplitz factors whose first column f_0, f_1, ... of C falls and is not negative.

    *The first columns are the worst.* Columns s < s' have as inner product the sum of f_k f_{k + s'
    - s} over k <= horizon - s'.  It falls with the distance s' - s, and with s'.  The i-th record
    of a user is in column i or later.  The i-th and the j-th are |i - j| apart or more.  So no
    inner product exceeds that of columns i and j.

    *Two sums cost no more than one.*  Let F(t) = f_0 + ... + f_{t - 1}.  Row t of the first j
    columns is S_j(t) = F(t) - F(t - j), and S_{j+k}(t) = S_j(t) + S_k(t - j).  For k <= j, and j +
    k <= horizon, the squares of S_{j+k} exceed those of S_j and S_k.  After row j + k that holds
    because S_k falls from row k on.  Up to there, the difference is the sum over s <= k of 2 F(s)
    S_j(s + j), less the sum over k < t <= j + k of S_k(t)^2.  Both sum products f f, and term by
    term the first has the earlier, hence larger ones.
    """

    horizon: int

    def _growth(self, records: int, norm: int) -> float:
        return self._first_columns(records) / self._first_columns(1)

    @abstractmethod
    def _first_columns(self, n: int) -> float:
        """The length of the sum of the first n columns of C."""

    def _column(self, norm: int) -> float:
        return self._first_columns(1)


@dataclass(frozen=True)
class SqrtToeplitz(_Toeplitz):
    """The square root of the summing matrix (Bennett 1977; Fichtenberger, Henzinger & Upadhyay
    2023): B = C = sqrt(A).

    Its first column is f_0 = 1, f_k = f_{k-1} (1 - 1/2k); no Toeplitz factors have a smaller
    maximal variance.  It keeps all noise: a release costs time, and the whole memory, in proportion
    to the number of releases so far.

    Args:
        horizon: the number of releases planned.
        bits: rounds C to multiples of 2^-bits, which secure noise needs (10 are enough) and which
            fits at most 2^16 releases; B is then A times the inverse of the rounded C.

    Example:
        >>> round(SqrtToeplitz(20_000).max_variance() / 2, 2)
        8.9
    """

    horizon: int
    bits: int | None = None
    pure, kind = False, TOEPLITZ

    def __post_init__(self) -> None:
        high = 2**30 if self.bits is None else _ROUNDED
        object.__setattr__(self, "horizon", integer("horizon", self.horizon, 1, high))
        if self.bits is not None:
            object.__setattr__(self, "bits", integer("bits", self.bits, 1, 16))

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """The first columns of C and of B.

        Returns:
            Two arrays of shape (horizon,), read only.
        """
        return _square_root(self.horizon, self.bits)

    def _first_columns(self, n: int) -> float:
        return _first_columns(self, n)

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        _, b = self.coefficients()
        return np.cumsum(b[: np.max(t, initial=0)] ** 2)[t - 1]

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        return _toeplitz(self.coefficients()[0][:n])

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        return _toeplitz(self.coefficients()[1][:n])

    def require_room(self, n: int) -> None:
        """Refuse sums of n numbers whose noise, which is all kept, would take too much memory.

        Raises:
            ArgumentError: it would take more than 128 MiB.
        """
        if self.horizon * n > ROOM:
            raise ArgumentError(
                f"horizon must be at most {ROOM // n} for SqrtToeplitz (counter='toeplitz') with"
                f" {n} coordinates, got {self.horizon}: this counter keeps all noise."
                " BufferedToeplitz (counter='buffered') needs constant memory and has nearly the"
                " same variance",
                "horizon",
            )

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        self.require_room(n)
        return self.coefficients()[1][None, :].copy(), self.horizon


@functools.lru_cache(maxsize=64)  # secure noise asks for one with every release
def _first_columns(counter: SqrtToeplitz, n: int) -> float:
    c, _ = counter.coefficients()
    if n > 1:
        c = np.cumsum(c)
        c[n:] -= c[:-n].copy()
    return math.sqrt(c @ c)


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


class Exponentials(NamedTuple):
    """Both factors as sums of exponentials."""

    gaps: np.ndarray  # (4,) one minus the decays of C, ascending
    weights: np.ndarray  # (4,) of C, positive
    decoder_gaps: np.ndarray  # (5,) one minus the decays of B, ascending, the first of them zero
    decoder_weights: np.ndarray  # (5,) of B, positive, adding up to one


def solve(gaps: np.ndarray, weights: np.ndarray) -> Exponentials:
    """The factorisation with the given decays and weights of C, each to nearly the last digit."""
    # Zeros interlace with gaps; the last is no farther from its gap than the sum of weights.
    low, high = gaps.copy(), np.append(gaps[1:], gaps[-1] + weights.sum())
    for _ in range(120):  # bisection between neighbouring gaps: slow, and never wrong
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore"):
            above = 1.0 + np.sum(weights / (gaps - middle[:, None]), axis=1) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    zeros = 0.5 * (low + high)
    slope = np.sum(weights / (gaps - zeros[:, None]) ** 2, axis=1)
    first = 1.0 / (1.0 + np.sum(weights / gaps))
    decoder_weights = np.append(first, 1.0 / (slope * zeros))
    return Exponentials(gaps, weights, np.append(0.0, zeros), decoder_weights)


@functools.lru_cache(maxsize=64)
def planned(horizon: int) -> Exponentials:
    """The factorisation for a horizon; to interpolate logarithms costs < 0.02 % of the variance."""
    place = np.clip((math.log2(horizon) - _FIRST) / _STEP, 0.0, len(TABLE) - 1.0)
    row = min(int(place), len(TABLE) - 2)
    values = np.exp(TABLE[row] + (place - row) * (TABLE[row + 1] - TABLE[row]))
    return solve(values[:BUFFERS], values[BUFFERS:])


def squares(gaps: np.ndarray, weights: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """The sum over k < terms of (sum_j weights_j (1 - gaps_j)^k)^2, for each of the ``terms``."""
    gap = gaps[:, None] + gaps - gaps[:, None] * gaps  # one minus the products of two decays
    terms = np.asarray(terms, np.float64)[..., None, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        smooth = -np.expm1(terms * np.log1p(-gap)) / gap
        alternating = (1.0 - (1.0 - gap) ** terms) / gap
    each = np.where(gap == 0.0, terms, np.where(gap < 1.0, smooth, alternating))
    return np.sum(weights[:, None] * weights * each, axis=(-2, -1))


def columns_square(both: Exponentials, horizon: int, n: int = 1) -> float:
    """The square of the L2 norm of the sum of the first n columns of C."""
    # Row t <= n sums the first t numbers of a column, and each later one n neighbours, which the
    # next has shrunk by one factor for each exponential.
    sums = np.cumsum(np.exp(np.arange(n)[:, None] * np.log1p(-both.gaps)), axis=0)
    head = 1.0 + np.concatenate(([0.0], sums[:-1] @ both.weights))
    return float(head @ head + squares(both.gaps, both.weights * sums[-1], np.array(horizon - n)))


@dataclass(frozen=True)
class BufferedToeplitz(_Toeplitz):
    """Four exponentials in place of the square root (BLT: Dvijotham, McMahan, Pillutla, Steinke &
    Thakurta 2024).

    A release costs the same however many came before, in time and memory.  The maximal variance
    exceeds that of ``SqrtToeplitz`` by 0.5 % at 20,000 releases and 3 % at a million.

    Args:
        horizon: the number of releases planned.

    Example:
        >>> round(BufferedToeplitz(20_000).max_variance() / 2, 2)
        8.94
    """

    horizon: int
    pure, kind = False, BUFFERED

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", integer("horizon", self.horizon, 1, LONGEST))

    def _first_columns(self, n: int) -> float:
        return math.sqrt(columns_square(planned(self.horizon), self.horizon, n))

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        both = planned(self.horizon)
        return squares(both.decoder_gaps, both.decoder_weights, t)

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        both = planned(self.horizon)
        decays = (1.0 - both.gaps) ** np.arange(n - 1)[:, None]
        return _toeplitz(np.append(1.0, decays @ both.weights))

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        both = planned(self.horizon)
        return _toeplitz((1.0 - both.decoder_gaps) ** np.arange(n)[:, None] @ both.decoder_weights)

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        both = planned(self.horizon)
        return np.array([1.0 - both.decoder_gaps, both.decoder_weights]), BUFFERS + 1


def _toeplitz(column: np.ndarray) -> np.ndarray:
    """The lower triangular matrix with this first column and constant diagonals."""
    n = column.size
    lag = np.subtract.outer(np.arange(n), np.arange(n))
    return np.where(lag >= 0, column[lag], 0.0)


def overshoot(expected: int, factor: float = 32.0) -> int:
    """A horizon to plan for.

    A mechanism refuses releases beyond its horizon, so the plan must be generous.  A generous plan
    is cheap, because the noise grows only with the logarithm of the horizon.  With the default,
    release 20,000 of ``SqrtToeplitz`` has 1.3 times the variance that it has with a known horizon.
    The largest variance of ``HybridTree`` up to there is 20 times as large.

    Args:
        expected: the number of releases that you expect.
        factor: the largest error of that number, as a ratio of at least 1.

    Returns:
        The least power of two of at least ``factor * expected``.

    Raises:
        ArgumentError: an argument is out of range, or ``factor * expected`` is above 2**48.

    Example:
        >>> horizon = overshoot(20_000)
        >>> horizon == 2**20
        True
        >>> round(SqrtToeplitz(horizon).variance(20_000) / SqrtToeplitz(20_000).variance(20_000), 2)
        1.3
    """
    most = real("factor", factor, 1.0) * integer("expected", expected, 1)
    if most > LONGEST:
        raise ArgumentError(f"factor must be at most 2**48 / expected, got {factor!r}", "factor")
    return 1 << (math.ceil(most) - 1).bit_length()
