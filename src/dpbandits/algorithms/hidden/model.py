"""Ridge regression with private features: sums of x r and of x x^T, released together.

What crosses the wall is one vector, [w sum of x r ; svec(sum of x x^T)], of d + d (d + 1) / 2
numbers.  ``svec`` keeps lengths (``privacy.continual.symmetric``), and the weight w sets the share
of noise on rewards.  Noise of one size on all of them is N(0, (v / w)^2 I) on the sum of x r.  On
the sum of x x^T it is a matrix of the Gaussian orthogonal ensemble, with v on the diagonal and v /
sqrt(2) off it.

**Sensitivity.**  One person's record is (x, a, r): the features, the played arm, and the reward.
Let |x| <= L for the features of that arm, enforced by scaling, and |r| <= R, enforced by clipping;
let w = 1, or R stand for w R.  Another record of the person moves the vector by

    D^2 = |x r - x' r'|^2 + |x x^T - x' x'^T|_F^2 ,

which is convex in (r, r'), so both lie at +-R.  Let c = cos(x, x') and |x| = |x'| = L.  Then D^2 is
2 R^2 L^2 (1 - c) + 2 L^4 (1 - c^2) for rewards of one sign (and with -c for two).  It is largest at
c = -R^2 / (2 L^2): 2 R^2 L^2 + 2 L^4 + R^4 / 2.  If that cosine does not exist, it is largest at c
= -1: (2 R L)^2.  Shorter vectors move it less.  For |x| = L and |x'| = a < L the best cosine gives
R^2 (a^2 + L^2) + a^4 + L^4 + R^4 / 2, which grows with a.  At c = -1, (a + L)^2 (R^2 + (L - a)^2)
is below these bounds.  Other features may lead to another arm, but only one arm's features enter.

With one model per arm (``models="disjoint"``) the vector has a block for each, the sum of the
records of its rounds.  A person's arm is private, and all blocks cross the wall in one release.  If
another record of the person stays with its arm, it moves one block, by D.  If it changes arms, one
block loses (x, r) and another gains (x', r'), which are orthogonal:

    D^2 = r^2 |x|^2 + |x|^4 + r'^2 |x'|^2 + |x'|^4  <=  2 R^2 L^2 + 2 L^4 ,

less than the bound above, by R^4 / 2 or, if R^2 > 2 L^2, by 2 L^2 (R^2 - L^2).  So the bound holds
for any number of models.

**Post-processing.**  With G = sum x x^T and noise N on it, V = G + N + lambda I + C.  Let S be a
bound on the operator norm of N in all releases at once.  C = 0 as soon as no eigenvalue of G + N +
lambda I is below S / 2.  Before, C lifts them to S / 2: as a multiple of I (``repair="shift"``), or
only too small eigenvalues ("clip").  Let C >= k I, with k = 0 for "clip".

**Width.**  The error of theta^ = V^-1 (sum x r + n) is V^-1 (u + z - (lambda I + C) theta).  Here u
= sum x eta, eta is the noise of rewards, and z = n - N theta.  Let c > 0 be fixed, A = G + c I, and
h = max(c + S - lambda - k, 0).  Then A = V - N - C + (c - lambda) I <= V + h I.  For features x and
y = V^-1 x

    |<x, theta^ - theta>|  <=  |u|_{A^-1} |y|_A  +  (|z| + (lambda + |C|) |theta|) |y| ,
    |y|_A^2  <=  |x|_{V^-1}^2 + h |y|^2 ,
    |u|_{A^-1}^2  <=  s^2 (2 ln(1/p) + ln(det A / c^d)) ,   det A <= det((1 + h / e) V) ,

where e is the least eigenvalue of V.  The last line holds in all rounds at once by Abbasi-Yadkori,
Pal & Szepesvari (2011), Theorem 1, for any choices based on noise.  The noise term depends on the
direction: |y| is far below |x|_{V^-1} / sqrt(e) in directions that have been explored.

**Switching.**  With ``switch`` = s > 0 a model keeps its estimate and V until (1 + s) V - V' is not
positive definite.  V' is the new G + N plus the old multiple of I, lambda + k.  So for every x and
any noise, |x|_{V^-1} stays below sqrt(1 + s) |x|_{V'^-1} if V' has an inverse.  The rule det V' <=
(1 + s) det V (Abbasi-Yadkori et al., Section 5.1) implies that only if V' >= V, which may fail with
noise.

**IMED** (``exploration``) plays arg min of D^2 / (2 w^2) - ln(w^2 / s_x^2) + ln margin, without
margin for the leader.  D is the gap of <x, theta^> to the leader's, and s_x the standard deviation
of rewards with such a mean.  w^2 is the part of the error's variance that is worth exploring, alpha
times

    r^4 / (r^2 + n^2) + share n^2 ,       r^2 = s_x^2 |x|_{V^-1}^2 ,
    n^2 = (v^2 + (lambda + |C|)^2 |theta|^2 / d) |V^-1 x|^2 .

Here v is the standard deviation of z along theta, whose direction is uniform.
Let e = e_r + e_n be an error by rewards and by noise.  The regression of e_r on e has the variance
r^4 / (r^2 + n^2): this part of the error is due to rewards, and persists.  The rest is noise, and
later releases have other noise.  But noise lasts from one release to the next, or adds up, so an
arm hidden by it does not return at once.  Hence ``share`` of n^2 counts: 0.07, or 0.15 if noise
adds up and changes slowly, or 0.2 through a shuffler.  These values, alpha and the margin were
chosen by measurement; there is no regret theorem.

With several models all of this holds for each, with the rounds and the noise of its own block.  The
past determines these rounds, as that theorem requires.  The failure probability is divided equally
among models.

**Norms of noise.**  The law of (n, N) does not depend on data, and is invariant under rotations.
Along theta, N theta has the variance v^2 |theta|^2, and half of that across; its coordinates are
independent.  So are those of z, with variances v^2 (1 / w^2 + |theta|^2) and v^2 (1 / w^2 +
|theta|^2 / 2), which grow with |theta|.  ``confidence`` bounds |z| and the norm of N for all
releases at once, for any V.  The bounds leave out three effects.  Secure noise is normal only up to
its grid; under it records are rounded by half a step in every coordinate; and a crash may add the
noise of the sums that it cut off.

Shariff & Sheffet (2018) keep the shift at 2 S for ever: its bias never decreases.  Their radius
multiplies |x|_{V^-1} only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernel import Matrix, Vector, kernel, outlined
from ..bases.linear import block_of
from ..maths.confidence import Walk, walk_norm
from ..maths.dense import diagonalise, factorise, invert
from ..maths.ridge import (
    dot,
    exceeds,
    inverse_norm_bound,
    multiply,
    prepare_shifts,
)

_ROOT = math.sqrt(2.0)
_SMALLEST = 1e-200  # squares of numbers that are not zero yet
_HALVINGS = 8  # of the search for the shift


class Params(NamedTuple):
    n_arms: int
    n_models: int  # M: K with one for each arm, else 1
    dimension: int
    context_bound: float
    ridge: float  # lambda
    subgaussian: float  # s: how far rewards scatter around their mean
    grid: float  # to which records are rounded; 0 for none
    weight: float  # w
    diagonal: float  # weight of squared features; 1 but where a published recipe has another
    published: bool  # whether shift and radius are the published ones
    adds_up: bool  # whether the noise of a release is that of all increments so far
    # Of the noise of one release; if it adds up, sqrt(k) times as much at the k-th.
    matrix_norm: float  # S
    spread: float  # standard deviation of n - N theta along theta
    vector_norm: float  # bound on |n - N theta|
    walk: Walk  # the same where noise adds up
    base: float  # c
    log_odds: float  # 2 ln(1/p)
    parameter_bound: float  # on |theta|
    radius_scale: float
    clips: bool  # whether V is made positive definite by lifting its small eigenvalues alone
    switch: float  # s
    batch: int  # rounds of the first release, and of the shortest batch; people in a received sum
    growth: float  # by which the number of rounds grows between releases
    movement: float  # the most that a record moves the statistic
    # Of a published recipe, in units of S: the shift, and the largest that noise and shift are.
    lift: float = 2.0
    largest: float = 3.0
    # How much of noise and shift counts in the widths of IMED; nan for those that hold.
    share: float = math.nan
    margin: float = 0.0  # ln of IMED's
    middle: float = 0.0  # of the range of rewards
    half: float = 0.0  # half its width
    horizon: float = math.inf  # of IMED: rounds in which learning may pay
    longest: float = math.inf  # batch


class Raw(NamedTuple):
    total: np.ndarray  # (M (d + d (d + 1) / 2),) of the running batch


class Public(NamedTuple):
    precision: np.ndarray  # (M, d, d) V
    factor: np.ndarray  # (M, d, d) of V
    inverse: np.ndarray  # (M, d, d)
    estimate: np.ndarray  # (M d,)
    facts: np.ndarray  # (6, M)
    clock: np.ndarray  # (3,)
    sample: np.ndarray  # (M + 1, d) draws of theta, and working memory; for sampling


class Facts(NamedTuple):  # slots of ``Public.facts``
    radius: int = 0  # of the error that rewards make
    gap: int = 1  # h; of IMED the variance of noise and shift, over s^2
    bias: int = 2  # bound on |z| + (lambda + |C|) |theta|
    longest: int = 3  # see ``inverse_norm_bound``
    spread: int = 4  # standard deviation of the noise on V theta, in one direction
    added: int = 5  # bound on lambda + |C|


class Clock(NamedTuple):  # slots of ``Public.clock``
    rounds: int = 0  # booked
    next: int = 1  # rounds at the next release
    releases: int = 2


FACTS, CLOCK = Facts(), Clock()


def joint_sensitivity(reward: float, length: float) -> float:
    """Bound on the change of [x r ; svec(x x^T)] by a record in the L2 norm, for bounds on |r| and
    |x|.

    >>> round(joint_sensitivity(1.0, 1.0) ** 2, 12)
    4.5
    """
    r, x = reward * reward, length * length
    if r > 2.0 * x:
        return 2.0 * reward * length
    return math.sqrt(2.0 * r * x + 2.0 * x * x + 0.5 * r * r)


@kernel
def statistic_size(dimension: int) -> int:
    """Number of released values of one model."""
    return dimension + dimension * (dimension + 1) // 2


# What follows from a release ------------------------------------------------------------------


@kernel
def _fill(params: Params, matrix: Matrix, release: Vector, shift: float) -> None:
    """G + N of a model's block of a release, plus shift I."""
    k = 2 * params.dimension
    for i in range(params.dimension):
        matrix[i, i] = release[params.dimension + i] / params.diagonal + shift
        for j in range(i + 1, params.dimension):
            matrix[i, j] = matrix[j, i] = release[k] / _ROOT
            k += 1


