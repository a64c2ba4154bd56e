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
from .algorithms.exploration import Divergence, Optimism, Sampling
from .algorithms.linear import EveryAnswer, Switching
from .policies import Part, find

__all__ = [
    "IMED",
    "KLUCB",
    "UCB",
    "Batches",
    "Discount",
    "Divergence",
    "EveryAnswer",
    "Fixed",
    "Forget",
    "Growing",
    "Index",
    "Memory",
    "Merge",
    "Optimism",
    "Part",
    "Sampling",
    "Switching",
    "Thompson",
    "find",
]
