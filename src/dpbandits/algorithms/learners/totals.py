"""What most releases are made of: sums behind the wall, in the field ``total`` of the raw side."""

from __future__ import annotations

from ...kernel import kernel


@kernel
def accumulate(params, raw, public, arm, x, reward, n):
    """One sum, of rewards."""
    raw.total[0] += reward


@kernel
def sensitivity(params, public, norm):
    """The sensitivity of sums each of which a record enters once, or not at all, and only one of
    them.
    """
    return params.width


@kernel
def summarise(params, raw, public, statistic):
    """All sums, which start again."""
    for i in range(statistic.size):
        statistic[i] = raw.total[i]
        raw.total[i] = 0.0