@kernel
def _sufficient_shift(params: Params, public: Public, m: int, wanted: float) -> float:
    """A shift of V, of lambda or more, that lifts all eigenvalues to ``wanted``, by bisection."""
    d, precision, factor = params.dimension, public.precision[m], public.factor[m]
    shift, more, work = params.ridge, 4.0 * wanted, public.inverse[m]  # which is filled later
    if factorise(precision, wanted - shift, factor, d):
        return shift
    slack = prepare_shifts(precision, factor, work) if d >= 3 else np.inf
    while not exceeds(precision, wanted - shift - more, slack, factor, work):
        more *= 2.0
    shift += more
    for _ in range(_HALVINGS):
        more *= 0.5
        if exceeds(precision, wanted - shift + more, slack, factor, work):
            shift -= more
    return shift


@kernel
def _clip(params: Params, public: Public, m: int, wanted: float) -> float:
    """Lift the eigenvalues of V + lambda I to the wanted one; returns lambda + |C|."""
    d, precision = params.dimension, public.precision[m]
    turned, vectors = public.inverse[m], public.factor[m]  # whose own contents come later
    for i in range(d):
        precision[i, i] += params.ridge
        for j in range(d):
            turned[i, j] = precision[i, j]
    if factorise(precision, wanted, vectors, d):
        return params.ridge
    diagonalise(turned, vectors, d)
    lifted = 0.0
    for k in range(d):
        lift = max(wanted - turned[k, k], 0.0)
        lifted = max(lifted, lift)
        for i in range(d):
            for j in range(d):
                precision[i, j] += lift * (vectors[i, k] * vectors[j, k])
    return params.ridge + lifted


