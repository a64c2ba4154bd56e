"""The wall around one person: what a device runs so that nobody else sees its reward."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..errors import ArgumentError
from ..tables import flat
from ..tables.manners import LOGGED_REWARDS
from ..validation import integer, interval, number_or_nan, real
from .channels import Channel
from .grids import checked_grid, default_grid
from .secure import DeviceNoise, refuse_wide_noise
from .sources import noise_source

_MOST_REPORTS = 10**6  # that are listed


class Randomiser:
    """Clips one reward, adds noise, and returns the report; it keeps nothing of the reward.

    ``LDPUCB.randomiser()`` makes it; it can be pickled and sent to where rewards arise.

    Args:
        channel: the mechanism; calibrated so that one reward may spend the whole budget.
        reward_range: (lo, hi); the sensitivity of a report is hi - lo.
        noise: "secure", or "simulation", which protects nobody.
        grid: of secure noise, a power of two; by default 2**-20 for a range of width 1, and in
            proportion to the width of others.
        default_reward: what is randomised where no reward came, or one that is not a number; by
            default the lower end of the range.
        seed: of simulated noise.

    A device that is silent shows that it has nothing to say, and a default that a server randomises
    in its place protects against those who see decisions, not against the server: so a device
    always sends, at a time that owes nothing to the reward, and ``randomise()`` where none came.

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
        self.default_reward = lo
        if default_reward is not None:
            self.default_reward = real("default_reward", default_reward, lo, hi)
        grid = default_grid(self.reward_range) if grid is None else grid
        self._noise = noise_source(noise, seed, grid=grid, reward_range=(lo, hi), device=True)
        self._rng = self._noise.generator("privacy")

    def __call__(self, reward: float | None = None) -> float:
        """The report of one reward; what is no number counts as none: an error would tell."""
        report, statistic = np.empty(1), np.array([self._entering(reward)])
        self._noise.add_noise(self.channel, self._scale, statistic, report, self._rng)
        return float(report[0])

    def law(self, rewards: Sequence[float], reach: int) -> tuple[np.ndarray, np.ndarray]:
        """The reports that there may be, and with which probability they are made of each reward.

        Args:
            rewards: of which reports are made.
            reach: by how many grid units a report may lie outside of the reward range; what lies
                farther is cut to that, which costs no privacy.

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
            raise ArgumentError("noise must be 'secure' for reports that can be listed", "noise")
        noise, (lo, hi) = self._noise, self.reward_range
        grid, reach = noise.grid, integer("reach", reach, 1, _MOST_REPORTS)
        if not (hi - lo + 40.0 * self._scale) / grid <= _MOST_REPORTS:
            raise ArgumentError(
                f"grid must be coarser for reports that can be listed, got {grid!r}", "grid"
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
            raise ArgumentError(f"reach must be less for this noise, got {reach}", "reach")
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
        channel: the mechanism; calibrated so that one vector may spend the whole budget.
        sensitivity: by how much two vectors may differ, in the channel's norm; with secure noise
            they hold multiples of the grid.
        largest: what no coordinate exceeds in size.
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

    @property
    def sigma_squared(self) -> Fraction:
        """The parameter of discrete Gaussian noise, in squared grid units; none if simulated."""
        if not isinstance(self._noise, DeviceNoise):
            raise ArgumentError("noise must be 'secure' for a device elsewhere", "noise")
        return self._noise.sigma_squared(self._scale)

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        """The vector with noise, in its shape."""
        report = np.empty(vector.size)
        self._noise.add_noise(self._channel, self._scale, vector, report, self._rng)
        return report
