"""Estimates from noisy sums over people: Newton steps and gradient steps.

``People`` is the wall: it holds the data, and only releases leave it.  All later results are
functions of releases alone.

**Newton.**  Step j releases the sum of gradients g and of curvatures H at theta_j, and goes to the
least point within the ball |theta| <= S of the noisy quadratic

    <g, theta - theta_j> + |theta - theta_j|_H^2 / 2 + ridge |theta|^2 / 2 .

Without noise steps therefore end at the minimum over the ball, and not only at its projection.
Eigenvalues of H are raised to a bound on the noise.  Later steps correct earlier ones, so the last
step has most of the budget.

**Averaging.**  Each release is a noisy quadratic of the same loss.  Every step goes to the minimum
of their weighted mean, so early steps waste no budget.  The weights are inverse variances plus
squared errors.  The error of a quadratic in one coordinate, at the point of the last one, is l h
|theta - theta_j|^2 / (2 sqrt(d)), with the mean eigenvalue of H_j for h.

**The ridge** balances two costs, in twice the excess risk, along an eigenvector of H with
eigenvalue h.  Noise of standard deviation s on g costs s^2 h / (h + ridge)^2.  Shrinking theta_i
costs ridge^2 h theta_i^2 / (h + ridge)^2.  Their sum is least at h ridge = s^2 / theta_i^2.  The
code takes S^2 / d for theta_i^2, and the mean of the released eigenvalues for h.

**Intervals.**  Release j has g_j and H_j at theta_j, with noise n_j and N_j.  They belong to
different people, or are shares, which add up to 1, of the sums of the same people.  Without a
ridge, with H = sum H_j, the step from all is theta' = H^-1 sum (H_j theta_j - g_j).  Its error,
with theta* the truth, is

    theta' - theta* = H^-1 ( -u + sum (-n_j + N_j (theta_j - theta*)) ) + bending ,

u the sum of gradients at theta*, which is zero in the mean.  Bending is of the order of |theta_j -
theta*|^2.  The covariance of u is at most phi H, where phi bounds (nu - lo) (hi - nu) h / nu'^2
over the interval: of all outcomes in [lo, hi] with mean nu those at the two ends vary most.  n_j
has the covariance s^2 I, and N_j delta the covariance q^2 (|delta|^2 I + delta delta^T) / 2, q the
standard deviation on the diagonal of N_j, with delta = theta_j - theta' for theta_j - theta*.  Up
to terms of higher order all are independent given theta_j.  So with V = phi H + sum (s^2 I + q^2
(|delta|^2 I + delta delta^T) / 2) intervals are

    theta'_i +- z sqrt( [H^-1 V H^-1]_ii ) ,

cut to [-S, S].  They are asymptotic in n at a fixed budget.  If noise alone may explain an
eigenvalue of H, they are uninformative: [-S, S].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..privacy.channels import OPEN, Channel
from ..privacy.continual import smat
from ..privacy.noise import NoiseSource
from .scores import Score
from .spending import Line

_NOISE_NORMS = 2.0  # of the noise on H, which its least eigenvalue has to exceed


@dataclass(frozen=True)
class Release:
    """Noisy sums at one parameter."""

    theta: np.ndarray  # (d,) where they were taken
    gradient: np.ndarray  # (d,)
    std: float  # of its independent normal noise
    curvature: np.ndarray  # (d, d), with the noise of ``svec``
    curvature_std: float  # of the noise on its diagonal

    def times(self, factor: float) -> Release:
        """These sums in other units: all multiplied by ``factor``."""
        theta, *sums = vars(self).values()
        return Release(theta, *(factor * one for one in sums))


@dataclass
class People:
    """The data of all people; private."""

    features: np.ndarray  # (n, d)
    outcomes: np.ndarray  # (n,)
    score: Score  # what is summed up
    source: NoiseSource | None  # of noise
    grid: float
    releases: list[Line] = field(default_factory=list)  # so far

    def __post_init__(self) -> None:
        self._rng = self.source.generator("privacy") if self.source else None

    def release(self, theta: np.ndarray, channel: Channel, hessian_weight: float) -> Release:
        """The noisy sums at theta; ``hessian_weight`` is the sensitivity of the curvatures,
        relative to that of the gradients.
        """
        d, score = theta.size, self.score
        weight = hessian_weight / (score.largest_weight * score.context_bound)
        noisy, std = self._noisy(theta, channel, weight)
        return Release(theta, noisy[:d], std, smat(noisy[d:]) / weight, std / weight)

    def gradient(self, theta: np.ndarray, channel: Channel) -> np.ndarray:
        """The noisy sum of gradients at theta, shape (d,)."""
        return self._noisy(theta, channel, 0.0)[0]

    def _noisy(self, theta: np.ndarray, channel: Channel, weight: float) -> tuple[Any, float]:
        """A release, and the standard deviation of its noise."""
        sums = self.score.add_up(self.features, self.outcomes, theta, weight=weight, grid=self.grid)
        sensitivity = self.score.sensitivity(weight, dimension=theta.size, grid=self.grid)
        draws = 0 if self.source is None else sums.size
        self.releases.append(((0, len(self.outcomes) - 1), channel, sensitivity, draws))
        if self.source is None:
            return sums, 0.0
        noisy, std = np.empty_like(sums), channel.scale(sensitivity)
        self.source.add_noise(channel, std, sums, noisy, self._rng)
        return noisy, std


def newton(
    people: People,
    channels: Sequence[Channel],
    *,
    radius: float,
    ridge: float | None,
    hessian_weight: float,
) -> tuple[np.ndarray, list[Release]]:
    """The estimate, shape (d,), and the releases behind it, after one step for each channel."""
    theta, releases = np.zeros(people.features.shape[1]), []
    for channel in channels:
        releases.append(people.release(theta, channel, hessian_weight))
        shares = averaged(releases, people.score.context_bound)
        theta = newton_step(shares, radius, ridge)
    return theta, shares


def averaged(releases: Sequence[Release], context_bound: float) -> list[Release]:
    """Releases of the same people as shares of their weighted mean: see *Averaging*."""
    last = releases[-1]
    if last.std == 0.0:
        return [last]
    bent = [bending(release, last.theta, context_bound) for release in releases]
    precisions = [1.0 / (one.std**2 + off**2) for one, off in zip(releases, bent, strict=True)]
    shares = [precision / sum(precisions) for precision in precisions]
    return [release.times(share) for release, share in zip(releases, shares, strict=True)]


def bending(release: Release, theta: np.ndarray, context_bound: float) -> float:
    """Error of a quadratic at theta, in one coordinate of its gradient: see *Averaging*."""
    d, moved = theta.size, theta - release.theta
    eigenvalue = max(float(np.trace(release.curvature)) / d, 0.0)
    return 0.5 * context_bound * eigenvalue * float(moved @ moved) / math.sqrt(d)


def newton_step(releases: Sequence[Release], radius: float, ridge: float | None) -> np.ndarray:
    """The point at which the sum of these releases' noisy quadratics is least."""
    here = releases[-1].theta
    curvature, gradient, moved = np.zeros((here.size, here.size)), np.zeros(here.size), 0.0
    for release in releases:
        delta = here - release.theta
        curvature += release.curvature
        gradient += release.gradient + release.curvature @ delta
        moved += release.std**2 + 0.5 * release.curvature_std**2 * float(delta @ delta)
    curvature_std = math.sqrt(sum(release.curvature_std**2 for release in releases))
    together = Release(here, gradient, math.sqrt(moved), curvature, curvature_std)
    # Half of the largest eigenvalue of the noise on H, sqrt(2 d) times its standard deviation.
    matrix = floored(curvature, curvature_std * math.sqrt(0.5 * here.size))
    added = noise_ridge(together, radius) if ridge is None else ridge
    return minimise_in_ball(matrix + added * np.eye(here.size), matrix @ here - gradient, radius)


