"""Generalised linear models: links, and private estimation without a bandit."""

from .central import PrivateGLM
from .links import Conditioning, Link, link_of, register_link
from .local import Curator, LocalChannel, LocalDevice, LocalGLM, Report
from .weighted import InformationWeightedGLM

__all__ = [
    "Conditioning",
    "Curator",
    "InformationWeightedGLM",
    "Link",
    "LocalChannel",
    "LocalDevice",
    "LocalGLM",
    "PrivateGLM",
    "Report",
    "link_of",
    "register_link",
]
