"""Simulation: compiled loops, seeding, parallel runs and their results."""

from .replaying import ReplayResult, replay
from .results import Result
from .settings import PolicySetting
from .simulating import simulate

__all__ = ["PolicySetting", "ReplayResult", "Result", "replay", "simulate"]
