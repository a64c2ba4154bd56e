"""One file per family of algorithms; each registers its policies."""

from .adversarial import EXP3, EXP3IX, FTPL, HTINF, TsallisINF
from .doubling import AdaCUCB, AdaPKLUCB, AdaPUCB
from .elimination import DPSE
from .linucb import LinearThompson, LinUCB, PrivateLinUCB
from .oful import RSOFUL, AdaCOFUL
from .stepwise import KLUCB, LDPUCB, UCB1, ThompsonSampling
from .thompson import LazyDPTS

__all__ = [
    "DPSE",
    "EXP3",
    "EXP3IX",
    "FTPL",
    "HTINF",
    "KLUCB",
    "LDPUCB",
    "RSOFUL",
    "UCB1",
    "AdaCOFUL",
    "AdaCUCB",
    "AdaPKLUCB",
    "AdaPUCB",
    "LazyDPTS",
    "LinUCB",
    "LinearThompson",
    "PrivateLinUCB",
    "ThompsonSampling",
    "TsallisINF",
]
