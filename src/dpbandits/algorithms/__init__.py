"""One file per family of algorithms; each registers its policies."""

from .dgs import ExactLoss, LinUCBDGS
from .doubling import AdaCUCB, AdaPKLUCB, AdaPUCB
from .elimination import DPSE
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
    "ExactLoss",
    "LazyDPTS",
    "LinUCB",
    "LinUCBDGS",
    "LinearThompson",
    "PrivateLinUCB",
    "ThompsonSampling",
]
