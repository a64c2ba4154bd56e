"""Simulation: compiled loops, seeding, parallel runs and their results."""

from .replaying import ReplayResult, replay
from .results import Result
from .running import simulate

__all__ = ["ReplayResult", "Result", "replay", "simulate"]
