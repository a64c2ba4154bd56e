"""Closed forms of privacy accounting: Gaussian, Laplace and zCDP curves, and their inverses.

Notation.  A Gaussian release with L2 sensitivity D and standard deviation s is mu-GDP with mu = D /
s, and (mu^2 / 2)-zCDP (Dong, Roth & Su 2022; Bun & Steinke 2016).  A Laplace release with L1
sensitivity D and scale b is (D / b)-DP.

Everything is rounded to the safe side: a noise level is never smaller, and a loss never lower, than
the exact one.  So formulas are written without cancellation, and rounding is added on top.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from scipy.special import erfcx, erfinv, ndtr, ndtri_exp

_ULP = 2.0**-52
_TOLERANCE = 1e-13
_LARGE = 1e150  # squares of larger numbers overflow


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta of mu-GDP Gaussian noise at epsilon (Balle & Wang 2018, Theorem 8)."""
    if mu == 0.0:
        return 0.0
    if mu > _LARGE:
        return 1.0
    h, u = mu / 2, epsilon / mu
    a = h - u
    if a < -40.0:
        # Phi(-40) is below the smallest float, and the result may not be rounded down to 0.
        return math.ulp(0.0)
    # The formula as published: here its two terms do not cancel.
    if a > 1.0:
        return _up(float(ndtr(a)) - _density(a) * _mills(u + h), 8 * _ULP)
    # With Mills' ratio m, delta = density(a) (m(u - h) - m(u + h)); a and the exponent a^2 / 2
    # carry rounding of their own.
    gap, error = _mills_gap(u, h)
    return _up(_density(a) * gap, error + (16 + 8 * a * a) * _ULP)


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _mills(x: float) -> float:
    """Mills' ratio of the normal distribution, P(Z > x) / density(x)."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _mills_gap(u: float, h: float) -> tuple[float, float]:
    """m(u - h) - m(u + h) for 0 <= u < 40 + h, and a bound on the relative error of that."""
    if h > 1e-5:
        gap = _mills(u - h) - _mills(u + h)
        return gap, 8 * _ULP * _mills(u - h) / gap
    # The gap is the integral of exp(-t^2 / 2 - ut) 2 sinh(ht) over t > 0, hence 2h (-m'(u)) up to a
    # factor in [1, 1 + h^2].
    slope = 1.0 - u * _mills(u)
    return 2 * h * slope, h * h + 8 * _ULP / slope


def _up(value: float, error: float) -> float:
    """A probability, raised by a relative error."""
    return min(1.0, math.nextafter(value * (1.0 + error), 1.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon >= 0 for which a mu-GDP Gaussian release is (epsilon, delta)-DP."""
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if delta <= 0.0 or mu > _LARGE:
        return math.inf
    return solve_up(lambda epsilon: delta - gaussian_delta(epsilon, mu), 0.0, mu * mu / 2 + 1.0)


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu that keeps (epsilon, delta)-DP: the analytic Gaussian mechanism."""
    # Of 1 / mu, because rounding up the solution then rounds mu down.
    inverse = solve_up(lambda inverse: delta - gaussian_delta(epsilon, 1.0 / inverse), 1e-9, 1.0)
    return math.nextafter(1.0 / inverse, 0.0)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least delta known of rho-zCDP (Canonne, Kamath & Steinke 2020, Corollary 13)."""
    if rho == 0.0:
        return 0.0
    # Less privacy is safe, and every order gives a valid bound: only the evaluation of the last
    # lines has to be rounded.
    rho, epsilon = max(rho, 1e-300), min(epsilon, _LARGE)
    low, high = 1e-12, min((epsilon + 1.0) / (2.0 * rho) + 2.0, _LARGE)

    def slope(order: float) -> float:  # in order = alpha - 1
        return (2.0 * order + 1.0) * rho - epsilon - math.log1p(1.0 / order)

    if slope(low) >= 0.0:
        return 1.0
    order = _root(slope, low, high, maxiter=1000) if slope(high) > 0.0 else high
    terms = (
        order * ((order + 1.0) * rho),
        -order * epsilon,
        -(order + 1.0) * math.log1p(1.0 / order),
        -math.log(order),
    )
    log_delta = math.fsum(terms) + 4 * _ULP * sum(map(abs, terms))
    return _up(math.exp(min(0.0, log_delta)), 4 * _ULP)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The least epsilon >= 0 that rho-zCDP is known to give at delta."""
    if zcdp_delta(rho, 0.0) <= delta:
        return 0.0
    if delta <= 0.0 or math.isinf(rho):
        return math.inf
    return solve_up(lambda epsilon: delta - zcdp_delta(rho, epsilon), 0.0, rho + 1.0)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP is known to give (epsilon, delta)-DP."""
    inverse = solve_up(lambda inverse: delta - zcdp_delta(1.0 / inverse, epsilon), 1e-12, 1.0)
    return math.nextafter(1.0 / inverse, 0.0)


