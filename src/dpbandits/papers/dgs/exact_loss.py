"""What noisy ridge estimates really say about single rewards, for features that are known.

The ridge estimate after round t is A_t^-1 sum x_j r_j with A_t = lambda I + sum of x x^T.  A tree
releases sums of its increments: a node over the rounds p + 1 to t holds the estimate after t minus
that after p, plus Laplace noise of its own in every coordinate.  If reward j changes by w, the node
moves by w A_t^-1 x_j for p < j <= t and by w (A_t^-1 - A_p^-1) x_j for j <= p; later rewards are
not in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...privacy.budgets import ZCDP
from ...validation import real


@dataclass(frozen=True, repr=False)
class ExactLoss:
    """What the released estimates say about single rewards, for one sequence of played features;
    ``float`` of it is ``epsilon``.

    ``epsilon`` and ``losses`` are largest ratios of likelihoods.  They hold for features that were
    fixed beforehand, and where a policy has chosen them, for the outcomes in which it chose just
    these.  ``rho`` and ``delta`` are means over outcomes, and hold for features that were fixed
    beforehand only: with other noise, a policy chooses others.

    Attributes:
        epsilon: the largest privacy loss of any record: no smaller pure-DP epsilon is true.
        record: the round, from 0, of a record that loses as much.
        losses: shape (T,), the largest privacy loss of the record of each round.
        rho: the releases are rho-zCDP for every record, if the features were fixed beforehand.
    """

    epsilon: float
    record: int
    losses: np.ndarray
    rho: float

    def delta(self, epsilon: float) -> float:
        """An upper bound on the delta of (epsilon, delta)-DP, for every record, by way of zCDP; the
        truth may be several times less.  For features that were fixed beforehand.
        """
        epsilon = real("epsilon", epsilon, 0.0)
        if epsilon >= self.epsilon:
            return 0.0
        return ZCDP(self.rho).delta_at(epsilon) if math.isfinite(self.rho) else 1.0

    def __float__(self) -> float:
        return self.epsilon

    def __repr__(self) -> str:
        return f"ExactLoss(epsilon={self.epsilon:.4g}, record={self.record}, rho={self.rho:.4g})"


def loss_of_tree(
    x: np.ndarray, precision: np.ndarray, previous: np.ndarray, scale: np.ndarray, width: float
) -> ExactLoss:
    """The loss of all records together with the noise of a tree.

    Args:
        x: the features that were played, shape (T, d).
        precision: A_t after each round, shape (T, d, d).
        previous: for the node that ends at each round, the round before it begins, shape (T,); 0
            where it begins with the first.
        scale: of that node's Laplace noise, shape (T,).
        width: the most that a reward can change by.
    """
    inverse = np.linalg.inv(precision)
    losses, squares = np.zeros(len(x)), np.zeros(len(x))
    columns = np.ascontiguousarray(x.T)
    for t, (p, s) in enumerate(zip(previous, scale, strict=True), start=1):
        last = inverse[t - 1]
        spans = [(p, t, last)] if p == 0 else [(0, p, last - inverse[p - 1]), (p, t, last)]
        for first, end, change in spans:
            shift = np.abs(change @ columns[:, first:end]) * (width / s)
            losses[first:end] += shift.sum(axis=0)
            squares[first:end] += np.einsum("ij,ij->j", shift, shift)
    worst = int(np.argmax(losses))
    return ExactLoss(float(losses[worst]), worst, losses, float(squares.max()) / 2)
