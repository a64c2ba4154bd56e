"""Find the rewards of an environment that a policy clips to its range.

Clipping makes a sensitivity hold, but a reward outside of the range counts as the range's end.
This biases the estimates.  Reports say so wherever it may happen.  A warning comes only where the
user could have given the right range.  For a bounded support that is the support; without bounds, a
range that holds the arms' mean rewards.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..environments import LoggedTrial
from ..environments.base import ArmsEnvironment, World
from ..errors import ClippingWarning
from ..kernel import kernel
from ..policies import Policy

_FINE = 2.0**-12
Interval = Sequence[float | None]  # as in JSON, where an end is None if there is none


def clipping_range(policy: Policy) -> tuple[float, float] | None:
    """The range that a policy clips rewards to; None where it clips nothing."""
    return policy.reward_range if policy.clip else None


class Entering(NamedTuple):
    """The way in which rewards enter a policy: clipped, and under secure noise rounded."""

    clip: bool  # whether any of this is to be done
    low: float
    high: float
    step: float = 0.0  # of the grid; 0 where rewards stay as they are within the ends


@kernel
def entered(entering: Entering, reward: float) -> float:
    """A reward as a policy takes it in."""
    if not entering.clip:
        return reward
    if entering.step > 0.0:
        # The ends are multiples of the step, hence what is cut below stays one.
        reward = np.rint(reward / entering.step) * entering.step
    return min(max(reward, entering.low), entering.high)


def entering_of(policy: Policy, support: tuple[float, float]) -> Entering:
    """How rewards with that support enter a policy.  Grids of less than 1/4096 of the range are
    left out: their effect is invisible, and rewards would have to be drawn one by one.
    """
    (lo, hi), (low, high) = policy.reward_range, support
    step = policy.grid if policy.grid > _FINE * (hi - lo) else 0.0
    clips = bool(policy.clip and (low < lo or high > hi))
    ends = (policy.noise_source.to_grid(lo), policy.noise_source.to_grid(hi)) if step else (lo, hi)
    return Entering(clips or step > 0.0, *ends, step)


def support_ends(support: tuple[float, float]) -> list[float | None]:
    """The ends of a support, as in JSON."""
    return [float(end) if math.isfinite(end) else None for end in support]


def clipping_in_words(reward_range: Interval | None, support: Interval | None) -> str | None:
    """A sentence on the clipping of rewards with that support; None where they are not clipped, or
    their support is unknown.

    >>> clipping_in_words([0.0, 1.0], [-1.0, 1.0])
    'rewards outside [0, 1] are clipped: rewards of this environment lie in [-1, 1]'
    >>> clipping_in_words([0.0, 1.0], [None, None])
    'rewards outside [0, 1] are clipped: rewards of this environment have no bounds'
    """
    if reward_range is None or support is None or _holds(reward_range, support):
        return None
    (lo, hi), (low, high) = reward_range, support
    bounds = "have no bounds" if low is None or high is None else f"lie in [{low:g}, {high:g}]"
    return f"rewards outside [{lo:g}, {hi:g}] are clipped: rewards of this environment {bounds}"


def warn_of_clipping(
    policies: Sequence[Policy], environment: World | LoggedTrial, stacklevel: int
) -> None:
    """Warn of policies whose ``reward_range`` could fit the environment better, see above."""
    support = support_ends(environment.support)
    known, what_lies = support, ""
    if None in support and isinstance(environment, ArmsEnvironment):
        means = environment.means()
        known = [float(means.min()), float(means.max())]
        what_lies = f" (mean rewards: {means.min():g} to {means.max():g})"
    for policy in policies:
        effect = clipping_in_words(clipping_range(policy), support)
        if effect is not None and environment.holds_data:  # whose ends are somebody's rewards
            effect = f"{effect.partition(':')[0]}, and some of these data lie outside"
        if effect is not None and None not in known and not _holds(policy.reward_range, known):
            message = (
                f"{policy.preset} in {environment!r}: {effect}{what_lies}. Clipping biases what the"
                " policy learns: choose another reward_range"
            )
            warnings.warn(message, ClippingWarning, stacklevel=stacklevel)


def _holds(outer: Interval, inner: Interval) -> bool:
    (lo, hi), (low, high) = outer, inner
    return None not in (lo, hi, low, high) and lo <= low and high <= hi  # type: ignore[operator]
