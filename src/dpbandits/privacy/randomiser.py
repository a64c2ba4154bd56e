"""The wall around one person: what a device runs so that nobody else sees its reward."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ..errors import ArgumentError
from ..validation import interval, number, real
from .channels import Channel
from .secure import DeviceNoise, refuse_wide_noise
from .sources import noise_source


class Randomiser:
    """Clips one reward, adds the channel's noise, and returns the report; it keeps nothing of the
    reward.

    ``LDPUCB.randomiser()`` makes it; it can be pickled and sent to where rewards arise.

    Args:
        channel: the mechanism; calibrated so that one reward may spend the whole budget.
        reward_range: (lo, hi); one reward moves a report by at most hi - lo, which is the
            sensitivity.
        noise: "secure", or "simulation", which protects nobody.
        grid: of secure noise, a power of two.
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
        grid: float = 2.0**-20,
        default_reward: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.channel = channel
        self.reward_range = lo, hi = interval("reward_range", reward_range)
        self.default_reward = lo
        if default_reward is not None:
            self.default_reward = real("default_reward", default_reward, lo, hi)
        self._noise = noise_source(
            noise, seed, grid=grid, reward_range=self.reward_range, device=True
        )
        self._rng = self._noise.generator("privacy")

    def __call__(self, reward: float | None = None) -> float:
        """The report of one reward, or of none.

        Raises:
            ArgumentError: the reward is no number.
        """
        value = math.nan if reward is None else number("reward", reward)
        lo, hi = self.reward_range
        value = self.default_reward if math.isnan(value) else min(max(value, lo), hi)
        report, scale = np.empty(1), self.channel.scale(hi - lo)
        statistic = np.array([self._noise.to_grid(value)])
        self._noise.add_noise(self.channel, scale, statistic, report, self._rng)
        return float(report[0])


class VectorRandomiser:
    """Adds the channel's noise to one vector, and keeps nothing of it.

    Args:
        channel: the mechanism; calibrated so that one vector may spend the whole budget.
        sensitivity: by how much two vectors may differ, in the channel's norm; with secure noise
            they hold multiples of the grid.
        largest: what no coordinate exceeds in size.
        noise, grid, seed: as in ``Randomiser``.
        number: of the device; each has simulated noise of its own.

    Raises:
        ArgumentError: an argument is outside its range, or the grid too fine for exact noise.

    Example:
        >>> from dpbandits.privacy import Gaussian
        >>> randomise = VectorRandomiser(Gaussian(1.0), 2.0, 1.0, noise="simulation", seed=1)
        >>> randomise(np.zeros(3)).shape
        (3,)
    """

    def __init__(
        self,
        channel: Channel,
        sensitivity: float,
        largest: float,
        *,
        noise: str = "secure",
        grid: float = 2.0**-20,
        seed: int | None = None,
        number: int = 0,
    ) -> None:
        if seed is not None:
            seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        self._channel, self._scale = channel, channel.scale(real("sensitivity", sensitivity, 0.0))
        ends = max(grid, math.ceil(largest / grid) * grid)  # multiples of the grid
        self._noise = noise_source(noise, seed, grid=grid, reward_range=(-ends, ends), device=True)
        if self._noise.secure:
            refuse_wide_noise(self._scale, grid)
        self._rng = self._noise.generator("privacy")

    @property
    def sigma_squared(self) -> Fraction:
        """The parameter of the discrete Gaussian noise, in squared grid units, as it is drawn with.

        Raises:
            ArgumentError: the noise is simulated.
        """
        if not isinstance(self._noise, DeviceNoise):
            raise ArgumentError("noise must be 'secure' for a device elsewhere", "noise")
        return self._noise.sigma_squared(self._scale)

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        """The vector with noise, in its shape."""
        report = np.empty(vector.size)
        self._noise.add_noise(self._channel, self._scale, vector, report, self._rng)
        return report
