"""*Faster Rates for Private Adversarial Bandits* (anonymous, under review).

Here are its theorems, with what they cite (``theory``), the measurement of its bounds (``plan``),
and classifiers as experts.  Its learners, conversions and EXP4 are in the core, from which this
room takes them.
"""

from ...algorithms import (
    EXP3,
    EXP4,
    FTPL,
    HTINF,
    BatchConversion,
    BatchedEXP4,
    ExpertConversion,
    FrozenEXP4,
    LocalEXP4,
)
from ...rooms import lazily

__all__ = [
    "EXP3",
    "EXP4",
    "FTPL",
    "HTINF",
    "BatchConversion",
    "BatchedEXP4",
    "ClassifierAdvice",
    "ExpertConversion",
    "FrozenEXP4",
    "LocalEXP4",
    "classifier_advice",
]
__getattr__ = lazily(
    __name__,
    {
        "ClassifierAdvice": "experts",
        "classifier_advice": "experts",
        "plan": "plan",
        "theory": "theory",
    },
)
