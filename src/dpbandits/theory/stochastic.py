"""Regret of further policies for stationary arms, with constants that are derived here, "after"
whoever published the policy.

**AdaP-UCB and AdaP-KLUCB** (Azize & Basu 2022).  Noise of scale s / n on the mean of an episode of
n rounds, L = ln T.  A bad arm's index is below the best mean, but with probability 3/2 T^-alpha,
once its episodes have n rounds with sqrt(alpha L / 2n) + s alpha L / n <= gap / 2; that is so from

    n* = alpha L (1 / sqrt(2) + sqrt(1/2 + 2 s gap))^2 / gap^2

on.  What follows is as told of Theorem 10 in ``concentrated``, with 3/2 for the two tails, that of
Hoeffding and that of Laplace noise: at most 4 n* + 3 alpha / (alpha - 3) rounds.  The index of
AdaP-KLUCB is never larger than that of AdaP-UCB (Pinsker), and below the true mean no more often
(Chernoff).

**DP-SE** (Sajed & Sheffet 2019).  But with probability b pi^2 / 12 all means of epoch e are within
D / 8 for sampling, and D / 8 for noise, D = 2^-e: the best arm stays, and an arm of gap above D
goes.

**Phased elimination** (Azize & Basu 2024, Algorithm 2).  But with probability b every mean of phase
l is within B = unit 2^-l: the best arm stays, and whoever is played in phase l + 1 has a gap of at
most 4 B.  A phase has at most c rounds, and one for every arm of the design, of which there are at
most d (d + 1) / 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..algorithms import DPSE, DPSEBAI, GOPE, AdaCGOPE, AdaPKLUCB, AdaPTT, AdaPUCB, BestArm
from ..algorithms.phased.phases import CHERNOFF, PUBLISHED
from .bounds import Values, bound
from .concentrated import Array, positive
from .promises import Applied, World, promises_of

_EPOCHS = 64  # the last lasts longer than any horizon
_DESIGN = 1.01  # what rounding and tolerances may add to a phase


@bound(
    "upper",
    source="after Azize & Basu (2022), AdaP-UCB",
    assumes="alpha > 3; stationary arms, rewards in [0, 1]",
)
def adap_ucb(horizon: Values, gaps: Array, noise: float, alpha: float) -> Values:
    """AdaP-UCB and AdaP-KLUCB: sum over positive gaps of 4 alpha ln(T) (sqrt(1/2) + sqrt(1/2 + 2 s
    gap))^2 / gap + 3 alpha / (alpha - 3), ``noise`` s = 1 / epsilon.

    >>> round(float(adap_ucb(1000, gaps=[0.5], noise=1.0, alpha=4.0)))
    837
    """
    log, gap = np.log(np.asarray(horizon, float))[..., None], positive(gaps)
    rest = 3.0 * alpha / (alpha - 3.0) if alpha > 3.0 else np.inf
    root = np.sqrt(0.5) + np.sqrt(0.5 + 2.0 * noise * gap)
    return (4.0 * alpha * log * root**2 / gap + rest).sum(axis=-1)


@promises_of(AdaPUCB, AdaPKLUCB)
def _adap_ucb(policy: Any, world: World) -> Iterator[Applied]:
    params = policy.params
    if world.gaps is not None:
        given = {"gaps": world.gaps / params.width, "noise": params.noise_scale}
        yield adap_ucb, {**given, "alpha": params.constant}


# DP-SE ---------------------------------------------------------------------------------------


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
    """DP-SE: what its epochs cost until every bad arm is gone, and b pi^2 / 12 T for errors."""
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


@bound(
    "upper",
    "probability of a wrong recommendation",
    source="module docstrings of the searches",
    assumes="stationary arms, rewards in [0, 1]",
)
def search_error(failure_probability: float) -> float:
    """Searches for the best arm: the probability that they were asked for."""
    return failure_probability


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


@promises_of(DPSEBAI, AdaPTT, BestArm)
def _search_error(policy: DPSEBAI | AdaPTT | BestArm, world: World) -> Iterator[Applied]:
    probability = policy.config["failure_probability"]
    if world.is_stationary and probability is not None:
        yield search_error, {"failure_probability": probability}


# Phased elimination --------------------------------------------------------------------------


def _phases(
    d: int,
    n_arms: int,
    noise: float,
    failure_probability: float,
    deviation: float,
    unit: float,
    published: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """B, and at most how many rounds, of every phase."""
    phase = np.arange(1, _EPOCHS)
    width = unit * 2.0**-phase
    log = np.log(2.0 * n_arms * phase * (phase + 1.0) / failure_probability)
    if published:
        f = d + 2.0 * np.sqrt(d * log) + 2.0 * log
        sure = 8.0 * d * deviation**2 * (log + np.log(2.0)) / width**2
        rounds = sure + 2.0 * d * noise * np.sqrt(f) / width
    else:
        sure = log * d * deviation**2
        rounds = (sure + np.sqrt(sure**2 + 2.0 * log * (noise * d * width) ** 2)) / width**2
    return width, _DESIGN * rounds + d * (d + 1) / 2


@bound(
    "upper",
    source="after Azize & Basu (2024), Theorem 4",
    assumes="fixed arms with linear means, rewards in the range that scatter as ``deviation`` says",
)
def gope(
    horizon: Values,
    dimension: int,
    n_arms: int,
    noise: float,
    failure_probability: float,
    deviation: float = 0.5,
    unit: float = 0.5,
    published: bool = False,
) -> Values:
    """GOPE and AdaC-GOPE: what phases cost, and failure_probability T for errors.

    In units of the reward range: ``noise`` is the standard deviation of that on a sum,
    ``deviation`` how far rewards scatter (subgaussian), ``unit`` what half-widths are halves of.
    ``published``: phases as long as in eq. (4).
    """
    t = np.asarray(horizon, float)
    width, rounds = _phases(
        dimension, n_arms, noise, failure_probability, deviation, unit, published
    )
    ends = rounds.cumsum()
    begins = np.concatenate([[0.0], ends[:-1]])
    worst = np.minimum(8.0 * width, 1.0)  # 4 B of the phase before
    played = np.clip(t[..., None] - begins, 0.0, ends - begins)
    return (worst * played).sum(axis=-1) + failure_probability * t


@promises_of(GOPE, AdaCGOPE)
def _gope(policy: GOPE | AdaCGOPE, world: World) -> Iterator[Applied]:
    params = policy.params
    # Rewards in the range scatter by half of it at most; of known ones less is not taken on trust.
    trusted = world.environment is None or params.variance_proxy >= params.width**2 / 4.0
    linear = world.is_stationary and world.is_linear(params.arms, params.width)
    if trusted and linear and params.rule in (CHERNOFF, PUBLISHED):
        k, d = params.arms.shape
        yield (
            gope,
            {
                "dimension": d,
                "n_arms": k,
                "noise": params.noise_scale / params.width,
                "failure_probability": params.failure_probability,
                "deviation": params.variance_proxy**0.5 / params.width,
                "unit": params.unit / params.width,
                "published": params.rule == PUBLISHED,
            },
        )
