"""Learners for rewards that follow no law, on noisy losses of batches."""

from .adversarial import EXP3, EXP3IX, FTPL, HTINF, TsallisINF
from .any_learner import BatchConversion, register_learner
from .conversion import Learner
from .experts import ExpertConversion

__all__ = [
    "EXP3",
    "EXP3IX",
    "FTPL",
    "HTINF",
    "BatchConversion",
    "ExpertConversion",
    "Learner",
    "TsallisINF",
    "register_learner",
]
