"""Chowdhury & Zhou (2022), *Shuffle Private Linear Contextual Bandits*, and the central model of
Shariff & Sheffet (2018) that they compare it with.

Here are LinUCB with Wishart noise, and the privacy proof of that noise (``wishart_noise``).
``theory`` has the theorems of the paper and those that it cites, and ``plan`` Figures 1 and 2.  Its
shufflers and other policies are in the core.
"""

from ...rooms import lazily
from .wishart import WishartLinUCBJDP

__all__ = ["WishartLinUCBJDP"]
__getattr__ = lazily(__name__, {"plan": "plan", "theory": "theory"})
