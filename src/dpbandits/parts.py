"""The parts of policies, and every policy by name.

``Arms``, ``Linear`` and the other classes take parts as arguments, as in ``index=KLUCB(alpha=1.2)``.
"""

from .policies.parts import Part
from .policies.registry import find

__all__ = ["Part", "find"]
