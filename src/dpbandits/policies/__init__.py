"""Policies: algorithms bound to a budget and to their state."""

from .contextual import ContextualPolicy
from .decisions import Decision
from .options import Options
from .persistence import load
from .policy import Policy
from .protocol import Card, Kernels, register, registered

__all__ = ["Card", "ContextualPolicy", "Decision", "Kernels", "Options", "Policy", "load", "register", "registered"]
