"""Draws from what is believed of means."""

from __future__ import annotations

from ...kernel import inlined


@inlined
def beta_draw(mean, n, rng):
    """A draw from Beta(m n + 1, (1 - m) n + 1), with the mean m of n rewards clipped to [0, 1]."""
    m = min(max(mean, 0.0), 1.0)
    return rng.beta(m * n + 1.0, (1.0 - m) * n + 1.0)
