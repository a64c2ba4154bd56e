"""Confidence intervals for coefficients, from noisy quadratics.

A release j has g_j and H_j at theta_j, with noise n_j and N_j; they are of different people, or
shares, which add up to 1, of the sums of the same people.  Without a ridge, with H = sum H_j, the
step from all of them is theta' = H^-1 sum (H_j theta_j - g_j), and misses the truth theta* by

    theta' - theta* = H^-1 ( -u + sum (-n_j + N_j (theta_j - theta*)) ) + bending ,

u the sum of gradients at theta*, which is zero in the mean.  Bending is of the order of |theta_j -
theta*|^2.  The covariance of u is at most phi H, where phi bounds (nu - lo) (hi - nu) h / nu'^2
over the interval: of all outcomes in [lo, hi] with mean nu those at the two ends vary most.  n_j
has the covariance s^2 I, and N_j delta the covariance q^2 (|delta|^2 I + delta delta^T) / 2, q the
standard deviation on the diagonal of N_j, with delta = theta_j - theta' for theta_j - theta*.  All
are independent given theta_j up to terms of higher order.  So with V = phi H + sum (s^2 I + q^2
(|delta|^2 I + delta delta^T) / 2) intervals are

    theta'_i +- z sqrt( [H^-1 V H^-1]_ii ) ,

cut to [-S, S].  They are asymptotic in n at a fixed budget; where noise alone may have made an
eigenvalue of H they say nothing, and are [-S, S].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from .steps import Release

_NOISE_NORMS = 2.0  # of the noise on H, which its least eigenvalue has to exceed


def coefficient_intervals(
    releases: Sequence[Release], dispersion: float, bound: float, level: float
) -> np.ndarray:
    """Intervals of shape (d, 2), within [-bound, bound]; see above."""
    d = releases[0].theta.size
    matrix, vector, spread = np.zeros((d, d)), np.zeros(d), np.zeros((d, d))
    for release in releases:
        matrix += release.curvature
        vector += release.curvature @ release.theta - release.gradient
    values, vectors = np.linalg.eigh(matrix)
    norm = math.sqrt(2.0 * d * sum(release.curvature_std**2 for release in releases))
    if not values[0] > max(_NOISE_NORMS * norm, np.finfo(float).eps * abs(values[-1]) * d):
        return np.tile([-bound, bound], (d, 1))
    inverse = (vectors / values) @ vectors.T
    centre = inverse @ vector
    for release in releases:
        delta = release.theta - centre
        turned = 0.5 * (delta @ delta * np.eye(d) + np.outer(delta, delta))
        spread += release.std**2 * np.eye(d) + release.curvature_std**2 * turned
    spread += dispersion * matrix
    half = ndtri(0.5 + 0.5 * level) * np.sqrt(np.diag(inverse @ spread @ inverse))
    return np.clip(np.column_stack((centre - half, centre + half)), -bound, bound)
