"""Discrete Gaussian and Laplace noise, drawn exactly: from bytes to integers, without any float.

After Canonne, Kamath & Steinke (2020), The Discrete Gaussian for Differential Privacy, Algorithms 1
to 3.  ``algorithms/hidden/javascript/noise.js`` has these functions in this order, and makes equal
integers of equal bytes.  A source of bytes is a function: ``take(n)`` gives the next n, as
``os.urandom`` does.  No bytes are read ahead, so no rest remains that could be copied, or could
reveal the noise later.

Why the laws are exact, given fair and independent bits:

* ``bernoulli``: a uniform number is below n / d if, at the first place where their digits in base
  256 differ, its digit is the smaller one.
* ``bernoulli_exp`` (Algorithm 1): for g <= 1 and A_k ~ Bernoulli(g / k), the first k are all true
  with probability g^k / k!.  The first false one is the k-th, k odd, with probability 1 - g + g^2 /
  2! - ... = exp(-g).  For g > 1 that is multiplied by exp(-1) for each whole unit.
* ``discrete_laplace`` (Algorithm 2): u + t v has a probability proportional to exp(-(u + t v) / t),
  which determines both; its quotient by s, y, exp(-y s / t).  The sign is fair; 0 has one.
* ``discrete_gaussian`` (Algorithm 3): exp(-|y| / t) times exp(-(|y| - p / (q t))^2 q / (2 p)) is
  exp(-y^2 q / (2 p)) times a constant.  Any t would do; the one that is used refuses few.
* ``bernoulli_logistic``: each turn ends with True with probability 1/2 and with False with
  probability exp(-g) / 2.  So the quotient of both is exp(g).
* ``hemisphere``: see there.

The time of a draw reveals something about its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

Source = Callable[[int], bytes]

_SPREAD = 2**32  # the parameter of integers whose direction is all that matters
_FINE = 2**40
_STEPS = 2**32 - 1  # of a standard deviation: ``discrete_laplace`` takes its u from four bytes


def _integer(size: int, take: Source) -> int:
    given = take(size)
    if len(given) != size:
        raise EOFError(f"the source of random bytes must give {size} bytes, got {len(given)}")
    return int.from_bytes(given, "big")


def uniform(n: int, take: Source) -> int:
    """0, ..., or n - 1, equally likely: the leading bits of the fewest bytes, until below n."""
    bits = (n - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        value = _integer(size, take) >> (8 * size - bits)
        if value < n:
            return value


def bernoulli(n: int, d: int, take: Source) -> bool:
    """True with probability n / d, which is between 0 and 1."""
    while True:
        # The next digit of n / d in base 256, and the remainder, which has the later ones.
        digit, n = divmod(256 * n, d)
        given = _integer(1, take)
        if given != digit:
            return given < digit


def bernoulli_exp(n: int, d: int, take: Source) -> bool:
    """True with probability exp(-n / d), n >= 0."""
    while n > d:
        if not bernoulli_exp(1, 1, take):
            return False
        n -= d
    k = 1
    while bernoulli(n, d * k, take):
        k += 1
    return k % 2 == 1


def bernoulli_logistic(n: int, d: int, take: Source) -> bool:
    """True with probability exp(n / d) / (1 + exp(n / d)), n >= 0."""
    while uniform(2, take) == 0:
        if bernoulli_exp(n, d, take):
            return False
    return True


def discrete_laplace(t: int, s: int, take: Source) -> int:
    """y with a probability proportional to exp(-|y| s / t)."""
    while True:
        u = uniform(t, take)
        if not bernoulli_exp(u, t, take):
            continue
        v = 0
        while bernoulli_exp(1, 1, take):
            v += 1
        y = (u + t * v) // s
        negative = uniform(2, take) == 1
        # 0 would come with either sign, and so twice as often as it should.
        if not (negative and y == 0):
            return -y if negative else y


def discrete_gaussian(p: int, q: int, take: Source) -> int:
    """y with a probability proportional to exp(-y^2 q / (2 p)): of parameter sigma^2 = p / q."""
    t = math.isqrt(p // q) + 1
    while True:
        y = discrete_laplace(t, 1, take)
        if bernoulli_exp((abs(y) * q * t - p) ** 2, 2 * p * q * t * t, take):
            return y


def standard_normal(take: Source) -> float:
    """A standard normal variate for a choice: a discrete Gaussian in steps of about 2^-32.  The
    only float operation is a division, so all languages get the same number.
    """
    return discrete_gaussian(_STEPS**2, 1, take) / _STEPS


def hemisphere(vector: Sequence[float], epsilon: Fraction, take: Source) -> list[int]:
    """Integers, in about the direction of the vector that ``channels.Hemisphere`` releases.

    **Pure DP**, exactly: U is a vector of independent discrete Gaussian integers, drawn again where
    all are 0, and independent of v.  Its law is symmetric.  The released vector is +-U.  Its
    product with v is positive with a probability q between 1 / (1 + e^epsilon) and e^epsilon times
    that.  Where the product is 0, which exact arithmetic detects, both signs are equally likely. So
    w is released with probability 2 q P(U = w), 2 (1 - q) P(U = w) or P(U = w).  Any two vectors v
    have quotients of at most e^epsilon.
    """
    drawn = [0]
    while not any(drawn):
        drawn = [discrete_gaussian(_SPREAD, 1, take) for _ in vector]
    product = sum(u * Fraction(v) for u, v in zip(drawn, vector, strict=True))
    # ``toward`` has the probability (1 + |v|) / 2: the mean rests on it, privacy holds for any.
    length = min(math.ceil(_FINE * math.hypot(*vector)), _FINE)
    toward = bernoulli(_FINE + length, 2 * _FINE, take)
    kept = bernoulli_logistic(epsilon.numerator, epsilon.denominator, take)
    positive = uniform(2, take) == 1 if product == 0 else (product > 0) == (toward == kept)
    return drawn if positive else [-u for u in drawn]
