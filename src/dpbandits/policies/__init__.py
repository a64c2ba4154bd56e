"""Policies: algorithms bound to a budget and to their state."""

from .chooser import Chooser
from .defaults import DEFAULTS, Default, default_for
from .estimates import ArmEstimates, Diagnostics, Estimates
from .inspection import Inspection, inspect
from .options import Options
from .policy import Policy, load
from .protocol import Card, Kernels, Statistic
from .registry import register, registered
from .rounds import Decision

__all__ = [
    "DEFAULTS",
    "ArmEstimates",
    "Card",
    "Chooser",
    "Decision",
    "Default",
    "Diagnostics",
    "Estimates",
    "Inspection",
    "Kernels",
    "Options",
    "Policy",
    "Statistic",
    "default_for",
    "inspect",
    "load",
    "register",
    "registered",
]
