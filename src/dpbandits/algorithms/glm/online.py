"""Generalised linear bandits by online learning to confidence sets, with private features.

What crosses the wall, which stands around each person: [w g ; svec(x x^T)], where g = (nu(<x, p>) -
r) x is the gradient of her log-loss at the public point p, |p| <= S.

**Sensitivity.**  This is the statistic of a linear model with nu - r in the place of a reward
(``hidden.model``): its proof takes any r with |r| <= R, and the kernel cuts nu - r to
[-R, R].  For the links of this package the bound is that of ``glm.replacement``, with h = 1: the
kernel scales points to |p| <= S.

The published report has (x^T p) x, too.  That is (x x^T) p, a linear map of what is reported anyway
and known to the server, which therefore makes it of the noisy matrix: with no noise of its own, and
with less on the rest.  For the published form, with w = 1 and records (x, r), (x', r'), let M = x
x^T - x' x'^T, c = cos(x, x'), |x|^2 = L^2 tau and |x'|^2 = L^2 tau'.  Then

    D^2 = |x r - x' r'|^2 + |M|_F^2 + |M p|^2 ,   |M p| <= S |M|_op .

The last two are convex in tau, and in tau': at most what they are at the ends.  With tau = tau' = 1
the eigenvalues of M are +-L^2 sqrt(1 - c^2), and they are (2 + S^2) L^4 (1 - c^2); with tau' = 0
they are (1 + S^2) L^4; with tau = tau' = 0, nothing.  The first is at most 2 R^2 L^2 (1 + |c|), as
it is for tau = tau' = 1.  So

    D^2  <=  max( a^2 J(R / a, L)^2 ,  4 R^2 L^2 + (1 + S^2) L^4 ) ,   a^2 = 1 + S^2 / 2 ,

with J the sensitivity of the linear model (``joint_sensitivity``).

**What follows.**  The point p moves against noisy gradients, and back into the ball of radius S in
which theta lies, once in a batch; p_t is the one at the t-th report, and p' their mean.  The
estimate is the ridge regression of <x_t, p_t> on x_t that is drawn to p': theta^ = p' + V^-1 sum of
(x_t x_t^T + N_t) (p_t - p'), with V = sum of (x_t x_t^T + N_t) + lambda I + C as in
``hidden.model``.  (Drawn to 0, as published, it would turn around in directions in
which noise has taken away more than was seen.)  So with q_t = p_t - theta

    V (theta^ - theta)  =  sum of x_t <x_t, q_t>  +  sum of N_t q_t  +  (lambda I + C) (p' - theta).

In the norm of A^-1 the first is at most sqrt(B), B = sum of <x_t, q_t>^2; the rest is noise and
bias, as there, with |p' - theta| <= |p'| + S.  For the slope of nu at least mu, eta_t the scatter
of rewards, and n_t the noise of g_t,

    mu B  <=  sum of <g_t + n_t, q_t>  -  sum of <n_t, q_t>  +  sum of eta_t <x_t, q_t> .

* The first: batches of b reports with mean gradient G_k and steps z_k that do not grow: at most b
  (2 S^2 / z_K + sum of z_k |G_k|^2 / 2), since |q| <= 2 S and projections do not lengthen q
  (Zinkevich 2003).  All of this is public.
* A sum of d-vectors, conditionally sub-Gaussian with proxies s_t^2 that add up to at most W, is in
  all rounds at once with probability 1 - f at most sqrt(2 (W + c) (ln(1 / f) + d / 2 ln(1 + W /
  c))), for any c > 0 that is fixed (mixture of normals; Robbins 1970).  For <n_t, q_t>, d = 1, and
  for N_t q_t, whose covariance is v^2 (|q|^2 I + q q^T) / 2, W = (2 S s)^2 n after n reports, s the
  standard deviation of n_t and of N_t.  The largest W is used, and c that of one batch.
* For eta_t <x_t, q_t> it is s^2 B, and c = s^2 (2 S L)^2 b, L the bound on features; in the
  logarithm B <= (2 S L)^2 n.  What is left is quadratic in sqrt(B + c / s^2).

Nothing is said of where the noise of one report lies: choices and points may follow it in any way.
What is left out: as in ``hidden.model``.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...glm.links import Link
from ...glm.replacement import point_scale
from ...kernel import Generator, Matrix, Vector, bind, kernel, outlined, unbound
from ...policies import Kernels
from ...protocol import Row
from ..bases.contextual import within_bound
from ..bases.linear import estimate, on_grid, sensitivity
from ..bases.schedules import next_release
from ..hidden import model as linear
from ..hidden.model import CLOCK, FACTS, add_record, joint_sensitivity, regress, statistic_size
from ..hidden.model import choose_optimistic as _most_optimistic
from ..hidden.model import record_pull as _book
from ..hidden.model import report_due as _has_arrived
from ..maths.ridge import dot
from .gradients import DescentRaw, accumulate, project, residual_with

_ROOT = math.sqrt(2.0)

residual_at = unbound  # with the link


def published_sensitivity(residual: float, length: float, parameter: float) -> float:
    """By how much a record moves [(nu - r) x ; svec(x x^T) ; (x^T p) x] at most; see above.

    Args:
        residual: bound on |nu - r|.
        length: bound on |x|.
        parameter: bound on |p|.

    >>> round(published_sensitivity(1.0, 1.0, 1.0) ** 2, 12)
    6.0
    """
    heavier = math.sqrt(1.0 + 0.5 * parameter * parameter)
    both = heavier * joint_sensitivity(residual / heavier, length)
    alone = length * length * math.hypot(1.0, parameter)
    return max(both, math.hypot(2.0 * residual * length, alone))


class OnlineParams(NamedTuple):
    linear: linear.Params
    n_arms: int
    dimension: int
    size: int  # of a report
    context_bound: float
    movement: float  # the most that a record moves the statistic
    reach: float  # <x, p> is cut to [-reach, reach]
    residual: float  # R, to which nu - r is cut
    flattest: float  # mu
    parameter_bound: float  # S
    length: float  # L, for the width
    step: float  # of the first update
    decay: float  # the t-th step is step / t^decay
    std: float  # of the noise of a report
    log_odds: float  # ln(1 / f)
    excess: float  # of the published radius: sigma sqrt(d) / mu


class OnlinePublic(NamedTuple):
    linear: linear.Public
    estimate: np.ndarray  # (d,)
    point: np.ndarray  # (d,) p
    seen: np.ndarray  # (size,) the sum of reports at the last update
    moments: np.ndarray  # (d + d (d + 1) / 2,): [w sum of <x, p> x ; svec(sum of x x^T)]
    average: np.ndarray  # (d,) p'
    travel: np.ndarray  # (2,)
    centred: np.ndarray  # (d + d (d + 1) / 2,) the moments as seen from p'


class Travel(NamedTuple):
    """Slots of ``OnlinePublic.travel``."""

    updates: int = 0
    squares: int = 1  # sum of z_k |G_k|^2 / 2


TRAVEL = Travel()


def init(params: OnlineParams) -> tuple[DescentRaw, OnlinePublic]:
    _, model = linear.init(params.linear)
    d = params.dimension
    moments = np.zeros(statistic_size(d))
    public = OnlinePublic(
        linear=model,
        estimate=np.zeros(d),
        point=np.zeros(d),
        seen=np.zeros(params.size),
        moments=moments,
        average=np.zeros(d),
        travel=np.zeros(len(TRAVEL)),
        centred=np.zeros_like(moments),
    )
    _widen(params, public, 0.0)
    return DescentRaw(np.zeros(d), np.zeros(1), np.zeros(params.size)), public


# Behind the wall -------------------------------------------------------------------------------


@kernel
def look(params: OnlineParams, point: Vector, x: Vector, outcome: float, statistic: Vector) -> None:
    """Write the report of one record, as it is before noise is added."""
    for k in range(params.size):
        statistic[k] = 0.0
    residual = residual_at(params, point, x, outcome)
    add_record(params.linear, statistic, 0, x, residual)
    if params.linear.published:
        first = params.size - params.dimension
        expected = point_scale(point, params.parameter_bound) * dot(x, point)
        for i in range(x.size):
            product = params.linear.weight * expected * x[i]
            statistic[first + i] = on_grid(product, params.linear.grid)


@outlined
def summarise(
    params: OnlineParams, raw: DescentRaw, public: OnlinePublic, memo: Vector, statistic: Vector
) -> None:
    look(params, public.point, raw.features, raw.outcome[0], statistic)
    raw.outcome[0] = 0.0
    for i in range(raw.features.size):
        raw.features[i] = 0.0


# What follows from a release -------------------------------------------------------------------


@kernel
def _within(log_odds: float, width: float, coordinates: int, batches: float) -> float:
    """What a sum of noise of that width, the root of W, stays below."""
    shares = (1.0 + 1.0 / batches) * (2.0 * log_odds + coordinates * np.log1p(batches))
    return width * np.sqrt(shares)


@kernel
def _widen(params: OnlineParams, public: OnlinePublic, reports: float) -> None:
    """Put what is true of so many reports in the place of the width of a linear model."""
    facts, scale = public.linear.facts[:, 0], params.linear.radius_scale
    if params.linear.published:
        facts[FACTS.radius] = scale * np.sqrt(params.excess * np.sqrt(max(reports, 1.0)))
        return
    away = params.parameter_bound + np.sqrt(dot(public.average, public.average))
    facts[FACTS.bias] = scale * facts[FACTS.added] * away
    if reports == 0.0:
        facts[FACTS.radius] = 0.0
        return
    batch = float(params.linear.batch)
    batches, far = reports / batch, 2.0 * params.parameter_bound
    noise = far * np.sqrt(reports) * params.std
    facts[FACTS.bias] += scale * _within(params.log_odds, noise, params.dimension, batches)
    last = params.step / public.travel[TRAVEL.updates] ** params.decay
    regret = 0.5 * far * far / last + public.travel[TRAVEL.squares]
    known = batch * regret + _within(params.log_odds, noise / params.linear.weight, 1, batches)
    most = far * params.length
    first, most = most * most * batch, most * most * reports
    odds = params.linear.subgaussian**2 * (2.0 * params.log_odds + np.log1p(batches))
    mu = params.flattest
    root = np.sqrt(odds) + np.sqrt(odds + 4.0 * mu * (known + mu * first))
    facts[FACTS.radius] = scale * np.sqrt(min((0.5 * root / mu) ** 2 - first, most))


@kernel
def _add_products(matrix: Vector, point: Vector, factor: float, vector: Vector) -> None:
    """Add a multiple of the matrix, of which d numbers ahead of it are something else, times the
    point.
    """
    d = point.size
    k = 2 * d
    for i in range(d):
        vector[i] += factor * matrix[d + i] * point[i]
        for j in range(i + 1, d):
            entry = factor * matrix[k] / _ROOT
            vector[i] += entry * point[j]
            vector[j] += entry * point[i]
            k += 1


@kernel
def _absorb(params: OnlineParams, public: OnlinePublic, release: Vector) -> None:
    """Add the reports of a batch to the moments; what is left in ``seen`` are their sums."""
    d, seen, moments = params.dimension, public.seen, public.moments
    for k in range(params.size):
        seen[k] = release[k] - seen[k]
    for k in range(d, moments.size):
        moments[k] += seen[k]
    if not params.linear.published:
        _add_products(seen, public.point, params.linear.weight, moments)
        return
    for i in range(d):
        moments[i] += seen[moments.size + i]


@kernel
def _average(params: OnlineParams, public: OnlinePublic) -> None:
    """Take the point of the batch into their mean, and see the moments from there."""
    average, moments = public.average, public.moments
    for i in range(params.dimension):
        average[i] += (public.point[i] - average[i]) / (public.travel[TRAVEL.updates] + 1.0)
    for k in range(moments.size):
        public.centred[k] = moments[k]
    _add_products(moments, average, -params.linear.weight, public.centred)


@kernel
def _move(params: OnlineParams, public: OnlinePublic) -> None:
    """Let the point go against the mean gradient of the batch."""
    d, travel, point = params.dimension, public.travel, public.point
    travel[TRAVEL.updates] += 1.0
    step = params.step / travel[TRAVEL.updates] ** params.decay
    reports = params.linear.weight * params.linear.batch
    for i in range(d):
        gradient = public.seen[i] / reports
        travel[TRAVEL.squares] += 0.5 * step * gradient * gradient
        point[i] -= step * gradient
    project(point, params.parameter_bound)


@outlined
def publish(params: OnlineParams, public: OnlinePublic, memo: Vector, release: Vector) -> None:
    clock = public.linear.clock
    clock[CLOCK.releases] += 1
    if clock[CLOCK.rounds] < clock[CLOCK.next]:
        return
    clock[CLOCK.next] = next_release(clock[CLOCK.next], params.linear.batch, 0.0, np.inf)
    reports = float(clock[CLOCK.releases])
    _absorb(params, public, release)
    if not params.linear.published:
        _average(params, public)
    _move(params, public)
    for k in range(params.size):
        public.seen[k] = release[k]
    if params.linear.published:
        regress(params.linear, public.linear, 0, public.moments, reports)
    else:
        regress(params.linear, public.linear, 0, public.centred, reports)
    _widen(params, public, reports)
    for i in range(params.dimension):
        public.linear.estimate[i] += public.average[i]
        public.estimate[i] = public.linear.estimate[i]


# What decides ----------------------------------------------------------------------------------


@kernel
def record_pull(params: OnlineParams, public: OnlinePublic, arm: int, x: Row, n: int) -> None:
    _book(params.linear, public.linear, arm, x, n)


@kernel
def release_due(params: OnlineParams, public: OnlinePublic) -> bool:
    return _has_arrived(params.linear, public.linear)


@kernel
def choose(
    params: OnlineParams, public: OnlinePublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """Means rise with <x, theta>: the arm of highest <x, estimate> + width."""
    return _most_optimistic(params.linear, public.linear, contexts, rng)


@cache
def look_with(link: Link) -> Any:
    """``look`` for a link."""
    return bind(look, residual_at=residual_with(link))


@cache
def learning(link: Link) -> Kernels:
    """The kernels for a link."""
    return Kernels(
        init=init,
        preprocess_contexts=within_bound,
        choose=choose,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        summarise=bind(summarise, look=look_with(link)),
        publish=publish,
        estimate=estimate,
    )
