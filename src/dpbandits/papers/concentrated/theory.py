"""Azize & Basu (2024), *Concentrated Differential Privacy for Bandits*: Theorems 1, 4 to 11, 16 and
17, Tables I and II, and LinPriv as they correct it.

Every formula was compared with its proof.  Differences are marked, and listed in docs/errata.md:

* **Theorem 9** holds for rho <= 1, but not by its proof, which loses a factor 2.  Let s be the size
  of a coordinate.  By Markov's inequality a sign that is wrong in half of T rounds costs s T / 2,
  with probability exp(-KL) / 4 on average over signs.  Every round's distance is at most s.  So
  E[(their sum)^2] <= (s T)^2 and KL <= rho ((s T)^2 + s T).  For s T = c / sqrt(rho) that is a
  regret of d c / (8 sqrt(rho)) exp(-c^2 - c sqrt(rho)).  It is largest at c = (sqrt(rho + 8) -
  sqrt(rho)) / 4, and exceeds the printed exp(-9/4) / 4 for all rho <= 1.
* **Theorem 10** rests on a decomposition (Theorem 11 of Azize & Basu 2022) that looks at a bad
  arm's index after one episode.  The argument here covers all episodes.  Let an arm's index be
  below mu_1 after all of its episodes of at least 2^l rounds, except with probability log2(T)
  T^-beta.  Then it is played in more than 2^(l + 1) rounds only in episodes that begin where the
  index of the best arm is below mu_1. An episode that begins in round t has at most t rounds, and
  is such with probability (1 + log2 t) t^-beta.  For beta > 3 both together are at most 2 beta /
  (beta - 3) rounds, as printed.

Bounds "after" the papers have constants that are derived here:

**AdaP-UCB and AdaP-KLUCB** (Azize & Basu 2022).  Noise of scale s / n on the mean of an episode of
n rounds, L = ln T.  A bad arm's index is below the best mean, except with probability 3/2 T^-alpha,
once its episodes have n rounds with sqrt(alpha L / 2n) + s alpha L / n <= gap / 2.  That holds from

    n* = alpha L (1 / sqrt(2) + sqrt(1/2 + 2 s gap))^2 / gap^2

on.  The rest is as for Theorem 10, with 3/2 for the two tails, that of Hoeffding and that of
Laplace noise.  It gives at most 4 n* + 3 alpha / (alpha - 3) rounds.  The index of AdaP-KLUCB is
never larger than that of AdaP-UCB (Pinsker), and below the true mean no more often (Chernoff).

**Phased elimination** (Azize & Basu 2024, Algorithm 2).  Except with probability b, every mean of
phase l is within B = unit 2^-l.  Then the best arm stays, and every arm played in phase l + 1 has a
gap of at most 4 B.  A phase has at most c rounds, and one more for every arm of the design.  A
design has at most d (d + 1) / 2 arms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...algorithms import AdaCOFUL, Linear
from ...privacy import Laplace
from ...theory.bounds import Array, Values, bound, positive, valid
from ...theory.promises import Applied, World, promises_of
from .episodes import AdaCUCB, AdaPKLUCB, AdaPUCB
from .gope import GOPE, AdaCGOPE
from .phases import CHERNOFF, PUBLISHED

PAPER = "Azize & Basu (2024)"
_ARMS = "beta > 3; stationary arms, rewards in [0, 1]"
_PHASES = 64  # the last lasts longer than any horizon
_DESIGN = 1.01  # what rounding and tolerances may add to a phase


# Finite arms ---------------------------------------------------------------------------------


@bound("upper", source=f"{PAPER}, Theorem 10", assumes=_ARMS)
def adac_ucb(horizon: Values, gaps: Array, rho: float, beta: float) -> Values:
    """AdaC-UCB: sum over positive gaps of 8 beta ln(T) / gap + 8 sqrt(beta ln(T) / rho) + 2 beta /
    (beta - 3).

    >>> round(adac_ucb(1000, gaps=[0.0, 0.5], rho=0.1, beta=4.0))
    583
    """
    log, gap = np.log(np.asarray(horizon, float))[..., None], positive(gaps)
    rest = 2.0 * beta / (beta - 3.0) if beta > 3.0 else np.inf
    return (8.0 * beta * log / gap + 8.0 * np.sqrt(beta * log / rho) + rest).sum(axis=-1)


@bound("upper", "minimax regret", source=f"{PAPER}, Theorem 11", assumes=_ARMS)
def adac_ucb_minimax(horizon: Values, n_arms: int, rho: float, beta: float) -> Values:
    """AdaC-UCB: 4 sqrt(2 beta K T ln T) + 8 K sqrt(beta ln(T) / rho) + 3 beta (K - 1) / (beta - 3).

    >>> round(adac_ucb_minimax(10**6, n_arms=5, rho=0.1, beta=4.0))
    95020
    """
    t, k = np.asarray(horizon, float), n_arms
    rest = 3.0 * beta / (beta - 3.0) * (k - 1) if beta > 3.0 else np.inf
    log = np.log(t)
    return 4.0 * np.sqrt(2.0 * beta * k * t * log) + 8.0 * k * np.sqrt(beta * log / rho) + rest


@bound("upper", source=f"{PAPER}, Table II", constants="order", assumes=_ARMS)
def adap_ucb_converted(horizon: Values, gaps: Array, rho: float, beta: float) -> Values:
    """AdaP-UCB at epsilon = sqrt(2 rho): sum of 8 beta ln(T) / gap + 8 sqrt(beta / rho) ln(T).

    The table has no proof of its constants, and ``adap_ucb`` comes to 11.3 beta / sqrt(rho)
    in the place of 8 sqrt(beta / rho).
    """
    log, gap = np.log(np.asarray(horizon, float))[..., None], positive(gaps)
    return (8.0 * beta * log / gap + 8.0 * np.sqrt(beta / rho) * log).sum(axis=-1)


@bound("upper", "minimax regret", source=f"{PAPER}, Table II", constants="order", assumes=_ARMS)
def adap_ucb_converted_minimax(horizon: Values, n_arms: int, rho: float) -> Values:
    """AdaP-UCB at epsilon = sqrt(2 rho): of order sqrt(K T ln T) + K ln(T) / sqrt(rho)."""
    t, k = np.asarray(horizon, float), n_arms
    return np.sqrt(k * t * np.log(t)) + k * np.log(t) / np.sqrt(rho)


@bound(
    "lower",
    "minimax regret",
    source=f"{PAPER}, Theorem 17",
    assumes="T >= K - 1, rho <= 1; normal rewards of variance 1, rho-interactive zCDP",
)
def arms_zcdp(horizon: Values, n_arms: int, rho: float) -> Values:
    """K arms: max(sqrt(T (K - 1)) / 27, sqrt((K - 1) / rho) / 124), the second for rho <= 1.

    >>> round(float(arms_zcdp(10**6, n_arms=5, rho=1e-8)), 1)
    161.3
    """
    t, k = np.asarray(horizon, float), n_arms
    private = np.sqrt((k - 1) / rho) / 124.0 if rho <= 1.0 else 0.0
    return valid(t >= k - 1, np.maximum(np.sqrt(t * (k - 1)) / 27.0, private), "lower")


@promises_of(AdaCUCB)
def _adac_ucb(policy: Any, world: World) -> Iterator[Applied]:
    params = policy.params
    given = {"rho": rho_of(params.noise_scale), "beta": params.constant}
    if world.is_stationary and policy.config["memory"].forgets:
        if world.gaps is not None:
            yield adac_ucb, {"gaps": world.gaps / params.width, **given}
        yield adac_ucb_minimax, {"n_arms": params.n_arms, **given}


@bound(
    "upper",
    source="after Azize & Basu (2022), AdaP-UCB",
    assumes="alpha > 3; stationary arms, rewards in [0, 1]",
)
def adap_ucb(horizon: Values, gaps: Array, noise: float, alpha: float) -> Values:
    """AdaP-UCB and AdaP-KLUCB, with ``noise`` s = 1 / epsilon: sum over positive gaps of 4 alpha
    ln(T) (sqrt(1/2) + sqrt(1/2 + 2 s gap))^2 / gap + 3 alpha / (alpha - 3).

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


