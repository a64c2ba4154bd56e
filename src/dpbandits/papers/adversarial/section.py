"""The common form and sizes of the study's parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...studies.cells import Cell
from ..plans import Findings, Results, Size

HORIZON, RUNS = 10**6, 30
QUICK_HORIZON, QUICK_RUNS = 40_000, 10
SMALLEST = 400  # rounds, below which there would be too few batches to fit anything

SLACK = 0.05  # of a slope: what chance and small sizes may add

PAPER = "Faster Rates for Private Adversarial Bandits"
EVERY = "{}, noise on every reward"


@dataclass(frozen=True)
class Section:
    """One part of the report; see ``Plan``."""

    cells: Sequence[Cell]
    assess: Callable[[Results], Findings]  # from the results of all cells
    notes: Sequence[str] = ()
    shown: Sequence[str] = ()


def horizon_of(size: Size) -> int:
    """Rounds, where nothing else is said."""
    return max(SMALLEST, size.horizon or (QUICK_HORIZON if size.quick else HORIZON))


def runs_of(size: Size) -> int:
    """Runs of a cell, where nothing else is said."""
    return size.runs or (QUICK_RUNS if size.quick else RUNS)
