"""Inference from released values: intervals that hold at every release.

``mixture`` has the evidence and its proof, ``intervals`` shows it.
"""

from .intervals import Intervals, ReleasedSums, two_arms
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

__all__ = [
    "NARROWEST",
    "PRIOR",
    "ROUNDS_OF_PRIOR",
    "TILTS",
    "WIDEST",
    "Batches",
    "Cells",
    "Intervals",
    "Noise",
    "ReleasedSums",
    "reports",
    "two_arms",
]
