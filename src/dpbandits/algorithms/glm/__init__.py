"""Generalised linear bandits."""

from .joint import GLMUCBJDP, GLMThompsonJDP
from .local import LDPGLOC, LDPSGD
from .public import GLM, GLMUCB, GLMThompson

__all__ = [
    "GLM",
    "GLMUCB",
    "GLMUCBJDP",
    "LDPGLOC",
    "LDPSGD",
    "GLMThompson",
    "GLMThompsonJDP",
]
