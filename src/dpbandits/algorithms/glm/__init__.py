"""Generalised linear bandits."""

from .information import WeightedGLMJDP, WeightedGLMLDP
from .joint import GLMUCBJDP, GLMThompsonJDP
from .local import LDPGLOC, LDPSGD
from .public import GLMUCB, GLMThompson

__all__ = [
    "GLMUCB",
    "GLMUCBJDP",
    "LDPGLOC",
    "LDPSGD",
    "GLMThompson",
    "GLMThompsonJDP",
    "WeightedGLMJDP",
    "WeightedGLMLDP",
]
