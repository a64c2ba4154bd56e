"""Ridge regression on public features, kept under rank-one updates, for all linear bandits.

``precision`` is V = lambda I + sum of x x^T, ``inverse`` its inverse, ``factor`` a lower triangle F
with V = F F^T.  Nothing here allocates, and ``work`` arrays hold nothing between calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernel import Generator, Matrices, Matrix, Vector, inlined, kernel, outlined
from .dense import factorise, solve_upper, tridiagonalise

WIDE = 8  # from this dimension on, vector instructions pay
_SMALLEST = 1e-200  # of variances, which are divided by
_CAUTION = 2.0  # standard deviations that a mean may be nearer to the middle than it seems
# The least share of the largest variance that rewards are taken to have.  With less, means at an
# end of their range would be known so well that a regression in floats knows nothing else.
_LEAST = 1e-3
_PAYING = 0.1  # of the rounds that remain
_HALVINGS = 40  # of the search for the smallest eigenvalue
_FEW_HALVINGS = 8.0  # two to the number that cost as much as the tridiagonal form
_ROUNDING = 1e-15  # of eigenvalues, over d times the norm


@inlined
def dot(x: Vector, y: Vector) -> float:
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@outlined
def combine(rows: Matrix, weights: Vector, out: Vector) -> None:
    """``out`` = the sum of rows times weights; what of ``out`` is beyond their length stays.

    The inner loops run along eight rows at a time, on neighbours, and seldom touch ``out``.
    """
    n, length = rows.shape
    rest = n % 8
    for i in range(length):
        out[i] = 0.0
    for j in range(rest):
        for i in range(length):
            out[i] += rows[j, i] * weights[j]
    for j in range(rest, n, 8):
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        w4, w5, w6, w7 = weights[j + 4], weights[j + 5], weights[j + 6], weights[j + 7]
        for i in range(length):
            out[i] += (
                (rows[j, i] * w0 + rows[j + 1, i] * w1)
                + (rows[j + 2, i] * w2 + rows[j + 3, i] * w3)
            ) + (
                (rows[j + 4, i] * w4 + rows[j + 5, i] * w5)
                + (rows[j + 6, i] * w6 + rows[j + 7, i] * w7)
            )


@inlined
def multiply(matrix: Matrix, x: Vector, out: Vector) -> None:
    """``out`` = matrix x, for a symmetric matrix."""
    if x.size >= WIDE:
        combine(matrix, x, out)
    else:
        for i in range(x.size):
            out[i] = dot(matrix[i], x)


@inlined
def add_outer(matrix: Matrix, weight: float, x: Vector) -> None:
    """Add weight x x^T."""
    for i in range(x.size):
        scaled = weight * x[i]
        for j in range(x.size):
            matrix[i, j] += scaled * x[j]


@inlined
def add_observation(precision: Matrix, inverse: Matrix, x: Vector, n: int, work: Vector) -> float:
    """Add n x x^T (n may be -1, to take one back) to V; returns by which factor det V grows."""
    multiply(inverse, x, work)
    growth = n * dot(x, work)
    # Sherman-Morrison, with the product V^-1 x of before; ``work`` may be longer than x.
    add_outer(inverse, -n / (1.0 + growth), work[: x.size])
    add_outer(precision, n, x)
    return 1.0 + growth


@outlined
def prepare_shifts(matrix: Matrix, factor: Matrix, work: Matrix) -> float:
    """Prepare ``work``, three rows of d numbers or more, for ``exceeds``; returns its ``slack``."""
    d, squares = matrix.shape[0], 0.0
    for i in range(d):
        for j in range(d):
            factor[i, j] = matrix[i, j]
            squares += matrix[i, j] * matrix[i, j]
    tridiagonalise(factor, work[0], d)
    for i in range(d):
        work[1, i], work[2, i] = factor[i, i], factor[i, i - 1] ** 2
    return _ROUNDING * d * np.sqrt(squares)


@kernel
def _pivots_are_positive(work: Matrix, shift: float, d: int) -> bool:
    pivot = work[1, 0] - shift
    for i in range(1, d):
        if not pivot > 0.0:  # also for NaN
            return False
        pivot = work[1, i] - shift - work[2, i] / pivot
    return pivot > 0.0


@outlined
def exceeds(matrix: Matrix, shift: float, slack: float, factor: Matrix, work: Matrix) -> bool:
    """Whether all eigenvalues of a symmetric matrix exceed ``shift``, as ``factorise`` tells.

    Householder's tridiagonal form costs as much as three factors, and answers for any shift in O(d)
    time.  Rounding moves the eigenvalues of either by at most a small multiple of d eps times the
    norm (Higham 2002, Chapters 10 and 19).  Only shifts nearer than ``slack``, which is larger,
    need the factor.  An infinite one stands for no tridiagonal form.
    """
    d = matrix.shape[0]
    if slack < np.inf:
        if _pivots_are_positive(work, shift + slack, d):
            return True
        if not _pivots_are_positive(work, shift - slack, d):
            return False
    return factorise(matrix, shift, factor, d)


@outlined
def smallest_eigenvalue(
    matrix: Matrix, floor: float, tightness: float, factor: Matrix, work: Matrix
) -> float:
    """A lower bound, from ``floor``, a known one; of a symmetric matrix.  ``work`` has three rows
    of d numbers or more.
    """
    high = matrix[0, 0]
    for i in range(1, matrix.shape[0]):
        high = min(high, matrix[i, i])
    # The eigenvalue is at most ``high``; rounding may have carried a known bound above that.
    low, slack = min(floor, high), np.inf
    if high - low > _FEW_HALVINGS * tightness * low:
        slack = prepare_shifts(matrix, factor, work)
    for _ in range(_HALVINGS):
        if high - low <= tightness * low:
            break
        middle = 0.5 * (low + high)
        if exceeds(matrix, middle, slack, factor, work):
            low = middle
        else:
            high = middle
    return low


@kernel
def update_factor(factor: Matrix, x: Vector, n: int) -> None:
    """The factor of V + n x x^T, for n = 1 or -1; destroys x."""
    for k in range(x.size):
        squared = factor[k, k] ** 2 + n * x[k] ** 2
        # For n = -1 rounding may make it negative.
        radius = np.sqrt(max(squared, 1e-300))
        cosine, sine = radius / factor[k, k], x[k] / factor[k, k]
        factor[k, k] = radius
        for i in range(k + 1, x.size):
            factor[i, k] = (factor[i, k] + n * sine * x[i]) / cosine
            x[i] = cosine * x[i] - sine * factor[i, k]


@kernel
def inverse_norm_bound(matrix: Matrix, eigenvalue: float) -> float:
    """A bound on |x|_{V^-1} / |x| for the inverse as it is held, now and after any additions.

    Additions shorten |x|_{V^-1}.  Errors of inverting V grow with its condition, others are < 1e-6.
    """
    trace, d = 0.0, matrix.shape[0]
    for i in range(d):
        trace += matrix[i, i]
    return np.sqrt((1.0 + 1e-6 + 1e-14 * d * d * (trace / eigenvalue)) / eigenvalue)


@inlined
def _scan(contexts: Matrix, estimate: Vector, means: Vector, squares: Vector) -> None:
    """<x, estimate> and |x|^2 of every arm, over which inner loops run: one arm's terms wait."""
    n_arms, d = contexts.shape
    rest = d % 4
    for a in range(n_arms):
        means[a] = squares[a] = 0.0
    for i in range(rest):
        for a in range(n_arms):
            means[a] += contexts[a, i] * estimate[i]
            squares[a] += contexts[a, i] * contexts[a, i]
    for i in range(rest, d, 4):
        y0, y1, y2, y3 = estimate[i], estimate[i + 1], estimate[i + 2], estimate[i + 3]
        for a in range(n_arms):
            x0, x1, x2, x3 = (
                contexts[a, i],
                contexts[a, i + 1],
                contexts[a, i + 2],
                contexts[a, i + 3],
            )
            means[a] += (x0 * y0 + x1 * y1) + (x2 * y2 + x3 * y3)
            squares[a] += (x0 * x0 + x1 * x1) + (x2 * x2 + x3 * x3)


