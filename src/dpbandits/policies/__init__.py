"""Policies: algorithms bound to a budget and to their state."""

from .options import Options
from .policy import Chooser, Policy, load, register, registered
from .protocol import Card, Kernels, Statistic
from .rounds import Decision

__all__ = [
    "Card",
    "Chooser",
    "Decision",
    "Kernels",
    "Options",
    "Policy",
    "Statistic",
    "load",
    "register",
    "registered",
]
