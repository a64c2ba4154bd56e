"""The papers whose experiments can be run again with one command."""

from __future__ import annotations

from collections.abc import Callable

from ..plans import Plan, Size
from . import adversarial, concentrated, dgs, glm, shuffle

PAPERS: dict[str, Callable[[Size], Plan]] = {
    "adversarial": adversarial.plan,
    "concentrated": concentrated.plan,
    "dgs": dgs.plan,
    "glm": glm.plan,
    "shuffle": shuffle.plan,
}

__all__ = ["PAPERS"]
