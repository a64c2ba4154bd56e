"""A link of a generalised linear model, and what it does to records within bounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from ...errors import ArgumentError
from ...glm.links import Conditioning, Link


@lru_cache(64)
def _conditioning(link: Link, reach: float) -> Conditioning:
    return link.conditioning(reach)


@dataclass(frozen=True)
class Linked:
    """A link, for all <x, theta> that the bounds on features and parameter allow.

    Attributes:
        link: nu.
        context_bound: on the length of features.
        parameter_bound: on the length of theta.
        reward_range: of outcomes.
    """

    link: Link
    context_bound: float
    parameter_bound: float
    reward_range: tuple[float, float]

    @cached_property
    def conditioning(self) -> Conditioning:
        """Its slopes.

        Raises:
            ArgumentError: it is flat, or not defined, for some <x, theta>.
        """
        reach = self.context_bound * self.parameter_bound
        if not reach > 0.0:
            raise ArgumentError(
                f"parameter_bound must be above 0 for a link, got {self.parameter_bound!r}",
                "parameter_bound",
            )
        if reach > self.link.farthest:
            raise ArgumentError(
                f"parameter_bound times context_bound must be at most {self.link.farthest:g} with"
                f" link={self.link.name!r}, got {reach!r}",
                "parameter_bound",
            )
        return _conditioning(self.link, reach)

    @property
    def slopes(self) -> dict[str, Any]:
        """What kernels know of them."""
        found = self.conditioning
        return {
            "flattest": found.least_slope,
            "steepest": found.largest_slope,
            "curvature": found.curvature,
        }

    @cached_property
    def residual(self) -> float:
        """A bound on |nu(t) - r|: how far an outcome may be from its mean, anywhere.

        Means outside of the range of outcomes are not cut to it: beyond, nothing would draw
        estimates back.

        >>> from dpbandits.glm import link_of
        >>> round(Linked(link_of("logistic"), 1.0, 1.0, (0.0, 1.0)).residual, 4)
        0.7311
        """
        lo, hi = self.reward_range
        reach = self.conditioning.reach
        return max(self.link.mean(reach) - lo, hi - self.link.mean(-reach))
