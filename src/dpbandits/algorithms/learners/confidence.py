"""Confidence radii of linear bandits on noisy statistics.

With V = lambda I + sum x x^T and b~ = sum x r + N, where N is the noise of the release, V^-1 b~ - theta splits into three terms, and
in the V-norm (Abbasi-Yadkori, Pal & Szepesvari 2011, Theorem 2)

    |V^-1 b~ - theta|_V  <=  s sqrt(2 ln(1/p) + ln(det V / lambda^d))  +  sqrt(lambda) |theta|  +  |N|_{V^-1}.

V and later features depend on earlier noise, through the choices, so that N is not independent of V and no chi-squared law holds for
the last term.  What always holds is |N|_{V^-1} <= |N| / sqrt(lambda_min(V)), with |N| bounded for all releases at once.
"""

from __future__ import annotations

import math

LN2 = math.log(2.0)


def gaussian_norm(dimension: int, std: float, releases: int, probability: float) -> float:
    """What the norms of ``releases`` normal vectors N(0, std^2 I), however dependent, stay below with probability 1 - ``probability``.

    |N| is Lipschitz with mean below std sqrt(d), so that P(|N| > std (sqrt d + u)) <= exp(-u^2 / 2).
    """
    return std * (math.sqrt(dimension) + math.sqrt(2.0 * math.log(releases / probability)))


def laplace_sum(terms: int, scale: float, log_odds: float) -> float:
    """What a sum of Laplace variables exceeds in absolute value with probability at most 2 exp(-log_odds).

    Chernoff: -ln(1 - u) <= 2 ln(2) u for u <= 1/2, so that ln E exp(h X) <= 2 ln(2) terms (h scale)^2 while (h scale)^2 <= 1/2.
    """
    h = min(math.sqrt(log_odds / (2.0 * LN2 * terms)), math.sqrt(0.5))
    return scale * (log_odds + 2.0 * LN2 * terms * h * h) / h


def laplace_norm(dimension: int, scale: float, terms: int, releases: int, probability: float) -> float:
    """The same as ``gaussian_norm`` for vectors of which every coordinate is a sum of at most ``terms`` Laplace variables."""
    log_odds = math.log(2.0 * dimension * releases / probability)
    return math.sqrt(dimension) * laplace_sum(terms, scale, log_odds)


def coordinate_quantile(std: float, directions: int, probability: float) -> float:
    """What ``directions`` projections of N(0, std^2 I) on fixed unit vectors stay below with probability 1 - ``probability``."""
    return std * math.sqrt(2.0 * math.log(2.0 * directions / probability))
