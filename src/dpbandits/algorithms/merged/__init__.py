"""Merged batches: every noisy sum of an arm is kept, and weighted by what it is worth."""

from .discounted import DiscountedIMED
from .merged import MergedIMED, MergedKLUCB
from .published import DPIMED, DPKLUCB
from .reports import LDPIMED
from .shuffled import MergedIMEDSDP
from .thompson import MergedThompson

__all__ = [
    "DPIMED",
    "DPKLUCB",
    "LDPIMED",
    "DiscountedIMED",
    "MergedIMED",
    "MergedIMEDSDP",
    "MergedKLUCB",
    "MergedThompson",
]
