"""Wang, Zhao & Wang (2022), *Dynamic Global Sensitivity for Differentially Private Contextual
Bandits*.

Here are LinUCB-DGS, whose privacy theorem is false, and its real privacy loss (``ExactLoss``).
``theory`` has the bounds of the paper, and ``plan`` Figures 1 and 2.
"""

from ...rooms import lazily
from .policy import ExactLoss, LinUCBDGS

__all__ = ["ExactLoss", "LinUCBDGS"]
__getattr__ = lazily(__name__, {"plan": "plan", "theory": "theory"})
