"""The parts of policies, and every policy by name.

``Arms``, ``Linear`` and the other classes take parts as arguments: ``index=KLUCB(alpha=1.2)``.
"""

from .algorithms.arms import (
    IMED,
    KLUCB,
    UCB,
    Batches,
    Discount,
    Fixed,
    Forget,
    Growing,
    Index,
    Memory,
    Merge,
    Thompson,
)
from .policies import Part, find

__all__ = [
    "IMED",
    "KLUCB",
    "UCB",
    "Batches",
    "Discount",
    "Fixed",
    "Forget",
    "Growing",
    "Index",
    "Memory",
    "Merge",
    "Part",
    "Thompson",
    "find",
]
