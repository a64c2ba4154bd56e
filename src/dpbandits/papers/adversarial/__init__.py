"""*Faster Rates for Private Adversarial Bandits* (anonymous, under review).

Here are its theorems, with what they cite (``theory``), the measurement of its bounds (``plan``),
and classifiers as experts.  Its learners, conversions and EXP4 are in the core.
"""

from typing import TYPE_CHECKING

from ...rooms import lazily

if TYPE_CHECKING:
    from .experts import ClassifierAdvice, classifier_advice

__all__ = ["ClassifierAdvice", "classifier_advice"]
__getattr__ = lazily(
    __name__, {**dict.fromkeys(__all__, "experts"), "plan": "plan", "theory": "theory"}
)
