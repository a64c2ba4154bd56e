"""Lower bounds for every policy, as cited by the papers, and the instances behind them.

**Asymptotic.**  Take a policy with o(T^p) regret in every environment, for all p > 0.  It plays a
bad arm until its law is told from one under which it is the best.  That takes ln(T) rounds over the
divergence that the policy can see.  Without privacy that is kl (Lai & Robbins 1985).  Under
epsilon-DP a change of n records moves the log-probability of actions by at most epsilon n.  So it
costs no more to move some rewards first: d_epsilon(m, q) = min over z of kl(z, q) + epsilon |z - m|
(Azize et al. 2025).  With reports that are epsilon-LDP it is at most min(4, e^2epsilon) (e^epsilon
- 1)^2 times the squared total variation distance (Duchi, Jordan & Wainwright 2013, Theorem 1).

**Minimax.**  Arm 1 is better by D than all others.  The policy plays some other arm in at most T /
(K - 1) rounds on average.  In the second environment that arm is better by D than arm 1.  A policy
that cannot tell the two apart has a regret of D T / 2 in one of them (Bretagnolle & Huber):

    the larger of the two regrets  >=  (D T / 8) exp(-divergence of actions) ,

and the divergence is at most the least of these, with n = T / (K - 1), t the total variation
distance and kl the divergence of the changed arm's rewards:

    n kl ,      epsilon n t ,      rho (n T t^2 + n t)      (Theorem 8, with E[N^2] <= T E[N]) ,

and c n t^2 for reports that are epsilon-LDP, c as above.  The second is group privacy of pure DP
with a maximal coupling, round by round.  For normal rewards
of variance 1 kl = 2 D^2 and t <= D; for coins with 1/2, 1/2 + D and 1/2 + 2 D, kl = -ln(1 - 16 D^2)
/ 2 and t = 2 D.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.special import rel_entr

from ..algorithms.bases.fixed_features import FixedFeaturesPolicy
from ..environments import Bernoulli
from ..policies import Policy
from ..privacy import PureDP
from .bounds import Array, Values, bound, valid
from .promises import Applied, World, promises_of

_GAPS = 400  # values of D among which the best one is found
_CONSISTENT = "stationary coins, and a policy whose regret is o(T^p) in all of them, p > 0"
_PRIVATE = f"{_CONSISTENT}; epsilon-DP"
_minimax = partial(bound, "lower", "minimax regret")


def bernoulli_kl(p: Values, q: Values) -> Values:
    """KL(Bernoulli(p) || Bernoulli(q)).

    >>> round(float(bernoulli_kl(0.5, 0.75)), 4)
    0.1438
    """
    p, q = np.asarray(p, float), np.asarray(q, float)
    return rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q)


def private_divergence(mean: Values, best: float, epsilon: float) -> Values:
    """d_epsilon(mean, best) for coins, mean <= best.

    The derivative of kl(z, q) by z is ln(z (1 - q) / ((1 - z) q)).  The minimum is where that is
    -epsilon, or at z = mean if it is larger there already.

    >>> round(float(private_divergence(0.05, 0.95, np.sqrt(2.0))), 3)
    1.199
    """
    mean = np.asarray(mean, float)
    odds = best * np.exp(-epsilon)
    z = np.maximum(mean, odds / (1.0 - best + odds))
    return bernoulli_kl(z, best) + np.where(z > mean, epsilon * (z - mean), 0.0)


def free_epsilon(mean: float, best: float) -> float:
    """The epsilon from which on pure DP costs nothing asymptotically for a bad arm: the log odds
    ratio of the two means.

    >>> round(free_epsilon(0.25, 0.75), 3)
    2.197
    """
    return float(np.log(best * (1.0 - mean)) - np.log((1.0 - best) * mean))


def _asymptotic(
    horizon: Values, means: Array, divergence: Callable[[Values, float], Values]
) -> Values:
    means = np.asarray(means, float)
    gaps, needed = means.max() - means, np.asarray(divergence(means, means.max()))
    bad = gaps > 0.0
    return np.log(np.asarray(horizon, float)) * (gaps[bad] / needed[bad]).sum()


@bound("lower", source="Lai & Robbins (1985)", constants="asymptotic", assumes=_CONSISTENT)
def lai_robbins(horizon: Values, means: Array) -> Values:
    """Coins without privacy, and under zCDP: ln(T) times the sum of gap / kl(mean, best)."""
    return _asymptotic(horizon, means, bernoulli_kl)


@bound("lower", source="Azize, Wu, Honda et al. (2025)", constants="asymptotic", assumes=_PRIVATE)
def pure_asymptotic(horizon: Values, means: Array, epsilon: float) -> Values:
    """Coins under pure DP: ln(T) times the sum of gap / d_epsilon(mean, best)."""
    return _asymptotic(horizon, means, lambda m, best: private_divergence(m, best, epsilon))


@bound(
    "lower",
    source="Azize & Basu (2022), Theorem 4, without its factor 6",
    constants="asymptotic",
    assumes=_PRIVATE,
)
def pure_asymptotic_first(horizon: Values, means: Array, epsilon: float) -> Values:
    """Coins under pure DP: ln(T) times the sum of gap / min(kl(mean, best), epsilon gap); at most
    ``pure_asymptotic``.
    """

    def least(mean: Values, best: float) -> Values:
        return np.minimum(bernoulli_kl(mean, best), epsilon * (best - mean))

    return _asymptotic(horizon, means, least)


@bound(
    "lower",
    source="Duchi, Jordan & Wainwright (2013), Theorem 1, with Lai & Robbins (1985)",
    constants="asymptotic",
    assumes=f"{_CONSISTENT}; epsilon-LDP reports",
)
def local_asymptotic(horizon: Values, means: Array, epsilon: float) -> Values:
    """Coins under local DP: ln(T) times the sum of gap / min(kl, c gap^2), with c = min(4,
    e^2epsilon) (e^epsilon - 1)^2 (compare Basu, Dimitrakakis & Tossou 2019).
    """

    def least(mean: Values, best: float) -> Values:
        return np.minimum(bernoulli_kl(mean, best), contraction(epsilon) * (best - mean) ** 2)

    return _asymptotic(horizon, means, least)


def contraction(epsilon: float) -> float:
    """An upper bound on the divergence of epsilon-LDP reports per squared total variation
    distance.
    """
    return min(4.0, float(np.exp(2.0 * epsilon))) * float(np.expm1(epsilon)) ** 2


@bound(
    "lower",
    source="Shariff & Sheffet (2018)",
    constants="order",
    assumes="epsilon-DP, stationary arms",
)
def shariff_sheffet(horizon: Values, n_arms: int, epsilon: float) -> Values:
    """The additional regret under pure DP: of order K ln(T) / epsilon."""
    return n_arms * np.log(np.asarray(horizon, float)) / epsilon


# Minimax -------------------------------------------------------------------------------------


@_minimax(
    source="Lattimore & Szepesvári (2020), Theorem 15.2",
    assumes="T >= K - 1; normal rewards of variance 1",
)
def arms_minimax(horizon: Values, n_arms: int) -> Values:
    """K arms without privacy: sqrt(T (K - 1)) / 27."""
    t = np.asarray(horizon, float)
    return valid(t >= n_arms - 1, np.sqrt(t * (n_arms - 1)) / 27.0, "lower")


@_minimax(
    source="Azize & Basu (2022), Theorem 5",
    assumes="T >= K - 1, epsilon <= 1; normal rewards of variance 1, epsilon-DP",
)
def arms_pure(horizon: Values, n_arms: int, epsilon: float) -> Values:
    """K arms under pure DP: max(sqrt(T (K - 1)) / 27, (K - 1) / (22 epsilon)); 8 e = 21.7 is
    rounded up.
    """
    private = (n_arms - 1) / (22.0 * epsilon) if epsilon <= 1.0 else 0.0
    t = np.asarray(horizon, float)
    return valid(t >= n_arms - 1, np.maximum(arms_minimax(t, n_arms), private), "lower")


@_minimax(
    source="Lattimore & Szepesvári (2020), Theorem 24.1",
    assumes="arms [-1, 1]^d; normal rewards of variance 1",
)
def linear_minimax(horizon: Values, dimension: int) -> Values:
    """Linear bandits without privacy: exp(-2) / 8 d sqrt(T)."""
    return np.exp(-2.0) / 8.0 * dimension * np.sqrt(np.asarray(horizon, float))


@_minimax(
    source="after Azize & Basu (2022), Theorem 6",
    assumes="arms [-1, 1]^d; normal rewards of variance 1, epsilon-DP",
)
def linear_pure(horizon: Values, dimension: int, epsilon: float) -> Values:
    """Linear bandits under pure DP: max(exp(-2) / 8 d sqrt(T), exp(-1) / 8 d / epsilon).

    As ``linear_zcdp_sharp``, with coordinates of 1 / (epsilon T): a divergence of 1.
    """
    private = np.exp(-1.0) / 8.0 * dimension / epsilon
    return np.maximum(linear_minimax(horizon, dimension), private)


@bound(
    "lower",
    "regret in the worse of two environments",
    source="Azize & Basu (2024), proof of Theorem 17, with coins",
    assumes="coins with 1/2 + D and 1/2, and one of the others raised to 1/2 + 2 D; D < 1/4",
)
def two_coins(
    horizon: Values,
    n_arms: int,
    gap: Values,
    rho: float = np.inf,
    epsilon: float = np.inf,
    local_epsilon: float = np.inf,
) -> Values:
    """(D T / 8) exp(-divergence), for the least divergence that privacy or chance allow.

    >>> round(float(two_coins(1000, n_arms=2, gap=0.01)), 3)
    0.561
    """
    t, k = np.asarray(horizon, float), n_arms
    n, distance = t / (k - 1), 2.0 * np.asarray(gap, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = n * np.maximum(-0.5 * np.log1p(-4.0 * distance**2), 0.0)
    if rho < np.inf:
        divergence = np.fmin(divergence, rho * (n * t * distance**2 + n * distance))
    if epsilon < np.inf:
        divergence = np.fmin(divergence, epsilon * n * distance)
    if local_epsilon < np.inf:
        divergence = np.fmin(divergence, contraction(local_epsilon) * n * distance**2)
    return valid(distance < 0.5, t * gap / 8.0 * np.exp(-divergence), "lower")


@_minimax(
    source="Azize & Basu (2024), proof of Theorem 17, with coins", assumes="rewards in [0, 1]"
)
def coins_minimax(
    horizon: Values,
    n_arms: int,
    rho: float = np.inf,
    epsilon: float = np.inf,
    local_epsilon: float = np.inf,
) -> Values:
    """K coins: the largest ``two_coins`` of any gap.

    >>> round(float(coins_minimax(10**4, n_arms=2)), 2)
    1.9
    """
    t = np.asarray(horizon, float)
    gaps = np.geomspace(1e-9, 0.249, _GAPS)
    regrets = two_coins(t[..., None], n_arms, gaps, rho, epsilon, local_epsilon)
    return np.asarray(regrets).max(axis=-1)


@bound(
    "lower",
    "mean regret over all signs",
    source="Azize & Basu (2024), proof of Theorem 9, with rewards -1 and 1",
    assumes="each of d hidden signs shows in ``rounds`` rounds, by means of +-size",
)
def hidden_signs(
    rounds: Values, dimension: int, size: float, rho: float = np.inf, largest: float | None = None
) -> Values:
    """d (s n / 4) exp(-divergence): of corners of a hypercube (n = T), or of axes (n = T / d).

    A wrong sign costs 2 s in its rounds.  In two worlds that differ in one sign, these rewards have
    a total variation distance of s.  So the divergence is at most 2 n s^2 / (1 - m^2), where m =
    ``largest`` bounds all means (s by default).  Under zCDP it is at most rho (n^2 s^2 + n s).

    >>> round(float(hidden_signs(10_000, dimension=2, size=0.005)), 2)
    15.16
    """
    n, most = np.asarray(rounds, float), max(size, 0.0 if largest is None else largest)
    divergence = 2.0 * n * size**2 / max(1.0 - most**2, 1e-12)
    if rho < np.inf:
        divergence = np.minimum(divergence, rho * ((n * size) ** 2 + n * size))
    return valid(most < 1.0, dimension * size * n / 4.0 * np.exp(-divergence), "lower")


@promises_of(Policy)
def _any(policy: Policy, world: World) -> Iterator[Applied]:
    """Lower bounds for every policy without knowledge of the arms, with coins as rewards."""
    if policy.sees or isinstance(policy, FixedFeaturesPolicy) or policy.retired:
        return  # what is retired is not played, and costs nothing
    if not isinstance(world.environment, Bernoulli) or np.ptp(world.environment.means()) == 0.0:
        return
    given, holds = {"means": world.environment.means()}, policy.guarantee.holds
    if isinstance(holds, PureDP):
        local = policy.card.trust_model == "local"
        yield (local_asymptotic if local else pure_asymptotic), {**given, "epsilon": holds.epsilon}
    else:
        yield lai_robbins, given
