"""Discrete Gaussian and Laplace noise, drawn exactly: from bytes to integers, without any float.

After Canonne, Kamath & Steinke (2020), The Discrete Gaussian for Differential Privacy, Algorithms 1
to 3.  ``algorithms/private_contexts/device.js`` has the same functions, in the same order, and
makes the same integers of the same bytes.  A source of bytes is a function: ``take(n)`` gives the
next n, as ``os.urandom`` does.  Nothing is read ahead, so that nothing is left over that could be
copied, or would tell later what noise was drawn.

Why the laws are exact, given fair and independent bits:

* ``bernoulli``: a uniform number is below n / d if, at the first place where their digits in base
  256 differ, its digit is the smaller one.
* ``bernoulli_exp`` (Algorithm 1): for g <= 1 and A_k ~ Bernoulli(g / k), the first k are all true
  with probability g^k / k!.  The first false one is the k-th, k odd, with probability 1 - g + g^2 /
  2! - ... = exp(-g).  For g > 1 that is multiplied by exp(-1) for each whole unit.
* ``discrete_laplace`` (Algorithm 2): u + t v has a probability proportional to exp(-(u + t v) / t),
  which determines both; its quotient by s, y, one proportional to exp(-y s / t).  The sign is fair,
  and 0 has one of two.
* ``discrete_gaussian`` (Algorithm 3): exp(-|y| / t) times exp(-(|y| - p / (q t))^2 q / (2 p)) is
  exp(-y^2 q / (2 p)) times a constant.  Any t would do; the one that is used refuses few.

How long a draw takes tells of how large it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Source = Callable[[int], bytes]


def _integer(size: int, take: Source) -> int:
    given = take(size)
    if len(given) != size:
        raise EOFError(f"the source of random bytes gave {len(given)} of {size}")
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


def discrete_laplace(t: int, s: int, take: Source) -> int:
    """y with a probability proportional to exp(-|y| s / t).

    >>> import os
    >>> abs(discrete_laplace(5, 2, os.urandom)) < 100
    True
    """
    while True:
        u = uniform(t, take)
        if not bernoulli_exp(u, t, take):
            continue
        v = 0
        while bernoulli_exp(1, 1, take):
            v += 1
        y = (u + t * v) // s
        negative = uniform(2, take) == 1
        if not (negative and y == 0):
            return -y if negative else y


def discrete_gaussian(p: int, q: int, take: Source) -> int:
    """y with a probability proportional to exp(-y^2 q / (2 p)): of parameter sigma^2 = p / q.

    >>> import os
    >>> abs(discrete_gaussian(9, 4, os.urandom)) < 100
    True
    """
    t = math.isqrt(p // q) + 1
    while True:
        y = discrete_laplace(t, 1, take)
        if bernoulli_exp((abs(y) * q * t - p) ** 2, 2 * p * q * t * t, take):
            return y
