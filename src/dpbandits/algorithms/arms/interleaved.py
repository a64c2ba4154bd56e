"""Thompson sampling on merged batches, which fill up side by side.

The policy draws a mean for each arm, and plays the arm with the largest.  It plays that arm for one
round, if it has most rounds of all, and otherwise until its batch is full.  Hence a few unlucky
draws cannot delay a batch.  The batch of the arm with most rounds fills up beside those of others;
``batches`` has its lengths.

Guarantee:

* Protected: one person's reward, from all who see or override decisions, but for the operator.
* Adjacency: one record is another.  One person contributes to one batch.
* Sensitivity: when a batch is full, its sum, or its two sums, cross the wall; ``held`` bounds their
  change.

A release covers the records of one arm (its part) since that arm's last release, and each release
may spend the whole budget.  The arm of a person depends on earlier releases and draws only.

**Draws.**  exp(-D) of ``law`` bounds the tails of a merged value given its mean.  A draw takes half
of that for the tails of the mean given the value.  It needs a fair coin and E from the exponential
law.  The draw is the largest q with D(m, q) <= alpha E, or the least with D(1 - m, 1 - q) <= alpha
E.  The latter holds as noise on r and on 1 - r has one law.  Each release tabulates both for E =
v^2 on a grid of v; a draw interpolates, and costs two random numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...calls import is_open
from ...kernel import Generator, Vector, bind, kernel
from ...policies import Kernels
from ...protocol import Contexts, Row
from ..bases.episodes import MEMO
from ..bases.linear import sensitivity
from . import held
from .batches import weight_of
from .held import ArmsParams, curvature
from .law import MERGED, upper_bound_of
from .memories import played, take_in

_GRID, _STEP = 32, 0.2  # up to E = 38


class InterleavedRaw(NamedTuple):
    total: np.ndarray  # (K,) sums of the running batches
    curve: np.ndarray  # (K,) of r (1 - r), in the units of rewards


class InterleavedPublic(NamedTuple):
    estimate: np.ndarray  # (K,) merged values, as rewards are measured
    merged: np.ndarray  # (8, K) see ``law.Merged``
    pulls: np.ndarray  # (K,) rounds in all finished batches
    fresh: np.ndarray  # (K,) rounds in the running one
    quantiles: np.ndarray  # (K, 2, 32) least and largest means for E on the grid
    clock: np.ndarray  # (1,) the arm of the last round


def init(params: ArmsParams) -> tuple[InterleavedRaw, InterleavedPublic]:
    k = params.n_arms
    public = InterleavedPublic(
        estimate=np.zeros(k),
        merged=np.zeros((len(MERGED), k)),
        pulls=np.zeros(k, np.int64),
        fresh=np.zeros(k, np.int64),
        quantiles=np.zeros((k, 2, _GRID)),
        clock=np.zeros(1, np.int64),
    )
    return InterleavedRaw(np.zeros(k), np.zeros(k)), public


next_batch = bind(held.hold_rounds, rounds_of=played)


@kernel
def choose_mean(quantiles: Any, arm: int, rng: Generator) -> float:
    side = 1 if rng.random() < 0.5 else 0
    # Just below the last place, because the interpolation reads place i + 1.
    at = min(np.sqrt(rng.standard_exponential()) / _STEP, _GRID - 1.000001)
    i = int(at)
    low, high = quantiles[arm, side, i], quantiles[arm, side, i + 1]
    return low + (at - i) * (high - low)


@kernel
def choose(
    params: ArmsParams, public: InterleavedPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm with the largest draw; arms without a release come first."""
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if public.pulls[a] == 0 and is_open(contexts, a):
            return a, 1.0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        drawn = choose_mean(public.quantiles, a, rng)
        if drawn > best:
            best, arm = drawn, a
    return arm, np.nan


@kernel
def hold_rounds(params: ArmsParams, public: InterleavedPublic, arm: int) -> int:
    """One round for the arm with most rounds; the rest of the batch for other arms."""
    for a in range(params.n_arms):
        if public.pulls[a] > public.pulls[arm] or public.pulls[arm] == 0:
            return next_batch(params, public, arm) - public.fresh[arm]
    return 1


@kernel
def record_pull(params: ArmsParams, public: InterleavedPublic, arm: int, x: Row, n: int) -> None:
    public.fresh[arm] += n
    # A round that is taken back fills no batch, so the arm to release stays.
    if n > 0:
        public.clock[0] = arm


@kernel
def accumulate(
    params: ArmsParams, raw: InterleavedRaw, arm: int, x: Row, reward: float, n: int
) -> None:
    """The sum of rewards, and where it is released that of r (1 - r)."""
    raw.total[arm] += reward
    if params.curved:
        raw.curve[arm] += curvature(params, reward, n)


@kernel
def release_due(params: ArmsParams, public: InterleavedPublic) -> bool:
    arm = public.clock[0]
    return public.fresh[arm] >= next_batch(params, public, arm)


@kernel
def partition(params: ArmsParams, public: InterleavedPublic) -> int:
    return public.clock[0]


@kernel
def close(params: ArmsParams, public: InterleavedPublic, memo: Vector) -> None:
    arm = public.clock[0]
    memo[MEMO.arm], memo[MEMO.size] = arm, public.fresh[arm]
    public.pulls[arm] += public.fresh[arm]
    public.fresh[arm] = 0


@kernel
def withdraw(params: ArmsParams, public: InterleavedPublic, memo: Vector) -> None:
    public.pulls[int(memo[MEMO.arm])] -= int(memo[MEMO.size])


@kernel
def summarise(
    params: ArmsParams,
    raw: InterleavedRaw,
    public: InterleavedPublic,
    memo: Vector,
    statistic: Vector,
) -> None:
    arm = int(memo[MEMO.arm])
    statistic[0] = raw.total[arm]
    if params.curved:
        statistic[1] = raw.curve[arm]
    raw.total[arm] = raw.curve[arm] = 0.0


@kernel
def publish_and_tabulate(
    params: ArmsParams, public: InterleavedPublic, memo: Vector, release: Vector
) -> None:
    take_in(params, public, memo, release, weight_of(params, memo[MEMO.size]))
    arm = int(memo[MEMO.arm])
    merged = public.merged[:, arm]
    value = merged[MERGED.value]
    for i in range(_GRID):
        level = params.constant * (i * _STEP) ** 2
        public.quantiles[arm, 1, i] = upper_bound_of(params, merged, merged, value, level)
        public.quantiles[arm, 0, i] = 1.0 - upper_bound_of(
            params, merged, merged, 1.0 - value, level
        )


INTERLEAVED = Kernels(
    init=init,
    choose=choose,
    hold_rounds=hold_rounds,
    record_pull=record_pull,
    accumulate=accumulate,
    release_due=release_due,
    partition=partition,
    sensitivity=sensitivity,
    close=close,
    withdraw=withdraw,
    summarise=summarise,
    publish=publish_and_tabulate,
    skips_closed=True,
)
