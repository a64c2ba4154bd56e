"""Azize & Basu (2024), *Concentrated Differential Privacy for Bandits*, and their earlier *When
Privacy Meets Partial Information* (2022).

Here are AdaC-UCB and AdaP-UCB (``episodes``), and phased elimination on G-optimal designs
(``gope``).  ``theory`` has the papers' theorems, ``hard`` the instances of their lower bounds, and
``plan`` Figures 4 and 5.  AdaC-OFUL is in the core.
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
