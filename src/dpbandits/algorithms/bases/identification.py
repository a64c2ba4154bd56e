"""Searches for the best arm that stop at a confidence: what their stopping rules share.

An arm's j-th batch is known beforehand to have a certain length, and only how many batches an arm
has had depends on what was released.  So with rewards of each arm independent and of one law,
whatever has been merged of the first j batches of an arm, as of the first k of another, is what it
would be if both had been drawn in advance: a bound for fixed j and k holds, and a sum over all of
them pays for not knowing which.

Here are weights for that sum: w_j = c / ((j + c - 1)(j + c)), j >= 1, which is c times a difference
of 1 / (j + c - 1) and the next, so that they sum to one.  They hardly fall before the c-th batch.
"""

from __future__ import annotations

import math

from ...kernel import kernel

_IN_SIGHT = 20.0  # c: batches grow geometrically, and a search rarely takes more per arm


@kernel
def price_of_batches(j: int) -> float:
    """ln(1 / w_j)."""
    return math.log((j + _IN_SIGHT - 1.0) * (j + _IN_SIGHT) / _IN_SIGHT)


def two_exponentials(probability: float) -> float:
    """A z that the sum of two variables exceeds with at most this probability, if they are
    independent and neither exceeds any x more often than exp(-x).

    The sum is no larger, in law, than that of two exponential variables, which exceeds z with
    probability (1 + z) exp(-z).  With L = ln(1 / p) and s = sqrt(2 L) that is at most p for z = L +
    ln(1 + L + s): ln(1 + z) <= z - L says 1 + L + ln(1 + L + s) <= 1 + L + s, and ln(1 + s + s^2 /
    2) <= s.
    """
    log = math.log(1.0 / probability)
    return log + math.log(1.0 + log + math.sqrt(2.0 * log))
