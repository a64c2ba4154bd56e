"""Merging of noisy sums, and the exponent of the merged value.

Rewards are scaled to [0, 1], and s is the noise on a sum.

**Merging.**  Batch j of n_j rounds has the sum S_j; its mean has a variance of at most 1 / (4
n_j) + v / n_j^2, where v is s^2 for normal noise and 2 s^2 for Laplace noise.  Its weight w_j is
one over that, relative to a batch of one round.  The merged value is m = sum of a_j S_j, a_j = w_j
/ (W n_j), W = sum of w_j; hence sum of n_j a_j = 1.  It is never cut to [0, 1].

**The exponent.**  For a reward in [0, 1] with mean q, and l >= 0, ln E[exp(-l r)] is at most psi(l)
= ln(1 - q + q exp(-l)).  Let N = 1 / sum of n_j a_j^2, the number of rounds that m would be worth
without noise, and l = N u.  Markov's inequality batch by batch says

    P(m <= x)  <=  exp(-D(x, q)) ,
    D(x, q) = sup over u >= 0 of  N (-u x - psi(u) - cost(u)) ,

if N psi(u) bounds sum of n_j psi(a_j l), and N cost(u) the logarithm of E[exp(-l noise)].

* *Rewards.*  Let f(l) = psi(l) / l.  The sum is l times the mean of f(a_j l) with weights n_j a_j,
  and the mean of a_j l with these weights is u.  f'' is the mean of t^2 psi'''(t l) over t in [0,
  1], and psi'''(l) = -sigma''(ln(q / (1 - q)) - l), sigma the logistic function.  For q <= 1/2 that
  is never positive: f is concave, and by Jensen's inequality the sum is at most l f(u) = N psi(u).
  For q > 1/2 let R be the variance of a_j with these weights, sum of n_j a_j^3 - 1 / N^2.  There
  f'' is at most a third of max |sigma''|, which is 1 / (6 sqrt(3)).  Hence the sum is at most N
  psi(u) + R l^3 / (36 sqrt(3)).  The last term is part of the cost for q > 1/2, except at q = 1,
  where psi is linear.
* *Noise.*  Normal noise has s^2 l^2 / 2 times sum of a_j^2 = V.  Laplace noise has the sum of
  -ln(1 - (s a_j l)^2).  Since -ln(1 - y) / y increases, that is at most -(V / A^2) ln(1 - (s A
  l)^2), A the largest a_j.

* *Laplace noise, closer.*  For a single Laplace variable exponential moments are loose.  At y
  scales its tail is exp(-y) / 2, and the bound above is e y exp(-y) / 2.  Let L be the noise of the
  largest a_j, of scale s A in m, and X the rest of m, which is independent of L.  Then m <= x only
  if X <= x, or X > x and L <= x - X:

      P(m <= x)  <=  exp(-D2) + E[exp((x - X) / (s A))] / 2  <=  exp(-D2) + exp(-D1) / 2 ,

  where D2 is the exponent of X, without that noise.  D1 is the objective of D at l = 1 / (s A),
  without that noise, which has no moment there.  ``closest_exponent`` is the larger of D and of
  this bound's exponent, less ln 4.  The ln 4 keeps the best arm as surely as D does.

By duality D is the least cost of q - m, divided between the divergence of coins and that of noise.

**Rewards between the ends.**  Of all rewards with mean q those of a coin vary most.  If E[r (1 -
r)] >= e, the variance is at most q (1 - q) - e.  By Bennett's lemma E[exp(-l r)] is then at most
that of a coin that pays b = 1 - e / q with probability q / b.  D is that of rewards, means and
noise divided by b.  A larger e gives a smaller b, so a lower bound on E[r (1 - r)] is enough.  This
holds for a mean of q, and not for larger ones.

The bounds hold for a fixed number of batches, and rewards with means of at least q, given the past.
Lengths are known beforehand: that of an arm's j-th batch depends on parameters alone.  Only the
number of batches depends on releases.  A bound for all of them at once costs a factor of their
number, which is logarithmic in the rounds.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...kernel import Vector, kernel, plain
from ...policies import ArmEstimates
from ..maths.bernoulli import bernoulli_kl, kl_upper_bound

_STEPS = 60
_TOLERANCE = 1e-9
_ROUNDING = 1e-6  # more than an upper bound may be wrong by
_FLAT = 1e-7  # relative: around the least of h its values differ by the square of that
_ALMOST = 1.0 - 1e-12
_BENT = 1.0 / (36.0 * math.sqrt(3.0))  # half of a third of max |sigma''|
_STEEPEST = 600.0  # larger tilts are not looked at: upper bounds only grow
_SILENT = 1e-250  # noise below is none
_FAINT = 1e-50  # Laplace noise of a smaller scale is left to the bound for all noise
_AS_LARGE = 1.0 - 1e-4  # a ratio from which on a second noise is as large as the first
_HALF, _SURER = math.log(2.0), math.log(4.0)
_SURE = 3.0  # standard deviations between what e seems to be and what is counted on
_WIDEST = 1.0 / 64.0  # the largest variance of r (1 - r)
_ROUNDS_OF_SEARCH = 30


class Merged(NamedTuple):  # slots of what is kept of an arm, of sums over its batches
    value: int = 0  # m
    weight: int = 1  # W, relative to a batch of one round
    squares: int = 2  # of w^2 / n
    noise: int = 3  # of w^2 / n^2
    cubes: int = 4  # of w^3 / n^2
    largest: int = 5  # w / n
    second: int = 6  # the largest w / n but one
    curve: int = 7  # the merged mean of r (1 - r), where that is released


class Law(NamedTuple):  # what the exponent of an arm knows of its batches
    rounds: float  # N
    noise: float  # normal: s^2 V N, Laplace: twice that
    pole: float  # s A N, where Laplace noise has no exponential moments any more; 0: normal
    bent: float  # of u^3 in the cost of q > 1/2
    others: float = 0.0  # share of V but for the largest a_j
    ratio: float = 1.0  # of the largest a_j but one to the largest


MERGED = Merged()


@kernel
def noise_variance(params: Any) -> float:
    """v, of the noise on a sum."""
    return params.noise_scale**2 * (2.0 if params.laplace else 1.0)


def merged_estimates(params: Any, public: Any) -> ArmEstimates:
    """Estimates of the arms; Var(m) = sum of (w_j / W)^2 (1 / (4 n_j) + v / n_j^2)."""
    merged, noise = public.merged, plain(noise_variance)(params)
    known = merged[MERGED.weight] > 0.0
    squares = 0.25 * merged[MERGED.squares] + noise * merged[MERGED.noise]
    errors = params.width * np.sqrt(squares) / np.where(known, merged[MERGED.weight], np.nan)
    return ArmEstimates(np.where(known, public.estimate, np.nan), errors, public.pulls)


@kernel
def await_batch(merged: Vector, n: float, weight: float) -> None:
    """Add a batch of n rounds to an arm's column, without its rewards."""
    merged[MERGED.weight] += weight
    merged[MERGED.squares] += weight * weight / n
    merged[MERGED.noise] += (weight / n) ** 2
    merged[MERGED.cubes] += weight**3 / (n * n)
    # ``second`` comes before ``largest``, whose old value may become the second largest.
    each = weight / n
    merged[MERGED.second] = max(merged[MERGED.second], min(each, merged[MERGED.largest]))
    merged[MERGED.largest] = max(merged[MERGED.largest], each)


