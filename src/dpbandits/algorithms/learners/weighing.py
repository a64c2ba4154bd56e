"""Exponential weights on experts, from noisy losses: the compiled part of the EXP4 family.

The public side keeps what every expert is estimated to have lost, and P, which stands while a batch
runs.  What is summed behind the wall is one number per expert, one per arm (of advice that stands
for the batch), or the single reward of a round: a section for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...kernel import Kernel, bind, entry, kernel, unbound
from ...policies import Kernels
from .mixtures import mixed
from .simplex import draw, exponential_weights, recentre
from .totals import accumulate, summarise

DONE = 0
LONGEST = 0
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


class EXP4Raw(NamedTuple):
    total: np.ndarray  # (N,), (K,) or (1,): the statistic of the running batch


class EXP4Public(NamedTuple):
    losses: np.ndarray  # (N,) estimated cumulative losses of the experts, less the smallest of them
    probability: np.ndarray  # (N,) P, which stands for a batch
    reach: np.ndarray  # (N,) largest x / Q(a) of the running batch, by expert
    facts: np.ndarray  # (1,) largest |x|_2 / Q(a) of the running batch
    clock: np.ndarray  # (1,) int64: rounds booked in the running batch
    frozen: np.ndarray  # (K, N) the advice that stands, and
    mixture: np.ndarray  # (K,) Q from it; (0, 0) and (0,) where nothing is frozen
    scratch: np.ndarray  # (K,)


size = freeze = unbound


@entry
def _init(params):
    n, k = params.n_experts, params.n_arms
    frozen = k if freeze(params) else 0
    public = EXP4Public(
        np.zeros(n),
        np.full(n, 1.0 / n),
        np.zeros(n),
        np.zeros(1),
        np.zeros(1, np.int64),
        np.zeros((frozen, n)),
        np.full(frozen, 1.0 / k),
        np.zeros(k),
    )
    return EXP4Raw(np.zeros(size(params))), public


@kernel
def choose_mixed(params, public, contexts, rng):
    """A draw from Q."""
    for a in range(contexts.shape[0]):
        public.scratch[a] = mixed(public.probability, params.mixing, params.n_arms, contexts[a])
    arm = draw(public.scratch, rng.random())
    return arm, public.scratch[arm]


@kernel
def release_due(params, public):
    return public.clock[DONE] >= params.batch


@kernel
def record_reach(params, public, arm, x, n):
    """Count the round, and see how far a record of it moves the statistic; a round that is taken
    back leaves a bound behind.
    """
    public.clock[DONE] += n
    probability = mixed(public.probability, params.mixing, params.n_arms, x)
    squared = 0.0
    for j in range(x.size):
        # No smaller, so that its square and its product with the width are no less than they should
        # be, let alone zero.
        weight = max(x[j] / probability, _LIGHTEST) if x[j] > 0.0 else 0.0
        squared += weight * weight
        public.reach[j] = max(public.reach[j], weight)
    public.facts[LONGEST] = max(public.facts[LONGEST], np.sqrt(squared))


@kernel
def on_grid(params, value):
    return np.rint(value / params.grid) * params.grid if params.grid > 0.0 else value


@kernel
def accumulate_weighed(params, raw, public, arm, x, reward, n):
    """Add x loss / Q(a), in units of rewards."""
    loss = (n * params.high - reward) / mixed(public.probability, params.mixing, params.n_arms, x)
    for j in range(x.size):
        raw.total[j] += on_grid(params, x[j] * loss)


@kernel
def sensitivity_realised(params, public, norm):
    return params.width * public.facts[LONGEST] * ROUNDED_UP + params.slack


@kernel
def sensitivity_worst(params, public, norm):
    return params.worst + params.slack


@kernel
def learn(params, public):
    """New weights for the batch to come."""
    recentre(public.losses)
    exponential_weights(public.losses, params.rate, public.probability)
    public.clock[DONE] = 0
    public.facts[LONGEST] = 0.0
    for j in range(public.reach.size):
        public.reach[j] = 0.0


@kernel
def publish_losses(params, public, release):
    for j in range(release.size):
        public.losses[j] += release[j] / (params.width * params.batch)
    learn(params, public)


# One release per expert ----------------------------------------------------------------------


@kernel
def one_per_expert(params):
    return params.n_experts


@kernel
def nothing_frozen(params):
    return False


@kernel
def summarise_by_reach(params, raw, public, statistic):
    """Every coordinate in units of the most that a record of the batch can move it, so that it
    moves by at most 1.
    """
    for j in range(statistic.size):
        statistic[j] = (
            raw.total[j] / (params.width * public.reach[j]) if public.reach[j] > 0.0 else 0.0
        )
        raw.total[j] = 0.0


@kernel
def sensitivity_by_reach(params, public, norm):
    """At most 1 in each of N coordinates."""
    return np.sqrt(float(params.n_experts)) * ROUNDED_UP


@kernel
def publish_by_reach(params, public, release):
    for j in range(release.size):
        public.losses[j] += release[j] * public.reach[j] / params.batch
    learn(params, public)


def _per_expert(sensitivity: Kernel, summarise: Kernel, publish: Kernel) -> Kernels:
    init = bind(_init, size=one_per_expert, freeze=nothing_frozen)
    return Kernels(
        init,
        choose_mixed,
        record_reach,
        accumulate_weighed,
        release_due,
        sensitivity,
        summarise,
        publish,
    )


PER_EXPERT = _per_expert(sensitivity_realised, summarise, publish_losses)
PER_EXPERT_AT_WORST = _per_expert(sensitivity_worst, summarise, publish_losses)
PER_EXPERT_BY_REACH = _per_expert(sensitivity_by_reach, summarise_by_reach, publish_by_reach)


# One release per arm, of frozen advice -------------------------------------------------------


@kernel
def one_per_arm(params):
    return params.n_arms


@kernel
def advice_frozen(params):
    return True


@kernel
def prepare_frozen(params, public, contexts, rng):
    """At the start of a batch, keep the advice."""
    if public.clock[DONE] == 0:
        for a in range(contexts.shape[0]):
            for j in range(contexts.shape[1]):
                public.frozen[a, j] = contexts[a, j]
            public.mixture[a] = mixed(public.probability, params.mixing, params.n_arms, contexts[a])


@kernel
def choose_frozen(params, public, contexts, rng):
    """A draw from Q of the advice that stands; of new advice in rounds that are not recorded, since
    a batch is over.
    """
    if release_due(params, public):
        return choose_mixed(params, public, contexts, rng)
    arm = draw(public.mixture, rng.random())
    return arm, public.mixture[arm]


@kernel
def record_frozen(params, public, arm, x, n):
    public.clock[DONE] += n
    public.facts[LONGEST] = max(public.facts[LONGEST], 1.0 / public.mixture[arm])


@kernel
def accumulate_frozen(params, raw, public, arm, x, reward, n):
    raw.total[arm] += on_grid(params, (n * params.high - reward) / public.mixture[arm])


@kernel
def publish_frozen(params, public, release):
    for a in range(release.size):
        loss = release[a] / (params.width * params.batch)
        for j in range(public.losses.size):
            public.losses[j] += public.frozen[a, j] * loss
    learn(params, public)


PER_ARM = Kernels(
    bind(_init, size=one_per_arm, freeze=advice_frozen),
    choose_frozen,
    record_frozen,
    accumulate_frozen,
    release_due,
    sensitivity_realised,
    summarise,
    publish_frozen,
    prepare=prepare_frozen,
)


# One release per round -----------------------------------------------------------------------


@kernel
def one_number(params):
    return 1


@kernel
def record_weights(params, public, arm, x, n):
    """Keep what the loss of this round, the only one of its batch, will be multiplied by."""
    public.clock[DONE] += n
    probability = mixed(public.probability, params.mixing, params.n_arms, x)
    for j in range(x.size):
        public.reach[j] = x[j] / probability


@kernel
def publish_reward(params, public, release):
    for j in range(public.losses.size):
        public.losses[j] += public.reach[j] * (params.high - release[0]) / params.width
    learn(params, public)


PER_ROUND = Kernels(
    bind(_init, size=one_number, freeze=nothing_frozen),
    choose_mixed,
    record_weights,
    accumulate,
    release_due,
    sensitivity_worst,
    summarise,
    publish_reward,
)
