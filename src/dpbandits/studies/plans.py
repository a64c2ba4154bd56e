"""What the study of a paper consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..plotting.numbers import abbreviated
from ..report.claims import Claim
from ..report.exhibits import Exhibit
from .cells import Cell, Results


@dataclass(frozen=True)
class Size:
    """How much of a paper to compute.

    Attributes:
        quick: a small version that shows everything.
        full: also at full length what is shortened otherwise.
        runs, horizon: instead of the paper's; None for those.
        seed: of everything, random instances among it.
        data: the folder with real data; None leaves out what needs it.
    """

    quick: bool = False
    full: bool = False
    runs: int | None = None
    horizon: int | None = None
    seed: int = 1
    data: Path | None = None


@dataclass(frozen=True)
class Findings:
    """What came of the cells."""

    claims: Sequence[Claim]
    exhibits: Sequence[Exhibit]


@dataclass(frozen=True)
class Plan:
    """The study of one paper at one size.

    Attributes:
        title, description: of the report.
        cells: what to simulate.
        assess: from their results to claims and figures.
        notes: what a reader of the claims has to know besides.
        shown: environments, by their ``repr``, whose results the page shows by themselves; None for
            all.
    """

    title: str
    description: str
    cells: Sequence[Cell]
    assess: Callable[[Results], Findings]
    notes: Sequence[str] = ()
    shown: Sequence[str] | None = None


def spoken(rounds: int) -> str:
    """A number of rounds as one says it.

    >>> spoken(10_000_000), spoken(50_000), spoken(8192)
    ('10M', '50k', '8,192')
    """
    return abbreviated(rounds) if len(abbreviated(rounds)) <= 4 else f"{rounds:,}"


def recorded(horizon: int, points: int = 120) -> tuple[int, ...]:
    """Log-spaced rounds that end with the horizon and hold its hundredth part."""
    spaced = np.unique(np.geomspace(1, horizon, points).round().astype(int))
    return tuple(sorted({*map(int, spaced), horizon, max(1, horizon // 100)}))
