"""One file per family of algorithms; each registers its policies."""

from .doubling import AdaCUCB, AdaPKLUCB, AdaPUCB
from .elimination import DPSE
from .fixed import FixedLinUCB
from .linucb import LinearThompson, LinUCB, PrivateLinUCB
from .oful import RSOFUL, AdaCOFUL
from .stepwise import KLUCB, LDPUCB, UCB1, ThompsonSampling
from .thompson import LazyDPTS

__all__ = [
    "DPSE",
    "KLUCB",
    "LDPUCB",
    "RSOFUL",
    "UCB1",
    "AdaCOFUL",
    "AdaCUCB",
    "AdaPKLUCB",
    "AdaPUCB",
    "FixedLinUCB",
    "LazyDPTS",
    "LinUCB",
    "LinearThompson",
    "PrivateLinUCB",
    "ThompsonSampling",
]
