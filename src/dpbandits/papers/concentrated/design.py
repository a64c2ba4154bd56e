"""G-optimal designs: how often to play each of finitely many arms in order to learn a linear model
best.

For weights w on arms in R^d let V = sum w_a a a^T.  A G-optimal design has the least max_a
|a|^2_{V^-1}.  By Kiefer & Wolfowitz (1960) that least value is the rank r of the arms.  So max_a
|a|^2_{V^-1} - r >= 0 certifies how far a design is from it.  Where the arms do not span R^d
everything happens in their span, and V^-1 is the inverse there.

Weights move by Frank-Wolfe steps with exact line search, from the start of Kumar & Yildirim (2005).
A step goes towards the arm of the largest width |a|^2_{V^-1}, or away from the played arm of the
smallest (Wynn 1970, Atwood 1973).  Ahipasaoglu, Sun & Todd (2008) show linear convergence.  Steps
update V^-1 and all widths by a rank-one formula.  The returned values are computed afresh.

The search starts with a pivoted orthogonalisation, in which the arm that is farthest from the span
of those before it comes next. These pivots are the start of Kumar & Yildirim.  The search works on
the arms' coordinates with respect to the pivots.  Designs do not depend on the basis, and in this
one V is well conditioned even if all arms are nearly collinear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...algorithms.maths.dense import factorise, invert, solve_lower
from ...kernel import Matrix, Vector, kernel, outlined
from ...tables import features
from ...validation import real

# What is nearer to the span of other arms, relative to the longest arm, counts as within it.
_RANK_TOLERANCE = 1e-10
_DEPENDENT = 1e-9
_STEPS = 20_000
_UPDATES = 64  # rank-one updates between two fresh inverses


class DesignSpace(NamedTuple):
    """The working memory of the kernels below.  n arms are competing, in the first n rows."""

    rows: np.ndarray  # (K,) int64: which arms compete
    order: np.ndarray  # (K,) int64: scratch
    pivots: np.ndarray  # (d,) int64: the rows that span
    residuals: np.ndarray  # (K, d): scratch
    # (K, d): coordinates in an orthonormal basis of the span, up to a common factor
    frame: np.ndarray
    points: np.ndarray  # (K, d): coordinates with respect to the pivots
    weights: np.ndarray  # (K,)
    widths: np.ndarray  # (K,): |a|^2_{V^-1}
    scratch: np.ndarray  # (K,)
    factor: np.ndarray  # (d, d): the Cholesky factor of V, with respect to the pivots
    inverse: np.ndarray  # (d, d): V^-1
    image: np.ndarray  # (d,): scratch
    basis: np.ndarray  # (m, m): scratch, with m = min(K - 1, d (d + 1) / 2)


def new_space(n_arms: int, dimension: int) -> DesignSpace:
    """Room for the designs of so many arms."""
    k, d = n_arms, dimension
    m = min(k - 1, d * (d + 1) // 2)
    return DesignSpace(
        rows=np.zeros(k, np.int64),
        order=np.zeros(k, np.int64),
        pivots=np.zeros(d, np.int64),
        residuals=np.zeros((k, d)),
        frame=np.zeros((k, d)),
        points=np.zeros((k, d)),
        weights=np.zeros(k),
        widths=np.zeros(k),
        scratch=np.zeros(k),
        factor=np.zeros((d, d)),
        inverse=np.zeros((d, d)),
        image=np.zeros(d),
        basis=np.zeros((m, m)),
    )


def support_limit(n_arms: int, dimension: int) -> int:
    """The most arms that a design of this file plays: d (d + 1) / 2, or all."""
    return min(n_arms, dimension * (dimension + 1) // 2)


@kernel
def dot(x: Vector, y: Vector, n: int) -> float:
    """The inner product of the first n entries."""
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@kernel
def multiply(a: Matrix, x: Vector, out: Vector, n: int) -> None:
    """Fill ``out`` with a x."""
    for i in range(n):
        out[i] = dot(a[i], x, n)


@kernel
def add_outer(a: Matrix, x: Vector, factor: Matrix, n: int) -> None:
    """Add ``factor`` x x^T to a."""
    for i in range(n):
        for j in range(n):
            a[i, j] += factor * x[i] * x[j]


@outlined
def find_span(arms: Matrix, space: Any, n: int) -> int:
    """The rank of the n competing arms; fills ``pivots``, ``frame`` and ``points``."""
    d = arms.shape[1]
    largest = 0.0
    for k in range(n):
        for i in range(d):
            largest = max(largest, abs(arms[space.rows[k], i]))
    if largest == 0.0:
        return 0
    for k in range(n):
        for i in range(d):
            # In units of the largest entry, whose square may be no number.
            space.residuals[k, i] = arms[space.rows[k], i] / largest
            space.frame[k, i] = 0.0
    rank, floor = 0, 0.0
    while rank < min(n, d):
        pivot, farthest = 0, -1.0
        for k in range(n):
            distance = dot(space.residuals[k], space.residuals[k], d)
            if distance > farthest:
                pivot, farthest = k, distance
        if rank == 0:
            floor = farthest * _RANK_TOLERANCE**2
        if farthest <= floor:
            break
        direction = space.residuals[pivot]
        length = np.sqrt(farthest)
        space.pivots[rank] = pivot
        for i in range(d):
            direction[i] /= length
        for k in range(n):
            if k != pivot:
                along = dot(direction, space.residuals[k], d)
                for i in range(d):
                    space.residuals[k, i] -= along * direction[i]
                space.frame[k, rank] = along
        for i in range(d):
            # It is in the span now; a remainder by rounding could make it a pivot again.
            direction[i] = 0.0
        space.frame[pivot, rank] = length
        rank += 1
    for k in range(n):
        # Backwards: pivot j has coordinates up to the j-th, so the last one is solved for first.
        for i in range(rank - 1, -1, -1):
            rest = space.frame[k, i]
            for j in range(i + 1, rank):
                rest -= space.points[k, j] * space.frame[space.pivots[j], i]
            space.points[k, i] = rest / space.frame[space.pivots[i], i]
    return rank


@outlined
def refresh(space: Any, n: int, rank: int) -> float:
    """Compute ``factor``, ``inverse``, ``widths``; the largest width, infinite if V is singular."""
    for i in range(rank):
        for j in range(rank):
            space.factor[i, j] = 0.0
    for k in range(n):
        if space.weights[k] > 0.0:
            add_outer(space.factor, space.points[k], space.weights[k], rank)
    if not factorise(space.factor, 0.0, space.factor, rank):
        return np.inf
    invert(space.factor, space.inverse, rank)
    largest = 0.0
    for k in range(n):
        multiply(space.inverse, space.points[k], space.image, rank)
        space.widths[k] = dot(space.image, space.points[k], rank)
        largest = max(largest, space.widths[k])
    return largest


@kernel
def _move(space: Any, n: int, rank: int, k: int, step: float) -> None:
    """Weights (1 - step) w + step e_k, with V^-1 and all widths by Sherman & Morrison's formula."""
    multiply(space.inverse, space.points[k], space.image, rank)
    shrink = step / (1.0 - step + step * space.widths[k])
    for i in range(n):
        along = dot(space.image, space.points[i], rank)
        space.widths[i] = (space.widths[i] - shrink * along * along) / (1.0 - step)
        space.weights[i] *= 1.0 - step
    add_outer(space.inverse, space.image, -shrink, rank)
    for i in range(rank):
        for j in range(rank):
            space.inverse[i, j] /= 1.0 - step
    space.weights[k] += step


