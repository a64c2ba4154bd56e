"""Exactly how private a small policy is: every history, every neighbour, every adversary."""

from .examples import EXAMPLES
from .policy import FinitePolicy

__all__ = ["EXAMPLES", "FinitePolicy"]
