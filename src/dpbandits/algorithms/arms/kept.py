"""Values of indices that are kept until their arm, or what it is compared with, has changed.

A value is kept with the numbers that it follows from, and is used only while they are equal.  So
choices are those of a recomputation, whatever changed an arm: a release, a release undone, another
worker's, or a saved state.  ``State`` neither saves nor undoes ``cache``.

The bound of KL-UCB: with time the level rises, and with it every index.  One bound, at a level
that lies ahead, holds until then.  An arm whose bound is below the best index needs no index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...kernel import Matrix, Vector, kernel, outlined, unbound
from .law import MERGED, ceiling_of, divergence_of

_AHEAD = 1.05  # a level ahead over the present one

columns = unbound  # of the memory


class Kept(NamedTuple):  # rows of ``cache`` after those of an arm's two columns
    at: int = 2 * len(MERGED)  # the highest value, or the level, that ``value`` is for
    value: int = 2 * len(MERGED) + 1  # a divergence, or a bound; nan: unknown
    weight: int = 2 * len(MERGED) + 2
    logarithm: int = 2 * len(MERGED) + 3  # of that weight


KEPT = Kept()


def nothing_kept(n_arms: int) -> Matrix:
    """A cache that knows nothing."""
    return np.full((2 * len(MERGED) + len(KEPT), n_arms), np.nan)


@outlined  # within a caller it would not be vectorised
def _forget(values: Vector, then: Vector, now: Vector) -> None:
    """Forget the values of arms for which ``then`` and ``now`` differ."""
    for a in range(values.size):
        values[a] = values[a] if then[a] == now[a] else np.nan


@kernel
def forget_changed(params: Any, public: Any) -> None:
    """Forget the values of arms whose columns have changed.  Row by row, which takes a fraction of
    the time of arm by arm.
    """
    cache, known = public.cache, columns(public.merged, public.awaited)
    # Of released batches an index sees the merged value, and the rest for the sake of ``curve``.
    for i in range(len(MERGED) if params.curved else MERGED.value + 1):
        _forget(cache[KEPT.value], cache[i], public.merged[i])
    for i in range(len(MERGED)):
        _forget(cache[KEPT.value], cache[len(MERGED) + i], known[i])


@kernel
def forget_nothing(params: Any, public: Any) -> None:
    """For indices that keep nothing."""


@kernel
def _note(cache: Matrix, merged: Matrix, known: Matrix, a: int, at: float) -> None:
    """Note what the next value follows from."""
    for i in range(len(MERGED)):
        cache[i, a], cache[len(MERGED) + i, a] = merged[i, a], known[i, a]
    cache[KEPT.at, a] = at


# Outlined, because copied into a loop they would keep it from being compiled as one.


@outlined
def _find_divergence(
    params: Any, cache: Matrix, merged: Matrix, known: Matrix, a: int, target: float
) -> None:
    _note(cache, merged, known, a, target)
    value = merged[MERGED.value, a]
    cache[KEPT.value, a] = divergence_of(params, merged[:, a], known[:, a], value, target)


@kernel
def kept_divergence(
    params: Any, cache: Matrix, merged: Matrix, known: Matrix, a: int, target: float
) -> float:
    """``divergence_of`` an arm, after ``forget_changed``."""
    if cache[KEPT.at, a] != target or np.isnan(cache[KEPT.value, a]):
        _find_divergence(params, cache, merged, known, a, target)
    return cache[KEPT.value, a]


@kernel
def kept_logarithm(cache: Matrix, a: int, weight: float) -> float:
    """ln of an arm's weight."""
    if cache[KEPT.weight, a] != weight:
        cache[KEPT.weight, a], cache[KEPT.logarithm, a] = weight, np.log(weight)
    return cache[KEPT.logarithm, a]


@outlined
def _find_ceiling(
    params: Any, cache: Matrix, merged: Matrix, known: Matrix, a: int, level: float
) -> None:
    _note(cache, merged, known, a, level)
    cache[KEPT.value, a] = ceiling_of(params, known[:, a], merged[MERGED.value, a], level)


@kernel
def kept_ceiling(
    params: Any, cache: Matrix, merged: Matrix, known: Matrix, a: int, level: float
) -> float:
    """A bound on ``upper_bound_of`` an arm, after ``forget_changed``."""
    if not cache[KEPT.at, a] >= level or np.isnan(cache[KEPT.value, a]):
        _find_ceiling(params, cache, merged, known, a, _AHEAD * level)
    return cache[KEPT.value, a]
