"""Generalised linear models: links, and private estimation without a bandit."""

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
__getattr__ = moved(__name__, {"InformationWeightedGLM": "glm.InformationWeightedGLM"})
