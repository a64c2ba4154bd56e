"""EXP4 behind a wall: exponential weights on experts."""

from .exp4 import EXP4, BatchedEXP4, FrozenEXP4, LocalEXP4

__all__ = ["EXP4", "BatchedEXP4", "FrozenEXP4", "LocalEXP4"]