@kernel
def _search(space: Any, n: int, rank: int, tolerance: float) -> float:
    """Improve the weights until the largest width is at most (1 + tolerance) rank; that width."""
    largest, updates = refresh(space, n, rank), 0
    for _ in range(_STEPS):
        top, bottom = 0, -1
        for k in range(n):
            if space.widths[k] > space.widths[top]:
                top = k
            if space.weights[k] > 0.0 and (bottom < 0 or space.widths[k] < space.widths[bottom]):
                bottom = k
        if space.widths[top] <= (1.0 + tolerance) * rank or updates == _UPDATES:
            # Widths that were updated many times are not trusted: the end is decided by fresh ones.
            if updates == 0:
                break
            largest, updates = refresh(space, n, rank), 0
            continue
        above, below = space.widths[top] - rank, rank - space.widths[bottom]
        if above >= below:
            _move(space, n, rank, top, above / (rank * (above + rank - 1.0)))
        else:
            width, weight = space.widths[bottom], space.weights[bottom]
            furthest = weight / (1.0 - weight)
            # The best step away from the arm, but no farther than to a weight of 0.
            step = below / (rank * (width - 1.0)) if width > 1.0 else furthest
            _move(space, n, rank, bottom, -min(step, furthest))
            if step >= furthest:
                # Rounding may have left a little of it.
                space.weights[bottom] = 0.0
        updates += 1
    return largest


@kernel
def _products(space: Any, k: int, rank: int) -> None:
    """Fill ``scratch`` with x x^T, x arm k in coordinates in which V is a multiple of I."""
    for i in range(rank):
        space.image[i] = space.points[k, i] / np.sqrt(float(rank))
    solve_lower(space.factor, space.image, rank)
    row = 0
    for i in range(rank):
        for j in range(i + 1):
            space.scratch[row] = space.image[i] * space.image[j]
            row += 1


@kernel
def _free_place(order: Vector, shares: Vector, m: int) -> int:
    """The place without an arm that has the largest share, or -1."""
    at, largest = -1, _DEPENDENT
    for i in range(m):
        if order[i] < 0 and abs(shares[i]) > largest:
            at, largest = i, abs(shares[i])
    return at


