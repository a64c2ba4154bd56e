"""Bandits that keep the people behind the rewards private."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .algorithms import AdaCUCB
from .errors import ArgumentError, BudgetExhausted, ClaimError, DPBanditsError, MissingExtra, StateFileError, UpdateError
from .policies import Decision, Policy
from .privacy import RDP, ZCDP, ApproxDP, Guarantee, Ledger, PureDP

if TYPE_CHECKING:
    from . import environments
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
    "simulate",
]

# These bring pandas, pyarrow and scipy.stats with them, which would more than double the time that the import takes.
_SIMULATION = ("Result", "simulate")


def __getattr__(name: str) -> Any:
    if name == "environments":
        return import_module(".environments", __name__)
    if name in _SIMULATION:
        return getattr(import_module(".simulation", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
