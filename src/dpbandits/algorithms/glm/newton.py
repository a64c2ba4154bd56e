"""Newton steps for generalised linear models with private features, one on each epoch of people.

E[r | x] = nu(<x, theta>).  An epoch is evaluated when it is over, at the then current estimate p,
with h = nu'(<x, p>).  What crosses the wall is the running sum, over all epochs, of

    [ w sum of (r - nu(<x, p>)) x ;  svec(sum of h x x^T) ] ,

a score and an information matrix, with one noise on both (``svec``: ``hidden.model``).  Every
record is in one epoch, hence in one release.  Records are kept in the clear until then, as sums
would be, and then deleted.  After the last release none is kept.  An epoch could have several steps
on the same people, at the price of a release each.  Two epochs of half the length cost the same
noise as two steps on one epoch, and their estimate is available earlier.  So there is one step per
epoch, and more epochs if one step is not enough.

**Sensitivity.**  Let |x| <= l, enforced by scaling, |w (r - nu)| <= R and m <= h <= L, enforced by
the kernel's cuts.  The kernel also scales any public point to |p| <= S.  For the links of this
package ``glm.replacement`` bounds the change of the sum by another record of the person.  (No
honest residual is cut: with |<x, p>| <= reach it is at most R / w = max(hi - nu(-reach),
nu(reach) - lo).)

Registered links have no proof, so the bound rests on the cuts alone: that of ``glm.scores`` for a =
R l and b = P = L l^2.  With the sensitivity J of the linear model (``joint_sensitivity``) it is

    D^2  <=  max( L^2 J(R / L, l)^2 ,  4 R^2 l^2 + P^2 ) .

With one model per arm a record may move to another block, with another point.  Both blocks are
orthogonal: then D^2 <= 2 R^2 l^2 + 2 P^2, the case c = 0 there.

**Post-processing.**  Each epoch is a linear model of z = r - nu(<x, p>) + h <x, p>.  An increment
of the release, with score g and information H, adds [g + w H p ; H] to moments, by which
``hidden.model`` estimates theta.  Differences from its linear model:

* Rewards have the scatter s.  u = sum of x eta is measured by A = sum of h x x^T + c I, with m the
  least slope.  A >= m (sum of x x^T + (c / m) I), so bounds there hold with s / sqrt(m) for s.
* z is off by rho = nu(<x, theta>) - nu(<x, p>) - h <x, theta - p>, |rho| <= M / 2 <x, theta - p>^2
  with M >= |nu''|.  The A^-1 norm of sum of rho x is at most sqrt(sum of rho^2 / h).  That is at
  most sqrt(sum of M^2 (l e)^4 / (4 m)), e a bound on |theta - p| known when the epoch began.
* The noise N_j of H in epoch j is multiplied by p_j - theta instead of theta.  With P_j = N_1 + ...
  + N_j, which is the noise of the j-th release,

      sum_{j <= k} N_j (p_j - theta) = P_k (p_k - theta) - sum_{j < k} P_j (p_{j+1} - p_j) ,

  at most S times (e_k + the length of the path of points), S a bound on all |P_j|.

So the error of epoch k's estimate is at most that of the regression with these three changes.  The
bound holds for all rounds at once, as there.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...glm.links import Link, cut
from ...glm.replacement import point_scale
from ...kernel import Generator, Matrix, Vector, bind, kernel, outlined, unbound
from ...policies import Kernels
from ...protocol import Row
from ..bases.contextual import within_bound
from ..bases.linear import block_of, estimate, model_of, on_grid, sensitivity
from ..bases.schedules import next_release
from ..hidden import kernels
from ..hidden import model as linear
from ..hidden.kernels import prepare_sample as _draw
from ..hidden.kernels import record_pull as _book
from ..hidden.model import CLOCK, FACTS, joint_sensitivity, regress, statistic_size
from ..maths.ridge import dot

_ROOT = math.sqrt(2.0)

mean = slope = unbound  # of the link
within = unbound  # a kernel of the linear model


class NewtonParams(NamedTuple):
    linear: linear.Params  # of the model that stands for this one near a point
    n_arms: int
    dimension: int
    context_bound: float
    length: float  # L, for the width
    movement: float  # the most that a record moves the statistic
    reach: float  # <x, p> is cut to [-reach, reach]
    residual: float  # R / w, to which r - nu is cut
    flattest: float  # m, the least slope of the link
    steepest: float  # L, the largest
    curvature: float  # M
    std: float  # of the noise on a coordinate of a release
    capacity: int  # records of one epoch
    last: int  # rounds after which nothing more is released, nor kept


class NewtonRaw(NamedTuple):
    features: np.ndarray  # (capacity, d) of the records of the running epoch
    outcomes: np.ndarray  # (capacity,)
    models: np.ndarray  # (capacity,) int64
    kept: np.ndarray  # (2,) int64: how many, and how many ever


class NewtonPublic(NamedTuple):
    linear: linear.Public
    estimate: np.ndarray  # (M d,)
    point: np.ndarray  # (M, d) at which the records of the running epoch will be looked at
    seen: np.ndarray  # (M (d + d (d + 1) / 2),) the last release
    moments: np.ndarray  # the same size: [w sum of z x ; svec(sum of h x x^T)]
    travel: np.ndarray  # (5, M)


class Travel(NamedTuple):  # slots of ``NewtonPublic.travel``
    miss: int = 0  # bound on |point - theta|
    step: int = 1  # how far the point has moved the last time
    path: int = 2  # how far it has moved, all together
    remainder: int = 3  # bound on |sum of rho x|^2 in the norm of the inverse
    rounds: int = 4  # of the epochs that are over


TRAVEL = Travel()


def score_sensitivity(residual: float, steepest: float, length: float) -> float:
    """Bound on the change of [r x ; svec(h x x^T)] by a record, for any link and bounds on |r|, h,
    |x|.

    >>> round(score_sensitivity(1.0, 0.25, 1.0) ** 2, 12)
    4.0625
    """
    both = steepest * joint_sensitivity(residual / steepest, length)
    return max(both, math.hypot(2.0 * residual * length, steepest * length * length))


# Behind the wall -------------------------------------------------------------------------------


@kernel
def accumulate(
    params: NewtonParams, raw: NewtonRaw, arm: int, x: Vector, reward: float, n: int
) -> None:
    """Keep the record until its epoch is over."""
    i = raw.kept[0]
    raw.kept[1] += n
    # Later records enter no release, so they would be kept for nothing.
    if i < raw.outcomes.size and raw.kept[1] <= params.last:
        for j in range(x.size):
            raw.features[i, j] = x[j]
        raw.outcomes[i], raw.models[i] = reward, model_of(params.linear, arm)
        raw.kept[0] = i + 1


@kernel
def add_score(
    params: NewtonParams, points: Matrix, statistic: Vector, m: int, x: Vector, outcome: float
) -> None:
    """Add [w (r - nu) x ; svec(h x x^T)] of one record, looked at from its model's point."""
    d, grid = x.size, params.linear.grid
    # Scaled here, behind the wall: sensitivity rests on it.
    scale = point_scale(points[m], params.linear.parameter_bound)
    t = cut(scale * dot(x, points[m]), -params.reach, params.reach)
    h = cut(slope(t), params.flattest, params.steepest)
    residual = cut(outcome - mean(t), -params.residual, params.residual)
    first = m * statistic_size(d)
    # Layout of a model's block: d scores, d diagonal entries, then those above the diagonal by row.
    k = first + 2 * d
    for i in range(d):
        statistic[first + i] += on_grid(params.linear.weight * x[i] * residual, grid)
        statistic[first + d + i] += on_grid(h * x[i] * x[i], grid)
        for j in range(i + 1, d):
            # The factor makes the length of ``svec`` the Frobenius norm of the matrix.
            statistic[k] += on_grid(h * (_ROOT * x[i] * x[j]), grid)
            k += 1


