"""Sums of people's vectors through a shuffler: the server sees the shuffler's output only.

``Randomizer`` runs on a person's device, ``Shuffler`` with a party that does not collude with the
server, and ``Analyzer`` on the server.  A ``Protocol`` defines their messages.
"""

from typing import Any

from ..rooms import papers
from .coins import BitSum, ModularSum
from .laplace import LaplaceShares
from .protocols import Protocol
from .reports import GaussianReports
from .roles import Analyzer, Messages, Randomizer, Shuffler

__all__ = [
    "Analyzer",
    "BitSum",
    "GaussianReports",
    "LaplaceShares",
    "Messages",
    "ModularSum",
    "Protocol",
    "Randomizer",
    "Shuffler",
    "published_batch",
]


def __getattr__(name: str) -> Any:
    if name == "published_batch":  # of a paper, to which devices have no need
        return papers("shuffle.published").published_batch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
