"""Thompson sampling on merged batches.

A mean is drawn for each arm, and the arm of the largest is played: for one round, if it has most
rounds of all, and else until its batch is full, so that a few unlucky draws cannot hold it up.  The
batch of the arm with most rounds fills up beside those of others; lengths are those of ``merged``.
What crosses the wall: when a batch is full, its sum, or its two sums.  A release covers the records
of one arm (its part) since that arm's last release: one person contributes to one batch, and each
release may spend the whole budget.  Which arm a person meets depends on earlier releases and on the
drawing only.

**Draws.**  exp(-D) of ``law`` bounds the tails of a merged value given its mean; a draw takes half
of that for the tails of the mean given the value.  With a fair coin and E from the exponential law
it is the largest q with D(m, q) <= alpha E, or the least with D(1 - m, 1 - q) <= alpha E: noise on
rewards r and on 1 - r has one law.  Both are kept, when a batch is released, for E = v^2 on a grid
of v, and interpolated: between releases a draw costs two random numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...calls import is_open
from ...kernel import Generator, Vector, kernel
from ...policies import Card, Kernels, Statistic, register
from ...protocol import Contexts, Row
from ..bases.episodes import MEMO
from .law import MERGED, upper_bound_of
from .merged import (
    PROOF,
    SOURCE,
    MergedParams,
    WeighingPolicy,
    batch_rounds,
    curvature,
    publish,
    sensitivity,
)

_GRID, _STEP = 32, 0.2  # up to E = 38


class MergedThompsonRaw(NamedTuple):
    total: np.ndarray  # (K,) sums of the running batches
    curve: np.ndarray  # (K,) of r (1 - r), in the units of rewards


class MergedThompsonPublic(NamedTuple):
    estimate: np.ndarray  # (K,) merged values, as rewards are measured
    merged: np.ndarray  # (8, K) see ``law.Merged``
    pulls: np.ndarray  # (K,) rounds in all finished batches
    fresh: np.ndarray  # (K,) rounds in the running one
    quantiles: np.ndarray  # (K, 2, 32) least and largest means for E on the grid
    clock: np.ndarray  # (1,) the arm of the last round


def init(params: MergedParams) -> tuple[MergedThompsonRaw, MergedThompsonPublic]:
    k = params.n_arms
    public = MergedThompsonPublic(
        estimate=np.zeros(k),
        merged=np.zeros((len(MERGED), k)),
        pulls=np.zeros(k, np.int64),
        fresh=np.zeros(k, np.int64),
        quantiles=np.zeros((k, 2, _GRID)),
        clock=np.zeros(1, np.int64),
    )
    return MergedThompsonRaw(np.zeros(k), np.zeros(k)), public


@kernel
def choose_mean(quantiles: Any, arm: int, rng: Generator) -> float:
    side = 1 if rng.random() < 0.5 else 0
    at = min(np.sqrt(rng.standard_exponential()) / _STEP, _GRID - 1.000001)
    i = int(at)
    low, high = quantiles[arm, side, i], quantiles[arm, side, i + 1]
    return low + (at - i) * (high - low)


@kernel
def choose(
    params: MergedParams, public: MergedThompsonPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of the largest draw; arms of which nothing was released come first."""
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
def hold_rounds(params: MergedParams, public: MergedThompsonPublic, arm: int) -> int:
    """One round of the arm that has most; of others what is missing of the batch."""
    for a in range(params.n_arms):
        if public.pulls[a] > public.pulls[arm] or public.pulls[arm] == 0:
            return batch_rounds(params, public.pulls[arm]) - public.fresh[arm]
    return 1


@kernel
def record_pull(
    params: MergedParams, public: MergedThompsonPublic, arm: int, x: Row, n: int
) -> None:
    public.fresh[arm] += n
    if n > 0:
        public.clock[0] = arm


@kernel
def accumulate(
    params: MergedParams, raw: MergedThompsonRaw, arm: int, x: Row, reward: float, n: int
) -> None:
    """The sum of rewards, and where it is released that of r (1 - r)."""
    raw.total[arm] += reward
    if params.curved:
        raw.curve[arm] += curvature(params, reward, n)


@kernel
def release_due(params: MergedParams, public: MergedThompsonPublic) -> bool:
    arm = public.clock[0]
    return public.fresh[arm] >= batch_rounds(params, public.pulls[arm])


@kernel
def partition(params: MergedParams, public: MergedThompsonPublic) -> int:
    return public.clock[0]


@kernel
def close(params: MergedParams, public: MergedThompsonPublic, memo: Vector) -> None:
    arm = public.clock[0]
    memo[MEMO.arm], memo[MEMO.size] = arm, public.fresh[arm]
    public.pulls[arm] += public.fresh[arm]
    public.fresh[arm] = 0


@kernel
def summarise(
    params: MergedParams,
    raw: MergedThompsonRaw,
    public: MergedThompsonPublic,
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
    params: MergedParams, public: MergedThompsonPublic, memo: Vector, release: Vector
) -> None:
    publish(params, public, memo, release)
    arm = int(memo[MEMO.arm])
    merged = public.merged[:, arm]
    value = merged[MERGED.value]
    for i in range(_GRID):
        level = params.optimism * (i * _STEP) ** 2
        public.quantiles[arm, 1, i] = upper_bound_of(params, merged, merged, value, level)
        public.quantiles[arm, 0, i] = 1.0 - upper_bound_of(
            params, merged, merged, 1.0 - value, level
        )


@register(n_arms=3)
class MergedThompson(WeighingPolicy):
    """Thompson sampling on all noisy sums that were released of an arm.

    Draws a mean for every arm, of which exp(-D) are the tails, and plays the arm of the largest:
    for a round if it has most rounds of all, and else for the rest of its batch.

    Args:
        n_arms: number of arms.
        budget: of any notion; None for the non-private counterpart.
        alpha: the lower, the nearer are draws to the merged values.
        growth, first, variance: as in ``MergedIMED``.
        **options: see ``Options``.

    When to choose: as ``MergedIMED``, where choices should be random.  Its propensities have no
    closed form.

    Example:
        >>> from dpbandits import ZCDP
        >>> MergedThompson(3, budget=ZCDP(0.5), seed=1).pull().arm
        0
    """

    card = Card(
        title="Thompson sampling on merged noisy sums",
        source=SOURCE.format(
            "Thompson (1933), On the Likelihood that One Unknown Probability Exceeds Another; draws"
            " from the exponent"
        ),
        proof=PROOF.replace("merged.merged", "merged.thompson"),
        noise=("Laplace", "Gaussian"),
        randomised=True,
    )
    kernels = Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        partition=partition,
        sensitivity=sensitivity,
        close=close,
        summarise=summarise,
        publish=publish_and_tabulate,
        skips_closed=True,
    )

    def _statistic(self) -> Statistic:
        return replace(super()._statistic(), parts=self.n_arms)
