"""The Gaussian channels of one person's vector or symmetric matrix.

A channel maps what is latent, z, to what is observed, o; it is (alpha, beta)-DP if Pr(o in E | z)
<= e^alpha Pr(o in E | z') + beta for all z, z' and E (Chen, Li, Rakhlin & Simchi-Levi 2025).  For F
with |F(z)| <= D, which these channels enforce by scaling, two values are at most 2 D apart:

* Priv: F(z) + N(0, (2 D s)^2 I), which is a Gaussian mechanism of sensitivity 2 D.
* SymPriv: the same for symmetric matrices, D in the Frobenius norm.  Published, Z_ij = Z_ji are
  independent with one standard deviation; the upper triangle moves by at most the Frobenius norm,
  so that this is private, too.  With s on the diagonal and s / sqrt(2) off it, which is normal
  noise on ``svec``, lengths are kept, and off-diagonal noise is sqrt(2) smaller.

s is 2 sqrt(ln(1.25 / beta)) / alpha with ``calibration="paper"``: sqrt(2) times the classical
constant.  By default it is the least that keeps the budget (Balle & Wang 2018).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..tables import as_numbers
from ..validation import choice, real
from . import accounting
from .budgets import ApproxDP, Budget
from .channels import Calibration, PublishedGaussian
from .continual import smat, svec
from .grids import checked_grid, default_grid
from .randomiser import VectorRandomiser


def _published(budget: ApproxDP) -> float:
    """2 sqrt(ln(1.25 / beta)) / alpha times the sensitivity."""
    return 2.0 * math.sqrt(math.log(1.25 / budget.delta)) / budget.epsilon


CHANNEL_GAUSSIAN = PublishedGaussian(_published)


class VectorChannel:
    """Priv: makes a private copy of one vector, and keeps nothing of it.

    Args:
        budget: ``ApproxDP(alpha, beta)``, or of another notion but ``PureDP``, of one person.
        bound: D; longer vectors are scaled to it.
        calibration: "exact", or "paper" for the published constants with an ``ApproxDP`` budget.
        noise: "secure", or "simulation", which protects nobody.
        grid: of secure noise, a power of two; by default 2**-20 for a ``bound`` of 1, and in
            proportion to others.
        seed: of simulated noise.

    Raises:
        ArgumentError: an argument is outside its range.

    Example:
        >>> priv = VectorChannel(ApproxDP(0.5, 1e-6), noise="simulation", seed=1)
        >>> priv(np.array([0.6, 0.8])).shape
        (2,)
        >>> round(VectorChannel(ApproxDP(0.5, 1e-6), calibration="paper").std / priv.std, 2)
        1.86
    """

    def __init__(
        self,
        budget: Budget,
        bound: float = 1.0,
        *,
        calibration: Calibration = "exact",
        noise: str = "secure",
        grid: float | None = None,
        seed: int | None = None,
    ) -> None:
        self._published = choice("calibration", calibration, ("exact", "paper")) == "paper"
        self.budget, self.bound = budget, real("bound", bound, 1e-50, 1e12)
        self.channel = CHANNEL_GAUSSIAN.calibrated(budget, calibration=calibration)
        grid = default_grid((0.0, self.bound)) if grid is None else checked_grid(grid)
        self._noise: dict[str, Any] = {"noise": noise, "grid": grid, "seed": seed}
        self._grid = grid if noise == "secure" else 0.0
        self._randomisers: dict[int, VectorRandomiser] = {}  # by length
        self._randomiser(1)  # which may refuse noise, grid or seed

    @property
    def holds(self) -> Budget:
        """What is really kept: with published constants, a smaller delta."""
        exact = CHANNEL_GAUSSIAN.calibrated(self.budget)
        if not isinstance(self.budget, ApproxDP) or exact == self.channel:
            return self.budget
        delta = accounting.gaussian_delta(self.budget.epsilon, 1.0 / self.channel.multiplier)
        return ApproxDP(self.budget.epsilon, max(delta, math.ulp(0.0)))

    @property
    def std(self) -> float:
        """The standard deviation of the noise on a coordinate, 2 D s."""
        return self.channel.scale(2.0 * self.bound)

    def __call__(self, vector: Any) -> np.ndarray:
        """The private copy of a vector, shape (d,); entries that are no finite number count as 0.

        Raises:
            ArgumentError: it is no vector of numbers.
        """
        given = as_numbers(vector)
        if given.ndim != 1 or given.size == 0:
            raise ArgumentError("vector must be one of real numbers, shape (d,)", "vector")
        return self._copy(given)

    def _copy(self, vector: np.ndarray) -> np.ndarray:
        values = vector.astype(np.float64)
        values[~(np.abs(values) < 1e100)] = 0.0
        length = float(np.linalg.norm(values))
        if length > self.bound:
            values *= self.bound / length * (1.0 - 1e-15)
        if self._grid > 0.0:
            values = np.rint(values / self._grid) * self._grid
        return self._randomiser(values.size)(values)

    def _randomiser(self, size: int) -> VectorRandomiser:
        if size not in self._randomisers:
            # Rounding moves each of two vectors by half a step of the grid in every coordinate.
            moved = 2.0 * self.bound + math.sqrt(size) * self._grid
            self._randomisers[size] = VectorRandomiser(
                self.channel, moved, self.bound + self._grid, number=size, **self._noise
            )
        return self._randomisers[size]


class SymmetricChannel(VectorChannel):
    """SymPriv: the same for a symmetric matrix, with ``bound`` in the Frobenius norm.

    Example:
        >>> priv = SymmetricChannel(ApproxDP(0.5, 1e-6), noise="simulation", seed=1)
        >>> noisy = priv(np.eye(2) / 2)
        >>> noisy.shape, bool((noisy == noisy.T).all())
        ((2, 2), True)
    """

    def __call__(self, matrix: Any) -> np.ndarray:
        """The private copy of a matrix, shape (d, d), or of the mean of it and its transpose.

        Raises:
            ArgumentError: it is no square matrix of numbers.
        """
        given = as_numbers(matrix)
        if given.ndim != 2 or not 0 < given.shape[0] == given.shape[1]:
            raise ArgumentError("matrix must be one of real numbers, shape (d, d)", "matrix")
        known = np.abs(given) < 1e100
        entries = np.where(known & known.T, given, 0.0)
        entries = 0.5 * (entries + entries.T)  # an error would tell of what is in it
        if not self._published:
            return smat(self._copy(svec(entries)))
        length = float(np.linalg.norm(entries))
        entries = entries * min(1.0, self.bound / max(length, 1e-300) * (1.0 - 1e-15))
        upper = np.triu_indices(len(entries))
        noisy = np.zeros(entries.shape)
        noisy[upper] = self._copy(entries[upper])
        return noisy + np.triu(noisy, 1).T
