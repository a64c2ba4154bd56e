"""The instances behind lower bounds: arms so close that privacy or chance hides the best one.

They are made for one horizon, and are not hard at others.  Azize & Basu (2024) have normal rewards
of variance 1 in Theorems 9 and 17.  Here rewards are 0 and 1, or -1 and 1, so a policy need not
clip them.  Their lower bounds are in ``dpbandits.theory.lower``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...environments.arrays import vector
from ...environments.base import ContextEnvironment, ContextKernels
from ...environments.simulated.linear_rewards import (
    LinearArms,
    LinearRewards,
    answer_linear,
    spread,
    support_of,
)
from ...environments.simulated.stochastic import Bernoulli
from ...errors import ArgumentError
from ...kernel import Generator, Matrix, kernel
from ...validation import integer, real, shortest, shown

_LARGEST = 0.2  # gap of coins: the raised one is at 0.9
_MOST_DIMENSIONS = 10  # of a hypercube, whose corners are arms


def gap_of_coins(
    n_arms: int, horizon: int, rho: float | None = None, epsilon: float | None = None
) -> float:
    """The gap D with the largest (D T / 8) exp(-divergence), up to 0.2.

    With n = T / (K - 1) the divergence is about 8 n D^2.  Under zCDP it is at most b D^2 + c D,
    with b = 4 rho n T and c = 2 rho n.  Under pure DP it is at most 2 epsilon n D.  The least of
    these counts, so the result is the largest of the gaps that are best for one of them.

    >>> round(gap_of_coins(2, 10_000), 4), round(gap_of_coins(2, 10_000, epsilon=0.01), 4)
    (0.0025, 0.005)
    """
    n = horizon / (n_arms - 1)
    gaps = [0.25 / math.sqrt(n)]
    if rho is not None:
        b, c = 4.0 * rho * n * horizon, 2.0 * rho * n
        gaps.append((math.sqrt(c * c + 8.0 * b) - c) / (4.0 * b))
    if epsilon is not None:
        gaps.append(0.5 / (epsilon * n))
    return min(max(gaps), _LARGEST)


class HardArms(Bernoulli):
    """Arms with rewards 0 or 1.  Arm 0 has the mean 1/2 + D, the raised arm 1/2 + 2 D, and all
    others 1/2.  The attribute ``gap`` holds D.

    Two such environments differ in one arm, which a policy that prefers arm 0 rarely plays.  No
    policy does well in all of them.

    Args:
        n_arms: number of arms, at least 2.
        horizon: the horizon for which D is chosen.
        rho, epsilon: the budgets of zCDP and of pure DP that policies keep; None without it.
        raised: the raised arm; None for none.

    >>> HardArms(3, 10_000, raised=2).means().round(4).tolist()
    [0.5035, 0.5, 0.5071]
    """

    def __init__(
        self,
        n_arms: int,
        horizon: int,
        *,
        rho: float | None = None,
        epsilon: float | None = None,
        raised: int | None = None,
    ) -> None:
        n_arms, horizon = integer("n_arms", n_arms, 2), integer("horizon", horizon, 1)
        rho = None if rho is None else real("rho", rho, 0.0, strict=True)
        epsilon = None if epsilon is None else real("epsilon", epsilon, 0.0, strict=True)
        self.gap = gap_of_coins(n_arms, horizon, rho, epsilon)
        means = np.full(n_arms, 0.5)
        means[0] += self.gap
        if raised is not None:
            means[integer("raised", raised, 1, n_arms - 1)] += 2.0 * self.gap
        super().__init__(means)


class HardLinear(LinearArms):
    """Arms at the corners of [-1, 1]^d, with rewards -1 or 1 (Azize & Basu 2024, Theorem 9).  theta
    has coordinates of one size and hidden signs.

    Args:
        dimension: d, at most 10; there are 2^d arms.
        horizon: the horizon for which the size of the coordinates is chosen, the larger of 1 /
            sqrt(T) and 1 / (T sqrt(rho)).
        rho: of zCDP that policies are to keep; None without it.
        signs: of the coordinates; all positive by default.

    Raises:
        ArgumentError: means would be outside [-1, 1]: the horizon is too short for that rho.

    >>> HardLinear(2, 10_000).means().round(3).tolist()
    [-0.02, 0.0, 0.0, 0.02]
    """

    def __init__(
        self,
        dimension: int,
        horizon: int,
        *,
        rho: float | None = None,
        signs: Sequence[int] | None = None,
    ) -> None:
        d = integer("dimension", dimension, 1, _MOST_DIMENSIONS)
        corners = np.indices((2,) * d).reshape(d, -1).T * 2.0 - 1.0
        theta = _hidden(d, 1.0 / d, integer("horizon", horizon, 1), 1.0, rho, signs)
        super().__init__(corners, theta, rewards="bounded")


@kernel
def _show_axis(state: LinearRewards, t: int, contexts: Matrix, rng: Generator) -> int:
    axis = t % contexts.shape[1]
    for i in range(contexts.shape[1]):
        contexts[0, i] = 1.0 if i == axis else 0.0
        contexts[1, i] = -contexts[0, i]
    return 0


class HardContexts(ContextEnvironment):
    """Two arms, e_i and -e_i, with rewards -1 or 1; the coordinate i changes in turn with each
    round. theta has coordinates of one size and hidden signs.

    So every coordinate is a separate problem with two arms, for a d-th of the rounds.

    Args:
        dimension: d.
        horizon: the horizon for which the size of the coordinates is chosen, 1 / (2 sqrt(n)) or 1 /
            (n sqrt(rho)), n = T / d.
        rho, signs: as for ``HardLinear``.

    >>> HardContexts(3, 30_000).parameter.tolist()
    [0.005, 0.005, 0.005]
    """

    kernels = ContextKernels(_show_axis, answer_linear)
    parameter: np.ndarray

    def __init__(
        self,
        dimension: int,
        horizon: int,
        *,
        rho: float | None = None,
        signs: Sequence[int] | None = None,
    ) -> None:
        self.dimension, self.n_arms = integer("dimension", dimension, 1), 2
        self.context_bound, self.support = 1.0, support_of("bounded")
        n = integer("horizon", horizon, self.dimension) / self.dimension
        self.parameter = _hidden(self.dimension, 1.0, n, 0.5, rho, signs)
        self.state = LinearRewards(self.parameter, 1.0, True)

    def _arguments(self) -> str:
        return f"{', '.join(map(shortest, self.parameter))}; {spread('bounded', 1.0)}"


def _hidden(
    d: int, largest: float, n: float, free: float, rho: float | None, signs: Sequence[int] | None
) -> np.ndarray:
    """The parameter: coordinates of a size that n rounds do not give away, with these signs."""
    given = np.ones(d) if signs is None else vector("signs", signs, -1.0, 1.0)
    if given.shape != (d,) or not np.isin(given, (-1.0, 1.0)).all():
        raise ArgumentError(f"signs must hold {d} numbers, 1 or -1, got {shown(signs)}", "signs")
    size = free / math.sqrt(n)
    if rho is not None:
        size = max(size, 1.0 / (n * math.sqrt(real("rho", rho, 0.0, strict=True))))
    if size > largest:
        raise ArgumentError("horizon must be longer: means would be outside [-1, 1]", "horizon")
    return given * size
