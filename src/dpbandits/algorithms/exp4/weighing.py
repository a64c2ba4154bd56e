"""Exponential weights on experts, from noisy losses: the compiled part of the EXP4 family.

Let P be weights of experts, gamma the share of uniform play, and x the probabilities of arm a by
expert.  Arm a is drawn with probability Q(a) = (1 - gamma) <P, x> + gamma / K.

The public side keeps estimated losses of experts, and P, which is constant in a batch.  The sums
behind the wall hold one number per expert, one per arm (of frozen advice), or the reward of a
round: a section for each.  ``weigh`` fixes the weight of a loss when its arm is pulled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...kernel import Generator, Matrix, Vector, inlined, kernel
from ...policies import Kernels
from ..bases.sums import accumulate, summarise
from ..maths.simplex import draw, exponential_weights, recentre

_LIGHTEST = 1e-100
ROUNDED_UP = 1.0 + 2.0**-34  # more than rounding takes from a length of 10^5 numbers


class EXP4Params(NamedTuple):
    n_arms: int
    n_experts: int
    batch: int  # tau
    rate: float  # eta
    mixing: float  # gamma
    width: float  # hi - lo
    high: float
    worst: float  # the most that any record can move the statistic
    slack: float  # by how much rounding to a grid moves it further
    grid: float  # to which increments are rounded; 0 for none
    size: int  # of the statistic
    held: int  # for how many arms advice stands while a batch runs


class EXP4Raw(NamedTuple):
    total: np.ndarray  # (N,), (K,) or (1,): the statistic of the running batch


class EXP4Public(NamedTuple):
    losses: np.ndarray  # (N,) estimated cumulative losses of the experts, less the smallest of them
    probability: np.ndarray  # (N,) P, which stands for a batch
    reach: np.ndarray  # (N,) largest x / Q(a) of the running batch, by expert
    facts: np.ndarray  # (1,) largest |x|_2 / Q(a) of the running batch
    clock: np.ndarray  # (1,) int64: its booked rounds
    frozen: np.ndarray  # (K, N) the advice that stands, and
    mixture: np.ndarray  # (K,) Q from it; (0, 0) and (0,) where nothing is frozen
    scratch: np.ndarray  # (K,)


def init(params: EXP4Params) -> tuple[EXP4Raw, EXP4Public]:
    n, k, held = params.n_experts, params.n_arms, params.held
    public = EXP4Public(
        losses=np.zeros(n),
        probability=np.full(n, 1.0 / n),
        reach=np.zeros(n),
        facts=np.zeros(1),
        clock=np.zeros(1, np.int64),
        frozen=np.zeros((held, n)),
        mixture=np.full(held, 1.0 / k),
        scratch=np.zeros(k),
    )
    return EXP4Raw(np.zeros(params.size)), public


@inlined
def mixed(probability: Vector, mixing: float, n_arms: int, x: Vector) -> float:
    """Q of the arm with the probabilities x, by eight sums: one would wait for each term."""
    rest = x.size % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for j in range(rest):
        s0 += probability[j] * x[j]
    for j in range(rest, x.size, 8):
        s0 += probability[j] * x[j]
        s1 += probability[j + 1] * x[j + 1]
        s2 += probability[j + 2] * x[j + 2]
        s3 += probability[j + 3] * x[j + 3]
        s4 += probability[j + 4] * x[j + 4]
        s5 += probability[j + 5] * x[j + 5]
        s6 += probability[j + 6] * x[j + 6]
        s7 += probability[j + 7] * x[j + 7]
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    return (1.0 - mixing) * total + mixing / n_arms


@kernel
def choose_mixed(
    params: EXP4Params, public: EXP4Public, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """A draw from Q."""
    for a in range(contexts.shape[0]):
        public.scratch[a] = mixed(public.probability, params.mixing, params.n_arms, contexts[a])
    arm = draw(public.scratch, rng.random())
    return arm, float(public.scratch[arm])


@kernel
def release_due(params: EXP4Params, public: EXP4Public) -> bool:
    return public.clock[0] >= params.batch


@kernel
def record_reach(params: EXP4Params, public: EXP4Public, arm: int, x: Vector, n: int) -> None:
    """Count the round, and bound the change by one of its records, even if it is taken back."""
    public.clock[0] += n
    probability = mixed(public.probability, params.mixing, params.n_arms, x)
    squared = 0.0
    for j in range(x.size):
        # Raised to 1e-100, so that its square and its product with the width do not underflow.
        weight = max(x[j] / probability, _LIGHTEST) if x[j] > 0.0 else 0.0
        # Public features and weights only, so this bound may be used as the sensitivity.
        squared += weight * weight
        public.reach[j] = max(public.reach[j], weight)
    public.facts[0] = max(public.facts[0], np.sqrt(squared))


@kernel
def weigh(params: EXP4Params, public: EXP4Public, arm: int, x: Vector) -> None:
    """x / Q(a)."""
    probability = mixed(public.probability, params.mixing, params.n_arms, x)
    for j in range(x.size):
        x[j] /= probability


@kernel
def on_grid(params: EXP4Params, value: float) -> float:
    return np.rint(value / params.grid) * params.grid if params.grid > 0.0 else value


@kernel
def accumulate_weighed(
    params: EXP4Params, raw: EXP4Raw, arm: int, x: Vector, reward: float, n: int
) -> None:
    """Add the weighed loss, in units of rewards."""
    loss = n * params.high - reward
    for j in range(x.size):
        # Each record is rounded on its own, so that the sum is exactly on the grid.
        raw.total[j] += on_grid(params, x[j] * loss)


@kernel
def sensitivity_realised(params: EXP4Params, public: EXP4Public, norm: int) -> float:
    # ``facts`` is a sum in floats, which may have been rounded down.
    return params.width * public.facts[0] * ROUNDED_UP + params.slack


@kernel
def sensitivity_worst(params: EXP4Params, public: EXP4Public, norm: int) -> float:
    return params.worst + params.slack


@kernel
def close(params: EXP4Params, public: EXP4Public, memo: Vector) -> None:
    """Begin to count and measure anew."""
    public.clock[0] = 0
    public.facts[0] = 0.0
    for j in range(public.reach.size):
        public.reach[j] = 0.0


@kernel
def learn(params: EXP4Params, public: EXP4Public) -> None:
    """New weights for the batch to come."""
    recentre(public.losses)
    exponential_weights(public.losses, params.rate, public.probability)


@kernel
def publish_losses(params: EXP4Params, public: EXP4Public, memo: Vector, release: Vector) -> None:
    for j in range(release.size):
        public.losses[j] += release[j] / (params.width * params.batch)
    learn(params, public)


# One release per expert ------------------------------------------------------------------------

PER_EXPERT = Kernels(
    init=init,
    choose=choose_mixed,
    record_pull=record_reach,
    weigh=weigh,
    accumulate=accumulate_weighed,
    release_due=release_due,
    sensitivity=sensitivity_realised,
    close=close,
    summarise=summarise,
    publish=publish_losses,
)


# One release per arm, of frozen advice ---------------------------------------------------------


@kernel
def prepare_frozen(
    params: EXP4Params, public: EXP4Public, contexts: Matrix, rng: Generator
) -> None:
    """At the start of a batch, keep the advice."""
    if public.clock[0] == 0:
        for a in range(contexts.shape[0]):
            for j in range(contexts.shape[1]):
                public.frozen[a, j] = contexts[a, j]
            weights = public.probability
            public.mixture[a] = mixed(weights, params.mixing, params.n_arms, contexts[a])


@kernel
def choose_frozen(
    params: EXP4Params, public: EXP4Public, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """A draw from Q of the advice that stands; of new advice once a batch is over."""
    if release_due(params, public):
        return choose_mixed(params, public, contexts, rng)
    arm = draw(public.mixture, rng.random())
    return arm, float(public.mixture[arm])


@kernel
def record_frozen(params: EXP4Params, public: EXP4Public, arm: int, x: Vector, n: int) -> None:
    public.clock[0] += n
    facts = public.facts
    # A record enters its own arm's sum alone, times 1 / Q(a).
    facts[0] = max(facts[0], 1.0 / public.mixture[arm])


@kernel
def weigh_frozen(params: EXP4Params, public: EXP4Public, arm: int, x: Vector) -> None:
    """1 / Q(a), for all experts alike."""
    for j in range(x.size):
        x[j] = 1.0 / public.mixture[arm]


@kernel
def accumulate_frozen(
    params: EXP4Params, raw: EXP4Raw, arm: int, x: Vector, reward: float, n: int
) -> None:
    raw.total[arm] += on_grid(params, (n * params.high - reward) * x[0])


@kernel
def close_with_advice(params: EXP4Params, public: EXP4Public, memo: Vector) -> None:
    """Note the advice that stood, row by row."""
    n = public.losses.size
    for a in range(params.n_arms):
        for j in range(n):
            memo[a * n + j] = public.frozen[a, j]
    close(params, public, memo)


@kernel
def publish_frozen(params: EXP4Params, public: EXP4Public, memo: Vector, release: Vector) -> None:
    n = public.losses.size
    for a in range(release.size):
        loss = release[a] / (params.width * params.batch)
        for j in range(n):
            public.losses[j] += memo[a * n + j] * loss
    learn(params, public)


PER_ARM = replace(
    PER_EXPERT,
    prepare=prepare_frozen,
    choose=choose_frozen,
    record_pull=record_frozen,
    weigh=weigh_frozen,
    accumulate=accumulate_frozen,
    close=close_with_advice,
    publish=publish_frozen,
)


# One release per round -------------------------------------------------------------------------


@kernel
def close_with_reach(params: EXP4Params, public: EXP4Public, memo: Vector) -> None:
    """Note the most that a record of the batch can move every expert's sum."""
    for j in range(public.reach.size):
        memo[j] = public.reach[j]
    # After the notes, because it clears ``reach``.
    close(params, public, memo)


@kernel
def record_weights(params: EXP4Params, public: EXP4Public, arm: int, x: Vector, n: int) -> None:
    """Store the factor of this round's loss, the only one of its batch."""
    public.clock[0] += n
    if n < 0:
        return
    probability = mixed(public.probability, params.mixing, params.n_arms, x)
    for j in range(x.size):
        public.reach[j] = x[j] / probability


@kernel
def publish_reward(params: EXP4Params, public: EXP4Public, memo: Vector, release: Vector) -> None:
    for j in range(public.losses.size):
        public.losses[j] += memo[j] * (params.high - release[0]) / params.width
    learn(params, public)


PER_ROUND = Kernels(
    init=init,
    choose=choose_mixed,
    record_pull=record_weights,
    accumulate=accumulate,
    release_due=release_due,
    sensitivity=sensitivity_worst,
    close=close_with_reach,
    summarise=summarise,
    publish=publish_reward,
)