# Linear bandits ------------------------------------------------------------------------------


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


# Contexts ------------------------------------------------------------------------------------


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


# Group privacy, and what it does to distributions ---------------------------------------------


@bound(
    "upper",
    "KL divergence between sequences of actions",
    source=f"{PAPER}, Theorem 1",
    assumes="rho-interactive zCDP; the actions of the history are the same",
)
def group_actions(rho: float, changed: float) -> float:
    """The divergence for two sequences of rewards that differ in so many rounds: rho changed^2, for
    the sum over rounds of KL(pi_t given one || pi_t given the other).
    """
    return rho * changed**2


@bound(
    "upper",
    "Renyi divergence",
    source=f"{PAPER}, Theorem 16 (Bun & Steinke 2016, Proposition 27)",
    assumes="rho-zCDP, alpha >= 1",
)
def group_renyi(rho: float, changed: float, alpha: float) -> float:
    """Between outputs on data that differ in so many records: rho changed^2 alpha."""
    return rho * changed**2 * alpha if alpha >= 1.0 else np.inf


@bound("upper", "KL divergence between outputs", source=f"{PAPER}, Theorem 6", assumes="rho-zCDP")
def kl_transport(rho: float, mean_square: float) -> float:
    """The divergence for data from two laws: rho times the mean of d_Ham(d, d')^2 under any
    coupling of them.
    """
    return rho * mean_square


