"""Bandits that keep the people behind the rewards private."""

from . import environments
from .algorithms import AdaCUCB
from .errors import ArgumentError, BudgetExhausted, ClaimError, DPBanditsError, MissingExtra, StateFileError, UpdateError
from .policies import Decision, Policy
from .privacy import RDP, ZCDP, ApproxDP, Guarantee, Ledger, PureDP
from .simulation import ReplayResult, Result, replay, simulate

__version__ = "0.1.0"

__all__ = [
    "RDP",
    "ZCDP",
    "AdaCUCB",
    "ApproxDP",
    "ArgumentError",
    "BudgetExhausted",
    "ClaimError",
    "DPBanditsError",
    "Decision",
    "Guarantee",
    "Ledger",
    "MissingExtra",
    "Policy",
    "PureDP",
    "ReplayResult",
    "Result",
    "StateFileError",
    "UpdateError",
    "environments",
    "replay",
    "simulate",
]
