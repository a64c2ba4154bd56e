"""Bandits that keep the people behind the rewards private."""

from . import environments
from .algorithms import AdaCUCB
from .errors import ArgumentError, BudgetExhausted, ClaimError, DPBanditsError, MissingExtra, StateFileError, UpdateError
from .policies import Decision, Policy, load
from .privacy import RDP, ZCDP, ApproxDP, Guarantee, Ledger, PureDP
from .simulation import Result, simulate

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
    "Result",
    "StateFileError",
    "UpdateError",
    "environments",
    "load",
    "simulate",
]
