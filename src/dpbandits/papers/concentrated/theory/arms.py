"""Finitely many arms.

**Theorem 10** rests on a decomposition (Theorem 11 of Azize & Basu 2022) that looks at a bad
arm's index after one episode.  The argument here covers all episodes.  Let an arm's index be
below mu_1 after all of its episodes of at least 2^l rounds, except with probability log2(T)
T^-beta.  Then it is played in more than 2^(l + 1) rounds only in episodes that begin where the
index of the best arm is below mu_1. An episode that begins in round t has at most t rounds, and
is such with probability (1 + log2 t) t^-beta.  For beta > 3 both together are at most 2 beta /
(beta - 3) rounds, as printed.

**AdaP-UCB and AdaP-KLUCB** (Azize & Basu 2022).  Noise of scale s / n on the mean of an episode of
n rounds, L = ln T.  A bad arm's index is below the best mean, except with probability 3/2 T^-alpha,
once its episodes have n rounds with sqrt(alpha L / 2n) + s alpha L / n <= gap / 2.  That holds from

    n* = alpha L (1 / sqrt(2) + sqrt(1/2 + 2 s gap))^2 / gap^2

on.  The rest is as for Theorem 10, with 3/2 for the two tails, that of Hoeffding and that of
Laplace noise.  It gives at most 4 n* + 3 alpha / (alpha - 3) rounds.  The index of AdaP-KLUCB is
never larger than that of AdaP-UCB (Pinsker), and below the true mean no more often (Chernoff).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....theory.bounds import Array, Values, bound, positive, valid
from ....theory.promises import Applied, World, promises_of
from ..episodes import AdaCUCB, AdaPKLUCB, AdaPUCB

PAPER = "Azize & Basu (2024)"
_ARMS = "beta > 3; stationary arms, rewards in [0, 1]"


@bound("upper", source=f"{PAPER}, Theorem 10", assumes=_ARMS)
def adac_ucb(horizon: Values, gaps: Array, rho: float, beta: float) -> Values:
    """AdaC-UCB: sum over positive gaps of 8 beta ln(T) / gap + 8 sqrt(beta ln(T) / rho) + 2 beta /
    (beta - 3).

    >>> round(adac_ucb(1000, gaps=[0.0, 0.5], rho=0.1, beta=4.0))
    583
    """
    log, gap = np.log(np.asarray(horizon, float))[..., None], positive(gaps)
    rest = 2.0 * beta / (beta - 3.0) if beta > 3.0 else np.inf
    return (8.0 * beta * log / gap + 8.0 * np.sqrt(beta * log / rho) + rest).sum(axis=-1)


@bound("upper", "minimax regret", source=f"{PAPER}, Theorem 11", assumes=_ARMS)
def adac_ucb_minimax(horizon: Values, n_arms: int, rho: float, beta: float) -> Values:
    """AdaC-UCB: 4 sqrt(2 beta K T ln T) + 8 K sqrt(beta ln(T) / rho) + 3 beta (K - 1) / (beta - 3).

    >>> round(adac_ucb_minimax(10**6, n_arms=5, rho=0.1, beta=4.0))
    95020
    """
    t, k = np.asarray(horizon, float), n_arms
    rest = 3.0 * beta / (beta - 3.0) * (k - 1) if beta > 3.0 else np.inf
    log = np.log(t)
    return 4.0 * np.sqrt(2.0 * beta * k * t * log) + 8.0 * k * np.sqrt(beta * log / rho) + rest


@bound("upper", source=f"{PAPER}, Table II", constants="order", assumes=_ARMS)
def adap_ucb_converted(horizon: Values, gaps: Array, rho: float, beta: float) -> Values:
    """AdaP-UCB at epsilon = sqrt(2 rho): sum of 8 beta ln(T) / gap + 8 sqrt(beta / rho) ln(T).

    The table has no proof of its constants, and ``adap_ucb`` comes to 11.3 beta / sqrt(rho)
    in the place of 8 sqrt(beta / rho).
    """
    log, gap = np.log(np.asarray(horizon, float))[..., None], positive(gaps)
    return (8.0 * beta * log / gap + 8.0 * np.sqrt(beta / rho) * log).sum(axis=-1)


@bound("upper", "minimax regret", source=f"{PAPER}, Table II", constants="order", assumes=_ARMS)
def adap_ucb_converted_minimax(horizon: Values, n_arms: int, rho: float) -> Values:
    """AdaP-UCB at epsilon = sqrt(2 rho): of order sqrt(K T ln T) + K ln(T) / sqrt(rho)."""
    t, k = np.asarray(horizon, float), n_arms
    return np.sqrt(k * t * np.log(t)) + k * np.log(t) / np.sqrt(rho)


@bound(
    "lower",
    "minimax regret",
    source=f"{PAPER}, Theorem 17",
    assumes="T >= K - 1, rho <= 1; normal rewards of variance 1, rho-interactive zCDP",
)
def arms_zcdp(horizon: Values, n_arms: int, rho: float) -> Values:
    """K arms: max(sqrt(T (K - 1)) / 27, sqrt((K - 1) / rho) / 124), the second for rho <= 1.

    >>> round(float(arms_zcdp(10**6, n_arms=5, rho=1e-8)), 1)
    161.3
    """
    t, k = np.asarray(horizon, float), n_arms
    private = np.sqrt((k - 1) / rho) / 124.0 if rho <= 1.0 else 0.0
    return valid(t >= k - 1, np.maximum(np.sqrt(t * (k - 1)) / 27.0, private), "lower")


@promises_of(AdaCUCB)
def _adac_ucb(policy: Any, world: World) -> Iterator[Applied]:
    params = policy.params
    given = {"rho": rho_of(params.noise_scale), "beta": params.constant}
    if world.is_stationary and policy.config["memory"].forgets:
        if world.gaps is not None:
            yield adac_ucb, {"gaps": world.gaps / params.width, **given}
        yield adac_ucb_minimax, {"n_arms": params.n_arms, **given}


@bound(
    "upper",
    source="after Azize & Basu (2022), AdaP-UCB",
    assumes="alpha > 3; stationary arms, rewards in [0, 1]",
)
def adap_ucb(horizon: Values, gaps: Array, noise: float, alpha: float) -> Values:
    """AdaP-UCB and AdaP-KLUCB, with ``noise`` s = 1 / epsilon: sum over positive gaps of 4 alpha
    ln(T) (sqrt(1/2) + sqrt(1/2 + 2 s gap))^2 / gap + 3 alpha / (alpha - 3).

    >>> round(float(adap_ucb(1000, gaps=[0.5], noise=1.0, alpha=4.0)))
    837
    """
    log, gap = np.log(np.asarray(horizon, float))[..., None], positive(gaps)
    rest = 3.0 * alpha / (alpha - 3.0) if alpha > 3.0 else np.inf
    root = np.sqrt(0.5) + np.sqrt(0.5 + 2.0 * noise * gap)
    return (4.0 * alpha * log * root**2 / gap + rest).sum(axis=-1)


@promises_of(AdaPUCB, AdaPKLUCB)
def _adap_ucb(policy: Any, world: World) -> Iterator[Applied]:
    params = policy.params
    if world.gaps is not None:
        given = {"gaps": world.gaps / params.width, "noise": params.noise_scale}
        yield adap_ucb, {**given, "alpha": params.constant}


def rho_of(multiplier: float) -> float:
    """The rho of Gaussian noise of so many sensitivities; infinite without noise."""
    return np.inf if multiplier == 0.0 else 0.5 / multiplier**2
