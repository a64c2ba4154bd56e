"""Distributions over arms from cumulative losses of any size, and draws from them."""

from __future__ import annotations

import math

import numpy as np

from ...kernel import Vector, inlined, kernel, outlined

_STEPS = 100  # Newton needs fewer than ten; the bound only ends a search that rounding keeps alive
_FAR = -700.0  # of logarithms of weights: what is less counts as no weight
_LOG2_E = 1.0 / math.log(2.0)
_LN2 = 6.93147180369123816490e-01  # the first 32 bits, times which integers are exact
_LN2_REST = 1.90821492927058770002e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1.0 / math.factorial(n) for n in range(2, 14)
)


@kernel
def recentre(losses: Vector) -> None:
    """Subtract the smallest loss from all, which changes no distribution here."""
    smallest = np.inf
    for a in range(losses.size):
        smallest = min(smallest, losses[a])
    for a in range(losses.size):
        losses[a] -= smallest


@outlined
def exponentials(x: Vector, rate: float, out: Vector) -> None:
    """Fill ``out`` with exp(rate x) for rate x <= 0, or 0 below e^-700, in vector instructions.

    With k the integer nearest to y / ln 2, exp(y) = 2^k exp(y - k ln 2).  Of the last factor 13
    terms of the series miss less than 1e-17; rounding takes a few units of the last digit.
    """
    power = out.view(np.int64)  # in the bits of a float the exponent begins at 52
    for i in range(x.size):
        y = max(rate * x[i], _FAR)
        k = np.rint(y * _LOG2_E)
        power[i] = (np.int64(k) + 1023) << 52
        r = (y - k * _LN2) - k * _LN2_REST
        square = r * r
        series = _C10 + _C11 * r + square * (_C12 + _C13 * r)
        series = _C6 + _C7 * r + square * (_C8 + _C9 * r + square * series)
        series = _C2 + _C3 * r + square * (_C4 + _C5 * r + square * series)
        out[i] = out[i] * (1.0 + r + square * series) if y > _FAR else 0.0


@kernel
def exponential_weights(losses: Vector, rate: float, probability: Vector) -> None:
    """Write p_a proportional to exp(-rate losses_a), with recentred losses: no weight exceeds 1.

    >>> p = np.zeros(2)
    >>> exponential_weights(np.array([0.0, np.log(3.0)]), 1.0, p)
    >>> p.round(12).tolist()
    [0.75, 0.25]
    """
    exponentials(losses, -rate, probability)
    rest = losses.size % 4
    s0 = s1 = s2 = s3 = 0.0  # one sum would wait for each term
    for a in range(rest):
        s0 += probability[a]
    for a in range(rest, losses.size, 4):
        s0 += probability[a]
        s1 += probability[a + 1]
        s2 += probability[a + 2]
        s3 += probability[a + 3]
    total = (s0 + s1) + (s2 + s3)
    for a in range(losses.size):
        probability[a] /= total


@inlined
def _raised(x: float, power: float) -> float:
    return x * x if power == 2.0 else x**power


@kernel
def tsallis(losses: Vector, rate: float, power: float, start: float, probability: Vector) -> float:
    """Write the minimiser of <rate losses, x> - a sum x^(1/a)  over the simplex, where power = a /
    (a - 1) >= 2; the losses are recentred.

    It is x_i = (rate losses_i + nu)^-power with the one nu in [1, K^(1/power)] that makes the sum
    S(nu) = 1.  At nu = 1 the best arm alone has all the mass; at the other end no arm has more than
    1/K.  S^(-1/power) is concave and increasing in nu, and close to a line: Newton's method for 1
    is below the root after one step, and then rises to it.  ``start`` is a guess of nu; returns nu.

    >>> x = np.zeros(4)
    >>> float(tsallis(np.zeros(4), 1.0, 2.0, 0.0, x)), x.tolist()
    (2.0, [0.25, 0.25, 0.25, 0.25])
    """
    n = losses.size
    low, high = 1.0, np.sqrt(float(n)) if power == 2.0 else n ** (1.0 / power)
    nu = min(max(start, low), high)
    for _ in range(_STEPS):
        mass = slope = 0.0
        for a in range(n):
            root = 1.0 / (rate * losses[a] + nu)
            share = _raised(root, power)
            mass += share
            slope += share * root
        before = nu
        excess = (np.sqrt(mass) if power == 2.0 else mass ** (1.0 / power)) - 1.0
        # Newton's step for S^(-1/power) = 1, written with S^(1/power), which does not vanish.
        nu = min(max(nu + mass * excess / slope, low), high)
        if abs(nu - before) <= 1e-14 * nu:
            break
    total = 0.0
    for a in range(n):
        probability[a] = _raised(1.0 / (rate * losses[a] + nu), power)
        total += probability[a]
    for a in range(n):
        # The sum is 1 but for rounding, and draws want it nearer.
        probability[a] /= total
    return nu


@kernel
def draw(probability: Vector, u: float) -> int:
    """The arm in whose share of [0, 1] the number u falls; never one of probability zero.

    >>> draw(np.array([0.5, 0.0, 0.5]), 0.5)
    2
    """
    last = 0
    for a in range(probability.size):
        if probability[a] > 0.0:
            last = a
            if u < probability[a]:
                return a
            u -= probability[a]
    return last  # rounding has left a little of u over
