"""Chowdhury & Zhou (2022), *Shuffle Private Linear Contextual Bandits*, and the central model of
Shariff & Sheffet (2018) that they compare it with.

Here are LinUCB with Wishart noise, the theorems of the paper and what it cites (``theory``), and
Figures 1 and 2 (``plan``).  Its shufflers and policies are in the core, from which this room takes
them.
"""

from ...algorithms import LinUCBJDP, LinUCBLDP, LinUCBSDP
from ...rooms import lazily
from .wishart import WishartLinUCBJDP

__all__ = ["LinUCBJDP", "LinUCBLDP", "LinUCBSDP", "WishartLinUCBJDP"]
__getattr__ = lazily(__name__, {"plan": "plan", "theory": "theory"})
