"""Bounds of searches for the best arm, on the arm that they recommend."""

from __future__ import annotations

from collections.abc import Iterator

from ..algorithms import BestArm, BestArmShuffled, LDPTopTwo
from ..policies import Policy
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


@promises_of(BestArm, BestArmShuffled, LDPTopTwo)
def _search_error(policy: Policy, world: World) -> Iterator[Applied]:
    probability = policy.config["failure_probability"]
    # With a gap, arms that are nearly best are no errors.
    if world.is_stationary and probability is not None and policy.config["gap"] is None:
        yield search_error, {"failure_probability": probability}
