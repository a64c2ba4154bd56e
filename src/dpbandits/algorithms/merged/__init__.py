"""Merged batches: every noisy sum of an arm is kept, and weighted by what it is worth."""

from .merged import MergedIMED, MergedKLUCB
from .top_two import MergedTopTwo

__all__ = ["MergedIMED", "MergedKLUCB", "MergedTopTwo"]
