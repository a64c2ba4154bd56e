"""What EXP4 is made of: a mixture of the experts' advice, and how boldly to weigh them.

P is the distribution over experts, gamma the share of uniform play: arm a is drawn with probability
Q(a) = (1 - gamma) <P, x> + gamma / K for its probabilities x by expert.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...kernel import Vector, inlined

LARGEST_MIXING = 0.5  # of which the proofs of Theorems 6 and 8 speak
_GRID = 400  # values of eta, and of tau, among which the best ones are found


@inlined
def mixed(probability: Vector, mixing: float, n_arms: int, x: Vector) -> float:
    """Q of the arm whose probabilities by expert are x.

    Eight sums, because one would have to wait for each of its terms.
    """
    rest = x.size % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for j in range(rest):
        s0 += probability[j] * x[j]
    for j in range(rest, x.size, 8):
        s0 += probability[j] * x[j]
        s1 += probability[j + 1] * x[j + 1]
        s2 += probability[j + 2] * x[j + 2]
        s3 += probability[j + 3] * x[j + 3]
        s4 += probability[j + 4] * x[j + 4]
        s5 += probability[j + 5] * x[j + 5]
        s6 += probability[j + 6] * x[j + 6]
        s7 += probability[j + 7] * x[j + 7]
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    return (1.0 - mixing) * total + mixing / n_arms


class Tuning(NamedTuple):  # how EXP4 is run
    batch: int  # tau
    rate: float  # eta
    mixing: float  # gamma
    bound: float = math.nan  # on regret, where it is not that of ``Mixture.regret``


class Noise(NamedTuple):
    """The noise on an expert's mean loss at gamma = 1 and tau = 1; it falls with both."""

    scale: float
    variance: float  # in units of scale^2
    tail: float  # how many scales none of the draws exceeds, but with probability 1 / T


@lru_cache(maxsize=256)  # a simulation makes a policy for each run
def tune(
    n_arms: int, n_experts: int, horizon: int, noise: Noise, batch: int | None = None
) -> Tuning:
    """The tau, eta and gamma <= 1/2 of least ``exp4_regret``.

    For given tau and eta the best gamma is (2 eta v)^(1/3) with v the variance at gamma = 1, or the
    least one that keeps losses above -1 / eta; the others are searched for on a grid.

    >>> tune(10, 100, 10**6, Noise(0.0, 1.0, 1.0)).batch
    1
    """
    lengths = (
        np.unique(np.geomspace(1, horizon, _GRID).astype(np.int64))
        if batch is None
        else np.array([batch])
    )
    rates = np.geomspace(1e-9, 1.0, _GRID)
    tau, eta = lengths[:, None].astype(float), rates[None, :]
    scale = noise.scale / tau
    gamma = np.maximum(np.cbrt(2.0 * eta * noise.variance * scale**2), eta * noise.tail * scale)
    possible = eta * noise.tail * scale <= LARGEST_MIXING
    gamma = np.minimum(gamma, LARGEST_MIXING)
    spread = np.divide(scale, gamma, out=np.zeros_like(gamma), where=gamma > 0.0)
    moment = 1.0 + n_arms / ((1.0 - gamma) * tau) + noise.variance * spread**2
    log = math.log(max(n_experts, 2))
    bound = np.where(
        possible, tau * log / eta + gamma * horizon + eta * horizon * moment + tau + 1.0, np.inf
    )
    i, j = np.unravel_index(np.argmin(bound), bound.shape)
    return Tuning(int(lengths[i]), float(rates[j]), float(gamma[i, j]))