def laplace_rdp(epsilon: float, alpha: float) -> float:
    """The Renyi divergence of an epsilon-DP Laplace release (Mironov 2017, Proposition 6)."""
    if epsilon == 0.0 or math.isinf(epsilon) or alpha > _LARGE:
        return epsilon
    order = alpha - 1.0
    if order * epsilon < 1.0:
        # The published sum without its ones and linear terms, which cancel.
        inside = alpha * _expm2(order * epsilon) + order * _expm2(-alpha * epsilon)
        divergence = math.log1p(inside / (2.0 * alpha - 1.0)) / order
    else:
        grow = math.log(alpha / (2.0 * alpha - 1.0)) + order * epsilon
        shrink = math.log(order / (2.0 * alpha - 1.0)) - alpha * epsilon
        divergence = (grow + math.log1p(math.exp(shrink - grow))) / order
    return min(epsilon, math.nextafter(divergence * (1.0 + 32 * _ULP), math.inf))


def _expm2(x: float) -> float:
    """e^x - 1 - x."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    term = total = x * x / 2
    for k in range(3, 20):
        term *= x / k
        total += term
    return total


def pure_mu(epsilon: float) -> float:
    """The least mu for which every epsilon-DP mechanism is mu-GDP.

    The trade-off curve of epsilon-DP is piecewise linear through (0, 1) and (c, c) with c = 1 / (1
    + e^epsilon).  The convex Gaussian curve through (0, 1) and (c, c) lies below that chord, and by
    symmetry everywhere: mu = -2 Phi^-1(c).
    """
    if math.isinf(epsilon):
        return math.inf
    # Near c = 1/2 from the distance to it, farther off from ln c: so no digits are lost.
    if epsilon < 1.0:
        mu = 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(epsilon / 2)))
    else:
        mu = -2.0 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))
    return math.nextafter(mu * (1.0 + 32 * _ULP), math.inf)


def variation_of(divergence: float) -> float:
    """The largest total variation V that ``meaning`` allows: 2 V artanh(V) <= divergence."""
    if divergence > 60.0:
        return 1.0

    def excess(variation: float) -> float:
        return 2.0 * variation * math.atanh(min(variation, 1.0 - 1e-16)) - divergence

    return solve_up(excess, 0.0, 1.0)


def solve_up(excess: Callable[[float], float], low: float, high: float) -> float:
    """The least x >= low at which the increasing ``excess`` is not negative, rounded up."""
    if excess(low) >= 0.0:
        return low
    while excess(high) < 0.0:
        low, high = high, 2.0 * high
        if high > 1e300:
            return math.inf
    # The root may lie a little too low, so steps of growing size go up to the safe side.
    root, step = _root(excess, low, high, xtol=1e-300, maxiter=10_000), _TOLERANCE
    while excess(root) < 0.0:
        root, step = min(root * (1.0 + step), high), 2.0 * step
    return root


def _root(
    function: Callable[[float], float], low: float, high: float, maxiter: int, xtol: float = 2e-12
) -> float:
    from scipy.optimize import brentq  # takes as long to import as numba

    return float(brentq(function, low, high, xtol=xtol, rtol=_TOLERANCE, maxiter=maxiter))