@kernel
def merge(merged: Vector, n: float, mean: float, weight: float) -> None:
    """Take a batch of n rounds into an arm's column."""
    await_batch(merged, n, weight)
    merged[MERGED.value] += (mean - merged[MERGED.value]) * weight / merged[MERGED.weight]


@kernel
def law_of(params: Any, merged: Vector) -> Law:
    """Of an arm's column of ``merged``."""
    weight, squares = merged[MERGED.weight], merged[MERGED.squares]
    rounds, s = weight * weight / squares, params.noise_scale
    noise = s * s * merged[MERGED.noise] / squares
    spread = rounds * rounds * merged[MERGED.cubes] / weight**3 - 1.0
    largest = merged[MERGED.largest]
    pole = s * largest * weight / squares
    return Law(
        rounds=rounds,
        noise=2.0 * noise if params.laplace else noise,
        pole=pole if params.laplace else 0.0,
        bent=_BENT * max(spread, 0.0),
        others=max(1.0 - largest * largest / merged[MERGED.noise], 0.0),
        ratio=merged[MERGED.second] / largest,
    )


@kernel
def _cost(law: Law, u: float, bent: float) -> float:
    """cost(u)."""
    cubic, pole = bent * u * u * u, law.pole * law.pole
    # ln E[exp(u noise)] of Laplace noise has a pole; the other branch is normal noise.
    if pole > 0.0:
        return cubic - 0.5 * law.noise / pole * np.log1p(-pole * u * u)
    return cubic + 0.5 * law.noise * u * u


@kernel
def _pull(law: Law, u: float, bent: float) -> float:
    """The slope of the cost."""
    return 3.0 * bent * u * u + law.noise * u / (1.0 - law.pole * law.pole * u * u)


