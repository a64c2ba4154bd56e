"""What a link, and bounds on features and parameter, say of records and their gradients."""

from __future__ import annotations

from ...errors import ArgumentError
from ...glm.links import Conditioning, Link


def conditioning_of(link: Link, context_bound: float, parameter_bound: float) -> Conditioning:
    """What the link does for all <x, theta> that the bounds allow.

    Raises:
        ArgumentError: it is flat, or not defined, for some of them.
    """
    reach = context_bound * parameter_bound
    if not reach > 0.0:
        raise ArgumentError(
            f"parameter_bound must be above 0 for a link, got {parameter_bound!r}",
            "parameter_bound",
        )
    if reach > link.farthest:
        raise ArgumentError(
            f"parameter_bound times context_bound must be at most {link.farthest:g} with"
            f" link={link.name!r}, got {reach!r}",
            "parameter_bound",
        )
    return link.conditioning(reach)


def largest_residual(link: Link, reach: float, reward_range: tuple[float, float]) -> float:
    """A bound on |nu(t) - r| for |t| <= reach and rewards of the range.

    Means outside of that range are not cut to it: beyond, nothing would draw estimates back.

    >>> from dpbandits.glm import link_of
    >>> round(largest_residual(link_of("logistic"), 1.0, (0.0, 1.0)), 4)
    0.7311
    """
    lo, hi = reward_range
    return max(link.mean(reach) - lo, hi - link.mean(-reach))
