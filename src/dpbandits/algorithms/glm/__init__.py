"""Generalised linear bandits."""

from .joint import GLMUCBJDP, GLMThompsonJDP, HiddenGLM
from .local import LDPSGD, HiddenGLMLocal
from .public import GLM, GLMUCB, GLMThompson

__all__ = [
    "GLM",
    "GLMUCB",
    "GLMUCBJDP",
    "LDPSGD",
    "GLMThompson",
    "GLMThompsonJDP",
    "HiddenGLM",
    "HiddenGLMLocal",
]
