"""Inference from released values: intervals that hold at every release.

``mixture`` has the evidence and its proof, ``intervals`` shows it, and ``verdicts`` decides by it.
"""

from .intervals import Differences, Intervals, ReleasedSums, asked
from .mixture import (
    NARROWEST,
    PRIOR,
    ROUNDS_OF_PRIOR,
    TILTS,
    WIDEST,
    Batches,
    Cells,
    Noise,
    reports,
)
from .verdicts import Verdict

__all__ = [
    "NARROWEST",
    "PRIOR",
    "ROUNDS_OF_PRIOR",
    "TILTS",
    "WIDEST",
    "Batches",
    "Cells",
    "Differences",
    "Intervals",
    "Noise",
    "ReleasedSums",
    "Verdict",
    "asked",
    "reports",
]
