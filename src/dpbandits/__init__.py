"""Bandits that keep the people behind the rewards private."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .algorithms import (
    DPDPE,
    DPSE,
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
    AdaPUCB,
    AdaPUCBSDP,
    AdaRGOPEVar,
    BatchConversion,
    BatchedEXP4,
    ExpertConversion,
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
    MergedKLUCB,
    MergedLinearIMED,
    OutputGOPE,
    PrivateLinUCB,
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
from .policies import Chooser, Decision, Policy, load
from .privacy import RDP, ZCDP, ApproxDP, Guarantee, Ledger, PureDP

if TYPE_CHECKING:
    from . import environments
    from .simulation import ReplayResult, Result, replay, simulate

__version__ = "0.1.0"

__all__ = [
    "DPDPE",
    "DPSE",
    "DPSESDP",
    "DPTS",
    "EXP3",
    "EXP3IX",
    "EXP4",
    "FTPL",
    "GLMUCB",
    "GLMUCBJDP",
    "GOPE",
    "HTINF",
    "KLUCB",
    "LDPGLOC",
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
    "AdaPUCB",
    "AdaPUCBSDP",
    "AdaRGOPEVar",
    "ApproxDP",
    "ArgumentError",
    "BatchConversion",
    "BatchedEXP4",
    "BudgetExhausted",
    "BudgetWarning",
    "Chooser",
    "ClaimError",
    "ClippingWarning",
    "DPBanditsError",
    "Decision",
    "ExpertConversion",
    "FixedLinUCB",
    "FrozenEXP4",
    "GLMThompson",
    "GLMThompsonJDP",
    "Guarantee",
    "HannaGOPE",
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
    "MergedKLUCB",
    "MergedLinearIMED",
    "MissingExtra",
    "OutputGOPE",
    "Policy",
    "PrivateLinUCB",
    "PureDP",
    "ReplayResult",
    "Result",
    "StateFileError",
    "SubmissionError",
    "ThompsonSampling",
    "TsallisINF",
    "UpdateError",
    "WeightedGLMJDP",
    "WeightedGLMLDP",
    "WishartLinUCBJDP",
    "environments",
    "load",
    "replay",
    "simulate",
]

# These bring pandas, pyarrow and scipy.stats with them, which would more than double the time that
# the import takes.
_SIMULATION = ("ReplayResult", "Result", "replay", "simulate")


def __getattr__(name: str) -> Any:
    if name == "environments":
        return import_module(".environments", __name__)
    if name in _SIMULATION:
        return getattr(import_module(".simulation", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
