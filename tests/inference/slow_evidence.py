"""The evidence of ``dpbandits.inference``, written down as in its definition, slowly."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Batch(NamedTuple):
    arm: int
    rounds: int
    total: float
    known: int  # releases of any arm, made when it began


U = [0.004 * 1000.0 ** (i / 27) for i in range(28)]


def variance_guess(batches: Sequence[Batch], batch: Batch, noise_variance: float) -> float:
    """From releases of the arm that had been made when the batch began."""
    if noise_variance == 0.0:
        return 0.25
    seen = [one for one in batches[: batch.known] if one.arm == batch.arm]
    n, y = sum(one.rounds for one in seen), sum(one.total for one in seen)
    mean = min(max(y / n, 0.0), 1.0) if n else 0.0
    worth = n * n * 0.15 / (n * 0.15 + noise_variance * len(seen)) if n else 0.0
    guess = (5 * 0.15 + worth * mean * (1 - mean)) / (5 + worth)
    step = min(max(round(2 * math.log2(0.25 / guess)), 0), 10)
    return 0.25 * 2.0 ** (-step / 2)


@functools.cache
def tilt(u: float, n: int, variance: float, scale: float, laplace: bool) -> float:
    if scale == 0.0:
        return u
    if not laplace:
        return u * n * variance / (n * variance + scale**2)
    low, high = 0.0, min(u, 1.0 / scale)
    for _ in range(80):
        middle = 0.5 * (low + high)
        pull = 2 * middle * scale**2 / max(1 - (scale * middle) ** 2, 1e-300)
        low, high = (middle, high) if (u - middle) * n * variance > pull else (low, middle)
    return low


def cost(tilt: float, scale: float, laplace: bool) -> float:
    return -math.log(1 - (scale * tilt) ** 2) if laplace else 0.5 * (scale * tilt) ** 2


def evidence(
    batches: Sequence[Batch], arm: int, q: float, scale: float, laplace: bool, *, up: bool
) -> float:
    """M_up(q) or M_dn(q) of an arm."""
    noise_variance = scale**2 * (2.0 if laplace else 1.0)
    total = 0.0
    for u in U:
        exponent = 0.0
        for one in batches:
            if one.arm != arm:
                continue
            guess = variance_guess(batches, one, noise_variance)
            t = tilt(u, one.rounds, guess, scale, laplace)
            y, p = (one.rounds - one.total, 1.0 - q) if up else (one.total, q)
            psi = math.log(1 - p + p * math.exp(-t))
            exponent += -t * y - one.rounds * psi - cost(t, scale, laplace)
        total += math.exp(exponent) / len(U)
    return total


def crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function crosses 0, by bisection."""
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if function(middle) > 0.0 else (middle, high)
    return high


def difference_below(
    batches: Sequence[Batch], b: int, c: int, d: float, scale: float, laplace: bool
) -> float:
    """min over q of ln M_up,b(q + d) + ln M_dn,c(q), on a fine grid."""
    grid = [i / 200 for i in range(201) if 0.0 <= i / 200 + d <= 1.0]
    return min(
        math.log(evidence(batches, b, q + d, scale, laplace, up=True))
        + math.log(evidence(batches, c, q, scale, laplace, up=False))
        for q in grid
    )


def laws(n: int, q: float, noise: dict[int, float]) -> dict[int, float]:
    """The probabilities of the noisy sum of n coins."""
    coins = {k: math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)}
    found: dict[int, float] = {}
    for (k, p), (x, r) in itertools.product(coins.items(), noise.items()):
        found[k + x] = found.get(k + x, 0.0) + p * r
    return found
