"""Lower bounds on the regret of private adversarial bandits, and the instances that prove them.

Terms are those of ``theory``.
"""

from __future__ import annotations

import math

import numpy as np

from ....algorithms.adversarial.adversarial import PAPER
from ....environments import Advised, Bernoulli, Piecewise
from ....theory.bounds import Values, bound, valid
from ....validation import integer

# Lower bounds ---------------------------------------------------------------------------------


@bound(
    "lower",
    "minimax regret",
    source="Auer, Cesa-Bianchi, Freund & Schapire (2002), Theorem 5.1",
    assumes="K >= 2; reached by hidden_arm for a random arm",
)
def adversarial_minimax(horizon: Values, n_arms: int) -> Values:
    """A lower bound for every policy, private or not: min(sqrt(K T), T) / 20.

    >>> float(adversarial_minimax(10**6, n_arms=4))
    100.0
    """
    t = np.asarray(horizon, float)
    return np.minimum(np.sqrt(n_arms * t), t)[()] / 20.0


@bound(
    "lower",
    "minimax regret",
    source="Seldin & Lugosi (2016), with the constant of Auer et al. (2002)",
    assumes="2 <= K <= N; reached by hidden_expert for random arms",
)
def experts_minimax(horizon: Values, n_arms: int, n_experts: int) -> Values:
    """A lower bound for every policy with advice: sqrt(m K T) / 20, m = ln N / ln K rounded down.

    In m games of T / m rounds, one after the other, each with its own best arm, experts are all
    sequences of arms.

    >>> float(experts_minimax(10**6, n_arms=4, n_experts=256))
    200.0
    """
    games = _games(n_arms, n_experts)
    length = np.asarray(horizon, float) // max(games, 1)
    return games * adversarial_minimax(length, n_arms)


def _games(n_arms: int, n_experts: int) -> int:
    """The largest m with K^m <= N."""
    games = 0
    while n_arms >= 2 and n_arms ** (games + 1) <= n_experts:
        games += 1
    return games


@bound(
    "lower",
    "minimax regret",
    source="group privacy (Dwork & Roth 2014, Theorem 2.2), of all records at once",
    assumes="epsilon-DP and K >= 2, even if all losses are shown",
)
def few_and_private(horizon: Values, epsilon: float) -> Values:
    """T / (1 + e^(epsilon T)): nothing is learned while epsilon T is small.

    Let arm 1 lose nothing and arm 2 always 1.  If arm 2 is played R times on average, then at most
    e^(epsilon T) R times where both change places, and T - e^(epsilon T) R are lost there.

    >>> round(few_and_private(1000, epsilon=1e-3))
    269
    """
    t = np.asarray(horizon, float)
    return t[()] / (1.0 + np.exp(np.minimum(epsilon * t, 700.0)))[()]


@bound(
    "lower",
    "minimax regret",
    source="after Basu, Dimitrakakis & Tossou (2019); Duchi, Jordan & Wainwright (2013), Theorem 1",
    assumes="epsilon-local DP; arms are coins",
)
def locally_private(horizon: Values, n_arms: int, epsilon: float) -> Values:
    """Under local privacy: (D T / 8) exp(-4 c n D^2) at D = min(1 / 4, 1 / sqrt(8 c n)). Here n =
    T / (K - 1) and c = min(4, e^(2 epsilon)) (e^epsilon - 1)^2.

    That is of order T up to epsilon = 1 / sqrt(T), and then of order sqrt(K T) / epsilon.  Two
    worlds as in ``dpbandits.theory.lower``, but reports of coins with 1/2 and 1/2 + 2 D diverge by
    4 c D^2 at most.

    >>> [round(locally_private(10_000, n_arms=2, epsilon=e)) for e in (0.001, 0.1)]
    [312, 23]
    """
    t = np.asarray(horizon, float)
    c = min(4.0, math.exp(2.0 * min(epsilon, 1.0))) * math.expm1(min(epsilon, 300.0)) ** 2
    n = t / (n_arms - 1)
    gap = np.minimum(0.25, 1.0 / np.sqrt(8.0 * c * n))
    return gap * t / 8.0 * np.exp(-4.0 * c * n * gap**2)