@bound(
    "upper",
    "KL divergence between outputs",
    source=f"{PAPER}, Theorem 7",
    assumes="rho-zCDP, independent records",
)
def kl_product(rho: float, distances: Array) -> float:
    """The divergence for data from two product laws: rho ((sum t_i)^2 + sum t_i (1 - t_i)), t_i the
    total variation distances of the records' laws.

    >>> round(kl_product(0.5, [0.2, 0.2]), 3)
    0.24
    """
    t = np.asarray(distances, float)
    return kl_transport(rho, float(t.sum() ** 2 + (t * (1.0 - t)).sum()))


@bound(
    "upper",
    "KL divergence between sequences of actions",
    source=f"{PAPER}, Theorem 8",
    assumes="rho-interactive zCDP",
)
def kl_bandits(rho: float, mean: float, within: float, variance: float) -> float:
    """The divergence of a policy's actions in two environments: rho (mean^2 + within + variance).

    t_a is the total variation distance of the laws of arm a's rewards.  ``mean`` and ``variance``
    are those of the sum of t_a over the rounds.  ``within`` is the mean of the sum of t_a (1 -
    t_a).
    """
    return kl_transport(rho, mean**2 + within + variance)


@bound(
    "upper",
    "delta of Table DP",
    source=f"{PAPER}, Proposition 1 (d)",
    assumes="(epsilon, delta)-View DP",
)
def table_delta(delta: float, n_arms: int, horizon: Values) -> Values:
    """The delta of Table DP that (epsilon, delta)-View DP implies at the same epsilon: delta K^T,
    if below 1.
    """
    growth = np.asarray(horizon, float) * np.log(n_arms)
    return np.exp(np.minimum(np.log(delta) + growth, 0.0)) if delta > 0.0 else 0.0 * growth


def rho_of(multiplier: float) -> float:
    """The rho of Gaussian noise of so many sensitivities; infinite without noise."""
    return np.inf if multiplier == 0.0 else 0.5 / multiplier**2
