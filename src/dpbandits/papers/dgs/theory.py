"""Wang, Zhao & Wang (2022), *Dynamic Global Sensitivity for Differentially Private Contextual
Bandits*: Theorems 2 and 3, Corollary 1.

All three are void.  Theorem 1, that the noise keeps (epsilon, delta)-DP, is not proved and false as
stated.  The radius (eq. 4), from which regret is bounded, leaves out 32 / lambda_0 and sqrt(d): see
docs/errata.md.  The formulas are as printed, with L^2 lambda where the theorem that they cite has
L^2 / lambda.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...privacy import ApproxDP
from ...theory.bounds import Values, bound
from ...theory.promises import Applied, World, promises_of
from .policy import LinUCBDGS

_PAPER = "Wang, Zhao & Wang (2022)"
_PRIVACY = "the noise is not proved to keep (epsilon, delta)-DP: Theorem 1 is void"
_RADIUS = "its confidence radius, eq. (4), leaves out 32 / lambda_0 and sqrt(d)"
_ASSUMES = "Assumption 1 on contexts, rewards in [-1, 1]; with probability 1 - 2 zeta"


@bound(
    "upper",
    "noise on the estimate in a round",
    source=f"{_PAPER}, Theorem 2",
    constants="order",
    holds="void",
    because=_PRIVACY,
    assumes="with probability 1 - zeta",
)
def dgs_noise(round_: Values, horizon: float, epsilon: float, zeta: float) -> Values:
    """In round t: of order ln(T) sqrt(ln t) ln(1 / zeta) / (epsilon t)."""
    t = np.asarray(round_, float)
    return np.log(horizon) * np.sqrt(np.log(t)) * np.log(1.0 / zeta) / (epsilon * t)


@bound(
    "upper",
    "regret",
    source=f"{_PAPER}, Theorem 3",
    holds="void",
    because=_RADIUS,
    assumes=_ASSUMES,
)
def dgs(
    horizon: Values,
    dimension: int,
    epsilon: float,
    delta: float,
    zeta: float,
    eigenvalue: float,
    context_bound: float = 1.0,
    ridge: float = 1.0,
    parameter_bound: float = 1.0,
) -> Values:
    """LinUCB-DGS, with ``eigenvalue`` lambda_0 and w = sqrt(d T ln(lambda + L T / d)): 2 (sqrt(d
    ln((1 + T L^2 lambda) / zeta)) + sqrt(lambda) S) w + 2 (3 / e)^1.5 L ln(1 / zeta) w / (lambda_0
    epsilon) + 32 ln(1 / delta) / lambda_0.
    """
    t = np.asarray(horizon, float)
    widths = np.sqrt(dimension * t * np.log(ridge + context_bound * t / dimension))
    radius = np.sqrt(dimension * np.log((1.0 + t * context_bound**2 * ridge) / zeta))
    free = 2.0 * (radius + np.sqrt(ridge) * parameter_bound) * widths
    noise = 2.0 * (3.0 / np.e) ** 1.5 * context_bound * np.log(1.0 / zeta) / epsilon
    return free + (noise * widths + 32.0 * np.log(1.0 / delta)) / eigenvalue


@bound(
    "upper",
    "regret",
    source=f"{_PAPER}, Corollary 1",
    holds="void",
    because=_RADIUS,
    assumes=f"{_ASSUMES}; contexts perturbed by normal noise of variance sigma^2",
)
def dgs_perturbed(
    horizon: Values,
    dimension: int,
    epsilon: float,
    delta: float,
    zeta: float,
    sigma: float,
    context_bound: float = 1.0,
    ridge: float = 1.0,
    parameter_bound: float = 1.0,
) -> Values:
    """LinUCB-DGS on perturbed contexts: as ``dgs`` for lambda_0 = 1, all of it over sigma^2."""
    bounds = context_bound, ridge, parameter_bound
    return dgs(horizon, dimension, epsilon, delta, zeta, 1.0, *bounds) / sigma**2


@promises_of(LinUCBDGS)
def _dgs(policy: LinUCBDGS, world: World) -> Iterator[Applied]:
    params, budget = policy.params, policy.budget
    if not isinstance(budget, ApproxDP):
        return
    given = {
        "dimension": params.dimension,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "zeta": np.exp(-params.log_failure),
        "context_bound": params.context_bound,
        "ridge": params.ridge,
        "parameter_bound": params.bias / params.ridge**0.5,
    }
    if params.perturbation > 0.0:
        yield dgs_perturbed, {**given, "sigma": params.perturbation}
    elif params.eigenvalue > 0.0:
        yield dgs, {**given, "eigenvalue": params.eigenvalue}