@outlined
def summarise(
    params: NewtonParams, raw: NewtonRaw, public: NewtonPublic, memo: Vector, statistic: Vector
) -> None:
    for k in range(statistic.size):
        statistic[k] = 0.0
    for i in range(raw.kept[0]):
        x = raw.features[i]
        add_score(params, public.point, statistic, raw.models[i], x, raw.outcomes[i])
        # Records are deleted as soon as they are in the statistic.
        raw.outcomes[i], raw.models[i] = 0.0, 0
        for j in range(x.size):
            x[j] = 0.0
    raw.kept[0] = 0


# What follows from a release -------------------------------------------------------------------


@kernel
def add_products(matrix: Vector, point: Vector, factor: float, vector: Vector) -> None:
    """Add a multiple of the matrix, which d other numbers are ahead of, times the point."""
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
def _absorb(params: NewtonParams, public: NewtonPublic, m: int, release: Vector) -> None:
    """Add an epoch's increments, as a linear model at the point that it was looked at from."""
    size = statistic_size(params.dimension)
    block = block_of(m, size)
    seen, moments, noisy = public.seen[block], public.moments[block], release[block]
    for k in range(size):
        seen[k] = noisy[k] - seen[k]
        moments[k] += seen[k]
    # ``seen`` is the epoch's increment here, and ``point`` still that of the epoch.
    add_products(seen, public.point[m], params.linear.weight, moments)
    for k in range(size):
        seen[k] = noisy[k]


