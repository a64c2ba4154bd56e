"""Closed forms of privacy accounting: Gaussian, Laplace and zCDP curves, and their inverses.

Notation.  A Gaussian release with L2 sensitivity D and standard deviation s is mu-GDP with mu = D / s, and (mu^2 / 2)-zCDP
(Dong, Roth & Su 2022; Bun & Steinke 2016).  A Laplace release with L1 sensitivity D and scale b is (D / b)-DP.

Inverses are rounded to the safe side: a noise level is never smaller, and a loss never lower, than the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtri

_TOLERANCE = 1e-13


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta for which a mu-GDP Gaussian release is (epsilon, delta)-DP (Balle & Wang 2018, Theorem 8).

    >>> round(gaussian_delta(10.0, 2.1**-0.5), 3) < 0.41
    True
    """
    if mu == 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    log_first = float(log_ndtr(mu / 2 - epsilon / mu))
    log_second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return max(0.0, -math.exp(log_first) * math.expm1(min(0.0, log_second - log_first)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon >= 0 for which a mu-GDP Gaussian release is (epsilon, delta)-DP."""
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if delta <= 0.0 or math.isinf(mu):
        return math.inf
    return _solve_up(lambda epsilon: delta - gaussian_delta(epsilon, mu), 0.0, mu * mu / 2 + 1.0)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which a Gaussian release is (epsilon, delta)-DP: the analytic Gaussian mechanism."""
    inverse = _solve_up(lambda inverse: delta - gaussian_delta(epsilon, 1.0 / inverse), 1e-9, 1.0)
    return 1.0 / inverse


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least delta that rho-zCDP is known to give at epsilon (Canonne, Kamath & Steinke 2020, Corollary 13)."""
    if rho == 0.0:
        return 0.0
    low, high = 1.0 + 1e-12, (epsilon + 1.0) / (2.0 * rho) + 2.0

    def slope(alpha: float) -> float:
        return (2.0 * alpha - 1.0) * rho - epsilon + math.log1p(-1.0 / alpha)

    if slope(low) >= 0.0:
        return 1.0
    alpha = high if slope(high) < 0 else float(brentq(slope, low, high, xtol=1e-12))
    log_delta = (alpha - 1.0) * (alpha * rho - epsilon) + alpha * math.log1p(-1.0 / alpha) - math.log(alpha - 1.0)
    return math.exp(min(0.0, log_delta))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The least epsilon >= 0 that rho-zCDP is known to give at delta."""
    if zcdp_delta(rho, 0.0) <= delta:
        return 0.0
    if delta <= 0.0 or math.isinf(rho):
        return math.inf
    return _solve_up(lambda epsilon: delta - zcdp_delta(rho, epsilon), 0.0, rho + 1.0)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP is known to give (epsilon, delta)-DP."""
    inverse = _solve_up(lambda inverse: delta - zcdp_delta(1.0 / inverse, epsilon), 1e-12, 1.0)
    return 1.0 / inverse


def laplace_rdp(epsilon: float, alpha: float) -> float:
    """The Renyi divergence of order alpha of a Laplace release that is epsilon-DP (Mironov 2017, Proposition 6)."""
    if epsilon == 0.0 or math.isinf(epsilon):
        return epsilon
    grow = math.log(alpha / (2 * alpha - 1)) + (alpha - 1) * epsilon
    shrink = math.log((alpha - 1) / (2 * alpha - 1)) - alpha * epsilon
    return min(epsilon, (grow + math.log1p(math.exp(shrink - grow))) / (alpha - 1))


def pure_mu(epsilon: float) -> float:
    """The least mu for which every epsilon-DP mechanism is mu-GDP.

    The trade-off curve of epsilon-DP is piecewise linear through (0, 1) and (c, c) with c = 1 / (1 + e^epsilon).  The convex
    Gaussian curve through (0, 1) and (c, c) lies below that chord, and by symmetry everywhere: mu = -2 Phi^-1(c).
    """
    if math.isinf(epsilon):
        return math.inf
    return -2.0 * float(ndtri(math.exp(-epsilon) / (1.0 + math.exp(-epsilon))))


def _solve_up(excess: Callable[[float], float], low: float, high: float) -> float:
    """The least x >= low at which the increasing function ``excess`` is not negative, rounded up."""
    if excess(low) >= 0.0:
        return low
    while excess(high) < 0.0:
        low, high = high, 2.0 * high
        if high > 1e300:
            return math.inf
    root = float(brentq(excess, low, high, xtol=1e-300, rtol=4 * _TOLERANCE))
    while excess(root) < 0.0:
        root *= 1.0 + _TOLERANCE
    return root
