"""Off-policy evaluation: the value of a policy from the log of another one.

``evaluate`` is for operators.  **Its results are not private**: they are computed from raw rewards,
without noise, and the budget of the bandit that wrote the log does not cover them.
``evaluate_privately`` is for publication: it spends a budget of its own, and adds noise.
"""

from .evaluating import evaluate
from .private import PrivateEvaluation
from .publication import evaluate_privately
from .report import Diagnostics, Evaluation

__all__ = ["Diagnostics", "Evaluation", "PrivateEvaluation", "evaluate", "evaluate_privately"]
