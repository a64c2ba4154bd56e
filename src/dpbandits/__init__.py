"""Bandits that keep the people behind the rewards private."""

from __future__ import annotations

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
_LATE = {"environments": ("environments", ""), "Result": ("simulation", "Result"), "simulate": ("simulation", "simulate")}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _LATE[name]
    found = import_module(f"{__name__}.{module}")
    value = globals()[name] = getattr(found, attribute) if attribute else found
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
