"""Bandits that keep the people behind the rewards private."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .algorithms import (
    DPDPE,
    DPIMED,
    DPKLUCB,
    DPSE,
    DPSEBAI,
    DPSESDP,
    DPTS,
    EXP3,
    EXP3IX,
    EXP4,
    FTPL,
    GLMUCB,
    GLMUCBJDP,
    GOPE,
    HTINF,
    KLUCB,
    LDPGLOC,
    LDPIMED,
    LDPSGD,
    LDPUCB,
    RSOFUL,
    UCB1,
    AdaCGOPE,
    AdaCOFUL,
    AdaCOFULJDP,
    AdaCUCB,
    AdaPKLUCB,
    AdaPKLUCBSDP,
    AdaPTT,
    AdaPUCB,
    AdaPUCBSDP,
    AdaRGOPEVar,
    Adversarial,
    BatchConversion,
    BatchedEXP4,
    BestArm,
    DiscountedIMED,
    ExpertConversion,
    Experts,
    ExpertsLocal,
    FixedLinUCB,
    FrozenEXP4,
    GLMThompson,
    GLMThompsonJDP,
    HannaGOPE,
    LazyDPTS,
    LinearIMED,
    LinearIMEDJDP,
    LinearIMEDLDP,
    LinearIMEDSDP,
    LinearThompson,
    LinearThompsonJDP,
    LinearThompsonLDP,
    LinearThompsonSDP,
    LinUCB,
    LinUCBDGS,
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
    OutputGOPE,
    PrivateLinUCB,
    RSLinearIMED,
    SequentialHalving,
    ThompsonSampling,
    TsallisINF,
    WeightedGLMJDP,
    WeightedGLMLDP,
    WishartLinUCBJDP,
)
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
from .policies import Chooser, Decision, Diagnostics, Estimates, Policy, Release, load
from .privacy import GDP, RDP, ZCDP, ApproxDP, Guarantee, Ledger, PureDP
from .validation import close_name

if TYPE_CHECKING:
    from . import environments, theory
    from .auditing import Adversary, Audit, audit, best_possible
    from .simulation import ReplayResult, Result, replay, simulate

__version__ = "0.1.0"

__all__ = [
    "DPDPE",
    "DPIMED",
    "DPKLUCB",
    "DPSE",
    "DPSEBAI",
    "DPSESDP",
    "DPTS",
    "EXP3",
    "EXP3IX",
    "EXP4",
    "FTPL",
    "GDP",
    "GLMUCB",
    "GLMUCBJDP",
    "GOPE",
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
    "AdaCGOPE",
    "AdaCOFUL",
    "AdaCOFULJDP",
    "AdaCUCB",
    "AdaPKLUCB",
    "AdaPKLUCBSDP",
    "AdaPTT",
    "AdaPUCB",
    "AdaPUCBSDP",
    "AdaRGOPEVar",
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
    "FixedLinUCB",
    "FrozenEXP4",
    "GLMThompson",
    "GLMThompsonJDP",
    "Guarantee",
    "HannaGOPE",
    "Inspection",
    "LazyDPTS",
    "Ledger",
    "LinUCB",
    "LinUCBDGS",
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
    "OutputGOPE",
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
    "WeightedGLMJDP",
    "WeightedGLMLDP",
    "WishartLinUCBJDP",
    "audit",
    "best_possible",
    "environments",
    "fit_logs",
    "inspect",
    "load",
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
    if name in ("environments", "theory"):
        return import_module(f".{name}", __name__)
    if name in _SIMULATION:
        return getattr(import_module(".simulation", __name__), name)
    if name in _PLANNING:
        return getattr(import_module(".planning", __name__), name)
    if name in _AUDITING:
        return getattr(import_module(".auditing", __name__), name)
    hint = "" if name.startswith("_") else close_name(name, __all__)
    meant = f"; {hint}" if hint.startswith("did") else ""  # and not all names that there are
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")


def __dir__() -> list[str]:
    return sorted(__all__)