@inlined
def _index(
    x: Vector, mean: float, inverse: Matrix, radius: float, spread: float, work: Vector
) -> float:
    multiply(inverse, x, work)
    index = mean + radius * np.sqrt(max(dot(x, work), 0.0))
    if spread > 0.0:
        index += spread * np.sqrt(dot(work[: x.size], work))
    return index


@inlined
def _forms(x: Vector, inverse: Matrix) -> tuple[float, float]:
    """|x|^2_{V^-1} and |V^-1 x|^2."""
    form = length = 0.0
    for i in range(x.size):
        turned = dot(inverse[i], x)
        form += turned * x[i]
        length += turned * turned
    return form, length


@inlined
def most_optimistic_of_few(
    contexts: Matrix,
    estimate: Vector,
    inverse: Matrix,
    longest: float,
    radius: float,
    spread: float,
    work: Matrix,
) -> int:
    """``most_optimistic_of_many`` where an index costs less than to rule it out."""
    arm, best = 0, -np.inf
    for a in range(contexts.shape[0]):
        form, length = _forms(contexts[a], inverse)
        index = dot(contexts[a], estimate) + radius * np.sqrt(max(form, 0.0))
        if spread > 0.0:
            index += spread * np.sqrt(length)
        arm = a if index > best else arm
        best = max(index, best)
    return arm


