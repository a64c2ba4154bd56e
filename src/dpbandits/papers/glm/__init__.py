"""Chen, Li, Rakhlin & Simchi-Levi (2025): generalised linear bandits under joint and local privacy,
and *Beyond Covariance Matrix: The Statistical Complexity of Private Linear Regression*.

Here are information-weighted regression and bandits on it, which are experimental, their comparison
with ridge regression (``weighted_regression``), and the rates of the papers, measured (``plan``).
The other policies for generalised models are in the core.
"""

from typing import TYPE_CHECKING

from ...rooms import lazily
from .estimator import InformationWeightedGLM
from .policies import WeightedGLMJDP, WeightedGLMLDP

if TYPE_CHECKING:
    from .weighted_regression import compare_with_ridge

__all__ = ["InformationWeightedGLM", "WeightedGLMJDP", "WeightedGLMLDP", "compare_with_ridge"]
__getattr__ = lazily(__name__, {"compare_with_ridge": "weighted_regression", "plan": "plan"})
