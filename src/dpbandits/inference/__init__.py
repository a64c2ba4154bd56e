"""Inference from released values: intervals that hold at every release.

``mixture`` has the evidence and its proof, ``intervals`` shows it.
"""

from .intervals import Differences, Intervals, ReleasedSums, asked
from .mixture import Batches, Cells, Noise, reports

__all__ = [
    "Batches",
    "Cells",
    "Differences",
    "Intervals",
    "Noise",
    "ReleasedSums",
    "asked",
    "reports",
]
