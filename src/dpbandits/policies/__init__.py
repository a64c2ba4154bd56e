"""Policies: algorithms bound to a budget and to their state."""

from .decisions import Decision
from .options import Options
from .persistence import load
from .policy import Policy
from .protocol import Card, Kernels, register, registered

__all__ = ["Card", "Decision", "Kernels", "Options", "Policy", "load", "register", "registered"]
