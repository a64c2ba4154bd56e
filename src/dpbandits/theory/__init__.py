"""What theory promises: published and own bounds as functions, and which of them a policy has."""

from . import adversarial, concentrated, dynamic, lower, shuffle, stochastic
from .bounds import BOUNDS, Bound, bound
from .curves import bound_curves, label_of
from .promises import Promise, World, promises, promises_of
from .regimes import crossover, free_from, regime

__all__ = [
    "BOUNDS",
    "Bound",
    "Promise",
    "World",
    "adversarial",
    "bound",
    "bound_curves",
    "concentrated",
    "crossover",
    "dynamic",
    "free_from",
    "label_of",
    "lower",
    "promises",
    "promises_of",
    "regime",
    "shuffle",
    "stochastic",
]