@outlined
def most_optimistic_of_many(
    contexts: Matrix,
    estimate: Vector,
    inverse: Matrix,
    longest: float,
    radius: float,
    spread: float,
    work: Matrix,
) -> int:
    """arg max of <x, estimate> + radius |x|_{V^-1} + spread |V^-1 x|, of equals the first.

    ``radius`` multiplies the uncertainty of sampled rewards, ``spread`` that of noise of equal size
    in all directions.  An arm needs no quadratic form if |x|_{V^-1} <= longest |x| keeps its index
    below the best one (``inverse_norm_bound``); most do not.  ``work`` has three rows of max(d, K).
    """
    n_arms, row, means, ceilings = contexts.shape[0], work[0], work[1], work[2]
    _scan(contexts, estimate, means, ceilings)
    reach = (radius + spread * longest) * longest
    for a in range(n_arms):
        ceilings[a] = means[a] + reach * np.sqrt(ceilings[a])
    first = 0
    for a in range(1, n_arms):
        if ceilings[a] > ceilings[first]:
            first = a
    arm, best = first, -np.inf
    for place in range(-1, n_arms):  # with luck, the first is above all other ceilings
        a = first if place < 0 else place
        # Arms with a ceiling equal to the best index count, for the first of equals has to win.
        if place == first or ceilings[a] < best:
            continue
        index = _index(contexts[a], means[a], inverse, radius, spread, row)
        if index > best or (index == best and a < arm):
            best, arm = index, a
    return arm


@outlined
def most_optimistic_at_once(
    contexts: Matrix,
    estimates: Vector,
    inverses: Matrices,
    longest: Vector,
    radii: Vector,
    gaps: Vector,
    spreads: Vector,
) -> int:
    """arg max over arms of <x, estimate> + radius sqrt(|x|_{V^-1}^2 + gap |V^-1 x|^2) + spread
    |V^-1 x|, without working memory, as no context may be kept; by one model, or one of each arm.
    """
    n_arms, d = contexts.shape
    arm, best = 0, -np.inf
    for a in range(n_arms):
        m = a if radii.size > 1 else 0
        estimate, inverse = estimates[m * d : (m + 1) * d], inverses[m]
        radius, gap, spread = radii[m], gaps[m], spreads[m]
        mean = squares = 0.0
        for i in range(d):
            mean += estimate[i] * contexts[a, i]
            squares += contexts[a, i] * contexts[a, i]
        reach = radius * np.sqrt(1.0 + gap * longest[m] * longest[m]) + spread * longest[m]
        reach *= longest[m]
        if mean + reach * np.sqrt(squares) < best:
            continue
        form, length = _forms(contexts[a], inverse)
        index = mean + radius * np.sqrt(max(form, 0.0) + gap * length) + spread * np.sqrt(length)
        if index > best:
            best, arm = index, a
    return arm


@kernel
def largest_variance(mean: float, deviation: float, middle: float, half: float) -> float:
    """Bound on the variance of rewards within ``half`` of ``middle``: (hi - m) (m - lo) for a mean
    of m (Bhatia & Davis 2000).  m is the mean nearest to the middle within two standard deviations.
    """
    off = max(min(abs(mean - middle), half) - _CAUTION * deviation, 0.0)
    return max(half * half - off * off, _LEAST * half * half)


