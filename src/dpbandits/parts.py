"""The parts of policies, and every policy by name.

``Arms``, ``Linear``, ``Adversarial`` and the other classes take parts as arguments, as in
``index=KLUCB(alpha=1.2)``.
"""

from .algorithms.adversarial.any_learner import Registered
from .algorithms.adversarial.learners import EXP3, EXP3IX, FTPL, HTINF, TsallisINF
from .algorithms.exp4.values import EXP4, BatchedEXP4, FrozenEXP4
from .algorithms.search.halving import Halving
from .algorithms.search.top_two import TopTwo
from .policies.parts import Part
from .policies.registry import find

__all__ = [
    "EXP3",
    "EXP3IX",
    "EXP4",
    "FTPL",
    "HTINF",
    "BatchedEXP4",
    "FrozenEXP4",
    "Halving",
    "Part",
    "Registered",
    "TopTwo",
    "TsallisINF",
    "find",
]
