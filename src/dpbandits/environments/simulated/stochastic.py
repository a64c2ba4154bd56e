"""Stationary arms with textbook distributions: Bernoulli, Gaussian, Beta."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ...kernel import Generator, kernel
from ...validation import real, shortest
from ..arrays import vector
from ..base import ArmsKernels, KnownMeans, StationaryState, stationary, stationary_regret


@kernel
def _draw_bernoulli(state: StationaryState, arm: int, start: int, n: int, rng: Generator) -> float:
    if n == 1:
        return 1.0 if rng.random() < state.first[arm] else 0.0
    return float(rng.binomial(n, state.first[arm]))


class Bernoulli(KnownMeans):
    """Rewards 0 or 1; the sum of n rounds is one binomial draw.

    >>> Bernoulli([0.75, 0.5]).n_arms
    2
    """

    kernels = ArmsKernels(_draw_bernoulli, stationary_regret)

    def __init__(self, means: ArrayLike) -> None:
        self._means = vector("means", means, 0.0, 1.0)
        self.n_arms, self.support = self._means.size, (0.0, 1.0)
        self.state = stationary(self._means, np.zeros(self.n_arms), self._means)


def best_arm_instances() -> dict[str, Bernoulli]:
    """Instances that compare private searches for the best arm (Sajed & Sheffet 2019; Azize,
    Jourdan, Al Marjani & Basu 2023).

    Returns:
        Name -> ``Bernoulli`` with five arms.

    >>> best_arm_instances()["even steps"].means().tolist()
    [0.75, 0.625, 0.5, 0.375, 0.25]
    """
    means = {
        "four rivals": [0.75, 0.7, 0.7, 0.7, 0.7],
        "even steps": [0.75, 0.625, 0.5, 0.375, 0.25],
        "far ahead": [0.75, 0.53125, 0.375, 0.28125, 0.25],
        "close behind": [0.75, 0.71875, 0.625, 0.46875, 0.25],
        "high means": [0.95, 0.9, 0.9, 0.9, 0.5],
    }
    return {name: Bernoulli(of_arms) for name, of_arms in means.items()}


@kernel
def _draw_gaussian(state: StationaryState, arm: int, start: int, n: int, rng: Generator) -> float:
    return n * state.first[arm] + np.sqrt(float(n)) * state.second[arm] * rng.standard_normal()


@kernel
def _draw_clipped_gaussian(
    state: StationaryState, arm: int, start: int, n: int, rng: Generator
) -> float:
    total = 0.0
    for _ in range(n):
        reward = state.first[arm] + state.second[arm] * rng.standard_normal()
        total += min(max(reward, 0.0), 1.0)
    return total


class Gaussian(KnownMeans):
    """Normal rewards without bounds, as many papers simulate; the sum of n rounds is one draw.

    A policy clips them to its reward range, round by round, unless it was made with ``clip=False``.
    """

    kernels = ArmsKernels(_draw_gaussian, stationary_regret)

    def __init__(self, means: ArrayLike, *, std: float = 1.0) -> None:
        self._means, self.std = vector("means", means), real("std", std, 0.0, strict=True)
        self.n_arms, self.support = self._means.size, (-np.inf, np.inf)
        self.state = stationary(self._means, np.full(self.n_arms, self.std), self._means)

    def _arguments(self) -> str:
        return f"{super()._arguments()}; std={shortest(self.std)}"


class BoundedGaussian(KnownMeans):
    """Normal rewards clipped to [0, 1]: centres and std hold before that, ``means()`` after it."""

    kernels = ArmsKernels(_draw_clipped_gaussian, stationary_regret)

    def __init__(self, centres: ArrayLike, *, std: float = 0.1) -> None:
        self.centres, self.std = vector("centres", centres, -1e6, 1e6), real("std", std, 1e-9, 1e6)
        self.n_arms, self.support = self.centres.size, (0.0, 1.0)
        self._means = _clipped_mean(self.centres, self.std)
        self.state = stationary(self.centres, np.full(self.n_arms, self.std), self._means)

    def _arguments(self) -> str:
        return f"{', '.join(map(shortest, self.centres))}; std={shortest(self.std)}"


def _clipped_mean(centre: np.ndarray, std: float) -> np.ndarray:
    """E[min(max(X, 0), 1)] of a normal X: the integral of P(X > u) over [0, 1]."""

    def tail(bound: float) -> np.ndarray:  # the integral of P(X > u) over u > bound
        z = (bound - centre) / std
        density = np.exp(-(z**2) / 2.0) / np.sqrt(2.0 * np.pi)
        return np.asarray(std * (density - z * ndtr(-z)))

    return tail(0.0) - tail(1.0)


@kernel
def _draw_beta(state: StationaryState, arm: int, start: int, n: int, rng: Generator) -> float:
    total = 0.0
    for _ in range(n):
        total += rng.beta(state.first[arm], state.second[arm])
    return total


class Beta(KnownMeans):
    """Rewards in (0, 1) with these means and a common concentration a + b, drawn round by round."""

    kernels = ArmsKernels(_draw_beta, stationary_regret)

    def __init__(self, means: ArrayLike, *, concentration: float = 4.0) -> None:
        self._means = vector("means", means, 1e-9, 1.0 - 1e-9)
        self.concentration = real("concentration", concentration, 1e-3, 1e9)
        self.n_arms, self.support = self._means.size, (0.0, 1.0)
        a = self._means * self.concentration
        self.state = stationary(a, self.concentration - a, self._means)

    def _arguments(self) -> str:
        return f"{super()._arguments()}; concentration={shortest(self.concentration)}"
