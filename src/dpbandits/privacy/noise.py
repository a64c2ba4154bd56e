"""Sources of noise: the base of both sources, and the seeded one for simulations.

The seeded source and the one for real people (``secure``) share no code beyond the channel that
calls them.  Every object with simulated noise states that it does not protect anyone: an adversary
who recovers the state of the generator can subtract the noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from ..kernel import Vector
from .channels import Channel, add_noise

STREAMS = ("environment", "policy", "privacy", "reports", "holdout", "privacy of holdout")
EXACT = 2**53  # integers below it are floats
Rng = np.random.Generator | None


SECURE = "noise='secure'"  # as an argument


def key_from(rng: np.random.Generator) -> bytes:
    """A key of 32 bytes for a hash, which is no noise."""
    return rng.bytes(32)


class NoiseSource(ABC):
    """The base of both sources."""

    secure = False  # whether the noise protects anybody
    caveats: tuple[str, ...] = ()  # what a guarantee has to say about it
    most_records: float = math.inf  # how many rewards one release may add up

    @abstractmethod
    def exploration(self) -> np.random.Generator:
        """A generator for a policy's own random choices."""

    @abstractmethod
    def generator(self, name: str) -> Rng:
        """The generator for ``add_noise``: "privacy" for releases, "reports" for rewards; None if
        not seeded.
        """

    def to_grid(self, reward: float) -> float:
        """The reward as it enters the private side."""
        return reward

    @abstractmethod
    def add_noise(
        self, channel: Channel, scale: float, statistic: Vector, release: Vector, rng: Rng
    ) -> None:
        """Write the noisy statistic into ``release``; ``scale`` is that of the noise."""


class SimulationNoise(NoiseSource):
    """Seeded NumPy noise, for policies drawn inside compiled code."""

    caveats = (
        "SIMULATION: the noise comes from a seeded generator and protects nobody; use"
        f" {SECURE} for real people",
    )

    def __init__(self, seed: int | None) -> None:
        self._seed = seed if seed is not None else np.random.SeedSequence().entropy

    def exploration(self) -> np.random.Generator:
        return self.generator("policy")

    def generator(self, name: str) -> np.random.Generator:
        # A stream for each use: draws of one never shift those of another.
        sequence = np.random.SeedSequence(self._seed, spawn_key=(STREAMS.index(name),))
        return np.random.Generator(np.random.PCG64(sequence))

    def add_noise(
        self, channel: Channel, scale: float, statistic: Vector, release: Vector, rng: Rng
    ) -> None:
        add_noise(channel.family, scale, 0.0, statistic, release, rng)
