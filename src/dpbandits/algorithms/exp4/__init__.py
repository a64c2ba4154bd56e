"""Expert advice: exponential weights on experts, or one expert who is followed for a batch."""

from .experts import EXP4, ExpertConversion, Experts, ExpertsLocal, FrozenEXP4, LocalEXP4

__all__ = ["EXP4", "ExpertConversion", "Experts", "ExpertsLocal", "FrozenEXP4", "LocalEXP4"]
