"""Searches for the best arm."""

from .best_arm import BestArm, MergedTopTwo, SequentialHalving

__all__ = ["BestArm", "MergedTopTwo", "SequentialHalving"]
