"""Information-weighted regression in generalised linear bandits; experimental.

E[r | x] = nu(<x, theta>), |x| <= l, z = x / l.  Every epoch weights the features of the played arms
by a matrix A from the epoch before.  Residuals are taken at the estimate p of that epoch, with h =
nu'(<x, p>) (``dpbandits.papers.glm.weights`` explains A):

    u = w A z ,   q = sqrt(w) A^1/2 z ,   w = 1 / (1 + g |A z|)    (local: w = 1 / |A z|) ,

both divided by their largest size, c = a / (1 + g a) and its root (local: c = 1), with a the
largest eigenvalue of A.  An epoch releases the sum over its rounds of

    [ W (r - nu(<x, p>)) u ;  svec(h q q^T) ] ,

with one noise on both.  An estimate uses one epoch, because A^-1 turns the noise of every epoch
another way.  So epochs double.

**Sensitivity.**  The kernel cuts u and q to |u| <= 1 and |q| <= 1, for any A.  Also |W (r - nu)| <=
R and 0 <= h <= L.  Vectors whose length is too small to compute are cut to zero.  Replacing a
person's record moves the first part by at most 2 R.  It moves the second by at most sqrt(2) L, or L
if d = 1 (``dpbandits.papers.glm.weights``).  Together

    D^2 <= 4 R^2 + min(2, d) L^2 .

That is at most 6 / 4.5 of the largest effect of a record where A is a multiple of I.

**Post-processing.**  With P = sum of h q q^T and noise N on it, let H = (P + N)_+ + k I, without
the negative eigenvalues of P + N, and

    theta^ = p + A^1/2 H^-1 A^-1/2 y / W ,   y the first part as released,

both in units of z.  For outcomes r = nu(<x, theta>) + eta, sum of (r - nu) u = A^1/2 P A^-1/2
(theta - p) + X. X is the sum of (eta + rho) u, where rho is the remainder of the link.  For e =
|<x, theta - p>|, rho is at most min(M / 2 e^2, (L - m) e), since its slope is between m and L and
|nu''| <= M. With v the noise on y,

    theta^ - theta  =  A^1/2 H^-1 ( (H - P) A^-1/2 (p - theta) + A^-1/2 (X + v / W) ) ,

and |H - P - k I| <= 2 |N|, because lifting the negative eigenvalues of P + N to 0 adds at most |N|.
Let T = A^-1/2 H^-1 A^1/2.  Then for every z

    |<z, theta^ - theta>|  <=  B |T z| ,
    B = |X| + |v| / W + (k + 2 |N| sqrt(cond A)) |p - theta| .

At the exact weighting A, T is about c A over the number of people.  For s-subgaussian rewards, |sum
of eta u| <= s sqrt(n (4 ln(1 / f) + 2)) with probability 1 - f after n rounds.  For u is at most 1
long.  So the mixture of normals of Abbasi-Yadkori, Pal & Szepesvari (2011), with the precision s^2
n I, has a log determinant of at most 1.  The epoch before bounds |theta - p|, which is at most S +
|p|.  The additional term for nonlinear links falls only as fast as |theta - p| does.

**Ridge and damping.**  The ridge b of A is such that k = n b / c pulls as much as noise does.  That
is k = max(sqrt(d) t / (S l), lambda), with t the noise on a coordinate of y / W in the coming
epoch, and g = 10 t / sqrt(n).  Since a is about 1 / b, b (b + g) = k / n (local: b = k / n).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.bases.linear import on_grid
from ...algorithms.bases.schedules import next_release
from ...algorithms.glm.gradients import DescentRaw
from ...algorithms.glm.gradients import accumulate as keep
from ...algorithms.glm.newton import NewtonRaw, no_records, optimistic, report_due
from ...algorithms.hidden import model as linear
from ...algorithms.hidden.model import CLOCK, FACTS, statistic_size
from ...algorithms.maths.dense import diagonalise
from ...algorithms.maths.ridge import dot, multiply
from ...glm.links import Link, cut
from ...kernel import Kernel, Matrices, Matrix, Vector, bind, inlined, kernel, outlined, unbound
from ...policies import Kernels

_ROOT = np.sqrt(2.0)
_DAMPING = 10.0
_LEAST = 1e-9  # of ridge and damping
_SMALLEST = 1e-300
_SHORTEST = 1e-150  # squares of shorter vectors are lost in rounding, and lengths with them

mean = slope = unbound  # of the link


class WeightedParams(NamedTuple):
    linear: linear.Params
    n_arms: int
    dimension: int
    size: int  # of the statistic
    context_bound: float
    length: float  # l
    movement: float  # the most that a record moves the statistic
    reach: float  # <x, p> is cut to [-reach, reach]
    residual: float  # R / W, to which r - nu is cut
    flattest: float  # m
    steepest: float  # L
    curvature: float  # M
    scatter: float  # s
    odds: float  # ln(1 / f)
    std: float  # of the noise on a coordinate of a release, or of a report
    vector_norm: float  # bound on |v| of one of them
    is_local: bool
    capacity: int  # records of one epoch
    last: int  # rounds after which nothing more is released, nor kept


class WeightedPublic(NamedTuple):
    linear: linear.Public
    estimate: np.ndarray  # (d,) of theta
    lens: np.ndarray  # (3 + 2 d, d): p, a, g (which fill their rows), A, A^1/2
    seen: np.ndarray  # (size,) the sum of releases at the end of the last epoch
    facts: np.ndarray  # (3,)
    inverse_root: np.ndarray  # (d, d) A^-1/2
    work: np.ndarray  # (4, d, d)


class Facts(NamedTuple):
    """Slots of ``WeightedPublic.facts``."""

    rounds: int = 0  # of the epochs that are over
    miss: int = 1  # bound on l |p - theta|
    ridge: int = 2  # k of the running epoch


class Work(NamedTuple):
    """Slots of ``WeightedPublic.work``, which holds nothing between calls."""

    product: int = 0
    values: int = 1  # the eigenvalues, on the diagonal
    vectors: int = 2
    turned: int = 3


class Lens(NamedTuple):
    """Rows of ``WeightedPublic.lens``."""

    point: int = 0
    largest: int = 1
    damping: int = 2
    matrix: int = 3  # the first of A; those of its root come behind


OWN, WORK, LENS = Facts(), Work(), Lens()


# Behind the wall -------------------------------------------------------------------------------


@inlined
def _weighting(d: int) -> slice:
    """The rows of A."""
    return slice(LENS.matrix, LENS.matrix + d)


@inlined
def _root(d: int) -> slice:
    """The rows of A^1/2."""
    return slice(LENS.matrix + d, LENS.matrix + 2 * d)


@kernel
def _length(matrix: Matrix, x: Vector, scale: float) -> float:
    """|matrix x| times the scale."""
    squares = 0.0
    for i in range(x.size):
        entry = scale * dot(matrix[i], x)
        squares += entry * entry
    return np.sqrt(squares)


@kernel
def _shrink(length: float, size: float) -> float:
    """The factor, at most 1, that scales a vector of that length to that size."""
    if not length > _SHORTEST:
        return 0.0
    return (size if size < 1.0 else 1.0) / length


@kernel
def add_record(
    params: WeightedParams, lens: Matrix, x: Vector, outcome: float, statistic: Vector
) -> None:
    """Add [W (r - nu) u ; svec(h q q^T)] of one record."""
    d, grid, scale = params.dimension, params.linear.grid, 1.0 / params.length
    a, damping = max(lens[LENS.largest, 0], _SMALLEST), lens[LENS.damping, 0]
    t = cut(dot(x, lens[LENS.point]), -params.reach, params.reach)
    h = cut(slope(t), 0.0, params.steepest)
    residual = cut(outcome - mean(t), -params.residual, params.residual)
    weighted, root = lens[_weighting(d)], lens[_root(d)]
    # Lengths as they are computed: cutting by them bounds u and q for any A and w.
    length, rooted = _length(weighted, x, scale), _length(root, x, scale)
    weight = 1.0 / max(length, _SMALLEST)  # w / c
    if not params.is_local:
        weight = (1.0 + damping * a) / (a * (1.0 + damping * length))
    first = params.linear.weight * residual * scale * _shrink(length, length * weight)
    second = scale * _shrink(rooted, rooted * np.sqrt(weight))
    k = 2 * d
    for i in range(d):
        statistic[i] += on_grid(first * dot(weighted[i], x), grid)
        entry = second * dot(root[i], x)
        statistic[d + i] += on_grid(h * (entry * entry), grid)
        for j in range(i + 1, d):
            statistic[k] += on_grid(h * (_ROOT * entry * (second * dot(root[j], x))), grid)
            k += 1


@outlined
def look(
    params: WeightedParams, lens: Matrix, x: Vector, outcome: float, statistic: Vector
) -> None:
    """Write the report of one record, as it is before noise is added."""
    for k in range(params.size):
        statistic[k] = 0.0
    add_record(params, lens, x, outcome, statistic)


@outlined
def summarise(
    params: WeightedParams, raw: NewtonRaw, public: WeightedPublic, memo: Vector, statistic: Vector
) -> None:
    for k in range(params.size):
        statistic[k] = 0.0
    for i in range(raw.kept[0]):
        x = raw.features[i]
        add_record(params, public.lens, x, raw.outcomes[i], statistic)
        raw.outcomes[i] = 0.0
        for j in range(x.size):
            x[j] = 0.0
    raw.kept[0] = 0


@outlined
def summarise_report(
    params: WeightedParams, raw: DescentRaw, public: WeightedPublic, memo: Vector, statistic: Vector
) -> None:
    look(params, public.lens, raw.features, raw.outcome[0], statistic)
    raw.outcome[0] = 0.0
    for i in range(raw.features.size):
        raw.features[i] = 0.0


# What follows from a release -------------------------------------------------------------------


@kernel
def _of_eigenvalues(work: Matrices, power: float, shift: float, matrix: Matrix) -> None:
    """Fill with a power of the diagonalised matrix, shifted and without negative eigenvalues."""
    values, vectors = work[WORK.values], work[WORK.vectors]
    d = values.shape[0]
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(d):
                value = max(values[k, k], 0.0) + shift
                total += value**power * (vectors[i, k] * vectors[j, k])
            matrix[i, j] = matrix[j, i] = total


@kernel
def _multiply(a: Matrix, b: Matrix, out: Matrix) -> None:
    """a b, for a symmetric b."""
    for i in range(a.shape[0]):
        multiply(b, a[i], out[i])


@kernel
def _focus(params: WeightedParams, public: WeightedPublic, moments: Matrix, scale: float) -> None:
    """Find the lens for the next epoch: A = f(B), with B a multiple of ``moments``."""
    d, clock, lens, work = params.dimension, public.linear.clock, public.lens, public.work
    people = float(clock[CLOCK.next] - public.facts[OWN.rounds])
    noise = params.std / params.linear.weight * (np.sqrt(people) if params.is_local else 1.0)
    far = params.length * max(params.linear.parameter_bound, _SMALLEST)
    public.facts[OWN.ridge] = max(np.sqrt(d) * noise / far, params.linear.ridge)
    wanted = max(public.facts[OWN.ridge] / people, _LEAST)
    damping = max(_DAMPING * noise / np.sqrt(people), _LEAST)
    # The positive root b of b (b + g) = k / n.
    ridge = np.sqrt(0.25 * damping * damping + wanted) - 0.5 * damping
    if params.is_local:
        ridge, damping = wanted, 0.0
    ridge = max(ridge, _LEAST)
    for i in range(d):
        for j in range(d):
            work[WORK.values, i, j] = 0.5 * scale * (moments[i, j] + moments[j, i])
    diagonalise(work[WORK.values], work[WORK.vectors], d)
    largest = 0.0
    for k in range(d):
        value = max(work[WORK.values, k, k], 0.0)
        # The positive root a of v a^2 + b a = 1, in the form that does not divide by v.
        value = 1.0 / (np.sqrt(value + 0.25 * ridge * ridge) + 0.5 * ridge)
        work[WORK.values, k, k] = value
        largest = max(largest, value)
    _of_eigenvalues(work, 1.0, 0.0, lens[_weighting(d)])
    _of_eigenvalues(work, 0.5, 0.0, lens[_root(d)])
    _of_eigenvalues(work, -0.5, 0.0, public.inverse_root)
    for i in range(d):
        lens[LENS.largest, i], lens[LENS.damping, i] = largest, damping


@kernel
def _condition(root: Matrix, inverse_root: Matrix) -> float:
    """A bound on the root of the condition number of A."""
    squares = inverses = 0.0
    for i in range(root.shape[0]):
        squares += dot(root[i], root[i])
        inverses += dot(inverse_root[i], inverse_root[i])
    return np.sqrt(squares * inverses)


@kernel
def _solve(params: WeightedParams, public: WeightedPublic) -> None:
    """Move the estimate by A^1/2 H^-1 A^-1/2 y / W, and fill T."""
    d, work, turn = params.dimension, public.work, public.linear.inverse[0]
    root, inverse_root, product = public.lens[_root(d)], public.inverse_root, work[WORK.product]
    _of_eigenvalues(work, -1.0, public.facts[OWN.ridge], work[WORK.turned])
    _multiply(inverse_root, work[WORK.turned], product)
    _multiply(product, root, turn)
    # ``turn`` is T for z; its transpose moves the estimate.
    for i in range(d):
        moved = 0.0
        for j in range(d):
            moved += turn[j, i] * public.seen[j]
        public.linear.estimate[i] = public.lens[LENS.point, i] + moved / (
            params.linear.weight * params.length
        )


@kernel
def _bound(params: WeightedParams, public: WeightedPublic, people: float) -> None:
    """Put B |T z| in the place of the width of a linear model, and go on from the estimate."""
    d, facts, own = params.dimension, public.linear.facts[:, 0], public.facts
    reports = np.sqrt(people) if params.is_local else 1.0
    turn, lens = public.linear.inverse[0], public.lens
    curved = 0.5 * params.curvature * own[OWN.miss] ** 2
    off = people * min(curved, (params.steepest - params.flattest) * own[OWN.miss])
    error = params.scatter * np.sqrt(people * (4.0 * params.odds + 2.0)) + off
    error += reports * params.vector_norm / params.linear.weight
    between = _condition(lens[_root(d)], public.inverse_root)
    pull = own[OWN.ridge] + 2.0 * reports * params.linear.matrix_norm * between
    width = params.linear.radius_scale * (error + pull * own[OWN.miss])
    squares = length = 0.0
    for i in range(d):
        squares += dot(turn[i], turn[i])
        length += public.linear.estimate[i] ** 2
        for j in range(d):
            turn[i, j] /= params.length
    facts[FACTS.bias] = width
    facts[FACTS.longest] = np.sqrt(np.sqrt(squares) / params.length)
    bound = params.linear.parameter_bound
    shrink = bound / np.sqrt(length) if length > bound * bound else 1.0
    farthest = params.length * (bound + shrink * np.sqrt(length))
    own[OWN.miss] = min(width * np.sqrt(squares), farthest)
    for i in range(d):
        public.estimate[i] = public.linear.estimate[i]
        lens[LENS.point, i] = shrink * public.linear.estimate[i]


@outlined
def publish(params: WeightedParams, public: WeightedPublic, memo: Vector, release: Vector) -> None:
    d, clock, work, seen = params.dimension, public.linear.clock, public.work, public.seen
    clock[CLOCK.releases] += 1
    planned = clock[CLOCK.next]
    if params.is_local and clock[CLOCK.rounds] < planned:
        return
    clock[CLOCK.next] = next_release(planned, params.linear.batch, params.linear.growth, np.inf)
    people = float(planned - public.facts[OWN.rounds])
    public.facts[OWN.rounds] = planned
    k = 2 * d
    for i in range(params.size):
        seen[i] = release[i] - seen[i]
    for i in range(d):
        work[WORK.values, i, i] = seen[d + i]
        for j in range(i + 1, d):
            work[WORK.values, i, j] = work[WORK.values, j, i] = seen[k] / _ROOT
            k += 1
    diagonalise(work[WORK.values], work[WORK.vectors], d)
    # Before ``_bound``, which moves the point; ``_focus`` comes last, since it replaces A.
    _solve(params, public)
    _bound(params, public, people)
    # B = c / n A^-1/2 P A^-1/2.
    a, damping = public.lens[LENS.largest, 0], public.lens[LENS.damping, 0]
    bound = 1.0 if params.is_local else a / (1.0 + damping * a)
    _of_eigenvalues(work, 1.0, 0.0, work[WORK.turned])
    _multiply(public.inverse_root, work[WORK.turned], work[WORK.product])
    _multiply(work[WORK.product], public.inverse_root, work[WORK.turned])
    for i in range(params.size):
        seen[i] = release[i]
    _focus(params, public, work[WORK.turned], bound / people)


def init(params: WeightedParams) -> tuple[NewtonRaw | DescentRaw, WeightedPublic]:
    _, model = linear.init(params.linear)
    d = params.dimension
    model.inverse[0] = np.eye(d)
    public = WeightedPublic(
        linear=model,
        estimate=np.zeros(d),
        lens=np.zeros((LENS.matrix + 2 * d, d)),
        seen=np.zeros(statistic_size(d)),
        facts=np.array([0.0, params.linear.parameter_bound * params.length, 0.0]),
        inverse_root=np.zeros((d, d)),
        work=np.zeros((len(WORK), d, d)),
    )
    _focus(params, public, np.eye(d), 1.0)
    facts = model.facts[:, 0]
    facts[FACTS.radius] = facts[FACTS.gap] = 0.0
    facts[FACTS.bias] = params.linear.radius_scale * params.linear.parameter_bound
    facts[FACTS.longest] = np.sqrt(np.sqrt(d))
    if params.is_local:
        return DescentRaw(np.zeros(d), np.zeros(1), np.zeros(params.size)), public
    return no_records(params), public


@cache
def look_with(link: Link) -> Kernel:
    """``look`` for a link."""
    return bind(look, add_record=bind(add_record, mean=link.mean, slope=link.slope))


@cache
def of_epochs(link: Link) -> Kernels:
    """The kernels for a link, of a policy that is trusted with an epoch."""
    add: Any = bind(add_record, mean=link.mean, slope=link.slope)
    summed: Any = bind(summarise, add_record=add)
    return replace(optimistic(link), init=init, summarise=summed, publish=publish)


@cache
def of_records(link: Link) -> Kernels:
    """The variant in which every record brings its own noise to the server."""
    return replace(
        of_epochs(link),
        accumulate=keep,
        release_due=report_due,
        summarise=bind(summarise_report, look=look_with(link)),
    )
