"""The wall around one person: what a device runs so that nobody else sees its reward."""

from __future__ import annotations

import numpy as np

from ..validation import finite, interval
from .channels import Channel
from .noise import noise_source


class Randomiser:
    """Clips one reward, adds the channel's noise, and returns the report; it keeps nothing of the
    reward.

    ``LDPUCB.randomiser()`` makes it; it can be pickled and sent to where rewards arise.

    Args:
        channel: the mechanism; calibrated so that one reward may spend the whole budget.
        reward_range: (lo, hi); one reward moves a report by at most hi - lo, which is the
            sensitivity.
        noise: "secure" (needs the extra ``secure``), or "simulation", which protects nobody.
        grid: of secure noise, a power of two.
        seed: of simulated noise.

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
        seed: int | None = None,
    ) -> None:
        self.channel = channel
        self.reward_range = interval("reward_range", reward_range)
        self._noise = noise_source(noise, seed, grid=grid, reward_range=self.reward_range)

    def __call__(self, reward: float) -> float:
        """The report of one reward.

        Raises:
            ArgumentError: the reward is not a finite number.
        """
        lo, hi = self.reward_range
        statistic = np.array([self._noise.to_grid(min(max(finite("reward", reward), lo), hi))])
        report = np.empty(1)
        self._noise.perturb(self.channel, self.channel.scale(hi - lo), statistic, report)
        return float(report[0])
