"""Policies: algorithms bound to a budget and to their state."""

from .chooser import Chooser
from .decision_log import DecisionLog
from .defaults import DEFAULTS, Default, default_for
from .logs import Fitted, fit_logs
from .options import Options
from .policy import Policy, load
from .protocol import Card, Kernels, Statistic
from .registry import register, registered
from .rounds import Decision

__all__ = [
    "DEFAULTS",
    "Card",
    "Chooser",
    "Decision",
    "DecisionLog",
    "Default",
    "Fitted",
    "Kernels",
    "Options",
    "Policy",
    "Statistic",
    "default_for",
    "fit_logs",
    "load",
    "register",
    "registered",
]
