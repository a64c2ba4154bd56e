"""Linear bandits with public contexts, or with arms of fixed features."""

from .fixed import FixedLinear, MergedLinearIMED
from .policy import (
    RSOFUL,
    AdaCOFUL,
    EveryAnswer,
    Linear,
    LinearIMED,
    LinearThompson,
    LinUCB,
    PrivateLinUCB,
    RSLinearIMED,
    Switching,
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