@kernel
def _best_tilt(law: Law, x: float, q: float, bent: float) -> float:
    """The u of D(x, q), for x < q and some noise, by Newton's method on the decreasing slope of the
    objective.  A step is replaced by bisection if it would leave the bracket, or is not half of the
    one before.  Otherwise Newton's steps may alternate between two distant points.
    """
    # Beyond ``high`` the slope is negative: ``tilted`` <= q, and the cost has a slope >= noise u.
    low, high = 0.0, (q - x) / law.noise
    if law.pole > 0.0:
        high = min(high, _ALMOST / law.pole)
    u, last = min((q - x) / (q * (1.0 - q) + law.noise), 0.5 * high), np.inf
    for _ in range(_STEPS):
        # -psi'(u); exp overflows from 710 on.
        tilted = q / (q + (1.0 - q) * np.exp(min(u, 700.0)))
        slope = tilted - x - _pull(law, u, bent)
        if slope > 0.0:
            low = u
        else:
            high = u
        # Minus the derivative of the slope, term by term: coin, cubic, noise.
        damped = 1.0 - law.pole * law.pole * u * u
        curve = tilted * (1.0 - tilted) + 6.0 * bent * u
        curve += law.noise * (2.0 - damped) / (damped * damped)
        following = u + slope / curve
        if not low <= following <= high or abs(following - u) > 0.5 * last:
            following = 0.5 * (low + high)
        last = abs(following - u)
        u = following
        if last <= _TOLERANCE * u:
            break
    return u


@kernel
def _worth(law: Law, x: float, q: float, u: float, bent: float) -> float:
    """N (-u x - psi(u) - cost(u)), or 0."""
    # For q = 1 the logarithm would be -inf for large u, because 1 - exp(-u) rounds to 1.
    psi = -u if q >= 1.0 else np.log1p(q * np.expm1(-u))
    return law.rounds * max(-u * x - psi - _cost(law, u, bent), 0.0)


@kernel
def exponent(law: Law, x: float, q: float) -> float:
    """D(x, q), for q in [0, 1]."""
    if x >= q:
        return 0.0
    if law.noise < _SILENT:
        return law.rounds * bernoulli_kl(max(x, 0.0), q)
    # For q <= 1/2 Jensen's inequality holds without the cubic term, for q = 1 psi is linear.
    bent = law.bent if 0.5 < q < 1.0 else 0.0
    return _worth(law, x, q, _best_tilt(law, x, q, bent), bent)


@kernel
def closest_exponent(law: Law, x: float, q: float) -> float:
    """The larger of D(x, q) and the exponent of the tail of one Laplace noise, less ln 4."""
    found = exponent(law, x, q)
    # With a second noise as large, the rest X has no moment at 1 / (s A) either.
    if x >= q or law.pole < _FAINT or law.ratio > _AS_LARGE:
        return found
    bent = law.bent if 0.5 < q < 1.0 else 0.0
    # D1, at l = N u = 1 / (s A).
    u = 1.0 / law.pole
    psi = -u if q >= 1.0 else np.log1p(q * np.expm1(-u))
    first = law.rounds * (-u * x - psi - bent * u * u * u)
    if law.ratio > 0.0:
        # The cost of the other Laplace variables, all bounded by the largest of them.
        squared = law.ratio * law.ratio
        count = 0.5 * law.others * law.noise * law.rounds / (law.pole * law.pole * squared)
        first += count * np.log1p(-squared)
        rest = Law(law.rounds, law.noise * law.others, law.pole * law.ratio, law.bent, 0.0, 1.0)
        last = exponent(rest, x, q)
    else:
        # A single batch: without its noise X is a mean of rewards, which is never negative.
        last = law.rounds * bernoulli_kl(x, q) if x >= 0.0 else np.inf
    least = min(first + _HALF, last)
    # -ln(exp(-D2) + exp(-D1) / 2), with the larger term factored out against underflow.
    both = least - np.log(np.exp(least - first - _HALF) + np.exp(least - last))
    return max(found, both - _SURER)


@kernel
def _turning_point(law: Law, x: float, bent: float) -> float:
    """The u at which x u + cost(u) begins to rise faster than u, for x < 1; at most _STEEPEST."""
    low, high = 0.0, min(_STEEPEST, (1.0 - x) / law.noise)
    if law.pole > 0.0:
        high = min(high, _ALMOST / law.pole)
    if x + _pull(law, high, bent) <= 1.0:
        return high
    for _ in range(_STEPS):
        u = 0.5 * (low + high)
        if x + _pull(law, u, bent) < 1.0:
            low = u
        else:
            high = u
        if high - low <= _FLAT * high:
            break
    return high


