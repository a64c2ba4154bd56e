"""Linear bandits, and contexts.

**Theorem 9** holds for rho <= 1, but not by its proof, which loses a factor 2.  Let s be the size
of a coordinate.  By Markov's inequality a sign that is wrong in half of T rounds costs s T / 2,
with probability exp(-KL) / 4 on average over signs.  Every round's distance is at most s.  So
E[(their sum)^2] <= (s T)^2 and KL <= rho ((s T)^2 + s T).  For s T = c / sqrt(rho) that is a
regret of d c / (8 sqrt(rho)) exp(-c^2 - c sqrt(rho)).  It is largest at c = (sqrt(rho + 8) -
sqrt(rho)) / 4, and exceeds the printed exp(-9/4) / 4 for all rho <= 1.

**Phased elimination** (Azize & Basu 2024, Algorithm 2).  Except with probability b, every mean of
phase l is within B = unit 2^-l.  Then the best arm stays, and every arm played in phase l + 1 has a
gap of at most 4 B.  A phase has at most c rounds, and one more for every arm of the design.  A
design has at most d (d + 1) / 2 arms.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....algorithms import AdaCOFUL, Linear
from ....privacy import Laplace
from ....theory.bounds import Values, bound
from ....theory.promises import Applied, World, promises_of
from ..gope import GOPE, AdaCGOPE
from ..phases import CHERNOFF, PUBLISHED
from .arms import PAPER, rho_of

_PHASES = 64  # the last lasts longer than any horizon
_DESIGN = 1.01  # what rounding and tolerances may add to a phase


@bound(
    "upper",
    "regret",
    source=f"{PAPER}, Theorem 4",
    constants="order",
    holds="corrected",
    because="its constants are not universal: they hide the dimension in f = d + 2 sqrt(d L) + 2 L",
    assumes="|a| <= 1, |theta| <= 1, rewards in [-1, 1]; with probability 1 - delta",
)
def adac_gope(horizon: Values, dimension: int, n_arms: int, rho: float, delta: float) -> Values:
    """AdaC-GOPE: of order sqrt(d T L) + d sqrt(max(d, L) / rho) ln T, L = ln(K ln(T) / delta)."""
    t, d = np.asarray(horizon, float), dimension
    log = np.log(n_arms * np.maximum(np.log(t), 1.0) / delta)  # one phase at least
    return np.sqrt(d * t * log) + d * np.sqrt(np.maximum(d, log) / rho) * np.log(t)


@bound(
    "upper",
    source=f"{PAPER}, Table I, Theorem 4",
    constants="order",
    holds="corrected",
    because="printed with ln(K T)^(3/2) for sqrt(max(d, ln(K T))) ln(T): see Theorem 4",
    assumes="as Theorem 4, with delta = 1 / T",
)
def adac_gope_expected(horizon: Values, dimension: int, n_arms: int, rho: float) -> Values:
    """AdaC-GOPE: of order sqrt(d T ln(K T)) + d sqrt(max(d, ln(K T)) / rho) ln(T)."""
    t, d = np.asarray(horizon, float), dimension
    log = np.log(n_arms * t)
    return np.sqrt(d * t * log) + d * np.sqrt(np.maximum(d, log) / rho) * np.log(t)


@bound(
    "upper",
    source=f"{PAPER}, Table II (Hanna et al. 2022, eq. 17)",
    constants="order",
    assumes="|a| <= 1, |theta| <= 1, rewards in [-1, 1]",
)
def hanna_converted(horizon: Values, dimension: int, n_arms: int, rho: float) -> Values:
    """GOPE with noise on sums, at epsilon = sqrt(2 rho): of order sqrt(d T ln(K T)) + d^2 ln(K T)^2
    / sqrt(rho).
    """
    t, d = np.asarray(horizon, float), dimension
    log = np.log(n_arms * t)
    return np.sqrt(d * t * log) + d**2 * log**2 / np.sqrt(rho)


@bound(
    "lower",
    "minimax regret",
    source=f"{PAPER}, Theorem 9",
    holds="corrected",
    because="its proof loses a factor 2, and it needs rho <= 1, where linear_zcdp_sharp is larger",
    assumes="rho <= 1; arms [-1, 1]^d, normal rewards of variance 1, rho-interactive zCDP",
)
def linear_zcdp(horizon: Values, dimension: int, rho: float) -> Values:
    """Linear bandits: max(exp(-2) / 8 d sqrt(T), exp(-9/4) / 4 d / sqrt(rho)).

    >>> round(float(linear_zcdp(100, dimension=8, rho=1e-6)), 2)
    210.8
    """
    free = np.exp(-2.0) / 8.0 * dimension * np.sqrt(np.asarray(horizon, float))
    private = np.exp(-2.25) / 4.0 * dimension / np.sqrt(rho) if rho <= 1.0 else 0.0
    return np.maximum(free, private)


@bound(
    "lower",
    "minimax regret",
    source=f"after {PAPER}, Theorem 9",
    assumes="arms [-1, 1]^d; normal rewards of variance 1, rho-interactive zCDP",
)
def linear_zcdp_sharp(horizon: Values, dimension: int, rho: float) -> Values:
    """Linear bandits: max(exp(-2) / 8 d sqrt(T), c exp(-c^2 - c sqrt(rho)) / 8 d / sqrt(rho)), c =
    (sqrt(rho + 8) - sqrt(rho)) / 4.
    """
    free = np.exp(-2.0) / 8.0 * dimension * np.sqrt(np.asarray(horizon, float))
    c = (np.sqrt(rho + 8.0) - np.sqrt(rho)) / 4.0
    return np.maximum(free, c * np.exp(-(c**2) - c * np.sqrt(rho)) / 8.0 * dimension / np.sqrt(rho))


@promises_of(AdaCGOPE)
def _adac_gope(policy: AdaCGOPE, world: World) -> Iterator[Applied]:
    params = policy.params
    if world.is_stationary and world.is_linear(params.arms, params.width):
        k, d = params.arms.shape
        given = {"dimension": d, "n_arms": k, "rho": rho_of(params.noise_scale / params.width)}
        yield adac_gope, {**given, "delta": params.failure_probability}


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
    phase = np.arange(1, _PHASES)
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
    """GOPE and AdaC-GOPE: the cost of phases, plus failure_probability T for errors.

    In units of the reward range: ``noise`` is the standard deviation of the noise on a sum.
    ``deviation`` is the subgaussian deviation of rewards.  ``unit`` is the factor of 2^-l in
    half-widths. ``published``: phases as long as in eq. (4).
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
        given = {
            "dimension": d,
            "n_arms": k,
            "noise": params.noise_scale / params.width,
            "failure_probability": params.failure_probability,
            "deviation": params.variance_proxy**0.5 / params.width,
            "unit": params.unit / params.width,
            "published": params.rule == PUBLISHED,
        }
        yield gope, given


