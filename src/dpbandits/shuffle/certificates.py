"""Proved privacy of integer noise on a vector of integers.

Discrete Gaussian noise protects as Gaussian noise does: ``privacy.discrete``.  This module covers
binomial noise.

Guarantee:

* Protected: the integers of one person, who moves the vector by integers s with |s|_2 <= r.
* Assumed: independent noise of one law is added to every coordinate, of a law that is log-concave,
  as binomials are.

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

The proof uses no normal approximation.  F is exact, and c is raised by more than its rounding
error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, ndtri

from ..errors import ArgumentError
from ..privacy import accounting
from ..privacy.discrete import hidden

_CUTS = np.arange(3.0, 14.1, 0.25)  # where tails may begin, in standard deviations
_REACH = 16.0
WIDEST = 2.0**17  # all its points are gone through
_UP = 1.0 + 1e-5  # steps of z are off by 1e-6 at most, where noise is widest


class Tails:
    """P(X <= t) and P(X > t), X of n coins of chance p heads, at all t where both are positive."""

    def __init__(self, n: int, p: float) -> None:
        mean, std = n * p, math.sqrt(n * p * (1.0 - p))
        if std > WIDEST:
            raise ArgumentError(
                "levels must be fewer, or the budget larger: no noise with a standard deviation of"
                f" at most {WIDEST:g} steps is known to keep this budget",
                "levels",
            )
        reach = _REACH * std
        t = np.arange(max(0.0, math.floor(mean - reach)), min(n - 1.0, mean + reach) + 1.0)
        below, above = betainc(n - t, t + 1.0, 1.0 - p), betainc(t + 1.0, n - t, p)
        inside = (below > 0.0) & (above > 0.0)
        self.below, self.above = below[inside], above[inside]

    def delta(self, epsilon: float, shift: float, dimension: int, batches: int = 1) -> float:
        """The least proved delta for which the vectors of the given number of batches are (epsilon,
        delta)-DP, if one person moves each by integers of L2 norm at most ``shift``.
        """
        # From the smaller of both tails, which keeps its digits.
        z = np.where(self.below < 0.5, ndtri(self.below), -ndtri(self.above))
        steps, least = np.diff(z), 1.0
        lows, highs = np.searchsorted(z, -_CUTS), np.searchsorted(z, _CUTS) - 1
        for low, high in zip(lows, highs, strict=True):
            if high > low:
                # c is the longest step between the cuts; what lies beyond them is in ``lost``.
                mu = steps[low:high].max() * shift * math.sqrt(batches) * _UP
                tail = self.below[low] + self.above[high]
                lost = (1.0 + math.exp(min(epsilon, 700.0))) * batches * dimension * tail
                least = min(least, accounting.gaussian_delta(epsilon, mu) + lost)
        return float(least)


@dataclass(frozen=True)
class DiscreteGaussian:
    """Discrete Gaussian noise with that parameter."""

    parameter: int

    def delta(self, epsilon: float, shift: float, dimension: int, batches: int = 1) -> float:
        """As ``Tails.delta``."""
        mu = shift * math.sqrt(batches) / hidden(float(self.parameter)) * (1.0 + 2.0**-48)
        return accounting.gaussian_delta(epsilon, mu)
