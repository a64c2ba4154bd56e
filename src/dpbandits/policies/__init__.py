"""Policies: algorithms bound to a budget and to their state."""

from ..protocol import Card, Erratum, Kernels, Statistic
from ..session import ArmEstimates, Decision, Diagnostics, Estimates, Options, Release
from ..session.holdout import Holdout
from .batches import batch_of
from .chooser import Chooser
from .defaults import DEFAULTS, Default
from .holdout import HeldOut
from .loading import load
from .parts import Part, part
from .policy import Policy
from .presets import Composition, Preset, given, like
from .privacy_card import PrivacyCard
from .problem import DecisionProblem, default_for
from .registry import composed, find, preset, register, registered
from .restoring import restore

__all__ = [
    "DEFAULTS",
    "ArmEstimates",
    "Card",
    "Chooser",
    "Composition",
    "Decision",
    "DecisionProblem",
    "Default",
    "Diagnostics",
    "Erratum",
    "Estimates",
    "HeldOut",
    "Holdout",
    "Kernels",
    "Options",
    "Part",
    "Policy",
    "Preset",
    "PrivacyCard",
    "Release",
    "Statistic",
    "batch_of",
    "composed",
    "default_for",
    "find",
    "given",
    "like",
    "load",
    "part",
    "preset",
    "register",
    "registered",
    "restore",
]
