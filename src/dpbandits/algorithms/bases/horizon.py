"""IMED with a horizon: arms are tried as far as the rounds that are left can repay it.

An arm of weight W, in rounds or in the precision of its estimate, has the divergence D from the
leader.  IMED tries it while D < ln(W* / W), W* the leader's weight: W* stands for the rounds in
which a better arm would pay.  With a horizon T there are T - t of them, so both weights are cut at
M, that of c (T - t) rounds.  The arm is tried while

    D  <  h(x) ,   x = ln(min(W*, M) / min(W, M)) ,

h increasing.  A low h saves trials.  A high h loses the best arm in fewer runs, with a probability
of about exp(-h).  Arms are lost for good mostly with x from 3 to 5: there h is high.  Up to 2, few
rounds are left beside those that the arm was played, and h is low.  From round T on the index is
that without a horizon, so a longer run goes on learning.

The index sees released values and the public number of rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernel import kernel
from ...policies import given
from .sums import CLOCK

# c, and points (x, h(x)), between which h is linear: ``python -m benchmarks horizon`` chose them.
SHARE = 3.0
KNOTS = ((0.0, 0.0), (1.0, 0.6), (2.0, 1.8), (3.0, 3.3), (4.0, 4.5), (5.0, 5.2), (6.0, 5.9))
HORIZON = given("horizon", None, quiet=True)  # of presets, whose names without one stay


@kernel
def rounds_worth(params: Any, public: Any) -> float:
    """c (T - t), with a horizon T and before it; else infinity."""
    left = params.horizon - public.clock[CLOCK.rounds]
    return SHARE * left if left > 0 else np.inf


@kernel
def doubt_of(distance: float) -> float:
    """The x with h(x) = ``distance``; beyond the last point h rises like x."""
    x, h = KNOTS[0]
    for i in range(1, len(KNOTS)):
        last, below = x, h
        x, h = KNOTS[i]
        if distance < h:
            return last + (distance - below) * (x - last) / (h - below)
    return x + distance - h


@kernel
def weighed(distance: float, weight: float, most: float) -> float:
    """The index: of all arms that with the least is played.  ``most`` is M."""
    if np.isinf(most):
        return distance + np.log(weight)
    return doubt_of(distance) + np.log(min(weight, most))
