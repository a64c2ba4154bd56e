"""Generalised linear bandits."""

from .joint import GLMUCBJDP, GLMThompsonJDP, HiddenGLM
from .local import LDPGLOC, LDPSGD, HiddenGLMLocal
from .public import GLM, GLMUCB, GLMThompson

__all__ = [
    "GLM",
    "GLMUCB",
    "GLMUCBJDP",
    "LDPGLOC",
    "LDPSGD",
    "GLMThompson",
    "GLMThompsonJDP",
    "HiddenGLM",
    "HiddenGLMLocal",
]
