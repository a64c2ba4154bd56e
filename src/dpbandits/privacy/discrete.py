"""Discrete Gaussian noise hides as much as Gaussian noise: a proof, and the noise it requires.

Guarantee:

* Protected: one record, by a vector of integers with noise, as by Gaussian noise.
* Sensitivity: one record moves the vector by v, |v|_2 <= D.
* Assumed: every coordinate gets integer noise X of the law P(X = k) proportional to exp(-k^2 / 2
  s^2), with a parameter s >= 1.

**Theorem.**  The release is mu-GDP (Dong, Roth & Su 2022) with mu = D / sqrt(s^2 - 1/10).

So noise of parameter sqrt(s^2 + 1/10) on integers costs as much as Gaussian noise of standard
deviation s: exactly, for every epsilon, without a tail.  ``raised`` gives it.  (Canonne, Kamath &
Steinke 2020 show that its zCDP is D^2 / 2 s^2, which says less at a given delta.)

**Proof.**  F is the distribution function of X, z(t) = Phi^-1(F(t)) for integers t, and Delta(t) =
z(t) - z(t - 1).

*Steps suffice.* Suppose that Delta(t) <= d for all t.  The law is log-concave, so thresholds tell X
from X + v best.  To say "X + v" of values above t errs with probability a = 1 - F(t) on X, and b =
F(t - v) on X + v.  Hence Phi^-1(1 - a) - Phi^-1(b) = z(t) - z(t - v) <= d v; equality makes (a, b)
a point of the trade-off curve of mu = d v.  The curve of X and X + v joins such points by straight
lines, and the Gaussian one is convex.  So the former is never lower: the coordinate is (d v)-GDP,
for both signs of v.  GDP composes by the root of the sum of squares, so all coordinates together
are (d |v|_2)-GDP.  So are adaptive releases whose parameters are fixed in advance (``ledger`` has
the filter for others).

*Far steps.*  Delta(t) tends to 1 / s.  For P(X > t) is P(X = t + 1) up to a factor that tends to 1.
The normal tail Q has -2 ln Q(z) = z^2 + 2 ln z + ln 2 pi + o(1).  So z(t)^2 + 2 ln z(t) is (t +
1)^2 / s^2 plus a constant and o(1), and z(t) / t tends to 1 / s.  The difference of two such lines
is (z(t) + z(t - 1)) Delta(t) = 2 t / s^2 + O(1).  So either no step exceeds 1 / s, and there is
nothing left to show, or some step is the longest.

*The longest step.*  Let it be Delta(t) = d, between z(t - 1) and z(t), with the middle m.  Let
B(w) = Phi(w + d/2) - Phi(w - d/2).  Then P(X = t) = B(m).  The steps beside it are no longer, so
P(X = t + 1) <= B(m + d) and P(X = t - 1) <= B(m - d).  Hence

    exp(-1 / s^2)  =  P(t - 1) P(t + 1) / P(t)^2  <=  B(m - d) B(m + d) / B(m)^2 .

(ln B)''(w) = V - 1, where V is the variance of a standard normal variable in the interval of length
d around w.  V <= d^2 / 12: of all densities exp(-l u^2 / 2 + h u) on an interval, take those of one
mean.  Along them h is a function of l.  With c = u - mean, the derivative of the variance by l is
-1/2 (Var(c^2) - Cov(c^2, c)^2 / Var(c)) <= 0.  So it is largest at l = 0.  There it is d^2 / 4
(1/y^2 - 1/sinh(y)^2) with y = h d / 2, which is at most its limit d^2 / 12 at y = 0.

Thus -1 / s^2 <= d^2 (d^2 / 12 - 1), so g(d^2) <= 1 / s^2 with g(x) = x - x^2 / 12.  g grows up to x
= 6.  At x = 1 / (s^2 - a), x (1 - x / 12) = 1 / s^2 + x (a / s^2 - x / 12), at least 1 / s^2 where
12 a (1 - a / s^2) >= 1: with a = 1/10 for s >= 1.  So d^2 <= 1 / (s^2 - 1/10), or d^2 > 6.

*No step is that long.*  Suppose d^2 > 6, and t >= 0 without loss of generality: z(-1 - t) = -z(t).
P(0) <= 1 / (s sqrt(2 pi)) < 0.4, because the sum of exp(-k^2 / 2 s^2) is at least s sqrt(2 pi) by
Poisson's summation formula.  For t = 0, d / 2 = z(0) with Q(z(0)) = (1 - P(0)) / 2 >= 0.3, so d <
1.1. For t >= 1 let w = z(t - 1) > 0.  Q(w + d) <= Q(w) exp(-d w - d^2 / 2), and P(X > t - 1) / P(X
> t) <= 1 + P(t) / P(t + 1) <= 2 exp((t + 1/2) / s^2).  Hence

    d w + d^2 / 2  <=  ln 2 + (t + 1/2) / s^2 .

If t - 1/2 < s, the right side is below 0.694 + (s + 1) / s^2 <= 2.694, and d^2 / 2 > 3.  Else let
y = (t - 1/2) / s >= 1.  The density of N(0, s^2) is convex from s on, so its sum over t, t + 1, ...
is at most its integral from t - 1/2: P(X > t - 1) <= Q(y), and w >= y.  The left side is above 2.4
y + 3, and the right side at most 0.694 + y / s + 1 / s^2 <= 1.694 + y.  Neither can be. QED.

The bound is nearly sharp: for s = 1, 2, 10 the longest step is 1.0458, 1.01065 and 1.000417 over
s, the bound 1.0541, 1.0127 and 1.000501 over s.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri_exp

from ..kernel import Generator, kernel
from ..validation import real

_FAR = 40  # steps of narrow noise that are looked at
MORE = 0.1  # squared steps that discrete Gaussian noise has more: 1/10 of the theorem


@kernel
def raised(steps: float) -> float:
    """The parameter of discrete noise that hides as much as Gaussian noise of so many steps.

    >>> round(raised(4.0), 4), raised(0.5)
    (4.0125, 1.0)
    """
    return math.sqrt(max(1.0, steps * steps + MORE))


def hidden(parameter: float) -> float:
    """The inverse of ``raised``; below 1, where nothing is proved, a parameter is refused.

    >>> round(hidden(1.0), 4)
    0.9487
    """
    parameter = real("parameter", parameter, 1.0)
    return math.nextafter(math.sqrt(parameter * parameter - MORE) * (1.0 - 2.0**-50), 0.0)


def longest_step(parameter: float) -> float:
    """The longest step of z for a parameter below 1, which the theorem does not cover.  By *Steps
    suffice* the noise is (D times that)-GDP all the same.

    From t = 1 on P(X > t) is P(X = t + 1) up to a part in four, and steps fall towards 1 / s.

    >>> round(longest_step(0.9999999), 4), round(longest_step(0.5), 3)
    (1.0458, 2.488)
    """
    t = np.arange(_FAR + 1.0)
    weights = -0.5 * (t / real("parameter", parameter, 1e-3, 1.0, strict=True)) ** 2
    # The logarithm of the weight of all integers beyond t, up to a constant.
    above = np.logaddexp.accumulate(weights[:0:-1])[::-1]
    whole = np.logaddexp(0.0, math.log(2.0) + above[0])
    z = -ndtri_exp(above - whole)
    return float(max(2.0 * z[0], np.diff(z).max(), 1.0 / parameter)) * (1.0 + 1e-9)


# For simulations: laws of noise on a grid, drawn from a generator that can be predicted.


@kernel
def simulated_gaussian(parameter: float, rng: Generator) -> float:
    """A discrete Gaussian integer, in total variation to 6e-4 (parameter 1), 4e-5 (2), 2e-6 (4)."""
    # A rounded normal variable, whose variance rounding raises by 1/12.
    return np.rint(math.sqrt(parameter * parameter - 1.0 / 12.0) * rng.standard_normal())


@kernel
def simulated_laplace(scale: float, rng: Generator) -> float:
    """A discrete Laplace integer: the sign is fair, and 0 has one of two."""
    while True:
        drawn = scale * rng.laplace(0.0, 1.0)
        # The floor of an exponential variable is geometric; 0 of the negative side is drawn again.
        size = np.floor(abs(drawn))
        if drawn >= 0.0:
            return size
        if size > 0.0:
            return -size
