"""Upper bounds on the regret of private adversarial bandits, and of what they cost.

Terms are those of the room, ``theory``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....algorithms.adversarial.adversarial import PAPER
from ....algorithms.exp4.values import LARGEST_MIXING, Noise, Tuning
from ....theory.bounds import Values, bound, valid
from ..exp4 import theorem_5, theorem_6, theorem_8

ROUNDING = 1.0 + 1e-9
OBLIVIOUS = "losses in [0, 1] that do not react to what is played"


# Upper bounds for arms ------------------------------------------------------------------------


@bound(
    "upper",
    source=f"{PAPER}, Theorems 1, 2 and 4",
    assumes=f"{OBLIVIOUS}; for theorem 4 experts in the place of arms",
)
def batch_conversion(
    horizon: Values, batch: int, learner_regret: Callable[..., Any], rounding: float = 0.0
) -> Values:
    """Learning from batches: tau (R(T / tau) + 1), with R(n) the learner's bound on n noisy losses.

    R is ``learner_regret``; of learners over experts, against the best of these.

    >>> batch_conversion(1000, 10, lambda rounds: 2.0 * rounds**0.5)
    210.0
    """
    return batch * (learner_regret(horizon / batch) + 1.0) + rounding * horizon


@bound(
    "upper",
    source=f"{PAPER}, proof of Corollary 1, with second moments",
    assumes=f"{OBLIVIOUS}, but for independent Laplace noise",
)
def exp3_regret(
    horizon: Values,
    n_arms: int,
    rate: float,
    mixing: float,
    noise: float,
    moment: float | None = None,
    tuned_for: Values | None = None,
) -> Values:
    """EXP3 on noisy losses: ln K / eta + 2 eta K T E[loss^2] + gamma T + 1.

    Gamma is at most 1/2 and at least 2 eta s K ln(K T), with ``tuned_for`` for T.

    >>> round(exp3_regret(10_000, 10, rate=0.002, mixing=0.47, noise=1.0))
    7052
    """
    moment = 1.0 + 2.0 * noise**2 if moment is None else moment
    draws = n_arms * np.asarray(horizon if tuned_for is None else tuned_for, float)
    covered = 2.0 * rate * noise * n_arms * np.log(draws) <= mixing * ROUNDING
    value = math.log(n_arms) / rate + 2.0 * rate * n_arms * horizon * moment + mixing * horizon
    return valid((mixing <= 0.5) & covered, value + 1.0)


@bound(
    "upper",
    source="Huang, Dai & Huang (2022), Theorem 4.1",
    assumes=f"{OBLIVIOUS}, but for independent symmetric noise",
)
def htinf_regret(horizon: Values, n_arms: int, sigma: float, alpha: float = 2.0) -> Values:
    """HTINF on losses of bounded moments: 30 sigma K^(1 - 1/alpha) (T + 1)^(1/alpha).

    Sigma is at least E[|loss|^alpha]^(1/alpha), and alpha in (1, 2].

    >>> htinf_regret(99, 4, sigma=1.0)
    600.0
    """
    share = 1.0 / alpha
    return 30.0 * sigma * n_arms ** (1.0 - share) * (horizon + 1.0) ** share


@bound(
    "upper",
    source=f"{PAPER}, proof of Corollary 3, with second moments",
    assumes=f"{OBLIVIOUS}, but for independent Laplace noise",
)
def ftpl_regret(
    horizon: Values,
    n_arms: int,
    rate: float,
    tries: int,
    noise: float,
    moment: float | None = None,
    tuned_for: Values | None = None,
) -> Values:
    """FTPL on noisy losses: 6 ln K / eta + 4 eta K T E[loss^2] + K T / (e M) + 1.

    Eta M (1 + 2 s ln(K T)) is at most 1, with ``tuned_for`` for T.

    >>> round(ftpl_regret(10_000, 10, rate=0.001, tries=40, noise=1.0))
    15936
    """
    moment = 1.0 + 2.0 * noise**2 if moment is None else moment
    draws = n_arms * np.asarray(horizon if tuned_for is None else tuned_for, float)
    covered = rate * tries * (1.0 + 2.0 * noise * np.log(draws)) <= ROUNDING
    value = 6.0 * math.log(n_arms) / rate + 4.0 * rate * n_arms * horizon * moment
    return valid(covered, value + n_arms * horizon / (math.e * tries) + 1.0)


def _tuned(value: Callable[[int], float], horizon: Values, tuned_for: int | None) -> Values:
    """See this module."""
    if tuned_for is None:
        return np.vectorize(value, otypes=[float])(horizon)[()]
    return valid(np.asarray(horizon) <= tuned_for, value(tuned_for))


@bound("upper", source=f"{PAPER}, Corollary 1", assumes=f"{OBLIVIOUS}; K >= 2")
def exp3_conversion(
    horizon: Values, n_arms: int, epsilon: float, tuned_for: int | None = None
) -> Values:
    """EXP3 on batches of ceil(1 / epsilon): 36 sqrt(K T ln K / epsilon) ln(K T) + 4 / epsilon.

    >>> round(exp3_conversion(10**9, n_arms=2, epsilon=0.1))
    90777278
    """

    def value(t: int) -> float:
        root = math.sqrt(n_arms * t * math.log(n_arms) / most)
        return 36.0 * root * math.log(n_arms * t) + 4.0 / most

    most = min(epsilon, 1.0)
    return _tuned(value, horizon, tuned_for)


@bound("upper", source=f"{PAPER}, Corollary 2", assumes=OBLIVIOUS)
def htinf_conversion(horizon: Values, n_arms: int, epsilon: float) -> Values:
    """HTINF with sigma = sqrt(6) on batches of ceil(1 / epsilon): 208 sqrt(K T / epsilon) + 2 /
    epsilon, for epsilon >= 1 / T.

    >>> round(htinf_conversion(10**6, n_arms=10, epsilon=0.1))
    2080020
    """
    t, epsilon = np.asarray(horizon, float), min(epsilon, 1.0)
    return valid(epsilon * t >= 1.0, 208.0 * np.sqrt(n_arms * t / epsilon) + 2.0 / epsilon)


@bound(
    "upper",
    source=f"{PAPER}, Corollary 3",
    holds="corrected",
    because=(
        "Lemma 13 has 11 lambda sqrt(KT) ln(K) ln(KT) + 10 sqrt(KT), where the terms of its proof"
        " add up to as much as three times that; so 32 sqrt(KT / epsilon) ln(K) ln(KT) + 2 /"
        " epsilon, as printed, does not follow"
    ),
    assumes=f"{OBLIVIOUS}; K >= 2",
)
def ftpl_conversion(
    horizon: Values, n_arms: int, epsilon: float, tuned_for: int | None = None
) -> Values:
    """FTPL on batches of ceil(1 / epsilon), with the published eta and M; epsilon >= 1 / T.

    Let n = epsilon T, X = K n (1 + 10 ln^2(K n)), M = ceil(sqrt(K n)) and eta = min(sqrt(ln K / X),
    1 / (M (1 + 4 ln n))).  The bound is 2 / epsilon times 6 ln K / eta + 4 eta X + sqrt(K n) / e +
    2.

    >>> round(ftpl_conversion(10**9, n_arms=2, epsilon=0.1))
    143316472
    """

    def value(t: int) -> float:
        n = most * t
        if n < 1.0 or n_arms < 2:
            return math.inf
        few, kn = math.log(n_arms), n_arms * n
        x, tries = kn * (1.0 + 10.0 * math.log(kn) ** 2), math.ceil(math.sqrt(kn))
        rate = min(math.sqrt(few / x), 1.0 / (tries * (1.0 + 4.0 * math.log(n))))
        learner = 6.0 * few / rate + 4.0 * rate * x + math.sqrt(kn) / math.e + 1.0
        return 2.0 / most * (learner + 1.0)

    most = min(epsilon, 1.0)
    return _tuned(value, horizon, tuned_for)


@bound(
    "upper",
    source="Agarwal & Singh (2017); Tossou & Dimitrakakis (2017)",
    constants="order",
    assumes=OBLIVIOUS,
)
def noise_every_round(horizon: Values, n_arms: int, epsilon: float) -> Values:
    """Laplace noise on the loss of every round: sqrt(K T) ln(K T) / epsilon.

    So says the abstract; the paper quotes it with sqrt(ln K) and with sqrt(ln(KT)) in the place of
    the logarithm, too.  ``exp3_regret`` with noise 1 / epsilon has constants.

    >>> round(noise_every_round(10**6, n_arms=10, epsilon=1.0))
    50970
    """
    kt = n_arms * np.asarray(horizon, float)
    return np.sqrt(kt) * np.log(kt) / epsilon


@bound(
    "upper",
    source="Guha Thakurta & Smith (2013)",
    constants="order",
    assumes=f"{OBLIVIOUS}; (epsilon, delta)-DP",
)
def approximate_leader(horizon: Values, n_arms: int, epsilon: float) -> Values:
    """A private leader in the bandit setting, as the paper quotes it: K T^(3/4) / epsilon.

    >>> round(approximate_leader(10**8, n_arms=10, epsilon=1.0))
    10000000
    """
    return n_arms * np.asarray(horizon, float)[()] ** 0.75 / epsilon


@bound(
    "upper",
    source="Tossou & Dimitrakakis (2017), Corollary 3.3",
    constants="order",
    holds="void",
    because=(
        "its Theorem 3.3 overlooks that the probabilities by which EXP3 divides depend on earlier"
        f" losses, as its authors acknowledge ({PAPER}, Appendix G.1)"
    ),
    assumes=OBLIVIOUS,
)
def exp3_free(horizon: Values, n_arms: int, epsilon: float) -> Values:
    """EXP3 without noise: T^(2/3) sqrt(K ln K) / epsilon^(1/3).

    >>> round(exp3_free(10**6, n_arms=10, epsilon=1.0))
    47985
    """
    t = np.asarray(horizon, float)[()]
    return t ** (2 / 3) * math.sqrt(n_arms * math.log(n_arms)) / epsilon ** (1 / 3)


# Upper bounds with expert advice --------------------------------------------------------------


@bound(
    "upper",
    source=f"{PAPER}, proof of Theorem 6, with the second moment of a batch's mean",
    assumes=f"{OBLIVIOUS}; of FrozenEXP4, against experts who keep to their advice for a batch",
)
def exp4_regret(
    horizon: Values,
    n_arms: int,
    n_experts: int,
    noise: Noise,
    batch: float,
    rate: float,
    mixing: float,
    tuned_for: int | None = None,
    rounding: float = 0.0,
) -> Values:
    """The largest expected regret of batched EXP4 against the best expert of a sequence.

    With Z the noise on an expert's mean loss, of variance v, exponential weights lose (Littlestone
    & Warmuth's bound for losses above -1 / eta, times tau)

        tau ln N / eta + gamma T + eta T (1 + K / ((1 - gamma) tau) + v) + tau + 1.

    The last rounds that fill no batch cost tau.  The event that some draw exceeds its ``tail``
    costs 1. ``rounding`` to a grid of secure noise adds to the cost of each round.  The middle term
    bounds the second moment of an expert's loss, a mean of tau draws that are independent given P.
    It is at most the square of its mean, 1, plus a tau-th of the variance of one draw, K / (1 -
    gamma).  The published proof has K for both.  It is infinite where noise may lead to a loss
    below -1 / eta, and beyond ``tuned_for``, the T of that ``tail``.

    >>> round(exp4_regret(10**6, 10, 100, Noise(0.0, 1.0, 1.0), batch=1, rate=6e-4, mixing=0.0))
    14277
    """
    scale = noise.scale / (mixing * batch) if noise.scale > 0.0 and mixing > 0.0 else 0.0
    covered = mixing < 1.0 and (mixing > 0.0 or noise.scale == 0.0)
    if not covered or rate * noise.tail * scale > 1.0 + 1e-9:
        return np.full_like(np.asarray(horizon, float), np.inf)[()]
    moment = 1.0 + n_arms / ((1.0 - mixing) * batch) + noise.variance * scale**2
    value = (
        batch * math.log(n_experts) / rate
        + (mixing + rounding) * horizon
        + rate * horizon * moment
        + batch
        + 1.0
    )
    return valid(np.asarray(horizon) <= (np.inf if tuned_for is None else tuned_for), value)


@bound("upper", source=f"{PAPER}, proof of Theorem 5, with second moments", assumes=OBLIVIOUS)
def local_exp4_regret(
    horizon: Values,
    n_arms: int,
    n_experts: int,
    noise: float,
    rate: float,
    mixing: float,
    tuned_for: Values | None = None,
    rounding: float = 0.0,
) -> Values:
    """EXP4 on a noisy loss per round: ln N / eta + eta K T (1 + 2 s^2) / (1 - gamma) + gamma T + 1.

    No loss is below -1 / eta where eta K 2 s ln(KT) <= gamma, with ``tuned_for`` for T, but with
    probability 1 / T.

    >>> round(local_exp4_regret(10**6, 10, 100, noise=1.0, rate=2e-4, mixing=0.07))
    99478
    """
    k, few = float(n_arms), math.log(max(n_experts, 2))
    draws = k * np.asarray(horizon if tuned_for is None else tuned_for, float)
    covered = 2.0 * rate * noise * k * np.log(draws) <= mixing * ROUNDING
    if mixing == 1.0:
        return np.full_like(draws, np.inf)[()]
    moment = (1.0 + 2.0 * noise**2) / (1.0 - mixing)
    value = few / rate + rate * k * horizon * moment + (mixing + rounding) * horizon + 1.0
    beyond = np.inf if tuned_for is None else tuned_for
    return valid(covered & (np.asarray(horizon) <= beyond), value)


@bound("upper", source=f"{PAPER}, Corollary 4", assumes=OBLIVIOUS)
def expert_conversion(horizon: Values, n_experts: int, epsilon: float) -> Values:
    """HTINF over experts, on batches of ceil(1 / epsilon): 208 sqrt(N T / epsilon) + 2 / epsilon.

    >>> round(expert_conversion(10**6, n_experts=4, epsilon=1.0))
    416002
    """
    return htinf_conversion(horizon, n_experts, epsilon)


@bound("upper", source=f"{PAPER}, Theorem 5", assumes=OBLIVIOUS)
def local_exp4(
    horizon: Values, n_arms: int, n_experts: int, epsilon: float, tuned_for: int | None = None
) -> Values:
    """EXP4 with Laplace noise on every loss: 16 sqrt(K T ln N) ln(K T) / epsilon + 1.

    >>> round(local_exp4(10**6, n_arms=2, n_experts=16, epsilon=1.0))
    546645
    """

    def value(t: int) -> float:
        return theorem_5(n_arms, n_experts, t, 1.0 / epsilon).bound  # no less than at 1

    return _tuned(value, horizon, tuned_for)


@bound(
    "upper",
    "epsilon of adaptive releases together",
    source=f"{PAPER}, Lemma 6 (Dwork, Rothblum & Vadhan 2010; Kairouz, Oh & Viswanath 2015)",
    assumes="releases of so much epsilon each; at the given delta",
)
def composed_epsilon(epsilon: float, releases: int, delta: float) -> float:
    """3 n epsilon^2 / 2 + sqrt(6 n epsilon^2 ln(1 / delta)), which gives the noise of Theorem 6.

    >>> round(composed_epsilon(0.01, releases=100, delta=1e-6), 3)
    0.925
    """
    squares = releases * epsilon**2
    return 1.5 * squares + math.sqrt(-6.0 * squares * math.log(delta))


RANGE = (
    "epsilon <= 1.10 ln(1 / delta), a share of uniform play of at most 1/2, K ln(1 / delta) >= 1"
)


@bound(
    "upper",
    source=f"{PAPER}, Theorem 6",
    holds="corrected",
    because=f"gamma lacks ln(1 / delta)^(1/3), and the proof needs {RANGE}",
    assumes=f"{OBLIVIOUS}; {RANGE}",
)
def batched_exp4(
    horizon: Values,
    n_arms: int,
    n_experts: int,
    epsilon: float,
    delta: float,
    tuned_for: int | None = None,
) -> Values:
    """EXP4 on noisy sums of batches, with l = ln(1 / delta): 100 sqrt(K) T^(2/3) (N l)^(1/6)
    (ln(NT) ln N / epsilon)^(1/3) + sqrt(N l) ln(NT) ln(N) / epsilon.

    >>> f"{batched_exp4(10**12, n_arms=2, n_experts=16, epsilon=1.0, delta=1e-6):.3g}"
    '1.52e+11'
    """
    return _composed(theorem_6, horizon, (n_arms, n_experts), epsilon, delta, tuned_for)


@bound(
    "upper",
    source=f"{PAPER}, Theorem 8",
    holds="corrected",
    because=(
        "its second bound drops a factor 9 of the variance of noise, with which 18 becomes 31; and"
        f" it is stated for every epsilon and delta, while the proof needs {RANGE}"
    ),
    assumes=f"{OBLIVIOUS}; {RANGE}",
)
def improved_exp4(
    horizon: Values,
    n_arms: int,
    n_experts: int,
    epsilon: float,
    delta: float,
    tuned_for: int | None = None,
) -> Values:
    """EXP4 with noise for the realised batch. The bound is the lesser of ``batched_exp4`` and 31
    (N l ln(NT) ln(N) / epsilon)^(2/5) (K T)^(3/5), l = ln(1 / delta).

    >>> f"{improved_exp4(10**12, n_arms=2, n_experts=16, epsilon=1.0, delta=1e-6):.3g}"
    '3.8e+10'
    """
    sizes = n_arms, n_experts
    first, second = (
        _composed(theorem, horizon, sizes, epsilon, delta, tuned_for)
        for theorem in (theorem_6, theorem_8)
    )
    return np.minimum(first, second)


def _composed(
    theorem: Callable[..., Tuning],
    horizon: Values,
    sizes: tuple[int, int],
    epsilon: float,
    delta: float,
    tuned_for: int | None,
) -> Values:
    """A bound whose noise is that of advanced composition, where all is as its proof needs it."""
    log = -math.log(delta)

    def value(t: int) -> float:
        found = theorem(*sizes, t, epsilon, log)
        return found.bound if found.mixing <= LARGEST_MIXING else math.inf

    return _tuned(value, horizon, tuned_for)
