"""Bandits that keep the people behind the rewards private."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .algorithms import (
    EXP3,
    EXP3IX,
    EXP4,
    FTPL,
    GLMUCB,
    GLMUCBJDP,
    HTINF,
    KLUCB,
    LDPGLOC,
    LDPIMED,
    LDPSGD,
    LDPUCB,
    RSOFUL,
    UCB1,
    AdaCOFUL,
    AdaCOFULJDP,
    Adversarial,
    BatchConversion,
    BatchedEXP4,
    BestArm,
    DiscountedIMED,
    ExpertConversion,
    Experts,
    ExpertsLocal,
    FrozenEXP4,
    GLMThompson,
    GLMThompsonJDP,
    LinearIMED,
    LinearIMEDJDP,
    LinearIMEDLDP,
    LinearIMEDSDP,
    LinearThompson,
    LinearThompsonJDP,
    LinearThompsonLDP,
    LinearThompsonSDP,
    LinUCB,
    LinUCBJDP,
    LinUCBLDP,
    LinUCBSDP,
    LocalEXP4,
    MergedIMED,
    MergedIMEDSDP,
    MergedKLUCB,
    MergedLinearIMED,
    MergedThompson,
    MergedTopTwo,
    PrivateLinUCB,
    RSLinearIMED,
    SequentialHalving,
    ThompsonSampling,
    TsallisINF,
)
from .door import bandit
from .errors import (
    ArgumentError,
    BudgetExhausted,
    BudgetWarning,
    ClaimError,
    ClippingWarning,
    DPBanditsError,
    MissingExtra,
    StateFileError,
    SubmissionError,
    UpdateError,
)
from .finite import FinitePolicy
from .inspection import Inspection, inspect
from .logs import DecisionLog, fit_logs, read_logs
from .policies import Chooser, Decision, Diagnostics, Estimates, Policy, Release, load, registered
from .policies.registry import home_of
from .privacy import GDP, RDP, ZCDP, ApproxDP, Guarantee, Ledger, PureDP
from .rooms import moved
from .validation import close_name

if TYPE_CHECKING:
    from . import environments, papers, theory
    from .auditing import Adversary, Audit, audit, best_possible
    from .simulation import ReplayResult, Result, replay, simulate

__version__ = "0.1.0"

__all__ = [
    "EXP3",
    "EXP3IX",
    "EXP4",
    "FTPL",
    "GDP",
    "GLMUCB",
    "GLMUCBJDP",
    "HTINF",
    "KLUCB",
    "LDPGLOC",
    "LDPIMED",
    "LDPSGD",
    "LDPUCB",
    "RDP",
    "RSOFUL",
    "UCB1",
    "ZCDP",
    "AdaCOFUL",
    "AdaCOFULJDP",
    "Adversarial",
    "Adversary",
    "ApproxDP",
    "ArgumentError",
    "Audit",
    "BatchConversion",
    "BatchedEXP4",
    "BestArm",
    "BudgetExhausted",
    "BudgetWarning",
    "Chooser",
    "ClaimError",
    "ClippingWarning",
    "DPBanditsError",
    "Decision",
    "DecisionLog",
    "Diagnostics",
    "DiscountedIMED",
    "Estimates",
    "ExpertConversion",
    "Experts",
    "ExpertsLocal",
    "FinitePolicy",
    "FrozenEXP4",
    "GLMThompson",
    "GLMThompsonJDP",
    "Guarantee",
    "Inspection",
    "Ledger",
    "LinUCB",
    "LinUCBJDP",
    "LinUCBLDP",
    "LinUCBSDP",
    "LinearIMED",
    "LinearIMEDJDP",
    "LinearIMEDLDP",
    "LinearIMEDSDP",
    "LinearThompson",
    "LinearThompsonJDP",
    "LinearThompsonLDP",
    "LinearThompsonSDP",
    "LocalEXP4",
    "MergedIMED",
    "MergedIMEDSDP",
    "MergedKLUCB",
    "MergedLinearIMED",
    "MergedThompson",
    "MergedTopTwo",
    "MissingExtra",
    "Plan",
    "Policy",
    "PrivateLinUCB",
    "PureDP",
    "RSLinearIMED",
    "Release",
    "ReplayResult",
    "Result",
    "SequentialHalving",
    "Setting",
    "StateFileError",
    "SubmissionError",
    "ThompsonSampling",
    "TsallisINF",
    "UpdateError",
    "audit",
    "bandit",
    "best_possible",
    "environments",
    "fit_logs",
    "inspect",
    "load",
    "papers",
    "plan",
    "read_logs",
    "replay",
    "simulate",
    "theory",
]

# These bring pandas, pyarrow and scipy.stats with them, which would more than double the time that
# the import takes.
_SIMULATION = ("ReplayResult", "Result", "replay", "simulate")
_PLANNING = ("Plan", "Setting", "plan")
_AUDITING = ("Adversary", "Audit", "audit", "best_possible")


def __getattr__(name: str) -> Any:
    if name in ("environments", "papers", "theory"):
        return import_module(f".{name}", __name__)
    if name in _SIMULATION:
        return getattr(import_module(".simulation", __name__), name)
    if name in _PLANNING:
        return getattr(import_module(".planning", __name__), name)
    if name in _AUDITING:
        return getattr(import_module(".auditing", __name__), name)
    if (cls := _of_a_paper(name)) is not None:
        return moved(__name__, home_of(cls).split(".")[2], name)
    hint = "" if name.startswith("_") else close_name(name, __all__)
    meant = f"; {hint}" if hint.startswith("did") else ""  # and not all names that there are
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")


def _of_a_paper(name: str) -> Any:
    """The policy of that name in a paper's room, which stood here once; None without one."""
    cls = None if name.startswith("_") else registered().get(name)
    return cls if cls is not None and home_of(cls).startswith(f"{__name__}.papers.") else None


def __dir__() -> list[str]:
    return sorted(__all__)
