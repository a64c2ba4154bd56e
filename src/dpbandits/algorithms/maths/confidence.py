"""Confidence radii of linear bandits on noisy statistics.

With V = lambda I + sum x x^T and b~ = sum x r + N, where N is the noise of the release, V^-1 b~ -
theta splits into three terms, and in the V-norm (Abbasi-Yadkori, Pal & Szepesvari 2011, Theorem 2)

    |V^-1 b~ - theta|_V  <=  s sqrt(2 ln(1/p) + ln(det V / lambda^d))  +  sqrt(lambda) |theta|  +
    |N|_{V^-1}.

V and later features depend on earlier noise, through the choices, so that N is not independent of V
and no chi-squared law holds for the last term.  What always holds is |N|_{V^-1} <= |N| /
sqrt(lambda_min(V)), with |N| bounded for all releases at once.
"""

from __future__ import annotations

import math

LN2 = math.log(2.0)


def gaussian_norm(dimension: int, std: float, releases: int, probability: float) -> float:
    """What the norms of ``releases`` normal vectors N(0, std^2 I), however dependent, stay below
    with probability 1 - ``probability``.

    |N| is Lipschitz with mean below std sqrt(d), so that P(|N| > std (sqrt d + u)) <= exp(-u^2 /
    2).
    """
    return std * (math.sqrt(dimension) + math.sqrt(2.0 * math.log(releases / probability)))


def symmetric_norm(dimension: int, std: float, releases: int, probability: float) -> float:
    """What the operator norms of ``releases`` matrices of the Gaussian orthogonal ensemble, ``std``
    on the diagonal and std / sqrt(2) off it, however dependent, stay below with probability 1 -
    ``probability``.

    The largest eigenvalue has a mean below std sqrt(2 d) (Davidson & Szarek 2001, Theorem II.11),
    and moves by at most the Frobenius distance, in which the noise is N(0, std^2 I); the same holds
    for minus the matrix.
    """
    tail = math.sqrt(2.0 * math.log(2.0 * releases / probability))
    return std * (math.sqrt(2.0 * dimension) + tail)


def laplace_sum(squares: float, scale: float, log_odds: float) -> float:
    """What a weighted sum of Laplace variables exceeds in absolute value with probability at most 2
    exp(-log_odds).

    The weights are at most 1, and their squares add up to ``squares``.  Chernoff: -ln(1 - u) <= 2
    ln(2) u for u <= 1/2, so that ln E exp(h X) <= 2 ln(2) squares (h scale)^2 while (h scale)^2 <=
    1/2.
    """
    h = min(math.sqrt(log_odds / (2.0 * LN2 * squares)), math.sqrt(0.5))
    return scale * (log_odds + 2.0 * LN2 * squares * h * h) / h


def noise_norm(
    norm: int, dimension: int, std: float, scale: float, releases: int, probability: float
) -> float:
    """What the noise vectors of ``releases`` running sums stay below with probability 1 -
    ``probability``.

    Args:
        norm: 2 for Gaussian noise, 1 for Laplace noise.
        dimension: of the vectors.
        std: the largest standard deviation of a coordinate.
        scale: of one noise variable; a coordinate is a sum of such variables with weights of at
            most 1.
        releases: how many vectors.
        probability: of failure.
    """
    if norm == 2:
        return gaussian_norm(dimension, std, releases, probability)
    log_odds = math.log(2.0 * dimension * releases / probability)
    return math.sqrt(dimension) * laplace_sum(std * std / (2.0 * scale * scale), scale, log_odds)


def coordinate_quantile(std: float, directions: int, probability: float) -> float:
    """What ``directions`` projections of N(0, std^2 I) on fixed unit vectors stay below with
    probability 1 - ``probability``.
    """
    return std * math.sqrt(2.0 * math.log(2.0 * directions / probability))
