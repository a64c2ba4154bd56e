"""The parameters of the buffered mechanism: four exponentials that stand in for the square root of
the summing matrix.

Buffered linear Toeplitz mechanisms are due to Dvijotham, McMahan, Pillutla, Steinke & Thakurta
(2024).  The encoder C is lower triangular and Toeplitz, with first column 1, w, w theta, w theta^2,
... summed over the buffers.  In terms of gaps d = 1 - theta, which keep their digits where theta is
close to one, its generating function at x = 1 / (1 - s) is 1 + sum_j w_j / (d_j - s).  The zeros
s_i of that function interlace with the gaps, and the decoder B = A C^-1 has the first column b_k =
sum_i beta_i (1 - s_i)^k, where one more zero, s = 0, comes from summing.  All beta are positive and
add up to one.

Both norms are geometric sums in closed form: everything costs the same for any horizon.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

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


class Exponentials(NamedTuple):
    """Both factors as sums of exponentials."""

    gaps: np.ndarray  # (4,) one minus the decays of C, ascending
    weights: np.ndarray  # (4,) of C, positive
    decoder_gaps: np.ndarray  # (5,) one minus the decays of B, ascending, the first of them zero
    decoder_weights: np.ndarray  # (5,) of B, positive, adding up to one


def solve(gaps: np.ndarray, weights: np.ndarray) -> Exponentials:
    """The factorisation with the given decays and weights of C, each to nearly the last digit."""
    low, high = gaps.copy(), np.append(gaps[1:], gaps[-1] + weights.sum())
    for _ in range(120):  # bisection between neighbouring gaps: slow, and never wrong
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore"):
            above = 1.0 + np.sum(weights / (gaps - middle[:, None]), axis=1) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    zeros = 0.5 * (low + high)
    slope = np.sum(weights / (gaps - zeros[:, None]) ** 2, axis=1)
    first = 1.0 / (1.0 + np.sum(weights / gaps))
    return Exponentials(
        gaps, weights, np.append(0.0, zeros), np.append(first, 1.0 / (slope * zeros))
    )


@functools.lru_cache(maxsize=64)
def planned(horizon: int) -> Exponentials:
    """The factorisation for a number of releases, between two rows of the table by interpolation on
    both logarithms, which costs less than 0.02 % of the variance.
    """
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
    tail = squares(both.gaps, both.weights * sums[-1], np.array(horizon - n))
    return float(head @ head + tail)


def row_squares(both: Exponentials, releases: np.ndarray) -> np.ndarray:
    """The squares of the L2 norms of the rows of B, counted from one."""
    return squares(both.decoder_gaps, both.decoder_weights, releases)
