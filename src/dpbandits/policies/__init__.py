"""Policies: algorithms bound to a budget and to their state."""

from .chooser import Chooser
from .options import Options
from .policy import Policy, load
from .protocol import Card, Kernels, Statistic
from .registry import register, registered
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
