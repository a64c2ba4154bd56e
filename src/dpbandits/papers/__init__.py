"""Reproductions of papers, with a module for each.

A room has the paper's policies as published, its theorems as functions, and its experiments.  Rooms
import the core; the core knows them by name only.
"""

from . import adversarial, concentrated, dgs, glm, others, shuffle

__all__ = ["adversarial", "concentrated", "dgs", "glm", "others", "shuffle"]