@kernel
def _largest_mean(law: Law, x: float, level: float, bent: float) -> float:
    """The largest q for which N (-u x - psi(u) - cost(u)) <= level for all u.  It is the minimum of
    h(u) = (1 - exp(-g(u))) / (1 - exp(-u)), g(u) = level / N + u x + cost(u).

    For q in [0, 1] h <= q where a concave function is at least level / N: so h falls, then rises.
    """
    offset = level / law.rounds
    low, high = 0.0, _turning_point(law, x, bent)
    if offset + high * x + _cost(law, high, bent) >= high:
        return 1.0  # g(u) >= u everywhere
    for _ in range(_STEPS):
        u = 0.5 * (low + high)
        g = offset + u * x + _cost(law, u, bent)
        rising = x + _pull(law, u, bent)
        # h'(u) < 0, multiplied by exp(g) (1 - exp(-u))^2 > 0.
        if -rising * np.expm1(-u) < np.exp(g - u) - np.exp(-u):
            low = u
        else:
            high = u
        if high - low <= _FLAT * high:
            break
    u = high
    g = offset + u * x + _cost(law, u, bent)
    return min(np.expm1(-g) / np.expm1(-u), 1.0) if g > 0.0 else 0.0


@kernel
def upper_bound(law: Law, x: float, level: float) -> float:
    """The highest q in [0, 1] with D(x, q) <= level: D falls at 1/2, and jumps at 1."""
    if x >= 1.0:
        return 1.0
    if law.noise < _SILENT:
        return kl_upper_bound(max(x, 0.0), level / law.rounds)
    beyond = _largest_mean(law, x, level, law.bent)
    # The cubic term widens the interval, so up to 1/2 the exponent without it decides.
    if beyond > 0.5 or law.bent == 0.0:
        return beyond
    return _largest_mean(law, x, level, 0.0)


@kernel
def ceiling_of(params: Any, awaited: Vector, x: float, level: float) -> float:
    """A bound on ``upper_bound_of`` an arm at this level and below.

    The bound rises with the level, b only lowers it, and the cubic term only raises it.  What is
    added covers rounding.  Let c be the variance of coin and noise, and o = level / N.  The search
    for the least of h sees the sign of h' with an error of 1e-16 / u^2 around u = sqrt(2 o / c),
    where h'' is c / u.  So it misses the least value by 1e-32 sqrt(c) / (2 o)^1.5, which is 1e-10
    sqrt(c) for 10^12 rounds and alpha = 1e-3.  Terms in x lose another 1e-16 |x|.
    """
    law = law_of(params, awaited)
    if law.noise < _SILENT:
        found = kl_upper_bound(min(max(x, 0.0), 1.0), level / law.rounds)
    else:
        found = 1.0 if x >= 1.0 else _largest_mean(law, x, level, law.bent)
    return min(found + _ROUNDING * (1.0 + abs(x)), 1.0)


# Rewards between the ends ----------------------------------------------------------------------


@kernel
def _reach(params: Any, merged: Vector, q: float) -> float:
    """b, for a lower bound on E[r (1 - r)]: three standard deviations, of rewards and noise."""
    weight = merged[MERGED.weight]
    if not params.curved or q <= 0.0 or weight == 0.0:
        return 1.0
    variance = _WIDEST * merged[MERGED.squares] + noise_variance(params) * merged[MERGED.noise]
    sure = merged[MERGED.curve] - _SURE * np.sqrt(variance) / weight
    # At least q, or the coin that pays b would need a probability above 1.
    return min(max(1.0 - max(sure, 0.0) / q, q), 1.0)


@kernel
def _stretched(law: Law, b: float) -> Law:
    """The law after division by b."""
    return Law(law.rounds, law.noise / (b * b), law.pole / b, law.bent, law.others, law.ratio)


@kernel
def divergence_of(params: Any, merged: Vector, awaited: Vector, x: float, q: float) -> float:
    """The exponent of an arm; ``awaited`` has batches to come, too, as if they repeated it."""
    law, b = law_of(params, awaited), _reach(params, merged, q)
    if b >= 1.0:
        return closest_exponent(law, x, q)
    return closest_exponent(_stretched(law, b), x / b, q / b)


@kernel
def upper_bound_of(params: Any, merged: Vector, awaited: Vector, x: float, level: float) -> float:
    """The largest q with D(x, q) <= level of an arm: from above, b of the last bound."""
    law = law_of(params, awaited)
    q = upper_bound(law, x, level)
    # b rises with q: an upper bound on q gives an upper b, and that again an upper bound on q.
    for _ in range(_ROUNDS_OF_SEARCH):
        b = _reach(params, merged, q)
        if b >= 1.0:
            break
        lower = b * upper_bound(_stretched(law, b), x / b, level)
        if lower >= q - _TOLERANCE:
            break
        q = lower
    return q
