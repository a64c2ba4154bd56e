"""The two privacy regimes, and where they meet.

A minimax lower bound is the larger of two terms: one without privacy, which grows with sqrt(T), and
one of privacy, which does not grow.  While the second is the larger, privacy sets the price (the
*high-privacy* regime); afterwards a private policy may lose no more than others (*low privacy*).
With the constants of the bounds they meet at

    K arms, rho-zCDP      rho T = (27 / 124)^2                        (Theorem 17)
    K arms, epsilon-DP    epsilon^2 T = (27 / 22)^2 (K - 1)           (Azize & Basu 2022)
    d dimensions, zCDP    rho T = 4 exp(-1/2)                         (Theorem 9)
    d dimensions, DP      epsilon^2 T = exp(2)                        (``lower.linear_pure``)

These say from where on privacy *can* be free.  ``free_from`` gives the horizon from which on it is
free for a policy with a bound.  There the terms of privacy are a given share of the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..privacy import ZCDP, PureDP
from ..validation import real
from .bounds import Bound

Budget = ZCDP | PureDP  # of which a minimax bound is known

_FREE = {"rho": np.inf, "epsilon": np.inf, "noise": 0.0}  # what a bound takes without privacy
_LATEST = 1e18  # horizons beyond are called infinite


def crossover(budget: Budget, *, n_arms: int | None = None, dimension: int | None = None) -> float:
    """Find where the two regimes meet, of K arms or of linear bandits.

    Args:
        budget: ``ZCDP`` or ``PureDP``.
        n_arms: of K arms without features.
        dimension: of linear bandits with arms [-1, 1]^d.

    Returns:
        A number of rounds.

    Raises:
        ArgumentError: ``budget`` is of another notion, or both numbers are missing.

    See also: ``regime``, ``free_from``.

    >>> round(crossover(ZCDP(1e-6), n_arms=5))
    47412
    """
    if isinstance(budget, ZCDP) and n_arms is not None:
        return (27.0 / 124.0) ** 2 / budget.rho
    if isinstance(budget, PureDP) and n_arms is not None:
        return (27.0 / 22.0) ** 2 * (n_arms - 1) / budget.epsilon**2
    if isinstance(budget, ZCDP) and dimension is not None:
        return 4.0 * float(np.exp(-0.5)) / budget.rho
    if isinstance(budget, PureDP) and dimension is not None:
        return float(np.exp(2.0)) / budget.epsilon**2
    raise ArgumentError(
        "budget must be ZCDP or PureDP, and n_arms or dimension must be given", "budget"
    )


def regime(
    horizon: float, budget: Budget, *, n_arms: int | None = None, dimension: int | None = None
) -> str:
    """Tell whether privacy sets the least regret possible; arguments as of ``crossover``.

    Returns:
        ``"high privacy"`` if it does, else ``"low privacy"``.

    Raises:
        ArgumentError: as for ``crossover``.

    >>> regime(10_000, ZCDP(1e-6), n_arms=5), regime(10_000, ZCDP(1e-4), n_arms=5)
    ('high privacy', 'low privacy')
    """
    meet = crossover(budget, n_arms=n_arms, dimension=dimension)
    return "high privacy" if horizon < meet else "low privacy"


def free_from(bound: Bound, share: float = 0.1, **arguments: Any) -> float:
    """Find the horizon from which on privacy adds at most that share to an upper bound.

    Args:
        bound: of ``BOUNDS``, with a parameter ``rho``, ``epsilon`` or ``noise``.
        share: how much more regret still counts as free.
        **arguments: arguments of the bound, without the horizon.

    Returns:
        A number of rounds, on a geometric grid; infinite if never.

    Raises:
        ArgumentError: the bound knows nothing of privacy.

    >>> from dpbandits.theory import BOUNDS
    >>> f"{free_from(BOUNDS['adac_ucb_minimax'], n_arms=5, rho=1e-4, beta=4.0):.0e}"
    '1e+07'
    """
    free = {name: value for name, value in _FREE.items() if name in arguments}
    if not free or "horizon" not in bound.parameters:
        raise ArgumentError(
            f"bound must have a horizon, and rho, epsilon or noise, got {bound.name}", "bound"
        )
    share = real("share", share, 0.0, strict=True)
    horizons = np.geomspace(2.0, _LATEST, 4000)
    private, rest = bound(horizons, **arguments), bound(horizons, **{**arguments, **free})
    paid = np.flatnonzero(~(private <= (1.0 + share) * rest))
    return float(horizons[0] if not paid.size else np.append(horizons, np.inf)[paid[-1] + 1])