@kernel
def _invert(params: Params, public: Public, m: int, release: Vector, matrix_norm: float) -> None:
    """Compute V, its factor and its inverse, which is post-processing of releases."""
    d, precision, factor = params.dimension, public.precision[m], public.factor[m]
    wanted = 0.5 * max(matrix_norm, params.ridge)
    _fill(params, precision, release, 0.0)
    shift, added = 0.0, params.lift * matrix_norm
    if params.clips:
        added = _clip(params, public, m, wanted)
    elif params.published:
        while not factorise(precision, -added, factor, d):  # improbable
            added *= 2.0
        shift = added
    else:
        shift = added = _sufficient_shift(params, public, m, wanted)
    for i in range(d):
        precision[i, i] += shift
    factorise(precision, 0.0, factor, d)
    invert(factor, public.inverse[m], d)
    public.facts[FACTS.added, m] = added


@kernel
def _has_grown(params: Params, public: Public, m: int, release: Vector) -> bool:
    """Whether (1 + s) V - V' is not positive definite, see *Switching*."""
    d, work = params.dimension, public.inverse[m]
    _fill(params, work, release, params.ridge if params.clips else public.facts[FACTS.added, m])
    for i in range(d):
        for j in range(d):
            work[i, j] = (1.0 + params.switch) * public.precision[m, i, j] - work[i, j]
    grown = not factorise(work, 0.0, work, d)
    invert(public.factor[m], public.inverse[m], d)
    return grown


