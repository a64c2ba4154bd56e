"""Azize & Basu (2024), *Concentrated Differential Privacy for Bandits*, and what it starts
from, their *When Privacy Meets Partial Information* (2022).

Here are AdaC-UCB and AdaP-UCB (``episodes``), phased elimination on G-optimal designs (``gope``),
what the papers prove (``theory``), the instances of their lower bounds (``hard``), and Figures 4
and 5 (``plan``).  AdaC-OFUL is in the core.
"""

from ...rooms import lazily
from .episodes import AdaCUCB, AdaPKLUCB, AdaPKLUCBSDP, AdaPUCB, AdaPUCBSDP
from .gope import DPDPE, GOPE, AdaCGOPE, AdaRGOPEVar, HannaGOPE, OutputGOPE

__all__ = [
    "DPDPE",
    "GOPE",
    "AdaCGOPE",
    "AdaCUCB",
    "AdaPKLUCB",
    "AdaPKLUCBSDP",
    "AdaPUCB",
    "AdaPUCBSDP",
    "AdaRGOPEVar",
    "HannaGOPE",
    "OutputGOPE",
]
__getattr__ = lazily(__name__, {"plan": "plan", "theory": "theory"})
