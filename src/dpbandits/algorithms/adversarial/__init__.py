"""Learners for rewards that follow no law, on noisy losses of batches."""

from .adversarial import EXP3, FTPL, HTINF, Adversarial, BatchConversion
from .learners import register_learner
from .learning import Learner

__all__ = ["EXP3", "FTPL", "HTINF", "Adversarial", "BatchConversion", "Learner", "register_learner"]
