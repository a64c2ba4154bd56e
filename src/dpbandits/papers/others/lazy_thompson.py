"""Lazy-DP-TS: Thompson sampling on privately released batch sums (Hu & Hegde 2022).

Each arm collects fresh rewards until it has twice as many as in its batch before; then the batch's
mean is released and replaces the old one.  In between, every round samples from the posteriors that
the released means describe, which costs no privacy.

What crosses the wall: when an arm's batch is full, the sum of its rewards.  The batches of
different arms fill up side by side, so a release covers the records of one arm (its part) since
that arm's last release: one person contributes to one batch, a record moves one sum by at most ``hi
- lo``, and each sum may spend the whole budget.  A batch's size is fixed; which arm a person meets
depends on earlier releases and on the sampling only.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from ...algorithms.bases.episodes import MEMO
from ...algorithms.bases.sums import accumulate_by_arm, sensitivity
from ...calls import is_open
from ...kernel import Generator, Vector, kernel
from ...policies import ArmEstimates, Card, Kernels, Options, Policy, Statistic, register
from ...privacy.budgets import PureDP
from ...protocol import Contexts, Row
from ...session.estimates import standard_error


class LazyThompsonParams(NamedTuple):
    n_arms: int
    width: float  # hi - lo
    low: float
    noise_scale: float  # of the Laplace noise on a sum


class LazyThompsonRaw(NamedTuple):
    total: np.ndarray  # (K,) sums of the running batches


class LazyThompsonPublic(NamedTuple):
    mean: np.ndarray  # (K,) released, scaled to [0, 1] but not clipped to it
    batch: np.ndarray  # (K,) rewards behind it; 0 before the first release
    awaited: np.ndarray  # (K,) rounds in the last finished batch, released or not
    fresh: np.ndarray  # (K,) rounds in the running batch
    clock: np.ndarray  # (2,)


class Clock(NamedTuple):
    """Slots of ``LazyThompsonPublic.clock``."""

    rounds: int = 0
    arm: int = 1  # of the last round


CLOCK = Clock()


def init(params: LazyThompsonParams) -> tuple[LazyThompsonRaw, LazyThompsonPublic]:
    k = params.n_arms
    public = LazyThompsonPublic(
        mean=np.zeros(k),
        batch=np.zeros(k, np.int64),
        awaited=np.zeros(k, np.int64),
        fresh=np.zeros(k, np.int64),
        clock=np.zeros(2, np.int64),
    )
    return LazyThompsonRaw(np.zeros(k)), public


@kernel
def choose(
    params: LazyThompsonParams, public: LazyThompsonPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """Arg max of Beta(m n + 1, (1 - m) n + 1) draws; m is the released mean plus 3 s ln t / (w n),
    clipped to [0, 1].
    """
    for a in range(params.n_arms):
        if public.awaited[a] == 0 and is_open(contexts, a):
            return a, 1.0
    best, arm = -np.inf, 0
    pressure = 3.0 * params.noise_scale / params.width * np.log(float(public.clock[CLOCK.rounds]))
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        n = public.awaited[a]
        mean = min(max(public.mean[a] + pressure / n, 0.0), 1.0)
        draw = rng.beta(mean * n + 1.0, (1.0 - mean) * n + 1.0)
        if draw > best:
            best, arm = draw, a
    return arm, np.nan


@kernel
def record_pull(
    params: LazyThompsonParams, public: LazyThompsonPublic, arm: int, x: Row, n: int
) -> None:
    public.clock[CLOCK.rounds] += n
    public.fresh[arm] += n
    if n > 0:
        public.clock[CLOCK.arm] = arm


@kernel
def release_due(params: LazyThompsonParams, public: LazyThompsonPublic) -> bool:
    arm = public.clock[CLOCK.arm]
    return public.fresh[arm] >= max(2 * public.awaited[arm], 1)


@kernel
def partition(params: LazyThompsonParams, public: LazyThompsonPublic) -> int:
    return public.clock[CLOCK.arm]


@kernel
def close(params: LazyThompsonParams, public: LazyThompsonPublic, memo: Vector) -> None:
    arm = public.clock[CLOCK.arm]
    memo[MEMO.arm], memo[MEMO.size] = arm, public.fresh[arm]
    public.awaited[arm], public.fresh[arm] = public.fresh[arm], 0


@kernel
def summarise_arm(params: Any, raw: Any, public: Any, memo: Vector, statistic: Vector) -> None:
    """The sum of the arm that the memo begins with, which starts again."""
    arm = int(memo[0])
    statistic[0] = raw.total[arm]
    raw.total[arm] = 0.0


@kernel
def publish(
    params: LazyThompsonParams, public: LazyThompsonPublic, memo: Vector, release: Vector
) -> None:
    arm, n = int(memo[MEMO.arm]), int(memo[MEMO.size])
    public.mean[arm] = (release[0] / n - params.low) / params.width
    public.batch[arm] = n


@register(n_arms=3)
class LazyDPTS(Policy):
    """Thompson sampling on the noisy mean of each arm's last batch (Hu & Hegde 2022, Lazy-DP-TS).

    Args:
        n_arms: number of arms.
        budget: ``PureDP``; None for the non-private counterpart.
        **options: see ``Options``.

    When to choose: pure differential privacy at budgets that are not too strict, where its regret
    is low.  Its propensities have no closed form.

    Example:
        >>> policy = LazyDPTS(3, budget=PureDP(1.0), seed=1)
        >>> policy.pull().arm
        0
    """

    learns_off_policy = True

    card = Card(
        title="Thompson sampling on noisy batch sums",
        source=(
            "Hu & Hegde (2022), Lazy-DP-TS; parallel composition as in Azize & Basu (2024),"
            " Appendix D"
        ),
        noise=("Laplace",),
        randomised=True,
    )
    kernels = Kernels(
        init=init,
        choose=choose,
        record_pull=record_pull,
        accumulate=accumulate_by_arm,
        release_due=release_due,
        partition=partition,
        sensitivity=sensitivity,
        close=close,
        summarise=summarise_arm,
        publish=publish,
        skips_closed=True,
    )

    def __init__(self, n_arms: int, *, budget: PureDP | None, **options: Unpack[Options]) -> None:
        super().__init__({"n_arms": n_arms}, budget=budget, **options)

    @staticmethod
    def _arm_estimates(params: LazyThompsonParams, public: LazyThompsonPublic) -> ArmEstimates:
        means = np.where(public.batch > 0, params.low + params.width * public.mean, np.nan)
        errors = standard_error(public.batch, params.width, 2.0 * params.noise_scale**2)
        return ArmEstimates(means, errors, public.batch)

    def _params(self) -> LazyThompsonParams:
        lo, hi = self.reward_range
        return LazyThompsonParams(self.n_arms, hi - lo, lo, self.noise_scale)

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(self.reward_range, parts=self.n_arms, memo=len(MEMO))