@bound(
    "lower",
    source=f"{PAPER}, Lemma 15",
    holds="corrected",
    because=(
        "runs that notice may gain tau / 2, which the lemma does not take off; its p = ceil(1 / (2"
        " epsilon)) leaves e^(epsilon p) / 2 above 1 for epsilon > ln 2, and for others such as"
        " 0.4; and its rounds S depend on the bits of the algorithm, which is right for"
        " epsilon-DP, where it may be read run by run, and not for delta > 0"
    ),
    assumes=(
        "epsilon-DP; if arm 2 never turns (LateTurn), with probability 1/2 each it is played gamma"
        " T times, and at most p times in the p / gamma rounds after tau"
    ),
)
def late_notice(
    horizon: Values, epsilon: float, tau: int, p: int, gamma: float | None = None
) -> Values:
    """A lower bound for policies that no longer play an arm, and notice late that it turned: the
    larger of gamma T / 4 and (1 - e^(epsilon p) / 2) p / (4 gamma) - tau / 2.

    The arm turns after tau rounds and is visited p times; the second needs tau < T / 2, gamma <=
    1/2 and p <= gamma (T - tau).  Gamma is the share of rounds in which it is played if it never
    turns.  None takes the best gamma for the policy, with a loss of (sqrt(tau^2 + (1 - e^(epsilon
    p) / 2) p T) - tau) / 4.

    >>> round(late_notice(10**5, 0.1, 30, 5, gamma=0.001)), round(late_notice(10**5, 0.1, 30, 5))
    (205, 67)
    """
    t = np.asarray(horizon, float)
    unmoved = p * max(0.0, 1.0 - 0.5 * math.exp(min(epsilon * p, 700.0)))
    if gamma is None:
        late = (np.sqrt(tau**2 + unmoved * t) - tau) / 4.0
        return valid(2 * tau < t, late, "lower")
    proved = (2 * tau < t) & (gamma <= 0.5) & (p <= gamma * (t - tau) * (1.0 + 1e-12))
    late = valid(proved, unmoved / (4.0 * gamma) - 0.5 * tau, "lower")
    return np.maximum(gamma * t / 4.0, late)[()]


# Hard instances -------------------------------------------------------------------------------


def hidden_arm(n_arms: int, horizon: int, best: int = 0) -> Bernoulli:
    """The instance of ``adversarial_minimax``: fair coins, and one that is better by as little as
    T rounds can just not tell: min(1, sqrt(K / T)) / 4.

    >>> hidden_arm(4, 6400, best=1).means().tolist()
    [0.5, 0.50625, 0.5, 0.5]
    """
    means = np.full(integer("n_arms", n_arms, 2), 0.5)
    means[integer("best", best, 0, n_arms - 1)] += _gap(n_arms, integer("horizon", horizon, 1))
    return Bernoulli(means)


def hidden_expert(n_arms: int, n_experts: int, horizon: int, seed: int = 0) -> Advised:
    """The instance of ``experts_minimax``: one ``hidden_arm`` after the other, and an expert for
    every sequence of arms; experts beyond these repeat the first.

    >>> world = hidden_expert(2, 8, 3000)
    >>> world.n_experts, world.state.period.tolist()
    (8, [1000])
    """
    games = _games(integer("n_arms", n_arms, 2), integer("n_experts", n_experts, n_arms))
    length = integer("horizon", horizon, games) // games
    best = np.random.default_rng(integer("seed", seed, 0)).integers(n_arms, size=games)
    means = 0.5 + _gap(n_arms, length) * np.eye(n_arms)[best]
    arms = Piecewise(means, length * np.arange(games), horizon=games * length)
    plans = np.array(
        [np.unravel_index(j % n_arms**games, [n_arms] * games) for j in range(n_experts)]
    )
    return Advised(arms, np.eye(n_arms)[plans.T], horizon=games * length, period=length)


def _gap(n_arms: int, horizon: int) -> float:
    return 0.25 * min(1.0, math.sqrt(n_arms / horizon))
