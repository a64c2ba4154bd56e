"""Policies: algorithms bound to a budget and to their state."""

from .advice import AdvicePolicy
from .contextual import ContextualPolicy, ViewingPolicy
from .decisions import Decision
from .options import Options
from .persistence import load
from .policy import Policy
from .protocol import Card, Kernels, register, registered

__all__ = [
    "AdvicePolicy",
    "Card",
    "ContextualPolicy",
    "Decision",
    "Kernels",
    "Options",
    "Policy",
    "ViewingPolicy",
    "load",
    "register",
    "registered",
]
