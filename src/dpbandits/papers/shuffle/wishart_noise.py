"""The privacy of Wishart noise on a sum of outer products.

A sum of matrices v v^T with |v| <= L, of side p, is released with noise W ~ Wishart_p(L^2 I, k):
the sum of k such matrices of normal vectors.  One record is replaced, v by v'.  Let L = 1 without
loss of generality, n = k - p - 1, and W have the density

    f(W)  ~  det(W)^(n / 2) exp(-tr(W) / 2)        for positive definite W, else 0.

**The loss of one release.**  Let M = v v^T - v' v'^T and X the release.  The noise is W = X - (sum)
in one world and W + M in the other.  So the privacy loss ln f(W) / f(W + M) is

    l  =  tr(M) / 2 - (n / 2) ln(det(W + M) / det(W)) ,

infinite where W + M is not positive definite: supports differ, and there is no pure DP.

*Other people do not matter*, because their sum cancels.  *Two numbers are left*.  By Weyl's
inequality M has at most one positive and one negative eigenvalue, a <= |v|^2 and -b >= -|v'|^2.
Rotations do not change the law of W.  So let M = a e1 e1^T - b e2 e2^T with 0 <= a, b <= 1.  *Two
dimensions are left*: with U = [e1 e2], det(W + M) / det(W) is a function of U^T W^-1 U.  Its
inverse S has the law Wishart_2(I, n + 3) (Muirhead 1982, Theorem 3.2.11).  *Three independent
variables are left*, by Bartlett's decomposition of S: x ~ chi2(n + 3), w ~ chi2(n + 2), g ~ N(0,
1). With them

    det(W + M) / det(W)  =  (1 + a / x) (1 - b / w + g^2 a / (w (x + a))) .

So, without the last term, which only lowers the loss, and where w > b,

    l  <=  l1 + l2 ,   l1 = a / 2 - (n / 2) ln(1 + a / x) ,   l2 = -b / 2 - (n / 2) ln(1 - b / w) .

**The worst pair of records.**  Let t > 0, s = n t / 2, and w0 > 1.  (1 + a / x)^-s is the integral
of u^(s - 1) exp(-u - u a / x) / Gamma(s) over u > 0, and (1 - b / w)^-s that with + u b / w.  So E
exp(t l1), with min(x, x1) in the place of x, and E exp(t l2) 1{w >= w0} are mixtures of
exponentials.  They are log-convex in a and in b, and at most 1 where these are 0.  Let E1 and E2 be
their values for a = b = 1.  Hence for all records

    E exp(t l) 1{w >= w0, x <= x1}  <=  G  =  max(1, E1) max(1, E2) .

**All releases.**  One record is in m nodes of a tree at most, each with noise of its own.  For any
earlier releases, on which v and v' may depend, the next node that holds the record has a loss of
the law above.  All other nodes have none.  With E the event that w >= w0 and x <= x1 in each,

    E exp(t sum l) 1{E}  <=  G^m ,   P(not E)  <=  m (P(w < w0) + P(x > x1)) .

Use (1 - e^(epsilon - z))+ <= e^(t (z - epsilon)) t^t / (1 + t)^(1 + t), the step from Renyi
divergences to (epsilon, delta) of Canonne, Kamath & Steinke (2020).  So the releases are (epsilon,
delta)-DP for

    delta  =  P(not E) + G^m e^(-t epsilon) t^t / (1 + t)^(1 + t) .

The other direction exchanges v and v', for which the bound is the same.

**Several sums at once** each have their own noise, and the record may also leave one and enter
another.  Then a comes from one matrix and b from the other.  l1 + l2 is the loss itself, but with x
~ chi2(n + 2), which is stochastically smaller.  l1 grows with x, so the bound holds there, too.

**Several records of a user** are replaced one after another.  Each step joins two worlds that
differ in one record, which may depend on releases.  So j steps give (j epsilon, delta (1 +
e^epsilon + ... + e^((j - 1) epsilon)))-DP.

**Digits.**  exp(t l1) grows with x and exp(t l2) falls with w.  A sum over cells of a grid, of the
larger value times the cell's probability, bounds each integral.  So the bound needs no quadrature,
and is valid for every t, w0 and x1.

**Against Gaussian noise.**  l is about normal, of variance at most 1 / n.  Centred Wishart noise is
a symmetric matrix with variance k off the diagonal and 2 k on it.  Except for tails, it costs as
much as Gaussian noise of this shape.  For (1, 1e-6)-DP in 15 levels n is 327, and m / mu^2 of
Gaussian noise 268.

Shariff & Sheffet (2018) use k = p + ceil(224 m ln(8 m / delta) ln(2 / delta) / epsilon^2), from
advanced composition of 28 ln(4 / delta) / epsilon^2 for one release.  Here n would be 906,879.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from ...errors import ArgumentError
from ...validation import integer, real

MOST_FREEDOM = 2**44
_CELLS = 8000
_TAIL = 1e-15  # beyond the grid, where losses are small
_PARTS = (1e-3, 0.2)  # of delta, for noise that is too small or too large
_LEAST = 1e-280  # delta; what is less is not told apart
_SLACK = 1e-8  # of ln delta: more than is rounded


@dataclass(frozen=True)
class WishartNoise:
    """Noise W ~ Wishart_p(L^2 I, k) on sums of outer products of vectors of length L at most.

    Args:
        dimension: p, the side of the matrices.
        releases: m, the most releases that contain a record, each with noise of its own.
        records: the number of records of one user, which are protected together.

    Raises:
        ArgumentError: a number is out of its range.

    Example:
        >>> noise = WishartNoise(3, releases=15)
        >>> noise.least_freedom(1.0, 1e-6), noise.published_freedom(1.0, 1e-6)
        (331, 906883)
    """

    dimension: int
    releases: int
    records: int = 1

    def __post_init__(self) -> None:
        integer("dimension", self.dimension, 2)
        integer("releases", self.releases, 1)
        integer("records", self.records, 1)

    def delta(self, epsilon: float, freedom: int) -> float:
        """A delta for which noise of k degrees of freedom is (epsilon, delta)-DP.

        >>> f"{WishartNoise(3, releases=15).delta(1.0, 331):.2g}"
        '9.9e-07'
        """
        epsilon = real("epsilon", epsilon, 0.0, strict=True)
        excess, share = freedom - self.dimension - 1, _share(epsilon, self.records)
        if excess < 1 or share == 0.0:
            return 1.0
        return min(1.0, self._least_delta(epsilon / self.records, excess) / share)

    def _kept(self, epsilon: float, excess: int, delta: float) -> float:
        """A bound on the delta of one record, which is the best where it is about ``delta``."""
        return min(_delta(epsilon, excess, self.releases, part * delta) for part in _PARTS)

    def _least_delta(self, epsilon: float, excess: int) -> float:
        """An upper bound on the least delta kept; larger deltas are kept, too, because the cut-off
        part grows by less.
        """
        low, high = math.log(_LEAST), 0.0
        while high - low > 1e-4:
            middle = 0.5 * (low + high)
            kept = self._kept(epsilon, excess, math.exp(middle)) <= math.exp(middle)
            low, high = (low, middle) if kept else (middle, high)
        return self._kept(epsilon, excess, math.exp(high))

    def least_freedom(self, epsilon: float, delta: float) -> int:
        """A k that is proved to keep (epsilon, delta)-DP, and hardly more than the least.

        Raises:
            ArgumentError: it would be too large for a number.
        """
        epsilon = real("epsilon", epsilon, 0.0, strict=True)
        delta = real("delta", delta, 0.0, 1.0, strict=True)
        each, allowed = epsilon / self.records, delta * _share(epsilon, self.records)

        def kept(excess: int) -> bool:
            return self._kept(each, excess, allowed) <= allowed

        low, high = 0, 1
        while not kept(high):
            low, high = high, 2 * high
            if high > MOST_FREEDOM:
                raise _too_extreme(epsilon, delta)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if kept(middle) else (middle, high)
        return high + self.dimension + 1

    def published_freedom(self, epsilon: float, delta: float) -> int:
        """k of Shariff & Sheffet (2018), of one record.

        Raises:
            ArgumentError: it would be too large for a number.
        """
        logs = math.log(8.0 * self.releases / delta) * math.log(2.0 / delta)
        more = 224.0 * self.releases * logs / epsilon**2
        if more > MOST_FREEDOM:
            raise _too_extreme(epsilon, delta)
        return self.dimension + math.ceil(more)


def _too_extreme(epsilon: float, delta: float) -> ArgumentError:
    return ArgumentError(f"budget must be less extreme, got ({epsilon!r}, {delta!r})", "budget")


def _share(epsilon: float, records: int) -> float:
    """1 / (1 + e^each + ... + e^((records - 1) each)), where these are epsilon together."""
    each = epsilon / records
    return math.exp(each - epsilon) * math.expm1(-each) / math.expm1(-epsilon)


class _Losses(NamedTuple):
    """The losses of one variable, at the worse end of each cell of a grid, and ln P(cell)."""

    worst: np.ndarray
    log_weight: np.ndarray

    @classmethod
    def entered(cls, excess: int, most: float) -> _Losses:
        """l1 at a = 1, which grows with x; values beyond ``most`` count as ``most``."""
        low = 2.0 * special.gammaincinv(0.5 * (excess + 3), _TAIL)
        ends = np.linspace(low, most, _CELLS)
        worst = 0.5 - 0.5 * excess * np.log1p(1.0 / np.append(ends, most))
        return cls(worst, _log_weights(excess + 3, [0.0], ends, [math.inf]))

    @classmethod
    def left(cls, excess: int, least: float) -> _Losses:
        """l2 at b = 1, which falls with w, from ``least`` on."""
        high = 2.0 * special.gammainccinv(0.5 * (excess + 2), _TAIL)
        starts = 1.0 + np.geomspace(least - 1.0, high - 1.0, _CELLS)  # l2 is infinite at 1
        worst = -0.5 - 0.5 * excess * np.log1p(-1.0 / starts)
        return cls(worst, _log_weights(excess + 2, starts, [math.inf]))

    def log_moment(self, order: float) -> float:
        """A bound on ln max(1, E exp(order loss))."""
        terms = order * self.worst + self.log_weight
        highest = float(terms.max())
        return max(0.0, highest + math.log(float(np.exp(terms - highest).sum())))


def _log_weights(freedom: int, *bounds: Any) -> np.ndarray:
    """ln P(cell) under chi2(freedom), from the side where differences keep their digits."""
    cells = 0.5 * np.concatenate(bounds)
    below, above = special.gammainc(0.5 * freedom, cells), special.gammaincc(0.5 * freedom, cells)
    weight = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return np.log(np.maximum(weight, 1e-300))


def _delta(epsilon: float, excess: int, releases: int, small: float) -> float:
    """The bound with P(not E) = ``small``, at the best order."""
    from scipy.optimize import minimize_scalar  # takes as long to import as numba

    share = 0.5 * small / releases
    least = 2.0 * float(special.gammaincinv(0.5 * (excess + 2), share))
    most = 2.0 * float(special.gammainccinv(0.5 * (excess + 3), share))
    if not least > 1.0:
        return 1.0
    entered, left = _Losses.entered(excess, most), _Losses.left(excess, least)

    def log_delta(log_order: float) -> float:
        t = math.exp(log_order)
        growth = releases * (entered.log_moment(t) + left.log_moment(t))
        return growth - t * epsilon + t * math.log(t) - (1.0 + t) * math.log1p(t)

    best = minimize_scalar(log_delta, bounds=(-8.0, 16.0), method="bounded").fun
    return min(1.0, small + math.exp(min(0.0, float(best))) * math.exp(_SLACK))
