"""One file per family of algorithms; each registers its policies."""

from .doubling import AdaCUCB, AdaPKLUCB, AdaPUCB
from .elimination import DPSE
from .stepwise import KLUCB, LDPUCB, UCB1, ThompsonSampling
from .thompson import LazyDPTS

__all__ = ["DPSE", "KLUCB", "LDPUCB", "UCB1", "AdaCUCB", "AdaPKLUCB", "AdaPUCB", "LazyDPTS", "ThompsonSampling"]
