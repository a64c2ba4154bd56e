"""Inference from released values: intervals that hold at every release.

``mixture`` has the evidence and its proof, ``intervals`` shows it.
"""

from .intervals import Intervals, ReleasedSums, two_arms
from .mixture import Batches, Cells, Noise, reports

__all__ = [
    "Batches",
    "Cells",
    "Intervals",
    "Noise",
    "ReleasedSums",
    "reports",
    "two_arms",
]
