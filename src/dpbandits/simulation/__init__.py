"""Simulation: compiled loops, seeding, parallel runs and their results."""

from .replay import ReplayResult, replay
from .results import Result
from .simulate import simulate

__all__ = ["ReplayResult", "Result", "replay", "simulate"]
