"""A few arms: index, memory and batches as values, under central, shuffle and local trust."""

from .arms import (
    Arms,
    ArmsShuffled,
    DiscountedIMED,
    MergedIMED,
    MergedIMEDSDP,
    MergedKLUCB,
    MergedThompson,
)
from .batches import Batches, Fixed, Growing
from .indices import IMED, KLUCB, UCB, Index, Thompson
from .local import LDPIMED, ArmsLocal
from .memories import Discount, Forget, Memory, Merge

__all__ = [
    "IMED",
    "KLUCB",
    "LDPIMED",
    "UCB",
    "Arms",
    "ArmsLocal",
    "ArmsShuffled",
    "Batches",
    "Discount",
    "DiscountedIMED",
    "Fixed",
    "Forget",
    "Growing",
    "Index",
    "Memory",
    "Merge",
    "MergedIMED",
    "MergedIMEDSDP",
    "MergedKLUCB",
    "MergedThompson",
    "Thompson",
]
