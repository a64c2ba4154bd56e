"""Merged batches: every noisy sum of an arm is kept, and weighted by what it is worth."""

from .merged import MergedIMED, MergedKLUCB
from .published import DPIMED, DPKLUCB
from .thompson import MergedThompson
from .top_two import MergedTopTwo

__all__ = ["DPIMED", "DPKLUCB", "MergedIMED", "MergedKLUCB", "MergedThompson", "MergedTopTwo"]
