"""Simulation: compiled loops, seeding, parallel runs and their results."""

from .results import Result
from .simulate import simulate

__all__ = ["Result", "simulate"]
