"""The Bernoulli divergence and the upper confidence bound that it gives."""

from __future__ import annotations

import numpy as np

from ...kernel import kernel

_NEWTON_STEPS = 60
_TOLERANCE = 1e-12
_ALMOST_ONE = 1.0 - 1e-16


@kernel
def bernoulli_kl(p: float, q: float) -> float:
    """KL(Bernoulli(p) || Bernoulli(q)) in nats, with 0 log 0 = 0."""
    total = 0.0
    if p > 0.0:
        total += np.inf if q <= 0.0 else p * np.log(p / q)
    if p < 1.0:
        total += np.inf if q >= 1.0 else (1.0 - p) * np.log((1.0 - p) / (1.0 - q))
    return total


@kernel
def kl_upper_bound(p: float, level: float) -> float:
    """The largest q in [p, 1] with KL(p || q) <= level.

    Two bounds on q come from 2 (q - p)^2 <= KL(p || q) (Pinsker) and from p ln p + (1 - p) ln((1 -
    p) / (1 - q)) <= KL(p || q).  The divergence is convex and increasing in q >= p.  Hence Newton's
    method from the smaller bound decreases to the root without passing it: it errs upwards only.
    """
    if level <= 0.0 or p >= 1.0:
        return min(p, 1.0)
    entropy = p * np.log(p) if p > 0.0 else 0.0
    q = min(
        p + np.sqrt(0.5 * level),
        1.0 - (1.0 - p) * np.exp((entropy - level) / (1.0 - p)),
        _ALMOST_ONE,
    )
    for _ in range(_NEWTON_STEPS):
        excess = bernoulli_kl(p, q) - level
        if excess <= 0.0 or q <= p:
            break
        # The derivative of the divergence in q is (q - p) / (q (1 - q)).
        step = excess * q * (1.0 - q) / (q - p)
        q -= step
        if step <= _TOLERANCE * min(q, 1.0 - q):
            break
    return q