@kernel
def _published_radius(params: Params, public: Public, noises: float) -> float:
    """Shariff & Sheffet (2018), Section 4.2; if noise adds up, Zheng et al. (2020)."""
    d, floor = params.dimension, np.sqrt(noises) * params.matrix_norm
    bias = (
        params.parameter_bound * np.sqrt(params.largest * floor) + noises**0.25 * params.vector_norm
    )
    if params.adds_up:
        growth = 0.5 * params.log_odds * d  # d ln T
        return 2.0 * params.subgaussian * np.sqrt(growth) + bias * growth
    length = params.context_bound * params.context_bound
    growth = d * np.log(params.largest + public.clock[CLOCK.rounds] * length / (d * floor))
    return params.subgaussian * np.sqrt(params.log_odds + growth) + bias


@outlined
def regress(params: Params, public: Public, m: int, release: Vector, noises: float) -> None:
    """Update a model from its block of a release, with the noise of ``noises`` releases."""
    d, facts, larger = params.dimension, public.facts[:, m], np.sqrt(noises)
    matrix_norm = larger * params.matrix_norm
    _invert(params, public, m, release, matrix_norm)
    added = facts[FACTS.added]
    inverse, believed = public.inverse[m], public.estimate[block_of(m, d)]
    multiply(inverse, release[:d], believed)
    for i in range(d):
        believed[i] /= params.weight
    squares = log_det = 0.0
    for i in range(d):
        squares += dot(inverse[i], inverse[i])
        log_det += 2.0 * np.log(public.factor[m, i, i])
    # At most the least one of V, and at least that over sqrt(d).
    eigenvalue = 1.0 / np.sqrt(max(squares, _SMALLEST))
    facts[FACTS.longest] = inverse_norm_bound(public.precision[m], eigenvalue)
    facts[FACTS.spread] = larger * params.spread
    if not np.isnan(params.share):
        shrunk = (added * params.parameter_bound) ** 2 / d
        noise = facts[FACTS.spread] ** 2 + shrunk
        facts[FACTS.radius] = params.radius_scale * params.subgaussian
        facts[FACTS.gap] = noise / (params.subgaussian * params.subgaussian)
        return
    if params.published:
        facts[FACTS.radius] = params.radius_scale * _published_radius(params, public, noises)
        return
    least = params.ridge if params.clips else added  # lambda + k
    gap = max(params.base + matrix_norm - least, 0.0)
    growth = log_det + d * (np.log1p(gap / eigenvalue) - np.log(params.base))
    radius = params.subgaussian * np.sqrt(params.log_odds + max(growth, 0.0))
    noise = walk_norm(params.walk, d, noises) if params.adds_up else params.vector_norm
    facts[FACTS.radius] = params.radius_scale * radius
    facts[FACTS.gap] = gap
    facts[FACTS.bias] = params.radius_scale * (noise + added * params.parameter_bound)


@kernel
def regress_all(params: Params, public: Public, release: Vector, noises: float) -> None:
    size = statistic_size(params.dimension)
    for m in range(params.n_models):
        block = release[block_of(m, size)]
        if params.switch == 0.0 or _has_grown(params, public, m, block):
            regress(params, public, m, block, noises)


def init(params: Params) -> tuple[Raw, Public]:
    models, d = params.n_models, params.dimension
    public = Public(
        precision=np.zeros((models, d, d)),
        factor=np.zeros((models, d, d)),
        inverse=np.zeros((models, d, d)),
        estimate=np.zeros(models * d),
        facts=np.zeros((len(FACTS), models)),
        clock=np.array([0, params.batch, 0]),
        sample=np.zeros((models + 1, d)),
    )
    size = statistic_size(d)
    for m in range(models):
        regress(params, public, m, np.zeros(size), 1.0)
    return Raw(np.zeros(models * size)), public
