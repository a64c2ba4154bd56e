"""Theory: published and own bounds as functions, and the bounds of each policy."""

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

_ROOMS = ("adversarial", "concentrated", "shuffle")
__getattr__ = moved(
    __name__, {"dynamic": "dgs.theory", **{name: f"{name}.theory" for name in _ROOMS}}
)
