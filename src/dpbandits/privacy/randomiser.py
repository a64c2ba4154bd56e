"""The wall around one person: code that runs on a device, whose data never leave it in the clear.

``VectorChannel`` and ``SymmetricChannel`` map a latent value z to an observed value o.  A channel
is (alpha, beta)-DP if Pr(o in E | z) <= e^alpha Pr(o in E | z') + beta for all z, z' and E (Chen,
Li, Rakhlin & Simchi-Levi 2025).  For F with |F(z)| <= D, which these enforce by scaling, two values
are at most 2 D apart:

* Priv: F(z) + N(0, (2 D s)^2 I), which is a Gaussian mechanism of sensitivity 2 D.
* SymPriv: the same for symmetric matrices, D in the Frobenius norm.  In the publication Z_ij = Z_ji
  are independent with one standard deviation.  The upper triangle moves by at most the Frobenius
  norm, so this is private, too.  Here noise has s on the diagonal and s / sqrt(2) off it, which is
  normal noise on ``svec``.  Lengths are kept, and off-diagonal noise is sqrt(2) smaller.

s is 2 sqrt(ln(1.25 / beta)) / alpha with ``calibration="paper"``: sqrt(2) times the classical
constant.  By default it is the least that keeps the budget (Balle & Wang 2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..tables import as_numbers, flat
from ..tables.manners import LOGGED_REWARDS
from ..validation import choice, integer, interval, number_or_nan, real
from . import accounting
from .budgets import ApproxDP, Budget
from .channels import Calibration, Channel, Hemisphere, PublishedGaussian
from .continual import smat, svec
from .grids import checked_grid, default_grid, refuse_wide_noise
from .secure import DeviceNoise, hemisphere_epsilon, noise_source

_MOST_REPORTS = 10**6  # that are listed


class Randomiser:
    """Clips one reward, adds noise, and returns the report; it keeps nothing of the reward.

    ``LDPUCB.randomiser()`` makes it; it can be pickled and sent to people's devices.

    Args:
        channel: the mechanism, calibrated so one reward spends the whole budget.
        reward_range: (lo, hi); the sensitivity of a report is hi - lo.
        noise: "secure", or "simulation", without protection.
        grid: of secure noise, a power of two; by default 2**-20 for a range of width 1, and in
            proportion to the width of others.
        default_reward: the reward that is randomised where none came, or one that is not a number;
            by default the lower end of the range.
        seed: of simulated noise.

    A silent device shows that it has no reward.  A default that a server randomises in its place
    protects against people who see decisions, but not against the server.  So a device must always
    send a report, at a time independent of the reward. Where no reward came, it sends
    ``randomise()``.

    Example:
        >>> from dpbandits.privacy import Laplace
        >>> randomise = Randomiser(Laplace(1.0), (0.0, 1.0), noise="simulation", seed=1)
        >>> randomise(0.5) != randomise(0.5)
        True
    """

    def __init__(
        self,
        channel: Channel,
        reward_range: tuple[float, float],
        *,
        noise: str = "secure",
        grid: float | None = None,
        default_reward: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.channel = channel
        self.reward_range = lo, hi = interval("reward_range", reward_range)
        default = lo if default_reward is None else default_reward
        self.default_reward = real("default_reward", default, lo, hi)
        grid = default_grid(self.reward_range) if grid is None else grid
        self._noise = noise_source(noise, seed, grid=grid, reward_range=(lo, hi), device=True)
        self._rng = self._noise.generator("privacy")

    def __call__(self, reward: float | None = None) -> float:
        """The report of one reward.  A value that is no number counts as missing, because an error
        would reveal it.
        """
        report, statistic = np.empty(1), np.array([self._entering(reward)])
        self._noise.add_noise(self.channel, self._scale, statistic, report, self._rng)
        return float(report[0])

    def to_dict(self) -> dict[str, Any]:
        """All that a program in another language needs to make the same reports, for JSON.  The
        parameter of secure noise is exact, in grid units, as numerator and denominator.
        """
        told = {
            "noise": self.channel.name,
            "reward_range": self.reward_range,
            "default_reward": self.default_reward,
        }
        if not isinstance(self._noise, DeviceNoise):
            return {**told, "scale": self._scale}
        parameter = self._noise.parameter(self.channel.family, self._scale)
        return {**told, "grid": self._noise.grid, "parameter": _ratio(parameter)}

    def law(self, rewards: Sequence[float], reach: int) -> tuple[np.ndarray, np.ndarray]:
        """The possible reports, and the probability of each for every reward.

        Args:
            rewards: the rewards to report.
            reach: the number of grid units that a report may lie outside of the reward range;
                farther reports are cut to that, which costs no privacy.

        Returns:
            Reports, shape (n,), and probabilities, shape (rewards, n).

        Raises:
            ArgumentError: noise is simulated, or a reward is no number.

        Example:
            >>> from dpbandits.privacy import Laplace
            >>> reports, table = Randomiser(Laplace(1.0), (0.0, 1.0), grid=1.0).law([0.0, 1.0], 1)
            >>> reports.tolist(), table[0].round(4).tolist()
            ([-1.0, 0.0, 1.0, 2.0], [0.2689, 0.4621, 0.17, 0.0989])
        """
        if not isinstance(self._noise, DeviceNoise):
            raise ArgumentError(
                "noise must be 'secure' to list all possible reports, got 'simulation'", "noise"
            )
        noise, (lo, hi) = self._noise, self.reward_range
        grid, reach = noise.grid, integer("reach", reach, 1, _MOST_REPORTS)
        if not (hi - lo + 40.0 * self._scale) / grid <= _MOST_REPORTS:
            raise ArgumentError(
                f"grid must be coarser to list all possible reports, got {grid!r}", "grid"
            )
        ends = round(noise.to_grid(lo) / grid) - reach, round(noise.to_grid(hi) / grid) + reach
        reports = np.arange(ends[0], ends[1] + 1)
        # So far that what is left out has a share of exp(-40) even of what is cut.
        far = reports.size + math.ceil(40.0 * self._scale / grid)
        weights, drawn = noise.law(self.channel, self._scale, far), np.arange(-far, far + 1)
        given = flat("rewards", rewards, LOGGED_REWARDS).tolist()
        made = [round(self._entering(reward) / grid) + drawn for reward in given]
        cut = [np.clip(units, *ends) - ends[0] for units in made]
        table = np.array([np.bincount(units, weights, reports.size) for units in cut])
        if (table == 0.0).any():  # which would look as if it never happened
            raise ArgumentError(f"reach must be smaller for this noise, got {reach}", "reach")
        return reports * grid, table

    @property
    def _scale(self) -> float:
        lo, hi = self.reward_range
        return self.channel.scale(hi - lo)

    def _entering(self, reward: float | None) -> float:
        """A reward as noise is added to it."""
        value, (lo, hi) = number_or_nan(reward), self.reward_range
        value = self.default_reward if math.isnan(value) else min(max(value, lo), hi)
        return self._noise.to_grid(value)


class VectorRandomiser:
    """Adds the channel's noise to one vector, and keeps nothing of it.

    Args:
        channel: the mechanism, calibrated so one vector spends the whole budget.
        sensitivity: the largest distance of two vectors, in the channel's norm; with secure noise
            they hold multiples of the grid.
        largest: an upper bound on the size of coordinates.
        noise, grid, seed: as in ``Randomiser``, with ``largest`` for the width.
        number: of the device; each has simulated noise of its own.

    Raises:
        ArgumentError: an argument is outside its range, or the grid too fine for exact noise.
    """

    def __init__(
        self,
        channel: Channel,
        sensitivity: float,
        largest: float,
        *,
        noise: str = "secure",
        grid: float | None = None,
        seed: int | None = None,
        number: int = 0,
    ) -> None:
        if seed is not None:
            seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        self._channel, self._scale = channel, channel.scale(real("sensitivity", sensitivity, 0.0))
        grid = default_grid((0.0, largest)) if grid is None else checked_grid(grid)
        ends = max(grid, math.ceil(largest / grid) * grid)  # multiples of the grid
        self._noise = noise_source(noise, seed, grid=grid, reward_range=(-ends, ends), device=True)
        if self._noise.secure:
            refuse_wide_noise(self._scale, grid)
        self._rng = self._noise.generator("privacy")

    def to_dict(self, size: int) -> dict[str, Any]:
        """What a program in another language needs to randomise vectors of this size, for JSON.
        Parameters are numerators and denominators, because no float holds them exactly: the one of
        discrete Gaussian noise, in squared grid units, or the epsilon of ``Hemisphere``.

        Raises:
            ArgumentError: the noise is simulated.
        """
        if not isinstance(self._noise, DeviceNoise):
            raise ArgumentError(
                "noise must be 'secure' for a device outside of this process, got 'simulation'",
                "noise",
            )
        if isinstance(self._channel, Hemisphere):
            epsilon, radius = hemisphere_epsilon(self._scale), self._channel.radius(size)
            return {"hemisphere": {"epsilon": _ratio(epsilon), "radius": radius}}
        return {"sigma_squared": _ratio(self._noise.sigma_squared(self._scale))}

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        """The vector with noise, in its shape."""
        report = np.empty(vector.size)
        self._noise.add_noise(self._channel, self._scale, vector, report, self._rng)
        return report


def _ratio(number: Fraction) -> list[str]:
    return [str(part) for part in number.as_integer_ratio()]


def published_multiplier(budget: ApproxDP, releases: int = 1) -> float:
    """s, their sigma_{alpha, beta}, for each of so many releases that share the budget equally."""
    return 2.0 * math.sqrt(math.log(1.25 * releases / budget.delta)) * releases / budget.epsilon


CHANNEL_GAUSSIAN = PublishedGaussian(published_multiplier)


class VectorChannel:
    """Priv: makes a private copy of one vector, and keeps nothing of it.

    Args:
        budget: ``ApproxDP(alpha, beta)``, or of another notion but ``PureDP``, of one person.
        bound: D; longer vectors are scaled to it.
        calibration: "exact", or "paper" for the published constants with an ``ApproxDP`` budget.
        noise: "secure", or "simulation", without protection.
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
        """The budget that really holds: with published constants, a smaller delta."""
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
            raise ArgumentError(
                f"vector must be an array of numbers with shape (d,), got shape {given.shape}",
                "vector",
            )
        return self._copy(given)

    def _copy(self, vector: np.ndarray) -> np.ndarray:
        values = vector.astype(np.float64)
        values[~(np.abs(values) < 1e100)] = 0.0
        length = float(np.linalg.norm(values))
        if length > self.bound:
            # Rounded down, so that the scaled vector is not longer either.
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
            raise ArgumentError("matrix must hold real numbers, and have shape (d, d)", "matrix")
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
