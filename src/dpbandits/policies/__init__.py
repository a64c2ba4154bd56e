"""Policies: algorithms bound to a budget and to their state."""

from .persistence import load
from .policy import Decision, Options, Policy
from .protocol import Card, Kernels, register, registered

__all__ = ["Card", "Decision", "Kernels", "Options", "Policy", "load", "register", "registered"]
