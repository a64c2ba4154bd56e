"""Regret of policies whose papers have no module of their own, with constants derived here; their
sources say "after" and the authors of the policy.

**DP-SE** (Sajed & Sheffet 2019).  Let D = 2^-e.  Except with probability b pi^2 / 12, all means of
epoch e are within D / 8 for sampling, and D / 8 for noise.  Then the best arm stays, and an arm of
gap above D is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...theory.bounds import Array, Values, bound, positive
from ...theory.promises import Applied, World, promises_of
from ...theory.searches import search_error
from .adap_tt import AdaPTT
from .elimination import DPSE, DPSEBAI

_EPOCHS = 64  # the last lasts longer than any horizon


def _rounds_of_arms(gaps: Array, noise: float, failure_probability: float) -> np.ndarray:
    """After how many rounds of it every arm is gone; the last two go together.

    >>> _rounds_of_arms([0.0, 0.4], 1.0, 0.1).tolist()
    [3961.0, 3961.0]
    """
    gap = np.asarray(gaps, float)
    epoch = np.arange(1, _EPOCHS)
    crowd = gap.size * epoch**2 / failure_probability
    sampling, privacy = 32.0 * np.log(8.0 * crowd) * 4.0**epoch, 8.0 * np.log(4.0 * crowd) * noise
    rounds = np.ceil(1.0 + np.maximum(sampling, privacy * 2.0**epoch)).cumsum()
    rival = positive(gap).min() if (gap > 0.0).any() else 0.0
    last = np.floor(-np.log2(np.maximum(np.maximum(gap, rival), 2.0 ** -(_EPOCHS - 2.0))))
    return rounds[last.astype(int)]


@bound(
    "upper",
    source="after Sajed & Sheffet (2019), DP-SE",
    assumes="stationary arms, rewards in [0, 1]",
)
def dpse(horizon: Values, gaps: Array, noise: float, failure_probability: float) -> Values:
    """DP-SE: the cost of its epochs until every bad arm is gone, and b pi^2 / 12 T for errors."""
    t, gap = np.asarray(horizon, float), np.asarray(gaps, float)
    rounds = _rounds_of_arms(gap, noise, failure_probability)
    error = np.pi**2 / 12.0 * failure_probability * t * gap.max()
    return (gap * np.minimum(t[..., None], rounds)).sum(axis=-1) + error


@bound(
    "upper",
    "rounds until a search is over",
    source="after Sajed & Sheffet (2019), DP-SE",
    assumes="stationary arms, rewards in [0, 1]; with probability 1 - failure_probability",
)
def dpse_search(gaps: Array, noise: float, failure_probability: float) -> float:
    """DP-SE as a search for the best arm: rounds until one arm is left."""
    return float(_rounds_of_arms(gaps, noise, failure_probability).sum())


@promises_of(DPSE)
def _dpse(policy: DPSE, world: World) -> Iterator[Applied]:
    if world.gaps is not None:
        yield dpse, _of_elimination(policy, world.gaps)


@promises_of(DPSEBAI)
def _dpse_search(policy: DPSEBAI, world: World) -> Iterator[Applied]:
    if world.gaps is not None and (world.gaps > 0.0).any():
        yield dpse_search, _of_elimination(policy, world.gaps)


def _of_elimination(policy: DPSE | DPSEBAI, gaps: np.ndarray) -> dict[str, object]:
    params = policy.params
    return {
        "gaps": gaps / params.width,
        "noise": params.noise_scale / params.width,
        "failure_probability": params.failure_probability,
    }


@promises_of(DPSEBAI, AdaPTT)
def _search_error(policy: DPSEBAI | AdaPTT, world: World) -> Iterator[Applied]:
    if world.is_stationary:
        yield search_error, {"failure_probability": policy.arguments["failure_probability"]}
