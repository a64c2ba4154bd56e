"""The bounds of Chowdhury & Zhou (2022), and of results that they cite, as functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ....privacy import ApproxDP
from ....privacy.amplification import shuffle_amplification
from ....shuffle import BitSum, GaussianReports
from ....theory.bounds import Values, bound, valid
from ..published import divided_budget

PAPER = "Chowdhury & Zhou (2022)"
BOUNDED = "features and parameter at most 1 long, rewards in [0, 1]"
UNIQUE = f"{BOUNDED}; everybody is in one batch"
RETURNING = f"{BOUNDED}; everybody may be in every batch, once"
F = TypeVar("F", bound=Callable[..., Any])


def _regret(where: str, **said: Any) -> Callable[[F], F]:
    """A bound of the paper on regret, whose constants are open."""
    return bound("upper", "regret", source=f"{PAPER}, {where}", constants="order", **said)


# The template ---------------------------------------------------------------------------------


@bound(
    "upper",
    "regret",
    source=f"{PAPER}, Lemma A.2",
    assumes=f"{BOUNDED}; the three norms stay within their bounds with probability 1 - failure / 2",
)
def perturbed_linucb(
    horizon: Values,
    dimension: int,
    batch: int,
    least: float,
    largest: float,
    nu: float,
    failure: float,
    tuned_for: int | None = None,
) -> Values:
    """LinUCB in batches on noisy sums: d B L / ln 2 + 8 beta sqrt(d T L). Here L = ln(1 + T / (d
    least)) and beta = sqrt(2 ln(2 / failure) + d L) + sqrt(largest) + nu.

    Args:
        horizon, dimension, batch, failure: T, d, B, and a probability.
        least, largest: eigenvalues of H = lambda I + noise on sum x x^T, in any batch.
        nu: the norm of the noise on sum x r, in that of H^-1.
        tuned_for: the number of rounds for which the three norms are bounds; for more there is no
            proof.

    >>> round(perturbed_linucb(10**6, 2, 1, least=1.0, largest=1.0, nu=0.0, failure=0.001))
    304870
    """
    t = np.asarray(horizon, float)
    growth = np.log1p(t / (dimension * least))
    beta = np.sqrt(2.0 * math.log(2.0 / failure) + dimension * growth) + math.sqrt(largest) + nu
    value = dimension * batch / math.log(2.0) * growth
    value = value + 8.0 * beta * np.sqrt(dimension * t * growth)
    return valid(t <= (np.inf if tuned_for is None else tuned_for), value)


@bound(
    "upper",
    "regret",
    source=f"{PAPER}, Lemmas 3.9 and A.4, whose constants are here those of normal noise",
    assumes=f"{BOUNDED}; independent normal noise on x r and on the upper triangle of x x^T",
)
def noisy_linucb(
    horizon: Values, dimension: int, batch: int, std: Values, failure: float
) -> Values:
    """LinUCB in batches on sums with noise of standard deviation ``std`` in all: of the order d B +
    d sqrt(T) + d^(3/4) sqrt(std T).

    It is ``perturbed_linucb`` with 2 S added to all eigenvalues, for S = 2 std (sqrt(d) + sqrt(ln(8
    M / failure))) or 1/2, and M = T / B.  With probability p, the norm of noise on the matrix
    exceeds its mean, 2 std sqrt(d) at most, by 2 std sqrt(ln(1 / p)).  The norm of noise on the
    vector exceeds sqrt(d) std by std sqrt(2 ln(1 / p)).

    >>> [round(noisy_linucb(10**6, 2, 1, std, failure=0.001)) for std in (0.0, 100.0)]
    [326761, 2477461]
    """
    t = np.asarray(horizon, float)
    root, log = math.sqrt(dimension), np.log(8.0 * t / batch / failure)
    matrix = np.maximum(2.0 * std * (root + np.sqrt(log)), 0.5)
    vector = std * (root + np.sqrt(2.0 * log))
    return np.vectorize(perturbed_linucb, otypes=[float])(
        t, dimension, batch, matrix, 3.0 * matrix, vector / np.sqrt(matrix), failure
    )[()]


# People who come once -------------------------------------------------------------------------


def _order(
    horizon: Values, dimension: int, batch: Values, std: Values, failure: float
) -> np.ndarray:
    """d B ln T + sqrt(std T) d^(3/4) ln(T) ln(T / failure): Lemma A.4 without its d sqrt(T)."""
    t = np.asarray(horizon, float)
    noise = np.sqrt(std * t) * dimension**0.75 * np.log(t) * np.log(t / failure)
    return dimension * batch * np.log(t) + noise


@_regret(
    "Theorems 3.2 and B.1",
    assumes=(
        f"{UNIQUE}; T >= d; what leaves the shuffler is O(epsilon, delta)-DP, with unnamed"
        " constants of at least 4, where B >= 16 e ln(4 / delta)"
    ),
)
def shuffled_reports(
    horizon: Values, dimension: int, batch: Values, epsilon: float, delta: float, failure: float
) -> Values:
    """Normal noise on every message, less for shuffling, for epsilon < sqrt(ln(2 / delta) / B).
    The bound is d B ln T + (ln(B / delta) ln(2 / delta) / B)^(1/4) d^(3/4) T^(3/4) ln(T) ln(T /
    failure) / sqrt(epsilon).

    >>> f"{shuffled_reports(10**6, 5, 100, epsilon=0.1, delta=1e-6, failure=0.001):.2g}"
    '1.2e+08'
    """
    amplified = np.log(2.0 / delta) / np.asarray(batch, float)
    std = np.sqrt(np.asarray(horizon) * np.log(batch / delta) * amplified) / epsilon
    return valid(epsilon < np.sqrt(amplified), _order(horizon, dimension, batch, std, failure))


@_regret(
    "Corollary 3.3",
    holds="void",
    because=(
        "Theorem 3.2 needs epsilon < sqrt(ln(2 / delta) / B), that is T^(-3/10) sqrt(ln(2 /"
        " delta)); there the noise of a message is never below a constant, and the bound of the"
        " theorem never below T^(3/4), which local privacy has without a shuffler"
    ),
    assumes=f"{UNIQUE}; B = T^(3/5)",
)
def shuffled_reports_balanced(horizon: Values, epsilon: float, delta: float) -> Values:
    """Normal noise on messages, batches of T^(3/5): T^(3/5) sqrt(ln(T / delta) / epsilon).

    >>> round(shuffled_reports_balanced(10**5, epsilon=1.0, delta=1e-5))
    4799
    """
    t = np.asarray(horizon, float)
    return t**0.6 * np.sqrt(np.log(t / delta) / epsilon)


@_regret("Theorems 3.5 and C.1", assumes=f"{UNIQUE}; epsilon <= 15, delta < 1/2")
def shuffled_bits(
    horizon: Values, dimension: int, batch: Values, epsilon: float, delta: float, failure: float
) -> Values:
    """Sums of bits: d B ln T + sqrt(ln(d^2 / delta) / epsilon) d^(3/4) T^(3/4) ln(T) ln(T /
    failure) / B^(1/4).

    >>> f"{shuffled_bits(10**6, 5, 4000, epsilon=1.0, delta=1e-6, failure=0.001):.2g}"
    '1.6e+07'
    """
    batches = np.asarray(horizon, float) / batch
    std = np.log(dimension**2 / delta) * np.sqrt(batches) / min(epsilon, 15.0)
    return valid(delta < 0.5, _order(horizon, dimension, batch, std, failure))


@_regret(
    "Remark 3.6",
    assumes=f"{UNIQUE}; epsilon <= 15, delta < 1/2; B = T^(3/5); without d and logarithms of T",
)
def shuffled_bits_balanced(horizon: Values, dimension: int, epsilon: float, delta: float) -> Values:
    """Sums of bits, batches of T^(3/5): T^(3/5) sqrt(ln(d^2 / delta) / min(epsilon, 1)), because
    the cost of waiting does not fall with epsilon.

    >>> round(shuffled_bits_balanced(10**5, 5, epsilon=1.0, delta=1e-5))
    3838
    """
    value = np.asarray(horizon, float) ** 0.6
    value = value * math.sqrt(math.log(dimension**2 / delta) / min(epsilon, 1.0))
    return valid(delta < 0.5, value)


# People who return ----------------------------------------------------------------------------


@_regret(
    "Theorems 4.2 (i) and E.3",
    holds="corrected",
    because=(
        "one of the factors ln(2 / delta) of its noise is ln(4 M / delta), by its own proof, and"
        " advanced composition needs epsilon < 1"
    ),
    assumes=f"{RETURNING}; O(epsilon, delta)-DP as in Theorem 3.2",
)
def returning_reports(
    horizon: Values, dimension: int, batch: Values, epsilon: float, delta: float, failure: float
) -> Values:
    """Normal noise on every message, for epsilon <= 2 ln(2 / delta) sqrt(2 T) / B.  With M = T / B
    the bound is d B ln(T) + sqrt(M T / epsilon) d^(3/4) (ln(T / delta) ln(2 / delta) ln(M /
    delta))^(1/4) ln(T) ln(T / failure).

    >>> f"{returning_reports(10**6, 5, 10**4, epsilon=0.1, delta=1e-6, failure=0.001):.2g}"
    '2.8e+08'
    """
    t, log = np.asarray(horizon, float), math.log(2.0 / delta)
    batches = t / batch
    std = batches * np.sqrt(np.log(t / delta) * log * np.log(batches / delta)) / epsilon
    most = np.minimum(2.0 * log * np.sqrt(2.0 * t) / batch, 1.0)
    return valid(epsilon <= most, _order(t, dimension, batch, std, failure))


@_regret(
    "Theorems 4.2 (ii) and E.5",
    holds="corrected",
    because=(
        "advanced composition as it is used needs epsilon < 1, where the theorem has 15; and its"
        " lambda lacks a factor 1 / epsilon"
    ),
    assumes=f"{RETURNING}; delta < 1/2",
)
def returning_bits(
    horizon: Values, dimension: int, batch: Values, epsilon: float, delta: float, failure: float
) -> Values:
    """Sums of bits, for epsilon < 1, with M = T / B: d B ln(T) + sqrt(M T / epsilon) d^(3/4) ln(d^2
    M / delta)^(3/4) ln(T) ln(T / failure).

    >>> f"{returning_bits(10**6, 5, 10**4, epsilon=0.5, delta=1e-6, failure=0.001):.2g}"
    '1.4e+08'
    """
    t = np.asarray(horizon, float)
    batches = t / batch
    std = batches * np.log(dimension**2 * batches / delta) ** 1.5 / min(epsilon, 1.0)
    return valid(delta < 0.5, _order(t, dimension, batch, std, failure))


@_regret(
    "Propositions 4.3 and E.7 (Shariff & Sheffet 2018 for rounds = 1)",
    assumes=f"{BOUNDED}; joint DP, everybody in so many rounds; without logarithms of T",
)
def returning_joint(
    horizon: Values, dimension: int, rounds: Values, epsilon: float, delta: float
) -> Values:
    """A tree for users who return: d sqrt(T) + sqrt(M0 T / epsilon) d^(3/4) ln(1 / delta)^(1/4).

    >>> round(returning_joint(10**6, 5, 1, epsilon=1.0, delta=1e-6))
    11446
    """
    root = np.sqrt(np.asarray(horizon, float))
    log = math.log(1.0 / delta) ** 0.25
    return dimension * root + np.sqrt(rounds / epsilon) * dimension**0.75 * log * root


# Batches in the local and in the central model ------------------------------------------------


@_regret(
    "Proposition F.1 (Zheng et al. 2020 for B = 1)",
    assumes=f"{BOUNDED}; T >= d; (epsilon, delta)-local DP; without logarithms of T but one",
)
def batched_local(
    horizon: Values, dimension: int, batch: Values, epsilon: float, delta: float, failure: float
) -> Values:
    """Randomised reports, for epsilon <= 1: d B + T^(3/4) d^(3/4) ln(1 / delta)^(1/4) ln(T /
    failure) / sqrt(epsilon).

    >>> f"{batched_local(10**6, 5, 1, epsilon=1.0, delta=1e-6, failure=0.001):.2g}"
    '4.2e+06'
    """
    t = np.asarray(horizon, float)
    noise = (t * dimension) ** 0.75 * math.log(1.0 / delta) ** 0.25 / math.sqrt(min(epsilon, 1.0))
    return dimension * batch + noise * np.log(t / failure)


@_regret(
    "Proposition F.3",
    holds="corrected",
    because="it leaves out d sqrt(T), which Lemma A.4 has, and Proposition 4.3",
    assumes=f"{BOUNDED}; (epsilon, delta)-joint DP; without logarithms of T but one",
)
def batched_joint(
    horizon: Values, dimension: int, batch: Values, epsilon: float, delta: float, failure: float
) -> Values:
    """A tree over batches, for epsilon <= 1: d B + sqrt(T) (d + d^(3/4) ln(1 / delta)^(1/4) /
    sqrt(epsilon)) ln(T / failure).

    >>> f"{batched_joint(10**6, 5, 1, epsilon=1.0, delta=1e-6, failure=0.001):.2g}"
    '2.4e+05'
    """
    t = np.asarray(horizon, float)
    noise = dimension**0.75 * math.log(1.0 / delta) ** 0.25 / math.sqrt(min(epsilon, 1.0))
    return dimension * batch + np.sqrt(t) * (dimension + noise) * np.log(t / failure)


@bound(
    "upper",
    source=f"Han, Liang, Wang & Zhang (2021), as {PAPER} quotes them",
    constants="order",
    assumes="local DP; contexts are drawn from a law that leaves no direction out",
)
def diverse_local(horizon: Values, epsilon: float) -> Values:
    """Randomised reports of random contexts: sqrt(T) / epsilon.

    >>> float(diverse_local(10**6, epsilon=0.5))
    2000.0
    """
    return np.sqrt(np.asarray(horizon, float)) / epsilon


@bound(
    "lower",
    "minimax regret",
    source=f"Chu, Li, Reyzin & Schapire (2011), as {PAPER} quotes them",
    constants="order",
    assumes="linear rewards, with privacy or without",
)
def contextual_minimax(horizon: Values) -> Values:
    """Linear contextual bandits: sqrt(T).

    >>> float(contextual_minimax(10**6))
    1000.0
    """
    return np.sqrt(np.asarray(horizon, float))


# Privacy --------------------------------------------------------------------------------------


@bound(
    "upper",
    "epsilon of a shuffled batch",
    source=f"Feldman, McMillan & Talwar (2021), Theorem 3.8, as in {PAPER}, Lemma B.4",
    assumes=(
        "(local_epsilon, local_delta)-DP reports, all of one randomiser; local_epsilon at most"
        " ln(reports / (16 ln(2 / delta'))), delta' = delta / 2"
    ),
)
def shuffled_epsilon(
    reports: int, local_epsilon: float, delta: float, local_delta: float = 0.0
) -> float:
    """The epsilon at the given delta, where shuffling is proved to help; else infinite.

    ``shuffle_amplification`` with its default method proves less.

    >>> round(shuffled_epsilon(10_000, 1.0, 1e-6), 3), shuffled_epsilon(20, 0.5, 0.1)
    (0.214, inf)
    """
    sizes = reports, local_epsilon, delta
    found = shuffle_amplification(*sizes, local_delta=local_delta, method="closed")
    return found.epsilon if found.amplified else math.inf


@bound(
    "upper",
    "standard deviation of the noise on a report",
    source=f"{PAPER}, Theorem 3.2, and for several batches the proof of E.3",
    holds="void",
    because=(
        "it is for O(epsilon, delta)-DP: the lemma behind it proves at least 4.2 epsilon and 2.9"
        " delta, and nothing unless B >= 16 e^epsilon_0 ln(4 / delta), epsilon_0 = epsilon sqrt(B /"
        " ln(2 / delta))"
    ),
    assumes=BOUNDED,
)
def report_noise(batch: int, epsilon: float, delta: float, batches: int = 1) -> float:
    """4 sqrt(2 ln(2.5 B / delta) ln(2 / delta)) / (epsilon sqrt(B)), up to a thousandth of it.

    >>> round(report_noise(20, epsilon=1.0, delta=0.1), 2)
    5.46
    """
    budget = ApproxDP(epsilon, delta)
    protocol = GaussianReports.published(budget, batch=batch, features=1, batches=batches)
    return protocol.noise_std / math.sqrt(batch)


@bound(
    "upper",
    "standard deviation of the noise on the sum of a batch",
    source=f"{PAPER}, Theorem C.1, and for several batches the proof of E.5",
    assumes=f"{BOUNDED}; epsilon <= 15, delta < 1/2",
)
def bit_noise(batch: int, features: int, epsilon: float, delta: float, batches: int = 1) -> float:
    """P_Vec: sqrt(3 B b / 16) / g. Here g = max(2 sqrt(B), d, 4), and b = 24 * 10^4 (g ln(4 (d^2 +
    1) / delta) / epsilon)^2 / B, rounded up.

    That keeps (epsilon, delta)-DP with plenty to spare: ``BitSum.calibrated`` needs a small part.

    >>> round(bit_noise(20, 5, epsilon=1.0, delta=0.1))
    1474
    """
    budget = ApproxDP(epsilon, delta)
    protocol = BitSum.published(budget, batch=batch, features=features, batches=batches)
    return protocol.noise_std


@bound(
    "upper",
    "epsilon of each of several batches",
    source=f"{PAPER}, Theorem E.2 (Dwork & Roth 2014, Corollary 3.21)",
    assumes="epsilon < 1; in each batch delta / (2 batches)",
)
def divided_epsilon(epsilon: float, delta: float, batches: int) -> float:
    """epsilon / (2 sqrt(2 M ln(2 / delta))), with which M batches keep (epsilon, delta)-DP.

    >>> round(divided_epsilon(0.5, 1e-6, batches=50), 5)
    0.00656
    """
    return divided_budget(ApproxDP(min(epsilon, 1.0), delta), batches).epsilon


@bound(
    "upper",
    "epsilon of a person's messages",
    source=f"{PAPER}, Remark 3.4",
    constants="order",
    assumes="messages with report_noise; at delta / B",
)
def report_alone(batch: int, epsilon: float, delta: float) -> float:
    """The epsilon of a report without a shuffler: epsilon sqrt(B / ln(2 / delta)).

    >>> round(report_alone(20, epsilon=0.2, delta=0.1), 3)
    0.517
    """
    return epsilon * math.sqrt(batch / math.log(2.0 / delta))


@bound(
    "upper",
    "epsilon of a person's messages",
    source=f"{PAPER}, Remark 3.7",
    constants="order",
    holds="void",
    because=(
        "it takes a batch of one for no batch, whose bits leave the published randomiser unshuffled"
        " and show the number; true of devices that shuffle them first, as they do here"
    ),
    assumes="bits with bit_noise; at delta",
)
def bits_alone(batch: int, epsilon: float) -> float:
    """The epsilon of bits without a shuffler: epsilon sqrt(B).

    >>> bits_alone(25, epsilon=0.2)
    1.0
    """
    return epsilon * math.sqrt(batch)
