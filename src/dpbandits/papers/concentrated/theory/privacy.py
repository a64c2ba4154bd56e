"""Group privacy, what it does to distributions, and Table DP."""

from __future__ import annotations

import numpy as np

from ....theory.bounds import Array, Values, bound
from .arms import PAPER


@bound(
    "upper",
    "KL divergence between sequences of actions",
    source=f"{PAPER}, Theorem 1",
    assumes="rho-interactive zCDP; the actions of the history are the same",
)
def group_actions(rho: float, changed: float) -> float:
    """The divergence for two sequences of rewards that differ in so many rounds: rho changed^2, for
    the sum over rounds of KL(pi_t given one || pi_t given the other).
    """
    return rho * changed**2


@bound(
    "upper",
    "Renyi divergence",
    source=f"{PAPER}, Theorem 16 (Bun & Steinke 2016, Proposition 27)",
    assumes="rho-zCDP, alpha >= 1",
)
def group_renyi(rho: float, changed: float, alpha: float) -> float:
    """Between outputs on data that differ in so many records: rho changed^2 alpha."""
    return rho * changed**2 * alpha if alpha >= 1.0 else np.inf


@bound("upper", "KL divergence between outputs", source=f"{PAPER}, Theorem 6", assumes="rho-zCDP")
def kl_transport(rho: float, mean_square: float) -> float:
    """The divergence for data from two laws: rho times the mean of d_Ham(d, d')^2 under any
    coupling of them.
    """
    return rho * mean_square


@bound(
    "upper",
    "KL divergence between outputs",
    source=f"{PAPER}, Theorem 7",
    assumes="rho-zCDP, independent records",
)
def kl_product(rho: float, distances: Array) -> float:
    """The divergence for data from two product laws: rho ((sum t_i)^2 + sum t_i (1 - t_i)), t_i the
    total variation distances of the records' laws.

    >>> round(kl_product(0.5, [0.2, 0.2]), 3)
    0.24
    """
    t = np.asarray(distances, float)
    return kl_transport(rho, float(t.sum() ** 2 + (t * (1.0 - t)).sum()))


@bound(
    "upper",
    "KL divergence between sequences of actions",
    source=f"{PAPER}, Theorem 8",
    assumes="rho-interactive zCDP",
)
def kl_bandits(rho: float, mean: float, within: float, variance: float) -> float:
    """The divergence of a policy's actions in two environments: rho (mean^2 + within + variance).

    t_a is the total variation distance of the laws of arm a's rewards.  ``mean`` and ``variance``
    are those of the sum of t_a over the rounds.  ``within`` is the mean of the sum of t_a (1 -
    t_a).
    """
    return kl_transport(rho, mean**2 + within + variance)


@bound(
    "upper",
    "delta of Table DP",
    source=f"{PAPER}, Proposition 1 (d)",
    assumes="(epsilon, delta)-View DP",
)
def table_delta(delta: float, n_arms: int, horizon: Values) -> Values:
    """The delta of Table DP that (epsilon, delta)-View DP implies at the same epsilon: delta K^T,
    if below 1.
    """
    growth = np.asarray(horizon, float) * np.log(n_arms)
    return np.exp(np.minimum(np.log(delta) + growth, 0.0)) if delta > 0.0 else 0.0 * growth
