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

from typing import NamedTuple, Unpack

import numpy as np

from ..kernel import entry, kernel
from ..policies import Card, Kernels, Options, Policy, register
from ..privacy.budgets import Budget, PureDP
from ..privacy.channels import Laplace
from .learners.totals import sensitivity

T, ARM = range(2)


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
    fresh: np.ndarray  # (K,) rounds in the running batch
    clock: np.ndarray  # (2,) rounds; arm of the last


@entry
def init(params):
    k = params.n_arms
    public = LazyThompsonPublic(
        np.zeros(k), np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(2, np.int64)
    )
    return LazyThompsonRaw(np.zeros(k)), public


@kernel
def choose(params, public, contexts, rng):
    """Arg max of Beta(m n + 1, (1 - m) n + 1) draws; m is the released mean plus 3 s ln t / (w n),
    clipped to [0, 1].
    """
    for a in range(params.n_arms):
        if public.batch[a] == 0:
            return a, 1.0
    best, arm = -np.inf, 0
    pressure = 3.0 * params.noise_scale / params.width * np.log(float(public.clock[T]))
    for a in range(params.n_arms):
        n = public.batch[a]
        mean = min(max(public.mean[a] + pressure / n, 0.0), 1.0)
        draw = rng.beta(mean * n + 1.0, (1.0 - mean) * n + 1.0)
        if draw > best:
            best, arm = draw, a
    return arm, np.nan


@kernel
def record_pull(params, public, arm, x, n):
    public.clock[T] += n
    public.fresh[arm] += n
    if n > 0:
        public.clock[ARM] = arm


@kernel
def accumulate(params, raw, public, arm, x, reward, n):
    raw.total[arm] += reward


@kernel
def release_due(params, public):
    arm = public.clock[ARM]
    return public.fresh[arm] >= max(2 * public.batch[arm], 1)


@kernel
def partition(params, public):
    return public.clock[ARM]


@kernel
def summarise(params, raw, public, statistic):
    arm = public.clock[ARM]
    statistic[0] = raw.total[arm]
    raw.total[arm] = 0.0


@kernel
def publish(params, public, release):
    arm = public.clock[ARM]
    n = public.fresh[arm]
    public.mean[arm] = (release[0] / n - params.low) / params.width
    public.batch[arm] = n
    public.fresh[arm] = 0


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

    card = Card(
        title="Thompson sampling on noisy batch sums",
        source=(
            "Hu & Hegde (2022), Lazy-DP-TS; parallel composition as in Azize & Basu (2024),"
            " Appendix D"
        ),
        channels={PureDP: Laplace},
        randomised=True,
    )
    kernels = Kernels(
        init,
        choose,
        record_pull,
        accumulate,
        release_due,
        sensitivity,
        summarise,
        publish,
        partition=partition,
    )

    def __init__(self, n_arms: int, *, budget: Budget | None, **options: Unpack[Options]) -> None:
        super().__init__({"n_arms": n_arms}, budget=budget, **options)

    def _params(self) -> LazyThompsonParams:
        lo, hi = self.reward_range
        return LazyThompsonParams(self.n_arms, hi - lo, lo, self.noise_scale)

    def _sizes(self) -> tuple[int, int]:
        return 1, self.n_arms
