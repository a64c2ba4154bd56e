"""Information-weighted regression beside ridge regression, where features are ill-conditioned.

Both have the same people and the same budget.  Each gets the best of equally many settings, chosen
by the true error, which is unknown in a private analysis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError
from ...glm import LocalGLM, PrivateGLM
from ...privacy import Budget
from ...validation import choice, integer
from .designs import DESIGNS, Features, linear_outcomes
from .estimator import InformationWeightedGLM

if TYPE_CHECKING:
    import pandas as pd

_RIDGES = (None, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
_HESSIAN_WEIGHTS = (0.35, 1.0)
_WEIGHT_SHARES = (0.2, 0.35)
_RANGE = (-1.0, 1.0)


def compare_with_ridge(
    *,
    budget: Budget,
    people: int,
    trust_model: str = "local",
    dimension: int = 5,
    designs: Sequence[str] = tuple(DESIGNS),
    runs: int = 5,
    seed: int = 1,
) -> pd.DataFrame:
    """Errors of linear models on ill-conditioned designs.

    Outcomes are -1 and 1 with means <x, theta>, theta uniform on the unit sphere, drawn anew in
    every run.  Ridge regression is ``LocalGLM`` or ``PrivateGLM`` with the identity link.

    Args:
        budget: of any notion but ``PureDP``, of both.
        people: their number.
        trust_model: "local" or "central".
        dimension: d.
        designs: the designs: "narrow", "step", "rare", "mixed".
        runs: at least 2.
        seed: the seed of all random numbers.

    Returns:
        A frame with a row for each design and error ("absolute", the mean of |<x, error>|, and
        "squared", that of its square): ``ridge`` and ``weighted``, the means over runs at the best
        settings; ``ratio``, weighted over ridge, and its ``low`` and ``high``, two standard errors
        away by the jackknife, which ignores the choice of settings; ``zero``, the error of the
        estimate zero.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.papers.glm import compare_with_ridge
        >>> frame = compare_with_ridge(budget=ZCDP(5.0), people=300, designs=["narrow"], runs=2)
        >>> frame[["design", "error"]].values.tolist()
        [['narrow', 'absolute'], ['narrow', 'squared']]
    """
    import pandas as pd  # slow to import

    choice("trust_model", trust_model, ("central", "local"))
    people, dimension = integer("people", people, 10), integer("dimension", dimension, 1, 1000)
    runs, seed = integer("runs", runs, 2), integer("seed", seed, 0)
    if not designs:
        raise ArgumentError("designs must name at least one design", "designs")
    rows: list[dict[str, Any]] = []
    for name in designs:
        features = DESIGNS[choice("designs", name, tuple(DESIGNS))]
        errors = np.array(
            [
                _errors(features, people, dimension, budget, trust_model, seed + run)
                for run in range(runs)
            ]
        )  # (runs, methods, settings, kinds of error)
        for kind, error in enumerate(("absolute", "squared")):
            both = errors[..., kind]
            best = both.mean(axis=0).argmin(axis=1)
            ridge, weighted = both[:, 0, best[0]], both[:, 1, best[1]]
            low, ratio, high = _ratio(weighted, ridge)
            means = {"ridge": ridge.mean(), "weighted": weighted.mean()}
            zero = both[:, 2, 0].mean()
            bounds = {"ratio": ratio, "low": low, "high": high, "zero": zero}
            rows.append({"design": name, "people": people, "error": error, **means, **bounds})
    return pd.DataFrame(rows)


def _errors(
    features: Features, people: int, dimension: int, budget: Budget, trust_model: str, seed: int
) -> list[list[tuple[float, float]]]:
    """The errors of ridge, of information weights, and of zero, for every setting."""
    rng = np.random.default_rng(seed)
    x = features(people, dimension, rng)
    y, theta = linear_outcomes(x, rng)
    plain = LocalGLM if trust_model == "local" else PrivateGLM
    shared: dict[str, Any] = {"budget": budget, "outcome_range": _RANGE, "seed": seed}

    def error(estimate: np.ndarray) -> tuple[float, float]:
        missed = x @ (estimate - theta)
        return float(np.abs(missed).mean()), float((missed**2).mean())

    of_ridge, of_weights = [], []
    for ridge, weight in itertools.product(_RIDGES, _HESSIAN_WEIGHTS):
        added = None if ridge is None else ridge * people
        model = plain("identity", ridge=added, hessian_weight=weight, **shared)
        of_ridge.append(error(model.fit(x, y).coef_))
    for ridge, share in itertools.product(_RIDGES, _WEIGHT_SHARES):
        weighted = InformationWeightedGLM(
            "identity", trust_model=trust_model, ridge=ridge, weight_share=share, **shared
        )
        of_weights.append(error(weighted.fit(x, y).coef_))
    return [of_ridge, of_weights, [error(np.zeros(dimension))] * len(of_ridge)]


def _ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, float, float]:
    """The ratio of means, with two standard errors of its logarithm to both sides (jackknife)."""
    n = len(above)
    left_out = np.log((above.sum() - above) / (below.sum() - below))
    spread = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
    middle = math.log(above.mean() / below.mean())
    return tuple(math.exp(middle + 2.0 * k * spread) for k in (-1, 0, 1))  # type: ignore[return-value]
