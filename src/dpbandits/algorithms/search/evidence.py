"""The evidence of ``inference.mixture`` in kernels, one release after another.

An arm has two sides, against small and against large means.  Of a side are kept for each of the 28
tilts the sum of -l Y - c(l), and the rounds by *level*.  A batch of n rounds has the level of n V /
v, rounded on a logarithmic scale: V is the guess of a reward's variance, and v the variance of the
noise on a sum.  Tilts depend on the level alone, so they are a table.  The level is fixed when the
first round of a batch is pulled.  Tilts may be chosen in any way then, so rounding costs no proof.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...inference import NARROWEST, PRIOR, ROUNDS_OF_PRIOR, TILTS, WIDEST, Noise
from ...kernel import Vector, kernel

_LEVELS, _MIDDLE = 48, 32  # level k: n V = 2^((k - 32) / 2) v
_COUNT = len(TILTS)
_LN_COUNT = np.log(_COUNT)
_TINY = 1e-300
_STEPS = 60
_FLAT = 1e-4  # nats


class Table(NamedTuple):  # slots of ``tilt_table``
    tilt: int = 0  # l
    shrunk: int = 1  # 1 - exp(-l)
    cost: int = 2  # c(l)


class Side(NamedTuple):  # slots of ``Evidence.linear``
    up: int = 0  # against small means
    down: int = 1  # against large means


class Released(NamedTuple):  # slots of ``Evidence.released``
    rounds: int = 0
    total: int = 1
    batches: int = 2


TABLE, SIDE, RELEASED = Table(), Side(), Released()


class Evidence(NamedTuple):  # for rewards in [0, 1]
    released: np.ndarray  # (3, K) of all releases of an arm
    linear: np.ndarray  # (2, K, 28) for each side the sums of -l Y - c(l)
    levels: np.ndarray  # (K, 48) rounds in batches of each level


def no_evidence(n_arms: int) -> Evidence:
    """Before the first release."""
    return Evidence(
        released=np.zeros((len(RELEASED), n_arms)),
        linear=np.zeros((len(SIDE), n_arms, _COUNT)),
        levels=np.zeros((n_arms, _LEVELS)),
    )


def tilt_table(noise: Noise) -> np.ndarray:
    """Tilts, and numbers that follow from them, for each u and level, shape (3, 28, 48).

    Batches of one level differ in length, so with ``noise.dropout`` c(l) bounds those of all.
    """
    one, bare, present = np.ones(_LEVELS), noise._replace(dropout=0.0), 1.0 - noise.dropout
    known = 2.0 ** (0.5 * (np.arange(_LEVELS) - _MIDDLE)) * np.maximum(bare.variance(one), _TINY)
    tilts = bare.tilts(known * present, one)
    return np.stack([tilts, -np.expm1(-tilts), bare.cost(tilts, one) / present])


@kernel
def guess_of(evidence: Evidence, arm: int, noise: float) -> float:
    """V, from the arm's releases; ``noise`` is v."""
    n = evidence.released[RELEASED.rounds, arm]
    if n == 0.0:
        return PRIOR
    noises = noise * evidence.released[RELEASED.batches, arm]
    # So many rounds without noise would tell as much.
    worth = n * n * PRIOR / (n * PRIOR + noises)
    mean = min(max(evidence.released[RELEASED.total, arm] / n, 0.0), 1.0)
    guess = (ROUNDS_OF_PRIOR * PRIOR + worth * mean * (1.0 - mean)) / (ROUNDS_OF_PRIOR + worth)
    return min(max(guess, NARROWEST), WIDEST)


@kernel
def level_of(known: float, noise: float) -> int:
    """The level of a batch whose rewards have the variance ``known`` = n V in all."""
    if known * 2.0 ** (-_LEVELS) >= noise:
        return _LEVELS - 1
    level = int(np.rint(2.0 * np.log2(known / noise))) + _MIDDLE
    return min(max(level, 0), _LEVELS - 1)


@kernel
def take(evidence: Evidence, table: Any, arm: int, n: float, total: float, level: int) -> None:
    """Take in the release of a batch."""
    evidence.released[RELEASED.rounds, arm] += n
    evidence.released[RELEASED.total, arm] += total
    evidence.released[RELEASED.batches, arm] += 1.0
    evidence.levels[arm, level] += n
    for i in range(_COUNT):
        tilt, cost = table[TABLE.tilt, i, level], table[TABLE.cost, i, level]
        evidence.linear[SIDE.up, arm, i] -= tilt * (n - total) + cost
        evidence.linear[SIDE.down, arm, i] -= tilt * total + cost


@kernel
def evidence_at(
    levels: Vector, linear: Vector, shrunk: Any, p: float
) -> tuple[float, float, float]:
    """ln M of a side, and its first two derivatives: p is q, or 1 - q against small means."""
    first, last = 0, levels.size
    while first < last and levels[first] == 0.0:
        first += 1
    while last > first and levels[last - 1] == 0.0:
        last -= 1
    largest, total, slope, curve = -np.inf, 0.0, 0.0, 0.0
    for i in range(_COUNT):
        term, steep, bent = linear[i], 0.0, 0.0
        for k in range(first, last):
            n = levels[k]
            if n > 0.0:
                left = 1.0 - p * shrunk[i, k]
                each = shrunk[i, k] / left
                term -= n * np.log(left)
                steep += n * each
                bent += n * each * each
        bent += steep * steep
        if term > largest:
            scale = np.exp(largest - term)
            total, slope, curve = total * scale, slope * scale, curve * scale
            largest, weight = term, 1.0
        else:
            weight = np.exp(term - largest)
        total += weight
        slope += weight * steep
        curve += weight * bent
    slope /= total
    return largest + np.log(total) - _LN_COUNT, slope, curve / total - slope * slope


@kernel
def least_sum(evidence: Evidence, table: Any, b: int, c: int, gap: float, start: float) -> float:
    """The least ln M_up,b(q) + ln M_dn,c(q + gap) over q, with q and q + gap in [0, 1], from below:
    by Newton's method from ``start`` on.  A step that leaves the bracket is replaced by bisection.

    The gap is from -1 to 1.  The sum is convex.  So at the least it is above the tangent at q, at
    the bracket's end.
    """
    low, high = max(0.0, -gap), min(1.0, 1.0 - gap)
    q, bound = min(max(start, low), high), -np.inf
    shrunk = table[TABLE.shrunk]
    for _ in range(_STEPS):
        above, falling, bent = evidence_at(
            evidence.levels[b], evidence.linear[SIDE.up, b], shrunk, 1.0 - q
        )
        below, rising, bent_too = evidence_at(
            evidence.levels[c], evidence.linear[SIDE.down, c], shrunk, q + gap
        )
        slope = rising - falling
        if slope > 0.0:
            high, reach = q, q - low
        else:
            low, reach = q, high - q
        lost = abs(slope) * reach
        bound = max(bound, above + below - lost)
        if lost <= _FLAT:
            break
        q -= slope / (bent + bent_too)
        if not low < q < high:
            q = 0.5 * (low + high)
    return bound
