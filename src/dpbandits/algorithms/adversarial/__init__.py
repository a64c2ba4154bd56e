"""Learners for rewards that follow no law, on noisy losses of batches."""

from .adversarial import EXP3, EXP3IX, FTPL, HTINF, Adversarial, BatchConversion, TsallisINF
from .learners import register_learner
from .learning import Learner

__all__ = [
    "EXP3",
    "EXP3IX",
    "FTPL",
    "HTINF",
    "Adversarial",
    "BatchConversion",
    "Learner",
    "TsallisINF",
    "register_learner",
]
