"""Off-policy evaluation for operators: the value of a policy from the log of another one.

**Results are not private.**  They are computed from raw rewards, without noise, and the budget of
the bandit that wrote the log does not cover them.
"""

from .evaluating import evaluate
from .report import Diagnostics, Evaluation

__all__ = ["Diagnostics", "Evaluation", "evaluate"]