def noise_ridge(release: Release, radius: float) -> float:
    """The ridge of least excess risk for the noise of a release, see above."""
    if release.std == 0.0:
        return 0.0
    d = release.theta.size
    level = release.std * math.sqrt(d) / radius
    return level * level / max(float(np.trace(release.curvature)) / d, level)


def gradient_descent(
    people: People, channels: Sequence[Channel], *, radius: float, ridge: float, step_size: float
) -> np.ndarray:
    """The estimate, shape (d,), after one step for each channel: the mean over the second half of
    steps.
    """
    theta = np.zeros(people.features.shape[1])
    path = []
    for channel in channels:
        theta = theta - step_size * (people.gradient(theta, channel) + ridge * theta)
        theta = theta * min(1.0, radius / max(float(np.linalg.norm(theta)), radius))
        path.append(theta)
    return theta if channels[0].family == OPEN else np.mean(path[len(path) // 2 :], axis=0)


def minimise_in_ball(matrix: np.ndarray, vector: np.ndarray, radius: float) -> np.ndarray:
    """The x, |x| <= ``radius``, of least x^T A x / 2 - <b, x>: A = ``matrix``, symmetric, definite
    or not, and b = ``vector``.  It is (A + c I)^-1 b for the least c >= 0 that leaves no negative
    eigenvalue and is short enough (More & Sorensen 1983).

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
        # In a direction without curvature or slope, any coordinate is as good.
        return np.where(turned == 0.0, 0.0, turned / np.where(shifted > 0.0, shifted, np.inf))

    def excess(shift: float) -> float:
        return float(np.linalg.norm(at(shift))) - radius

    if values[0] > 0.0 and excess(0.0) <= 0.0:
        return vectors @ at(0.0)
    from scipy.optimize import brentq  # takes as long to import as numba

    length = float(np.linalg.norm(vector))
    # Slightly above ``least``, where the matrix is singular.
    low = least + 1e-15 * float(np.abs(values).max()) + 1e-150
    high = low + length / radius
    if excess(low) <= 0.0:
        return vectors @ at(low)
    found = vectors @ at(float(brentq(excess, low, high, xtol=1e-300, rtol=1e-13)))
    # The root is exact up to rounding only, and the ball is a bound that others rely on.
    return found * min(1.0, radius / float(np.linalg.norm(found)))


def floored(matrix: np.ndarray, least: float) -> np.ndarray:
    """The matrix with its eigenvalues raised to ``least``.

    >>> floored(np.diag([1.0, -3.0]), 0.5).tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """
    values, vectors = np.linalg.eigh(matrix)
    raised = (vectors * np.maximum(values, least)) @ vectors.T
    return 0.5 * (raised + raised.T)


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
