"""Scores, the summands of an estimate: for each person a vector with mean zero at the true
parameter, and its derivative in the parameter.

With t = <x, theta>, outcomes in [lo, hi] and a weight of t alone, they are r x and h x x^T:

    r = (nu(t) - y) omega(t) ,   h = nu'(t) omega(t) .

**Efficient** weights are those of the likelihood, for estimates without noise.  omega = 1 gives the
matching loss of a link, int nu - y t: for the logistic link it is the likelihood of 0/1 outcomes,
for the identity least squares.  The probit link with outcomes in [0, 1] has omega = nu' / (nu (1 -
nu)), and h is the expected curvature (Fisher scoring).

**Bounded** weights limit the influence of every person: omega = 1 / max(nu - lo, hi - nu) gives |r|
<= 1 for any y.  Under any weights r has mean zero at the truth, so they cause no bias, unlike
clipped gradients.  This is the conditionally unbiased bounded-influence estimator of Kunsch,
Stefanski & Carroll (1989), with the weight for a bound on r, not on its efficient scale.  Logistic
residuals with omega = 1 reach up to 1 if nu is near 0 or 1, and curvatures are at most 1/4.
Bounded weights have 1 and 1/2, hence half the noise.

**Sensitivity to the replacement of one person.**  Residuals are cut to [-R, R], weights h to [0,
W], and features to length l.  Hence the bound holds for any link and data.  Let v > 0 be the weight
of the second block, a = R l, b = v W l^2, and

    f(x, y) = [r x ; v svec(h x x^T)] .

Then |f - f'|^2 <= D^2, with c* = min(1, a^2 / (2 b^2)),

    D^2 = max(2 a^2 (1 + c*) + 2 b^2 (1 - c*^2) , 4 a^2 + b^2) .

*Proof.*  Let c in [0, 1] be the absolute cosine between x and x' (any c if one is 0).  First block:
|r x - r' x'|^2 <= r^2 |x|^2 + r'^2 |x'|^2 + 2 |r r'| |x| |x'| c <= 2 a^2 (1 + c).  Second: svec
keeps lengths, and with p = v h |x|^2 and q = v h' |x'|^2 in [0, b],

    v^2 |h x x^T - h' x' x'^T|^2 = p^2 + q^2 - 2 p q c^2 ,

which is convex in p and in q, hence at most its value at a corner: b^2 at (b, 0), and
2 b^2 (1 - c^2) at (b, b).  So D^2 is at most the largest value over c of the larger of

    2 a^2 (1 + c) + b^2   and   2 a^2 (1 + c) + 2 b^2 (1 - c^2) .

The first is largest at c = 1; the second, concave in c, at c*.  The larger of these is reached if r
and h may take any values within their bounds.  This happens with x' = x, r' = -r and h' = 0; or at
the angle c*, with all four at their ends and r r' < 0.  So D is exact except for relations between
r and h.  QED

With secure noise every coordinate of f is rounded to the grid.  That moves f by at most half a step
times sqrt(size), hence D by at most a whole one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..kernel import Kernel, Matrix, Vector, bind, entry, kernel, unbound
from .links import Link, cut, link_of, one

_POINTS = 2001
_UP = 1.0 + 1e-12  # outweighs the rounding of lengths
_LARGEST = 1e100  # features beyond it count as 0, as those that are no numbers
_ROOT = math.sqrt(2.0)
_TINY = 1e-300

mean = omega = slope = unbound


@kernel
def _probit_omega(t: float) -> float:
    """nu' / (nu (1 - nu))."""
    above, below = math.erfc(t / math.sqrt(2.0)), math.erfc(-t / math.sqrt(2.0))
    return 4.0 * math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) / (above * below)


@kernel
def _length_within(x: Vector, bound: float) -> float:
    """Factor that scales the features to a length of at most the bound."""
    squares = 0.0
    for i in range(x.size):
        if abs(x[i]) <= _LARGEST:
            squares += x[i] * x[i]
    length = math.sqrt(squares)
    return bound / length if length > bound else 1.0


@kernel
def _on_grid(value: float, grid: float) -> float:
    return math.floor(value / grid + 0.5) * grid if grid > 0.0 else value


@entry
def _add_up(
    features: Matrix,
    outcomes: Vector,
    theta: Vector,
    limits: Vector,
    weight: float,
    grid: float,
    statistic: Vector,
) -> None:
    """Add f(x, y) of every person to the statistic; without a weight its first block alone.

    ``limits``: (lo, hi, R, W, l, reach); R = 1 for bounded weights.  A NaN outcome adds nothing.
    """
    lo, hi, most, steepest, bound, reach = limits
    d = theta.size
    x = np.empty(d)
    for person in range(outcomes.size):
        y = outcomes[person]
        if math.isnan(y):
            continue
        factor, t = _length_within(features[person], bound), 0.0
        for i in range(d):
            known = abs(features[person, i]) <= _LARGEST
            x[i] = factor * features[person, i] if known else 0.0
            t += x[i] * theta[i]
        # Sensitivity rests on the cuts of t, r and h, whatever the link returns.
        t = cut(t, -reach, reach)
        nu = mean(t)
        scale = 1.0 / max(nu - lo, hi - nu) if most == 1.0 else omega(t)
        r = cut((nu - min(max(y, lo), hi)) * scale, -most, most)
        for i in range(d):
            statistic[i] += _on_grid(r * x[i], grid)
        if weight == 0.0:
            continue
        h, k = weight * cut(slope(t) * scale, 0.0, steepest), 2 * d
        for i in range(d):
            curved = h * x[i]
            statistic[d + i] += _on_grid(curved * x[i], grid)
            curved *= _ROOT
            if grid > 0.0:
                for j in range(i + 1, d):
                    statistic[k] += _on_grid(curved * x[j], grid)
                    k += 1
            else:
                for j in range(i + 1, d):
                    statistic[k] += curved * x[j]
                    k += 1


