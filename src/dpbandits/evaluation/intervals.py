"""Intervals of a value, from sums over episodes.

Let A be an episode's sum of an estimator's first terms, and B that of its second.  At the true
value v the mean of A - v B is 0, for every estimator without bias.  So a method tests each value t
by the terms A - t B, and the interval is all t that it does not reject.

**bernstein**: the empirical Bernstein bound of Maurer & Pontil (2009, Theorem 4), on both sides.
It needs a number of episodes that was fixed beforehand, independent episodes, and bounds of weights
and rewards.

**betting**: two gamblers bet on A - t B, one that it is above 0 and one that it is below.  Each
splits a capital of 1 among fixed stakes, and bets these stakes in every episode.  At t = v neither
capital grows on average, whatever came before.  So it ever reaches 2 / alpha with probability at
most alpha / 2 (Ville).  All t at which some capital ever did are rejected (Waudby-Smith & Ramdas,
2024; for importance weights, Karampatziakis, Mineiro & Ramdas, 2021).  So one may look after each
episode, and stop at any time.  It holds for policies that learn, too.  It needs bounds of weights
and rewards, a target and predictions that are fixed beforehand, and a value that stays the same.

**bootstrap**: percentiles of the estimate when episodes are drawn with replacement.  It needs
independent episodes, and many of them; coverage is approximate.  It needs no bounds.

In all of them the length of an episode must not depend on the arm that was drawn for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import ArgumentError

METHODS = ("bernstein", "bootstrap", "betting")
_HALVINGS = 34
_BLOCK = 2**14  # episodes at once, for memory
# Shares of the largest stake that cannot lose everything.
_STAKES = 0.95 * 2.0 ** (-0.5 * np.arange(20))


class Episodes(NamedTuple):
    """Sums of terms in each episode, and their bounds as in ``Terms``, of a whole episode."""

    first: np.ndarray
    second: np.ndarray
    low: float
    high: float
    scale: float

    def part(self, which: np.ndarray) -> Episodes:
        """Some of the episodes."""
        return self._replace(first=self.first[which], second=self.second[which])

    def within(self, lo: float, hi: float) -> tuple[float, float]:
        """The values in [lo, hi] that the bounds allow."""
        return max(lo, self.low / self.scale), min(hi, self.high / self.scale)


def bernstein(found: Episodes, alpha: float, lo: float, hi: float) -> tuple[float, float]:
    """All values that the empirical Bernstein bound does not reject."""
    n = found.first.size
    if n < 2:
        raise ArgumentError(f"log must hold two episodes or more, got {n}", "log")
    a, b = found.first.mean(), found.second.mean()
    (va, c), (_, vb) = np.cov(found.first, found.second).tolist()
    level = math.log(4.0 / alpha)
    rest = 7.0 * (found.high - found.low) * level / (3.0 * (n - 1))

    def excess(t: float, sign: float) -> bool:
        spread = max(va - 2.0 * t * c + t * t * vb, 0.0)
        return sign * (a - t * b) > math.sqrt(2.0 * spread * level / n) + rest

    return _ends(found.within(lo, hi), lambda t: excess(t, 1.0), lambda t: excess(t, -1.0))


def betting(found: Episodes, alpha: float, lo: float, hi: float) -> tuple[float, float]:
    """All values that no capital has rejected after any episode."""
    low, high = found.within(lo, hi)
    level = math.log(2.0 / alpha)
    # No stake may lose more than the capital, at any value that is tested.
    up = _STAKES / max(high * found.scale - found.low, 1e-300)
    down = _STAKES / max(found.high - low * found.scale, 1e-300)

    def rejected(t: float, stakes: np.ndarray) -> bool:
        return _exceeds(found.first - t * found.second, stakes, level)

    return _ends((low, high), lambda t: rejected(t, up), lambda t: rejected(t, -down))


def _exceeds(terms: np.ndarray, stakes: np.ndarray, level: float) -> bool:
    """Whether the log of the mean capital of all stakes ever reaches a level."""
    capital = np.zeros((1, stakes.size))
    for block in np.array_split(terms, -(-terms.size // _BLOCK)):
        capital = capital[-1] + np.cumsum(np.log1p(block[:, None] * stakes), axis=0)
        best = capital.max(axis=1)
        near = best >= level  # the mean is not above the best
        mean = best[near] + np.log(np.exp(capital[near] - best[near, None]).mean(axis=1))
        if (mean >= level).any():
            return True
    return False


def _ends(
    within: tuple[float, float],
    is_small: Callable[[float], bool],
    is_large: Callable[[float], bool],
) -> tuple[float, float]:
    """The values that are neither too small nor too large; nan where none is left."""
    low, high = _edge(*within, is_small), _edge(*within[::-1], is_large)
    return (low, high) if low <= high else (math.nan, math.nan)


def _edge(rejected: float, kept: float, rejects: Callable[[float], bool]) -> float:
    """How far from the first end values are rejected, on the side of the rejected ones."""
    if not rejects(rejected):
        return rejected
    for _ in range(_HALVINGS):
        middle = 0.5 * (rejected + kept)
        if rejects(middle):
            rejected = middle
        else:
            kept = middle
    return rejected


def bootstrap(
    found: Episodes, alpha: float, resamples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Percentiles of the estimate over resampled episodes."""
    n, values = found.first.size, np.full(resamples, np.nan)
    for i in range(resamples):
        drawn = rng.integers(n, size=n)
        total = found.second[drawn].sum()
        if total > 0.0:
            values[i] = found.first[drawn].sum() / total
    low, high = np.nanquantile(values, [0.5 * alpha, 1.0 - 0.5 * alpha])
    return float(low), float(high)
