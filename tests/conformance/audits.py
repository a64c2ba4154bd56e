"""Auditing arithmetic: lower confidence bounds on the privacy loss from scores of two neighbouring
worlds.

Half of the runs choose the score and its threshold, the other half are counted; Clopper-Pearson
bounds on the two error rates then hold at the stated level, whatever was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import beta, norm

Bound = Callable[[float, float], float]


class Rates(NamedTuple):
    """Of the event "score above threshold": how often it is missed in world 1, and how often seen
    in world 0, at most.
    """

    missed: float
    false: float


def rates(world_0: np.ndarray, world_1: np.ndarray, threshold: float, alpha: float) -> Rates:
    """Upper confidence bounds on both error rates, which hold together with probability 1 - alpha."""

    def upper(count: int, n: int) -> float:
        # Clopper-Pearson, one-sided
        return 1.0 if count == n else float(beta.isf(alpha / 2, count + 1, n - count))

    return Rates(
        upper((world_1 <= threshold).sum(), world_1.size),
        upper((world_0 > threshold).sum(), world_0.size),
    )


def epsilon_bound(missed: float, false: float) -> float:
    """The least epsilon that pure DP needs for these error rates."""
    ratios = [(1 - missed) / false, (1 - false) / missed]
    return max(0.0, float(np.log(max(*ratios, 1e-300))))


def mu_bound(missed: float, false: float) -> float:
    """The least mu that GDP needs for these error rates: a refutation of smaller claims (Nasr et
    al. 2023).
    """
    return max(0.0, float(norm.isf(false) - norm.ppf(missed)))


def zcdp_bound(missed: float, false: float) -> float:
    """sqrt(2 rho) for the least rho that zCDP needs: of what is seen, the Renyi divergence of order
    alpha is at most alpha rho.
    """
    return float(np.sqrt(2 * max(0.0, _rho(1 - missed, false), _rho(1 - false, missed))))


def _rho(p: float, q: float) -> float:
    """The largest D_alpha(Bernoulli(p) || Bernoulli(q)) / alpha, for p > q; it grows with p and
    falls with q.
    """
    if p <= q or q >= 1.0:
        return 0.0
    a = np.geomspace(1e-3, 60.0, 60) + 1.0
    with np.errstate(divide="ignore"):
        terms = np.stack(
            [a * np.log(p) + (1 - a) * np.log(q), a * np.log1p(-p) + (1 - a) * np.log1p(-q)]
        )
    return float((logsumexp(terms, axis=0) / (a - 1) / a).max())


def linear_score(world_0: np.ndarray, world_1: np.ndarray) -> np.ndarray:
    """The direction that tells the worlds apart best (Fisher); sees contrasts between coordinates,
    so shared noise too.
    """
    shift = world_1.mean(axis=0) - world_0.mean(axis=0)
    spread = np.cov(
        np.vstack([world_0 - world_0.mean(axis=0), world_1 - world_1.mean(axis=0)]).T
    ).reshape(len(shift), -1)
    ridge = 1e-9 * max(np.trace(spread), 1e-12) * np.eye(len(shift))
    return np.linalg.solve(spread + ridge, shift)


def lower_bound(world_0: np.ndarray, world_1: np.ndarray, bound: Bound, alpha: float) -> float:
    """A lower bound, at level 1 - alpha, on the loss that observations of shape (runs, n) of two
    worlds show.
    """
    (fit_0, test_0), (fit_1, test_1) = (np.array_split(world, 2) for world in (world_0, world_1))
    direction = linear_score(fit_0, fit_1)
    scores_0, scores_1 = fit_0 @ direction, fit_1 @ direction
    candidates = np.quantile(np.concatenate([scores_0, scores_1]), np.linspace(0.02, 0.98, 49))
    threshold = max(candidates, key=lambda c: bound(*rates(scores_0, scores_1, c, alpha)))
    return bound(*rates(test_0 @ direction, test_1 @ direction, threshold, alpha))