@lru_cache
def _adder(link: Link, omega: Kernel) -> Kernel:
    return bind(_add_up, mean=link.mean, omega=omega, slope=link.slope)


_check_reach = lru_cache(Link.conditioning)


class Path(NamedTuple):
    """Values of a link on points of an interval."""

    mean: np.ndarray
    slope: np.ndarray
    weight: np.ndarray  # h


@lru_cache
def _path(
    link: Link, outcome_range: tuple[float, float], reach: float, omega: Kernel | None
) -> Path:
    """Without ``omega`` of bounded weights."""
    (lo, hi), points = outcome_range, np.linspace(-reach, reach, _POINTS).tolist()
    mean = np.array([link.mean(t) for t in points])
    slope = np.array([link.slope(t) for t in points])
    if omega is None:
        return Path(mean, slope, slope / np.maximum(mean - lo, hi - mean))
    return Path(mean, slope, slope * np.array([omega(t) for t in points]))


def statistic_size(dimension: int) -> int:
    """The length of [gradient; svec(curvature)]."""
    return dimension + dimension * (dimension + 1) // 2


def record_range(context_bound: float, hessian_weight: float, grid: float) -> tuple[float, float]:
    """The least and largest multiple of the grid for coordinates of f on the grid."""
    end = (math.ceil(context_bound * max(1.0, hessian_weight) * _UP / grid) + 1) * grid
    return -end, end


def joint_sensitivity(gradient: float, curvature: float) -> float:
    """D for a = ``gradient`` and b = ``curvature``, both per person: see the proof above.

    >>> joint_sensitivity(1.0, 0.0)
    2.0
    >>> round(joint_sensitivity(1.0, 1.0) ** 2, 12)  # at an angle of 60 degrees it would be 4.5
    5.0
    """
    a, b = gradient * gradient, curvature * curvature
    cosine = min(1.0, a / (2.0 * b)) if b > _TINY else 1.0
    tilted = 2.0 * a * (1.0 + cosine) + 2.0 * b * (1.0 - cosine * cosine)
    return math.sqrt(max(tilted, 4.0 * a + b))


@dataclass(frozen=True)
class Score:
    """The residuals and weights of a link, with all bounds; refuses intervals that are too wide for
    it.
    """

    link: str  # its name
    outcome_range: tuple[float, float]  # (lo, hi), to which outcomes are clipped
    context_bound: float  # l, to which features are scaled
    parameter_bound: float  # on |theta|
    bounded: bool = True  # residuals are at most 1; else weights are efficient, without a bound

    def __post_init__(self) -> None:
        _check_reach(self._link, self.reach)

    @property
    def _link(self) -> Link:
        return link_of(self.link)

    @property
    def _omega(self) -> Kernel:
        # elsewhere a variance of nu (1 - nu) makes no sense
        lo, hi = self.outcome_range
        return _probit_omega if self.link == "probit" and lo >= 0.0 and hi <= 1.0 else one

    @property
    def reach(self) -> float:
        """The largest |<x, theta>|."""
        return self.context_bound * self.parameter_bound

    @property
    def largest_residual(self) -> float:
        """R."""
        return 1.0 if self.bounded else math.inf

    @property
    def largest_weight(self) -> float:
        """W, on points of the interval; between them weights are cut to it."""
        return float(self.path.weight.max())

    def dispersion(self, outcome_variance: float | None) -> float:
        """The least factor by which the curvature bounds the covariance of the sums."""
        (lo, hi), path = self.outcome_range, self.path  # an outcome varies by (nu - lo) (hi - nu)
        variance = np.maximum((path.mean - lo) * (hi - path.mean), 0.0)
        if outcome_variance is not None:
            variance = np.minimum(variance, outcome_variance)
        return float(np.max(variance * path.weight / path.slope**2))

    @property
    def path(self) -> Path:
        """Values of the link on points of the interval."""
        omega = None if self.bounded else self._omega
        return _path(self._link, self.outcome_range, self.reach, omega)

    def mean(self, features: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """The mean outcomes, shape (n,)."""
        known = np.where(np.abs(features) <= _LARGEST, features, 0.0)
        lengths = np.linalg.norm(known, axis=1)
        products = known @ theta * np.minimum(1.0, self.context_bound / np.maximum(lengths, _TINY))
        return np.array([self._link.mean(t) for t in products.tolist()])

    def add_up(
        self,
        features: np.ndarray,
        outcomes: np.ndarray,
        theta: np.ndarray,
        *,
        weight: float = 0.0,
        grid: float = 0.0,
        confined: bool = True,
    ) -> np.ndarray:
        """The sum of f over people; private.  Without a ``weight`` only its first block.  With
        ``confined`` False for any theta, if the link has bounds everywhere.
        """
        statistic = np.zeros(statistic_size(theta.size) if weight > 0.0 else theta.size)
        most, steepest = self.largest_residual, self.largest_weight
        reach = self.reach if confined and self.bounded else math.inf
        limits = np.array([*self.outcome_range, most, steepest, self.context_bound, reach])
        add = _adder(self._link, self._omega)
        add(features, outcomes, theta, limits, weight, grid, statistic)
        return statistic

    def sensitivity(self, weight: float, *, dimension: int, grid: float = 0.0) -> float:
        """D, with what rounding to the grid adds."""
        size = statistic_size(dimension) if weight > 0.0 else dimension
        length = self.context_bound
        curvature = weight * self.largest_weight * length * length
        exact = joint_sensitivity(self.largest_residual * length, curvature)
        return exact * _UP + grid * math.sqrt(size)
