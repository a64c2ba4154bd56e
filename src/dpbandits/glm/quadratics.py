"""Minimising a quadratic over a ball, for steps on noisy gradients and curvatures."""

from __future__ import annotations

import numpy as np


def minimise_in_ball(matrix: np.ndarray, vector: np.ndarray, radius: float) -> np.ndarray:
    """The x of length at most ``radius`` with the least x^T A x / 2 - <b, x>, for a symmetric A =
    ``matrix``, definite or not, and b = ``vector``.

    It is (A + c I)^-1 b for the least c >= 0 that leaves no negative eigenvalue and is short enough
    (More & Sorensen 1983).

    >>> minimise_in_ball(np.diag([1.0, 4.0]), np.array([0.5, 0.5]), 1.0).tolist()
    [0.5, 0.125]
    >>> minimise_in_ball(np.diag([1.0, -1.0]), np.array([0.0, 1.0]), 2.0).round(6).tolist()
    [0.0, 2.0]
    """
    values, vectors = np.linalg.eigh(matrix)
    turned = vectors.T @ vector
    least = max(0.0, -float(values[0]))

    def at(shift: float) -> np.ndarray:
        shifted = values + shift
        # Where neither pulls, any answer is as good.
        return np.where(turned == 0.0, 0.0, turned / np.where(shifted > 0.0, shifted, np.inf))

    def excess(shift: float) -> float:
        return float(np.linalg.norm(at(shift))) - radius

    if values[0] > 0.0 and excess(0.0) <= 0.0:
        return vectors @ at(0.0)
    from scipy.optimize import brentq  # takes as long to import as numba

    length = float(np.linalg.norm(vector))
    low = least + 1e-15 * float(np.abs(values).max()) + 1e-150
    high = low + length / radius
    if excess(low) <= 0.0:
        return vectors @ at(low)
    found = vectors @ at(float(brentq(excess, low, high, xtol=1e-300, rtol=1e-13)))
    return found * min(1.0, radius / float(np.linalg.norm(found)))


def floored(matrix: np.ndarray, least: float) -> np.ndarray:
    """The matrix with its eigenvalues raised to ``least``.

    >>> floored(np.diag([1.0, -3.0]), 0.5).tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """
    values, vectors = np.linalg.eigh(matrix)
    raised = (vectors * np.maximum(values, least)) @ vectors.T
    return 0.5 * (raised + raised.T)
