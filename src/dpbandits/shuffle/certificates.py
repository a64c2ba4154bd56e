"""Proved privacy of integer noise on a vector of integers.

Discrete Gaussian noise protects as Gaussian noise does: ``privacy.discrete``.  This module covers
binomial noise.

Guarantee:

* Protected: the integers of one person, who moves the vector by integers s with |s|_2 <= r.
* Assumed: independent noise of one law is added to every coordinate, of a law that is log-concave,
  as binomials are.  Random bits of its own round each coordinate, in every batch anew.  They are
  independent of all noise.  Nobody else sees them, even where the person's noise is known.

Let F be the distribution function of the noise, and z(t) = Phi^-1(F(t)).

*One coordinate.*  Suppose that z(t) - z(t - 1) <= c for all integers t.  As the law is log-concave,
thresholds are the best tests of X against X + s.  The test that decides for X + s above t errs with
probability a = 1 - F(t) on X, and b = F(t - s) on X + s.  Hence

    Phi^-1(1 - a) - Phi^-1(b) = z(t) - z(t - s) <= c s,

and for the errors of a Gaussian release with mu = c s the left side is mu.  The trade-off curve of
X and X + s joins such points by straight lines.  The Gaussian curve is convex, so it is never above
the former.  Hence the coordinate is (c s)-GDP (Dong, Roth & Su 2022), for both signs of s.

*All coordinates.*  GDP composes by the root of the sum of squares: the vector is (c |s|_2)-GDP for
every direction of s, and (c r)-GDP at worst.

*Batches.*  One person's vectors in k batches: by composition of GDP, c r is multiplied by sqrt(k),
and t by k.  Later vectors may depend on the output of earlier batches.

*Tails.*  Bounded noise has no such c, since z is infinite where it ends.  Let Y have the law of X
but for geometric tails: F(lo - j) = F(lo) q^j with q = F(lo - 1) / F(lo), and as much from hi on.
F is log-concave, and F(t + 1) / F(t) a mean of ratios of weights up to t.  Hence F(lo) / F(lo - 1)
is at least the ratio of the weights of lo + 1 and lo, so Y is log-concave, too.  Below lo - 1, log
F falls by equal amounts, and Mills' ratio dz / dlog F falls with z.  There steps of z get smaller
and smaller: the c of the steps from lo - 1 to hi holds for all t.  X and Y differ by at most t =
P(X < lo) + P(X > hi) in total variation, D coordinates by D t.  Hence a release that is (epsilon,
delta)-DP with Y is (epsilon, delta + (1 + e^epsilon) D t)-DP with X.  All lo and hi give valid
bounds; the best of a few is taken.

*Random rounding.*  s depends on U, the rounding of all coordinates (``protocols``).  Coordinate i,
of difference d_i, moves by k or k + 1, where k = floor |d_i|; by k + 1 with the probability f =
|d_i| - k, independently of others.  So s_i^2 has the mean d_i^2 + f (1 - f), and two values that
are 2 k + 1 <= 2 |d_i| + 1 apart.  With |d| <= S their sum Q = |s|^2 has a mean of at most m = S^2 +
D / 4.  By Hoeffding's inequality P(Q > m + t) <= exp(-2 t^2 / R^2), with R = 2 S + sqrt(D), since
(2 |d_1| + 1, ...) is no longer than that.  For no U is |s| above the worst shift.  Let Q' have
these bounds as its tail.

For given U the vector is (c |s|)-GDP.  The hockey-stick divergence is jointly convex and grows
with |s|, so one batch has at most the delta of E gaussian_delta(epsilon, c sqrt(Q')).  That is the
delta of a pair of laws: Q', published, and a normal variable which is moved by c sqrt(Q').  This
pair dominates every batch, hence k copies dominate k adaptive batches (Zhu, Dong & Wang 2022,
Optimal Accounting of Differential Privacy via Characteristic Function, Theorem 10).  Given their k
variables Q', the copies are moved by c sqrt(sum Q') <= c sqrt(k max Q'), and P(max Q' > q) <=
min(1, k P(Q' > q)).

In code vectors are first rounded to 2^-32 of a step, which lengthens d by at most 2^-31 sqrt(D),
and these bounds on |s| by less than one part in 10^9.  They are raised by one in 10^5.

The proof uses no normal approximation.  F is exact, and c is raised by more than its rounding
error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, ndtri

from ..errors import ArgumentError
from ..privacy import accounting
from ..privacy.discrete import hidden

_CUTS = np.arange(3.0, 14.1, 0.25)  # where tails may begin, in standard deviations
_REACH = 16.0
WIDEST = 2.0**17  # all its points are gone through
_LEAST_LOG, _PARTS = 30.0, 32  # of a law of shifts
_UP = 1.0 + 1e-5
_WIDE = 2.0**15  # beyond, the error of steps of z grows with the noise: 1.4 in 10^5 at the widest


class Shifts(NamedTuple):
    """A law that is above that of the L2 norm by which one person moves each of some vectors."""

    norms: np.ndarray  # increasing
    weights: np.ndarray  # their probabilities

    def delta(self, epsilon: float, unit: float) -> float:
        """The mean delta of Gaussian releases with mu = ``unit`` times the norm."""
        return sum(
            weight * accounting.gaussian_delta(epsilon, unit * norm)
            for norm, weight in zip(self.norms.tolist(), self.weights.tolist(), strict=True)
        )


def shifts(distance: float, dimension: int, worst: float, batches: int = 1) -> Shifts:
    """The shifts of vectors of one person, after rounding, in the given number of batches.

    Args:
        distance: of two vectors, in the L2 norm.
        worst: norm that no rounding exceeds.

    >>> shifts(40.0, 100, worst=50.0).norms[[0, -1]].round(1).tolist()
    [40.3, 50.0]
    """
    most = math.log(batches)
    roots = np.sqrt(most + np.linspace(0.0, _LEAST_LOG**0.5, _PARTS) ** 2)  # of t sqrt(2) / R
    reach = (2.0 * distance + math.sqrt(dimension)) / math.sqrt(2.0)
    squares = distance**2 + dimension / 4.0 + reach * roots
    norms = np.append(np.sqrt(squares), worst).clip(max=worst)
    above = np.append(np.exp(most - roots**2), 0.0).clip(max=1.0)  # each norm
    return Shifts(norms * _UP, np.append(1.0 - above[0], -np.diff(above)))


class Tails:
    """P(X <= t) and P(X > t), X of n coins of chance p heads, at all t where both are positive."""

    def __init__(self, n: int, p: float) -> None:
        mean, std = n * p, math.sqrt(n * p * (1.0 - p))
        if std > WIDEST:
            raise ArgumentError(
                "levels must be fewer, or the budget larger. This budget needs noise with a"
                f" standard deviation above {WIDEST:g} steps, for which no proof is known",
                "levels",
            )
        reach = _REACH * std
        t = np.arange(max(0.0, math.floor(mean - reach)), min(n - 1.0, mean + reach) + 1.0)
        below, above = betainc(n - t, t + 1.0, 1.0 - p), betainc(t + 1.0, n - t, p)
        inside = (below > 0.0) & (above > 0.0)
        self.below, self.above = below[inside], above[inside]
        self.raised = 1.0 + (_UP - 1.0) * max(1.0, std / _WIDE)  # by which c is

    def delta(self, epsilon: float, moved: Shifts, dimension: int, batches: int = 1) -> float:
        """The least proved delta for which the vectors of the given number of batches are (epsilon,
        delta)-DP, if one person moves each by integers with such L2 norms.
        """
        # From the smaller of both tails, which keeps its digits.
        z = np.where(self.below < 0.5, ndtri(self.below), -ndtri(self.above))
        steps, least = np.diff(z), 1.0
        lows, highs = np.searchsorted(z, -_CUTS), np.searchsorted(z, _CUTS) - 1
        for low, high in zip(lows, highs, strict=True):
            if high > low:
                # c is the longest step between the cuts; what lies beyond them is in ``lost``.
                unit = steps[low:high].max() * math.sqrt(batches) * self.raised
                tail = self.below[low] + self.above[high]
                lost = (1.0 + math.exp(min(epsilon, 700.0))) * batches * dimension * tail
                # No mean is below its least term.
                if accounting.gaussian_delta(epsilon, unit * moved.norms[0]) + lost < least:
                    least = min(least, moved.delta(epsilon, unit) + lost)
        return float(least)


@dataclass(frozen=True)
class DiscreteGaussian:
    """Discrete Gaussian noise with that parameter."""

    parameter: int

    def delta(self, epsilon: float, moved: Shifts, dimension: int, batches: int = 1) -> float:
        """As ``Tails.delta``."""
        unit = math.sqrt(batches) / hidden(float(self.parameter)) * (1.0 + 2.0**-48)
        return moved.delta(epsilon, unit)
