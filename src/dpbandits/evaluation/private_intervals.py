"""Intervals of a policy's value from noisy sums of weighted rewards.

Record i has the weight w in [0, c] and the reward z in [-1, 1]; v is the mean of w z, which is the
target's value where no weight is cut and the logging policy plays all that the target does.  Then
also E[w] = 1.  N and D are the sums of w z and w, with noise.  Records are independent, and their
number n is fixed.  L = ln(4 / a).

**IPS.**  E[w^2 z^2] <= c E[w] <= c, and w z - v <= c + 1.  By Bernstein's inequality (sub-gamma,
Boucheron, Lugosi & Massart 2013, Theorem 2.10) the sum of w z is within

    sqrt(2 n c L) + (c + 1) L / 3

of n v with probability 1 - a / 2.  The noise is below its quantile with probability 1 - a / 2.

**SNIPS.**  For t = v the sum of w (z - t) has the mean 0.  Its terms are at most c (1 + |t|), and
E[w^2 (z - t)^2] <= c E_pi[(z - t)^2] <= c (1 - t^2), because z in [-1, 1] has the mean t under the
target (Bhatia & Davis 2000).  So the interval has all t with

    |N - t D|  <=  sqrt(2 n c (1 - t^2) L) + c (1 + |t|) L / 3 + noise of N - t D .

Rounding to a grid g moves a weight by at most g, and w z by at most 3 g / 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

_DOUBT = 0.01
_CELLS, _ROUNDS = 512, 5  # in each round one cell is divided again


@dataclass(frozen=True)
class Noise:
    """The noise of one sum: normal, of a standard deviation, or Laplace, of a scale."""

    is_laplace: bool
    scale: float


@dataclass(frozen=True)
class Sums:
    """Two noisy sums, and the laws of their noise.

    Attributes:
        rewarded, weighed: N and D.
        count: n.
        largest_weight: c.
        step: the grid g; 0 for none.
        noise, weight_noise: of N and of D.
    """

    rewarded: float
    weighed: float
    count: int
    largest_weight: float
    step: float
    noise: Noise
    weight_noise: Noise

    @property
    def value(self) -> float:
        """N / D, in [-1, 1]; nan where no weight is left."""
        if not self.weighed > 0.0:
            return math.nan
        return min(max(self.rewarded / self.weighed, -1.0), 1.0)

    @property
    def overlap_is_missing(self) -> bool:
        """Whether the mean weight differs from 1 by more than chance and noise, at 99 %.

        With full overlap the weights have the mean 1, and a variance of at most c.
        """
        n, c, tail = self.count, self.largest_weight, math.log(4.0 / _DOUBT)
        off = math.sqrt(2.0 * n * c * tail) + (c + 1.0) * tail / 3.0 + n * self.step
        noise = Noise(self.noise.is_laplace, 0.0)
        alone = replace(self, noise=noise)
        off += float(alone.noise_within(np.ones(1), 0.5 * _DOUBT)[0])
        return abs(self.weighed - n) > off

    def noise_within(self, t: np.ndarray, alpha: float) -> np.ndarray:
        """What the noise of N - t D exceeds with probability at most ``alpha``, on either side."""
        own, other = self.noise.scale, np.abs(t) * self.weight_noise.scale
        rounding = (1.0 + np.abs(t)) * self.step
        if self.noise.is_laplace:  # a share of alpha for each of the two
            shares = 2.0 if self.weight_noise.scale > 0.0 else 1.0
            return rounding + math.log(shares / alpha) * (own + other)
        return rounding + ndtri(1.0 - 0.5 * alpha) * np.hypot(own, other)


def interval_of(sums: Sums, alpha: float, *, normalised: bool) -> tuple[float, float]:
    """The ends for the value in [-1, 1]; nan where the release has no explanation."""
    if not normalised:
        return _of_ips(sums, alpha)
    return _hull(lambda low, high: _may_hold(sums, alpha, low, high))


def _of_ips(sums: Sums, alpha: float) -> tuple[float, float]:
    n, c, tail = sums.count, sums.largest_weight, math.log(4.0 / alpha)
    off = math.sqrt(2.0 * n * c * tail) + (c + 1.0) * tail / 3.0
    off += 1.5 * n * sums.step + float(sums.noise_within(np.zeros(1), 0.5 * alpha)[0])
    low, high = (sums.rewarded - off) / n, (sums.rewarded + off) / n
    return (max(low, -1.0), min(high, 1.0)) if low <= 1.0 and high >= -1.0 else (math.nan, math.nan)


def _may_hold(sums: Sums, alpha: float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Whether some t in [low, high] may satisfy the inequality; never wrongly no."""
    n, c, tail = sums.count, sums.largest_weight, math.log(4.0 / alpha)
    at_low, at_high = sums.rewarded - low * sums.weighed, sums.rewarded - high * sums.weighed
    crosses = at_low * at_high <= 0.0
    left = np.where(crosses, 0.0, np.minimum(np.abs(at_low), np.abs(at_high)))
    farthest = np.maximum(np.abs(low), np.abs(high))
    nearest = np.where(low * high <= 0.0, 0.0, np.minimum(np.abs(low), np.abs(high)))
    off = np.sqrt(2.0 * n * c * (1.0 - nearest**2) * tail) + c * (1.0 + farthest) * tail / 3.0
    off += (1.5 + farthest) * n * sums.step + sums.noise_within(farthest, 0.5 * alpha)
    return left <= off


def _hull(
    may_hold: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[float, float]:
    """The first and the last point of [-1, 1] that may hold, from outside."""

    def end(first: int) -> float:
        low, high = -1.0, 1.0
        for _ in range(_ROUNDS):
            edges = np.linspace(low, high, _CELLS + 1)
            held = np.flatnonzero(may_hold(edges[:-1], edges[1:]))
            if held.size:
                low, high = float(edges[held[first]]), float(edges[held[first] + 1])
            elif first == 0:  # what may hold lies farther in
                low, high = high, min(high + (high - low), 1.0)
            else:
                low, high = max(low - (high - low), -1.0), low
        return low if first == 0 else high

    low, high = end(0), end(-1)
    return (low, high) if low <= high else (math.nan, math.nan)
