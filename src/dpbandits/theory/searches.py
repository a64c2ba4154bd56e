"""What searches for the best arm promise of what they recommend."""

from __future__ import annotations

from collections.abc import Iterator

from ..algorithms import MergedTopTwo
from .bounds import bound
from .promises import Applied, World, promises_of


@bound(
    "upper",
    "probability of a wrong recommendation",
    source="module docstrings of the searches",
    assumes="stationary arms, rewards in [0, 1]",
)
def search_error(failure_probability: float) -> float:
    """Searches for the best arm: the probability that they were asked for."""
    return failure_probability


@promises_of(MergedTopTwo)
def _search_error(policy: MergedTopTwo, world: World) -> Iterator[Applied]:
    if world.is_stationary:
        yield search_error, {"failure_probability": policy.arguments["failure_probability"]}
