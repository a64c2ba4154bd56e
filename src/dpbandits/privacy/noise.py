"""Where noise comes from: a seeded generator for simulations, or a secure source for real people.

The two share no code beyond the channel that calls them.  Everything that simulated noise touches
says that it protects nobody, because whoever knows or recovers the state of the generator can
subtract the noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..validation import choice, integer
from .channels import Channel

STREAMS = ("environment", "policy", "privacy")
EXACT = 2**53  # integers below it are floats


class NoiseSource(ABC):
    """The base of both sources.

    Attributes:
        secure: whether the noise protects anybody.
        caveats: what a guarantee has to say about it.
        most_records: how many rewards one release may add up.
    """

    secure = False
    caveats: tuple[str, ...] = ()
    most_records: float = math.inf

    @abstractmethod
    def stream(self, name: str) -> np.random.Generator:
        """A generator for exploration ("policy") or, in simulations, for noise ("privacy")."""

    def to_grid(self, reward: float) -> float:
        """The reward as it enters the private side."""
        return reward

    @abstractmethod
    def perturb(
        self, channel: Channel, scale: float, statistic: np.ndarray, release: np.ndarray
    ) -> None:
        """Write the noisy statistic into ``release``; ``scale`` is that of the noise."""


class SimulationNoise(NoiseSource):
    """Seeded NumPy noise, drawn inside compiled code."""

    caveats = (
        (
            "SIMULATION: the noise comes from a seeded generator and protects nobody; use"
            " noise='secure' for real people"
        ),
    )

    def __init__(self, seed: int | None) -> None:
        self._seed = seed if seed is not None else np.random.SeedSequence().entropy
        # of ``perturb``; a policy's compiled steps have one of their own
        self._rng = self.stream("privacy")

    def stream(self, name: str) -> np.random.Generator:
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self._seed, spawn_key=(STREAMS.index(name),)))
        )

    def perturb(
        self, channel: Channel, scale: float, statistic: np.ndarray, release: np.ndarray
    ) -> None:
        release[:] = channel.release(statistic, scale / channel.multiplier, self._rng)


def noise_source(
    noise: Any, seed: Any, *, grid: float, reward_range: tuple[float, float]
) -> NoiseSource:
    """The source that a policy's arguments ask for."""
    kind = choice("noise", noise, ("simulation", "secure"))
    if kind == "simulation":
        return SimulationNoise(None if seed is None else integer("seed", seed, 0))
    if seed is not None:
        raise ArgumentError(f"seed must be None with noise='secure', got {seed!r}")
    from .secure import SecureNoise

    return SecureNoise(grid, reward_range)
