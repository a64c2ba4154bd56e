"""The choice between simulated and secure noise."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..validation import choice, integer
from .noise import NoiseSource, SimulationNoise
from .secure import SecureNoise


def noise_source(
    noise: Any, seed: Any, *, grid: float, reward_range: tuple[float, float]
) -> NoiseSource:
    """The source that a policy's arguments ask for."""
    kind = choice("noise", noise, ("simulation", "secure"))
    if kind == "simulation":
        return SimulationNoise(None if seed is None else integer("seed", seed, 0))
    if seed is not None:
        raise ArgumentError(f"seed must be None with noise='secure', got {seed!r}")
    return SecureNoise(grid, reward_range)
