"""Estimates from noisy sums over people: Newton steps and gradient steps.

``People`` is the wall: it holds the data, and all that leaves it are releases.  What follows from a
release is a function of releases alone.

**Newton.**  Step j releases the sum of gradients g and of curvatures H at theta_j, and goes to the
least point within the ball |theta| <= S of the noisy quadratic

    <g, theta - theta_j> + |theta - theta_j|_H^2 / 2 + ridge |theta|^2 / 2 ,

so that without noise the minimum over the ball, and not only its projection, is where steps end.
Eigenvalues of H are raised to what noise alone may reach.  What earlier steps missed is found by
later ones, so that the last step has most of the budget.

**Averaging.**  Each release is a noisy quadratic of the same loss, and every step goes to the
minimum of their weighted mean, so that no budget is lost on early steps.  The weights are inverse
variances, to which is added the square of what a quadratic may be off, in one coordinate, where the
last one was taken: l h |theta - theta_j|^2 / (2 sqrt(d)), with the mean eigenvalue of H_j for h.

**The ridge** that noise asks for: noise of standard deviation s on g, along an eigenvector of H
with eigenvalue h, costs s^2 h / (h + ridge)^2, and shrinking theta_i costs ridge^2 h theta_i^2 / (h
+ ridge)^2, in twice the excess risk.  At h ridge = s^2 / theta_i^2 their sum is least; theta_i^2 =
S^2 / d is what is known of it, and the mean of the released eigenvalues stands for h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..privacy.channels import OPEN, Channel
from ..privacy.continual import smat
from ..privacy.noise import NoiseSource
from .quadratics import floored, minimise_in_ball
from .scores import Score


@dataclass(frozen=True)
class Release:
    """Noisy sums at one parameter.

    Attributes:
        theta: (d,) where they were taken.
        gradient: (d,) with independent normal noise of standard deviation ``std``.
        std: see there.
        curvature: (d, d), with the noise of ``svec``.
        curvature_std: of the noise on its diagonal.
    """

    theta: np.ndarray
    gradient: np.ndarray
    std: float
    curvature: np.ndarray
    curvature_std: float

    def times(self, factor: float) -> Release:
        """The same sums in other units."""
        return Release(
            self.theta,
            factor * self.gradient,
            factor * self.std,
            factor * self.curvature,
            factor * self.curvature_std,
        )


@dataclass
class People:
    """The data of all people; private.

    Attributes:
        features: (n, d).
        outcomes: (n,).
        score: what is summed up.
        source: of noise; None for no noise.
        sensitivities: of the releases so far.
    """

    features: np.ndarray
    outcomes: np.ndarray
    score: Score
    source: NoiseSource | None
    grid: float
    sensitivities: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = self.source.generator("privacy") if self.source else None

    def release(self, theta: np.ndarray, channel: Channel, hessian_weight: float) -> Release:
        """The noisy sums at theta.

        ``hessian_weight`` is how far one person can move the curvatures, in units of how far she
        moves the gradients.
        """
        d, score = theta.size, self.score
        weight = hessian_weight / (score.largest_weight * score.context_bound)
        noisy, std = self._noisy(theta, channel, weight)
        return Release(theta, noisy[:d], std, smat(noisy[d:]) / weight, std / weight)

    def gradient(self, theta: np.ndarray, channel: Channel) -> np.ndarray:
        """The noisy sum of gradients at theta, shape (d,)."""
        return self._noisy(theta, channel, 0.0)[0]

    def _noisy(
        self, theta: np.ndarray, channel: Channel, weight: float
    ) -> tuple[np.ndarray, float]:
        """A release, and the standard deviation of its noise."""
        sums = self.score.add_up(self.features, self.outcomes, theta, weight=weight, grid=self.grid)
        sensitivity = self.score.sensitivity(weight, dimension=theta.size, grid=self.grid)
        self.sensitivities.append(sensitivity)
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
    """The estimate, shape (d,), and what it follows from, after one step for each channel."""
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
    precisions = [
        1.0 / (release.std**2 + off**2) for release, off in zip(releases, bent, strict=True)
    ]
    total = sum(precisions)
    return [
        release.times(precision / total)
        for release, precision in zip(releases, precisions, strict=True)
    ]


def bending(release: Release, theta: np.ndarray, context_bound: float) -> float:
    """What a quadratic may be off at theta, in one coordinate of its gradient: see *Averaging*."""
    d, moved = theta.size, theta - release.theta
    eigenvalue = max(float(np.trace(release.curvature)) / d, 0.0)
    return 0.5 * context_bound * eigenvalue * float(moved @ moved) / math.sqrt(d)


def newton_step(releases: Sequence[Release], radius: float, ridge: float | None) -> np.ndarray:
    """Where the sum of the noisy quadratics of these releases is least."""
    here = releases[-1].theta
    curvature, gradient, moved = np.zeros((here.size, here.size)), np.zeros(here.size), 0.0
    for release in releases:
        delta = here - release.theta
        curvature += release.curvature
        gradient += release.gradient + release.curvature @ delta
        moved += release.std**2 + 0.5 * release.curvature_std**2 * float(delta @ delta)
    curvature_std = math.sqrt(sum(release.curvature_std**2 for release in releases))
    together = Release(here, gradient, math.sqrt(moved), curvature, curvature_std)
    matrix = floored(curvature, noise_floor(together))
    added = noise_ridge(together, radius) if ridge is None else ridge
    vector = matrix @ here - gradient
    return minimise_in_ball(matrix + added * np.eye(here.size), vector, radius)


def noise_floor(release: Release) -> float:
    """Half of what eigenvalues of the noise on H reach, sqrt(2 d) times its standard deviation."""
    return release.curvature_std * math.sqrt(0.5 * release.theta.size)


def noise_ridge(release: Release, radius: float) -> float:
    """The ridge of least excess risk for the noise of a release, see above."""
    if release.std == 0.0:
        return 0.0
    d = release.theta.size
    level = release.std * math.sqrt(d) / radius
    return level * level / max(float(np.trace(release.curvature)) / d, level)


def gradient_descent(
    people: People,
    channels: Sequence[Channel],
    *,
    radius: float,
    ridge: float,
    step_size: float,
) -> np.ndarray:
    """The estimate, shape (d,), after one step for each channel; of their second half the mean."""
    theta = np.zeros(people.features.shape[1])
    path = []
    for channel in channels:
        gradient = people.gradient(theta, channel)
        theta = theta - step_size * (gradient + ridge * theta)
        theta = theta * min(1.0, radius / max(float(np.linalg.norm(theta)), radius))
        path.append(theta)
    return theta if channels[0].family == OPEN else np.mean(path[len(path) // 2 :], axis=0)
