"""Linear bandits with public contexts, or with arms of fixed features."""

from .fixed import FixedLinear, MergedLinearIMED
from .policy import EveryAnswer, Linear, Switching
from .presets import (
    RSOFUL,
    AdaCOFUL,
    LinearIMED,
    LinearThompson,
    LinUCB,
    PrivateLinUCB,
    RSLinearIMED,
)

__all__ = [
    "RSOFUL",
    "AdaCOFUL",
    "EveryAnswer",
    "FixedLinear",
    "LinUCB",
    "Linear",
    "LinearIMED",
    "LinearThompson",
    "MergedLinearIMED",
    "PrivateLinUCB",
    "RSLinearIMED",
    "Switching",
]
