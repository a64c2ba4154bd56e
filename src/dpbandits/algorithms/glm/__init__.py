"""Generalised linear bandits."""

from .information import WeightedGLMJDP, WeightedGLMLDP
from .joint import GLMUCBJDP, GLMThompsonJDP, HiddenGLM
from .local import LDPGLOC, LDPSGD, HiddenGLMLocal
from .public import GLMUCB, GLMThompson

__all__ = [
    "GLMUCB",
    "GLMUCBJDP",
    "LDPGLOC",
    "LDPSGD",
    "GLMThompson",
    "GLMThompsonJDP",
    "HiddenGLM",
    "HiddenGLMLocal",
    "WeightedGLMJDP",
    "WeightedGLMLDP",
]
