"""What theory promises: published and own bounds as functions, and which of them a policy has."""

from typing import Any

from ..rooms import moved, papers
from . import lower, searches
from .bounds import BOUNDS, Bound, bound
from .curves import bound_curves, label_of
from .promises import Promise, World, promises, promises_of
from .regimes import crossover, free_from, regime

__all__ = [
    "BOUNDS",
    "Bound",
    "Promise",
    "World",
    "bound",
    "bound_curves",
    "crossover",
    "free_from",
    "label_of",
    "lower",
    "promises",
    "promises_of",
    "regime",
    "searches",
]

papers("theories")  # whose bounds and promises enter the tables above


def __getattr__(name: str) -> Any:
    if name in ("adversarial", "concentrated", "dynamic", "shuffle"):
        return moved(__name__, "dgs" if name == "dynamic" else name, "theory", was=name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
