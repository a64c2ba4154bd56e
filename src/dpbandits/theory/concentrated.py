"""Azize & Basu (2024), *Concentrated Differential Privacy for Bandits*."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..algorithms import AdaCUCB
from .bounds import Values, bound
from .promises import Applied, World, promises_of


@bound(
    "upper",
    source="Azize & Basu (2024), Theorem 10",
    assumes="beta > 3; stationary arms with rewards in [0, 1]",
)
def adac_ucb(
    horizon: Values, gaps: Sequence[float] | np.ndarray, rho: float, beta: float
) -> Values:
    """AdaC-UCB: sum over positive gaps of 8 beta ln(T) / gap + 8 sqrt(beta ln(T) / rho) + 2 beta /
    (beta - 3).

    >>> round(adac_ucb(1000, gaps=[0.0, 0.5], rho=0.1, beta=4.0))
    583
    """
    log = np.log(np.asarray(horizon, float))[..., None]
    gap = _positive(gaps)
    rest = 2.0 * beta / (beta - 3.0) if beta > 3.0 else np.inf
    return (8.0 * beta * log / gap + 8.0 * np.sqrt(beta * log / rho) + rest).sum(axis=-1)


def _positive(gaps: Sequence[float] | np.ndarray) -> np.ndarray:
    gap = np.asarray(gaps, float)
    return gap[gap > 0.0]


@promises_of(AdaCUCB)
def _adac_ucb(policy: AdaCUCB, world: World) -> Iterator[Applied]:
    params = policy.params
    if world.gaps is not None and params.forget:
        yield (
            adac_ucb,
            {
                "gaps": world.gaps / params.width,
                "rho": zcdp_of(params.noise_scale / params.width),
                "beta": params.optimism,
            },
        )


def zcdp_of(multiplier: float) -> float:
    """The rho of Gaussian noise of so many sensitivities; infinite without noise."""
    return np.inf if multiplier == 0.0 else 0.5 / multiplier**2