# Contexts -------------------------------------------------------------------------------------


@bound(
    "upper",
    "regret",
    source=f"{PAPER}, Theorem 5",
    constants="order",
    assumes=(
        "public contexts, drawn independently, with the least eigenvalue and the variance of"
        " Assumption 2; |x| = 1, |theta| <= 1, rewards in [-1, 1]; with probability 1 - delta"
    ),
)
def adac_oful(horizon: Values, dimension: int, rho: float) -> Values:
    """AdaC-OFUL: of order d ln(T) sqrt(T) + d^2 ln(T)^2 / sqrt(rho)."""
    t, d = np.asarray(horizon, float), dimension
    return d * np.log(t) * np.sqrt(t) + d**2 * np.log(t) ** 2 / np.sqrt(rho)


@bound(
    "upper",
    source="Neel & Roth (2018), Theorem 5",
    constants="order",
    holds="void",
    because="it takes sum |x|_{V^-1} <= 2 d ln(1 + T / (lambda d)), which holds for the squares",
    assumes="public contexts, chosen by an adversary",
)
def linpriv_printed(horizon: Values, dimension: int, n_arms: int, epsilon: float) -> Values:
    """LinPriv: of order d sqrt(T) + K d ln(T) / epsilon, up to logarithms."""
    t, d = np.asarray(horizon, float), dimension
    return d * np.sqrt(t) + n_arms * d * np.log(t) / epsilon


@bound(
    "upper",
    source=f"{PAPER}, Appendix F-C",
    constants="order",
    holds="corrected",
    because="Neel & Roth (2018) have ln(T) in the place of the second sqrt(T)",
    assumes="public contexts, chosen by an adversary",
)
def linpriv(horizon: Values, dimension: int, n_arms: int, epsilon: float) -> Values:
    """LinPriv: of order d sqrt(T) + K d sqrt(T) / epsilon, up to logarithms."""
    t, d = np.asarray(horizon, float), dimension
    return d * np.sqrt(t) + n_arms * d * np.sqrt(t) / epsilon


@bound(
    "upper",
    source=f"{PAPER}, Section V-B",
    constants="order",
    holds="void",
    because="it is announced there, without a proof",
    assumes="AdaC-OFUL with contexts that are private, too",
)
def private_contexts(horizon: Values, rho: float) -> Values:
    """AdaC-OFUL with a private Gram matrix: of order sqrt(T) + sqrt(T / rho)."""
    return np.sqrt(np.asarray(horizon, float)) * (1.0 + 1.0 / np.sqrt(rho))


@promises_of(AdaCOFUL)
def _adac_oful(policy: Linear, world: World) -> Iterator[Applied]:
    if isinstance(policy.channel, Laplace):
        return  # Theorem 5 has normal noise, and no rho is that of other noise
    d = policy.params.dimension
    yield adac_oful, {"dimension": d, "rho": rho_of(policy.channel.multiplier)}
