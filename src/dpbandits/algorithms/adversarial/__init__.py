"""Learners for rewards that follow no law, on noisy losses of batches."""

from .adversarial import EXP3, EXP3IX, FTPL, HTINF, TsallisINF
from .experts import ExpertConversion

__all__ = ["EXP3", "EXP3IX", "FTPL", "HTINF", "ExpertConversion", "TsallisINF"]