@kernel
def _shift(space: Any, shares: Vector, k: int, m: int) -> int:
    """Move weight between arm k and the basis until one has none; its place there, -1 for arm k."""
    growth = 1.0
    for i in range(m):
        growth -= shares[i] if space.order[i] >= 0 else 0.0
    # In this direction the sum of weights does not grow, so that scaling it to 1 shortens widths.
    sign = -1.0 if growth > 0.0 else 1.0
    at, furthest = -1, space.weights[k] if sign < 0.0 else np.inf
    for i in range(m):
        if space.order[i] >= 0 and sign * shares[i] > 0.0:
            reach = space.weights[space.order[i]] / abs(shares[i])
            if reach < furthest:
                at, furthest = i, reach
    for i in range(m):
        if space.order[i] >= 0:
            left = space.weights[space.order[i]] - sign * furthest * shares[i]
            space.weights[space.order[i]] = max(left, 0.0) if i != at else 0.0
    space.weights[k] = space.weights[k] + sign * furthest if at >= 0 else 0.0
    return at


@kernel
def _exchange(basis: Matrix, shares: Vector, at: int, m: int) -> None:
    """The inverse after the arm with these shares has taken a place in the basis."""
    for j in range(m):
        basis[at, j] /= shares[at]
    for i in range(m):
        if i != at and shares[i] != 0.0:
            for j in range(m):
                basis[i, j] -= shares[i] * basis[at, j]


@kernel
def _thin_out(space: Any, n: int, rank: int) -> bool:
    """Play at most rank (rank + 1) / 2 arms, by Caratheodory's argument; no width grows.  Tell
    whether weights have changed.

    The matrices a a^T of more arms are dependent: sum z a a^T = 0.  Weights w + s z leave V as it
    is; with the sign of s for which they do not grow in all, one of them comes to zero.  Scaled up
    to one again they can only shorten the widths.  One pass over the arms does it, which keeps the
    independent ones as a basis and its inverse in ``basis``, as the simplex method does.
    """
    m, played = rank * (rank + 1) // 2, 0
    for k in range(n):
        played += space.weights[k] > 0.0
    if played <= m:
        return False
    for i in range(m):
        space.order[i] = -1  # no arm yet
        for j in range(m):
            space.basis[i, j] = 1.0 if i == j else 0.0
    shares = space.widths  # of the basis in the present arm; widths are computed afresh in the end
    for k in range(n):
        if space.weights[k] > 0.0:
            _products(space, k, rank)
            multiply(space.basis, space.scratch, shares, m)
            at = _free_place(space.order, shares, m)
            if at < 0:
                at = _shift(space, shares, k, m)
            if at >= 0:
                space.order[at] = k
                _exchange(space.basis, shares, at, m)
    total = 0.0
    for k in range(n):
        total += space.weights[k]
    for k in range(n):
        space.weights[k] /= total
    return True


@outlined
def optimise(space: Any, n: int, rank: int, tolerance: float) -> float:
    """Fill ``weights`` with a design of n arms whose span has been found; its largest width."""
    for k in range(n):
        space.weights[k] = 0.0
    for i in range(rank):
        space.weights[space.pivots[i]] = 1.0 / rank
    largest = _search(space, n, rank, tolerance)
    return refresh(space, n, rank) if _thin_out(space, n, rank) else largest


@dataclass(frozen=True)
class Design:
    """A design: how often to play each arm."""

    weights: np.ndarray  # (K,); they sum to one, and at most rank (rank + 1) / 2 are positive
    value: float  # the largest |a|^2_{V^-1}, with V = sum w a a^T and its inverse on the arms' span
    gap: float  # value - rank, which is never negative, and zero for an optimal design only
    rank: int  # dimension of the arms' span


def g_optimal(arms: ArrayLike, tolerance: float = 1e-6) -> Design:
    """A design whose largest width is within the factor 1 + tolerance of the least possible one.

    Args:
        arms: shape (K, d); they need not span R^d, and may be zero or equal.
        tolerance: at least 1e-9.  With 1 the design is coarse and plays few arms, about twice the
            rank; for a similar search Todd (2016) shows 4 r ln ln r + 16.

    Returns:
        A ``Design``, whose ``gap`` certifies it independently of the search.

    Raises:
        ArgumentError: ``arms`` is not a table of finite numbers, or the tolerance is out of range.

    Example:
        >>> g_optimal([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).weights
        array([0.5, 0.5, 0. ])
    """
    table, tolerance = features("arms", arms), real("tolerance", tolerance, 1e-9, 1e6)
    space = new_space(*table.shape)
    n = len(table)
    space.rows[:] = np.arange(n)
    rank = int(find_span(table, space, n))
    if rank == 0:
        return Design(np.eye(n)[0], 0.0, 0.0, 0)
    value = float(optimise(space, n, rank, tolerance))
    return Design(space.weights.copy(), value, max(value - rank, 0.0), rank)
