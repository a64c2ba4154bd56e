"""What theory promises: published and own bounds as functions, and which of them a policy has."""

from . import concentrated
from .bounds import BOUNDS, Bound, bound
from .promises import Promise, World, promises, promises_of

__all__ = [
    "BOUNDS",
    "Bound",
    "Promise",
    "World",
    "bound",
    "concentrated",
    "promises",
    "promises_of",
]
