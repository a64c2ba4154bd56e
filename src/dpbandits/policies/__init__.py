"""Policies: algorithms bound to a budget and to their state."""

from ..protocol import Card, Erratum, Kernels, Statistic
from ..session import ArmEstimates, Decision, Diagnostics, Estimates, Options, Release
from .chooser import Chooser
from .defaults import DEFAULTS, Default, default_for
from .policy import Policy, load
from .privacy_card import PrivacyCard
from .registry import find, register, registered

__all__ = [
    "DEFAULTS",
    "ArmEstimates",
    "Card",
    "Chooser",
    "Decision",
    "Default",
    "Diagnostics",
    "Erratum",
    "Estimates",
    "Kernels",
    "Options",
    "Policy",
    "PrivacyCard",
    "Release",
    "Statistic",
    "default_for",
    "find",
    "load",
    "register",
    "registered",
]
