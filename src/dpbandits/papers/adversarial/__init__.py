"""*Faster Rates for Private Adversarial Bandits* (anonymous, under review).

Here are batched EXP4 as published (``exp4``), non-private learners for comparison, and classifiers
as experts.  ``theory`` has its theorems and the results that they cite, and ``plan`` measures its
bounds.  Its learners, conversions and the tighter relatives of EXP4 are in the core.
"""

from typing import TYPE_CHECKING

from ...rooms import lazily
from .policies import EXP3IX, BatchedEXP4, TsallisINF

if TYPE_CHECKING:
    from .classifier_experts import ClassifierAdvice, classifier_advice

__all__ = ["EXP3IX", "BatchedEXP4", "ClassifierAdvice", "TsallisINF", "classifier_advice"]
__getattr__ = lazily(
    __name__,
    {
        "ClassifierAdvice": "classifier_experts",
        "classifier_advice": "classifier_experts",
        "plan": "plan",
        "theory": "theory",
    },
)
