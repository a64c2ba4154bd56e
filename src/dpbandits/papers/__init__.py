"""What can be measured again with one command: experiments of papers, and the table of defaults."""

from __future__ import annotations

from collections.abc import Callable

from .. import equal_budget
from ..plans import Plan, Size
from . import adversarial, concentrated, dgs, glm, shuffle

PAPERS: dict[str, Callable[[Size], Plan]] = {
    "adversarial": adversarial.plan,
    "concentrated": concentrated.plan,
    "dgs": dgs.plan,
    "equal-budget": equal_budget.plan,
    "glm": glm.plan,
    "shuffle": shuffle.plan,
}

__all__ = ["PAPERS"]
