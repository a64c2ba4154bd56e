"""Linear bandits with public contexts, on a running sum that is released after every answer."""

from .imed import LinearIMED
from .linucb import LinearThompson, LinUCB, PrivateLinUCB

__all__ = ["LinUCB", "LinearIMED", "LinearThompson", "PrivateLinUCB"]
