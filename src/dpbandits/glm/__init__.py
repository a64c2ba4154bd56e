"""Generalised linear models: links, and private estimation without a bandit."""

from typing import Any

from ..rooms import moved
from .central import PrivateGLM
from .links import Conditioning, Link, link_of, register_link
from .local import Curator, LocalChannel, LocalDevice, LocalGLM, Report

__all__ = [
    "Conditioning",
    "Curator",
    "Link",
    "LocalChannel",
    "LocalDevice",
    "LocalGLM",
    "PrivateGLM",
    "Report",
    "link_of",
    "register_link",
]


def __getattr__(name: str) -> Any:
    if name == "InformationWeightedGLM":
        return moved(__name__, "glm", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