@outlined
def least_divergent_at_once(
    params: Any,
    contexts: Matrix,
    estimates: Vector,
    inverses: Matrices,
    longest: Vector,
    scatters: Vector,
    noises: Vector,
    spreads: Vector,
    rounds: float,
) -> int:
    """arg min of D^2 / (2 w^2) - ln max(w^2 / q, scatter^2 / n), plus ``margin`` except for the
    leader; the first of equals.  n = max(1, min(rounds, (horizon - rounds) / 10))
    (``exploration``).

    w^2 = scatter^2 (r^4 / (r^2 + n^2) + share n^2), with r^2 = q |x|^2_{V^-1} and n^2 = noise |V^-1
    x|^2; q is the largest variance of rewards in units of subgaussian^2, at most 1, by
    ``largest_variance``.  D = 0 for the leader, else the gap of <x, estimate> to it plus spread
    |V^-1 x|.  ``params`` has the numbers without an arm; the rest is as in
    ``most_optimistic_at_once``.
    """
    n_arms, d = contexts.shape
    share, middle, half = params.share, params.middle, params.half
    best, unit = -np.inf, params.subgaussian * params.subgaussian
    paying = max(min(rounds, _PAYING * (params.horizon - rounds)), 1.0)
    for a in range(n_arms):
        m = a if scatters.size > 1 else 0
        best = max(best, dot(contexts[a], estimates[m * d : (m + 1) * d]))
    arm, least = 0, np.inf
    for a in range(n_arms):
        m = a if scatters.size > 1 else 0
        estimate, inverse = estimates[m * d : (m + 1) * d], inverses[m]
        scatter, noise, spread = scatters[m] * scatters[m], noises[m], spreads[m]
        floor, reach = scatter / paying, longest[m] * longest[m]
        squares, mean = dot(contexts[a], contexts[a]), dot(contexts[a], estimate)
        lack = best - mean
        # The index falls with w^2 and with w^2 / q, which are at most this.
        most = scatter * reach * squares
        ratio = min(largest_variance(mean, 0.0, middle, half) / unit, 1.0)
        known = max(most * (1.0 + share * noise * reach / ratio), floor)
        most = max(most * (1.0 + share * noise * reach), _SMALLEST)
        if 0.5 * lack * lack / most - np.log(max(known, _SMALLEST)) > least:
            continue
        form, length = _forms(contexts[a], inverse)
        behind = 0.0
        if lack > 0.0:
            lack, behind = lack + spread * np.sqrt(length), params.margin
        form = max(form, _SMALLEST)
        error = np.sqrt(unit * form + max(unit * noise, spread * spread) * length)
        ratio = min(largest_variance(mean, error, middle, half) / unit, 1.0)
        form, length = max(ratio * form, _SMALLEST), noise * length
        squared = max(scatter * (form / (1.0 + length / form) + share * length), _SMALLEST)
        index = 0.5 * lack * lack / squared - np.log(max(squared / ratio, floor)) + behind
        if index < least:
            least, arm = index, a
    return arm


@kernel
def prepare_normals(sample: Vector, noise: Vector, rng: Generator) -> None:
    """Fill both with standard normal variates, in an order that seeded runs rely on."""
    for i in range(sample.size):
        sample[i] = rng.standard_normal()
        noise[i] = rng.standard_normal()


@kernel
def shape_draw(
    estimate: Vector,
    factor: Matrix,
    inverse: Matrix,
    scatter: float,
    spread: float,
    sample: Vector,
    noise: Vector,
) -> None:
    """Make of standard normal variates in ``sample`` and ``noise`` a draw from N(estimate,
    scatter^2 V^-1 + spread^2 V^-2), in ``sample``.
    """
    for i in range(sample.size):
        sample[i] *= scatter
        noise[i] *= spread
    solve_upper(factor, sample, sample.size)
    for i in range(sample.size):
        sample[i] += estimate[i] + dot(inverse[i], noise)


@kernel
def prepare_draw(
    estimate: Vector,
    factor: Matrix,
    inverse: Matrix,
    scatter: float,
    spread: float,
    sample: Vector,
    noise: Vector,
    rng: Generator,
) -> None:
    """Fill ``sample`` from N(estimate, scatter^2 V^-1 + spread^2 V^-2), ``noise`` as memory."""
    prepare_normals(sample, noise, rng)
    shape_draw(estimate, factor, inverse, scatter, spread, sample, noise)
