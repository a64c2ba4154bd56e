"""Bandits that keep the people behind the rewards private.

``bandit`` is the front door.  It returns an instance of one of the classes below.  These take parts
of ``dpbandits.parts``; policies of papers are in ``dpbandits.papers``.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import environments, papers, parts, theory
    from .algorithms import (
        GLM,
        Adversarial,
        Arms,
        ArmsLocal,
        ArmsShuffled,
        BestArm,
        BestArmShuffled,
        Experts,
        ExpertsLocal,
        FixedLinear,
        HiddenGLM,
        HiddenGLMLocal,
        HiddenLinear,
        HiddenLinearLocal,
        HiddenLinearShuffled,
        Linear,
    )
    from .auditing import audit
    from .conclusions import conclude
    from .door import bandit
    from .errors import (
        ArgumentError,
        BudgetExhausted,
        BudgetWarning,
        ClaimError,
        ClippingWarning,
        DPBanditsError,
        UpdateError,
    )
    from .evaluation import evaluate, evaluate_privately
    from .inspection import inspect, intervals
    from .logs import DecisionLog, fit_logs
    from .planning import Setting, plan
    from .policies import Decision, Holdout, Policy, load, restore
    from .privacy import GDP, RDP, ZCDP, ApproxDP, Guarantee, Ledger, PureDP
    from .simulation import replay, simulate

__version__ = "0.1.0"

__all__ = [
    "GDP",
    "GLM",
    "RDP",
    "ZCDP",
    "Adversarial",
    "ApproxDP",
    "ArgumentError",
    "Arms",
    "ArmsLocal",
    "ArmsShuffled",
    "BestArm",
    "BestArmShuffled",
    "BudgetExhausted",
    "BudgetWarning",
    "ClaimError",
    "ClippingWarning",
    "DPBanditsError",
    "Decision",
    "DecisionLog",
    "Experts",
    "ExpertsLocal",
    "FixedLinear",
    "Guarantee",
    "HiddenGLM",
    "HiddenGLMLocal",
    "HiddenLinear",
    "HiddenLinearLocal",
    "HiddenLinearShuffled",
    "Holdout",
    "Ledger",
    "Linear",
    "Policy",
    "PureDP",
    "Setting",
    "UpdateError",
    "audit",
    "bandit",
    "conclude",
    "environments",
    "evaluate",
    "evaluate_privately",
    "fit_logs",
    "inspect",
    "intervals",
    "load",
    "papers",
    "parts",
    "plan",
    "replay",
    "restore",
    "simulate",
    "theory",
]

# Everything is imported when it is first asked for: numba and scipy alone take half a second, which
# ``dpbandits.client`` does without.
_HOMES = {
    name: home
    for home, names in {
        "algorithms": "GLM Adversarial Arms ArmsLocal ArmsShuffled BestArm BestArmShuffled Experts"
        " ExpertsLocal FixedLinear HiddenGLM HiddenGLMLocal HiddenLinear HiddenLinearLocal"
        " HiddenLinearShuffled Linear",
        "auditing": "audit",
        "conclusions": "conclude",
        "door": "bandit",
        "errors": "ArgumentError BudgetExhausted BudgetWarning ClaimError ClippingWarning"
        " DPBanditsError UpdateError",
        "evaluation": "evaluate evaluate_privately",
        "inspection": "inspect intervals",
        "logs": "DecisionLog fit_logs",
        "planning": "Setting plan",
        "policies": "Decision Holdout Policy load restore",
        "privacy": "GDP RDP ZCDP ApproxDP Guarantee Ledger PureDP",
        "simulation": "replay simulate",
    }.items()
    for name in names.split()
}
# Where former names of the top level are now, beside those of policies.
_MOVED = {
    "Adversary": "auditing",
    "Audit": "auditing",
    "best_possible": "auditing",
    "Chooser": "policies",
    "Diagnostics": "policies",
    "Estimates": "policies",
    "Release": "policies",
    "FinitePolicy": "finite",
    "Inspection": "inspection",
    "MissingExtra": "errors",
    "StateFileError": "errors",
    "SubmissionError": "errors",
    "Plan": "planning",
    "ReplayResult": "simulation",
    "Result": "simulation",
    "read_logs": "logs",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    if not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        return import_module(f".{name}", __name__)
    return _former(name)


def _former(name: str) -> Any:
    """A name that once stood here; an ``AttributeError`` for any other."""
    if not name.startswith("_") and (home := _home(name)):
        message = f"{__name__}.{name} is deprecated: use {home}.{name}"
        warnings.warn(message, DeprecationWarning, stacklevel=3)
        return getattr(import_module(home), name)
    hint = "" if name.startswith("_") else _close_name(name)
    meant = f"; {hint}" if hint.startswith("did") else ""  # and not all names that there are
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")


def _close_name(name: str) -> str:
    from .policies.registry import registered
    from .validation import close_name

    return close_name(name, [*__all__, *registered()])


def _home(name: str) -> str:
    """The module that has a name that once stood here; "" for other names."""
    from .policies.registry import home_of, registered

    if name in _MOVED:
        return f"{__name__}.{_MOVED[name]}"
    policy = registered().get(name)
    home = "" if policy is None else home_of(policy)
    if home.startswith(f"{__name__}.papers."):
        return ".".join(home.split(".")[:3])
    return f"{__name__}.algorithms" if home.startswith(f"{__name__}.") else ""


def __dir__() -> list[str]:
    return sorted(__all__)
