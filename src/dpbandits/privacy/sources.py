"""The choice between simulated and secure noise."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..validation import choice, integer
from .noise import NoiseSource, SimulationNoise
from .secure import DeviceNoise, SecureNoise


def noise_source(
    noise: Any, seed: Any, *, grid: float, reward_range: tuple[float, float], device: bool = False
) -> NoiseSource:
    """The source that arguments ask for; ``device``: whether all noise is drawn on devices."""
    kind = choice("noise", noise, ("simulation", "secure"))
    if kind == "simulation":
        return SimulationNoise(None if seed is None else integer("seed", seed, 0))
    if seed is not None:
        raise ArgumentError(f"seed must be None with noise='secure', got {seed!r}")
    return (DeviceNoise if device else SecureNoise)(grid, reward_range)
