"""Generalised linear bandits."""

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
]
