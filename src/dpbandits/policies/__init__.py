"""Policies: algorithms bound to a budget and to their state."""

from .chooser import Chooser
from .decision_log import DecisionLog
from .defaults import DEFAULTS, Default, default_for
from .estimates import ArmEstimates, Diagnostics, Estimates
from .exchange import Release
from .inspection import Inspection, inspect
from .logs import Fitted, fit_logs
from .options import Options
from .policy import Policy, load
from .privacy_card import PrivacyCard
from .protocol import Card, Erratum, Kernels, Statistic
from .registry import register, registered
from .rounds import Decision

__all__ = [
    "DEFAULTS",
    "ArmEstimates",
    "Card",
    "Chooser",
    "Decision",
    "DecisionLog",
    "Default",
    "Diagnostics",
    "Erratum",
    "Estimates",
    "Fitted",
    "Inspection",
    "Kernels",
    "Options",
    "Policy",
    "PrivacyCard",
    "Release",
    "Statistic",
    "default_for",
    "fit_logs",
    "inspect",
    "load",
    "register",
    "registered",
]