@kernel
def _widen(params: NewtonParams, public: NewtonPublic, m: int, rounds: int, noises: float) -> None:
    """Add the cost of a link and its points, after the given rounds, to a linear model's width."""
    facts, travel = public.linear.facts[:, m], public.travel[:, m]
    scale = params.linear.radius_scale
    off = 0.5 * params.curvature * (params.length * travel[TRAVEL.miss]) ** 2
    epoch = rounds - travel[TRAVEL.rounds]
    travel[TRAVEL.remainder] += epoch * off * off / params.flattest
    travel[TRAVEL.rounds] = rounds
    larger, moved = np.sqrt(noises), travel[TRAVEL.miss] + travel[TRAVEL.path]
    facts[FACTS.radius] += scale * np.sqrt(travel[TRAVEL.remainder])
    facts[FACTS.bias] += scale * larger * params.linear.matrix_norm * moved
    # Draws claim no coverage, so how far the point moved stands for how far it was from theta.
    near = travel[TRAVEL.step]
    facts[FACTS.spread] = larger * params.std * np.hypot(1.0 / params.linear.weight, near)


@kernel
def _move(params: NewtonParams, public: NewtonPublic, m: int) -> None:
    """Let the next epoch be looked at from the estimate, or the nearest that theta may be."""
    d, facts, travel = params.dimension, public.linear.facts[:, m], public.travel[:, m]
    believed, point = public.linear.estimate[block_of(m, d)], public.point[m]
    bound = params.linear.parameter_bound
    length = np.sqrt(dot(believed, believed))
    shrink = bound / length if length > bound else 1.0
    moved = 0.0
    for i in range(d):
        step = shrink * believed[i] - point[i]
        point[i] += step
        moved += step * step
        public.estimate[m * d + i] = believed[i]
    longest = facts[FACTS.longest] ** 2
    error = facts[FACTS.radius] * np.sqrt(longest + facts[FACTS.gap] * longest * longest)
    travel[TRAVEL.miss] = min(error + facts[FACTS.bias] * longest, 2.0 * bound)
    travel[TRAVEL.step] = np.sqrt(moved)
    travel[TRAVEL.path] += travel[TRAVEL.step]


@outlined
def publish(params: NewtonParams, public: NewtonPublic, memo: Vector, release: Vector) -> None:
    clock, size = public.linear.clock, statistic_size(params.dimension)
    planned = clock[CLOCK.next]
    clock[CLOCK.next] = next_release(planned, params.linear.batch, params.linear.growth, np.inf)
    clock[CLOCK.releases] += 1
    noises = float(clock[CLOCK.releases]) if params.linear.adds_up else 1.0
    for m in range(params.linear.n_models):
        # The first and the third need the epoch's own point and its miss, which the last replaces.
        _absorb(params, public, m, release)
        regress(params.linear, public.linear, m, public.moments[block_of(m, size)], noises)
        _widen(params, public, m, planned, noises)
        _move(params, public, m)


def init(params: NewtonParams) -> tuple[NewtonRaw, NewtonPublic]:
    _, model = linear.init(params.linear)
    models, d = params.linear.n_models, params.dimension
    travel = np.zeros((len(TRAVEL), models))
    travel[TRAVEL.miss] = travel[TRAVEL.step] = params.linear.parameter_bound
    public = NewtonPublic(
        linear=model,
        estimate=np.zeros(models * d),
        point=np.zeros((models, d)),
        seen=np.zeros(models * statistic_size(d)),
        moments=np.zeros(models * statistic_size(d)),
        travel=travel,
    )
    for m in range(models):
        _widen(params, public, m, 0, 1.0)
    return no_records(params), public


def no_records(params: Any) -> NewtonRaw:
    """Room for the records of an epoch."""
    return NewtonRaw(
        features=np.zeros((params.capacity, params.dimension)),
        outcomes=np.zeros(params.capacity),
        models=np.zeros(params.capacity, np.int64),
        kept=np.zeros(2, np.int64),
    )


# What decides: the kernels of the linear model within --------------------------------------------


@kernel
def record_pull(params: Any, public: Any, arm: int, x: Row, n: int) -> None:
    _book(params.linear, public.linear, arm, x, n)


@kernel
def prepare_sample(params: Any, public: Any, contexts: Row, rng: Generator) -> None:
    _draw(params.linear, public.linear, contexts, rng)


@kernel
def _due(params: Any, public: Any) -> bool:
    return within(params.linear, public.linear)


@kernel
def _choose(params: Any, public: Any, contexts: Matrix, rng: Generator) -> tuple[int, float]:
    """Means rise with <x, theta>: the arm that is best for the linear model is best for a link."""
    return within(params.linear, public.linear, contexts, rng)


release_due = bind(_due, within=kernels.release_due)
report_due = bind(_due, within=kernels.report_due)
choose_optimistic = bind(_choose, within=kernels.choose_optimistic)
choose_sampled = bind(_choose, within=kernels.choose_sampled)


@cache
def optimistic(link: Link) -> Kernels:
    """The kernels for a link."""
    bound: Any = bind(add_score, mean=link.mean, slope=link.slope)
    return Kernels(
        init=init,
        preprocess_contexts=within_bound,
        choose=choose_optimistic,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        summarise=bind(summarise, add_score=bound),
        publish=publish,
        estimate=estimate,
    )


@cache
def sampled(link: Link) -> Kernels:
    """Kernels of this link for Thompson sampling."""
    return replace(optimistic(link), prepare=prepare_sample, choose=choose_sampled)
