"""Bandits that keep the people behind the rewards private."""

from . import environments
from .algorithms import DPSE, KLUCB, LDPUCB, UCB1, AdaCUCB, AdaPKLUCB, AdaPUCB, LazyDPTS, ThompsonSampling
from .errors import ArgumentError, BudgetExhausted, ClaimError, DPBanditsError, MissingExtra, StateFileError, UpdateError
from .policies import Decision, Policy, load
from .privacy import RDP, ZCDP, ApproxDP, Guarantee, Ledger, PureDP
from .simulation import ReplayResult, Result, replay, simulate

__version__ = "0.1.0"

__all__ = [
    "DPSE",
    "KLUCB",
    "LDPUCB",
    "RDP",
    "UCB1",
    "ZCDP",
    "AdaCUCB",
    "AdaPKLUCB",
    "AdaPUCB",
    "ApproxDP",
    "ArgumentError",
    "BudgetExhausted",
    "ClaimError",
    "DPBanditsError",
    "Decision",
    "Guarantee",
    "LazyDPTS",
    "Ledger",
    "MissingExtra",
    "Policy",
    "PureDP",
    "ReplayResult",
    "Result",
    "StateFileError",
    "ThompsonSampling",
    "UpdateError",
    "environments",
    "load",
    "replay",
    "simulate",
]
