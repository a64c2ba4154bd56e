"""Thompson sampling on released sums (Hu & Hegde 2022): DP-TS on the arms' running sums, and
Lazy-DP-TS on batches.

**DP-TS.**  Every answer releases the running sums of all arms' rewards, as a continual sum of
vectors (``privacy.continual``).  One person contributes one reward to one coordinate of one
increment.  So a record moves it by at most ``hi - lo`` in the L1 and in the L2 norm.  The person's
arm depends on earlier releases and on the sampling only.  The number of rounds of each arm is
public.

The paper has two counters for each arm, of half the budget.  One counter of vectors counts the
releases of all arms, and so has a few more nodes.  But it has the whole budget, and may be any
counter of the toolkit.

**Lazy-DP-TS.**  Each arm collects fresh rewards until it has twice as many as in its batch before.
Then the batch's mean is released and replaces the old one.  In between, every round samples from
the posteriors that the released means describe, which costs no privacy.

A full batch of an arm releases the sum of its rewards.  The batches of different arms fill up side
by side, so a release covers the records of one arm (its part) since that arm's last release. One
person contributes to one batch, a record moves one sum by at most ``hi - lo``, and each sum may
spend the whole budget.  A batch's size is fixed.  The arm of a person depends on earlier releases
and on the sampling only.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from ...algorithms.bases.counter_choice import (
    RUNNING_SUM,
    Plan,
    counter_for,
    running_sum,
    secure_counter,
)
from ...algorithms.bases.episodes import MEMO
from ...algorithms.bases.sums import CLOCK, EVERY_ROUND, accumulate_by_arm, sensitivity
from ...calls import is_open
from ...constraints import Constraints
from ...kernel import Generator, Vector, kernel
from ...policies import ArmEstimates, Card, Kernels, Options, Policy, Statistic, register
from ...privacy.budgets import Budget, PureDP
from ...privacy.channels import Laplace
from ...privacy.continual import Counter
from ...protocol import Contexts, Row
from ...session.estimates import standard_error


def _estimates(params: Any, mean: np.ndarray, n: np.ndarray, variance: float) -> ArmEstimates:
    """Estimates from means of n rewards, with noise of that variance on their sum."""
    means = np.where(n > 0, params.low + params.width * mean, np.nan)
    return ArmEstimates(means, standard_error(n, params.width, variance), n)


# DP-TS ----------------------------------------------------------------------------------------


class ThompsonParams(NamedTuple):
    n_arms: int
    width: float  # hi - lo
    low: float
    noise_std: float  # the largest on a sum
    widest: float  # the largest scale of a Laplace variable in it
    published: bool  # the published bonus


class ThompsonRaw(NamedTuple):
    total: np.ndarray  # (K,) the reward of the last round, at its arm


class ThompsonPublic(NamedTuple):
    mean: np.ndarray  # (K,) released, scaled to [0, 1] but not clipped to it
    plays: np.ndarray  # (K,) float64: rewards behind it
    clock: np.ndarray  # (3,) RoundClock


def init(params: ThompsonParams) -> tuple[ThompsonRaw, ThompsonPublic]:
    k = params.n_arms
    return ThompsonRaw(np.zeros(k)), ThompsonPublic(np.zeros(k), np.zeros(k), np.zeros(3, np.int64))


@kernel
def choose(
    params: ThompsonParams, public: ThompsonPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """Choose arg max of Beta(m n + 1, (1 - m) n + 1) draws for means m of n rewards, clipped to [0,
    1]; unplayed arms first.

    A sum is raised by a bound that its noise exceeds with probability t^-3 at most.  A Laplace
    variable of scale b has ln E exp(s X) = -ln(1 - (s b)^2) <= (s b)^2 / (1 - s b).  So a sum of
    them, with variance sigma^2 and no scale above w, exceeds sigma sqrt(2 L) + w L with probability
    exp(-L) at most.  Gaussian noise has w = 0.  As published it is 6 sigma ln t, which is the
    paper's 6 sqrt(8 ln(n + 1)) ln t / epsilon for its counters.
    """
    log = 3.0 * np.log(max(float(public.clock[CLOCK.rounds]), 1.0))
    raised = params.noise_std * np.sqrt(2.0 * log) + params.widest * log
    if params.published:
        raised = 2.0 * params.noise_std * log
    raised /= params.width
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        n = public.plays[a]
        if n == 0.0:
            return a, 1.0
        mean = min(max(public.mean[a] + raised / n, 0.0), 1.0)
        draw = rng.beta(mean * n + 1.0, (1.0 - mean) * n + 1.0)
        if draw > best:
            best, arm = draw, a
    return arm, np.nan


@kernel
def publish(params: ThompsonParams, public: ThompsonPublic, memo: Vector, release: Vector) -> None:
    public.plays[public.clock[CLOCK.arm]] += 1.0
    # All arms, because every release has new noise in every coordinate.
    for a in range(params.n_arms):
        if public.plays[a] > 0.0:
            public.mean[a] = (release[a] / public.plays[a] - params.low) / params.width
    public.clock[CLOCK.fresh] = 0


@register(n_arms=3, horizon=30_000, counter="tree")
class DPTS(Policy):
    """Thompson sampling on running sums, released after every answer (Hu & Hegde 2022, DP-TS).

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published), or of another notion (Gaussian
            noise); None for Thompson sampling without privacy.
        horizon: an upper bound on the number of rounds; generous is fine.  After it nothing more is
            learned.  None with the hybrid counter.
        counter: as of ``PrivateLinUCB``.
        **options: see ``Options``.  With ``calibration="paper"`` means are raised as published,
            which is several times more under ``PureDP``.

    When to choose: concentrated or (epsilon, delta)-DP, where its regret is low.  Under pure DP
    ``LazyDPTS`` has less.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = DPTS(3, budget=PureDP(1.0), horizon=1000, seed=1)
        >>> policy.pull().arm, policy.update(1.0)
        (0, True)
    """

    learns_off_policy = True

    card = Card(
        title="Thompson sampling on running sums",
        source="Hu & Hegde (2022), DP-TS, with one running sum of vectors for all arms",
        proof=(
            "module dpbandits.papers.others.thompson; running sums: module"
            " dpbandits.privacy.continual"
        ),
        noise=("Laplace", "Gaussian"),
        learns_at_once=True,
        randomised=True,
    )
    kernels = Kernels(
        init=init, choose=choose, publish=publish, **EVERY_ROUND | {"accumulate": accumulate_by_arm}
    )

    constraints: ClassVar[Constraints] = RUNNING_SUM

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        counter: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        own: dict[str, Any] = {"n_arms": n_arms, **running_sum(horizon, counter)}
        super().__init__(own, budget=budget, **options)

    @staticmethod
    def _arm_estimates(params: ThompsonParams, public: ThompsonPublic) -> ArmEstimates:
        return _estimates(params, public.mean, public.plays, params.noise_std**2)

    @property
    def _secure_needs(self) -> tuple[str, str]:
        return secure_counter(self.config["counter"] if self.budget is not None else None)

    @cached_property
    def _counter(self) -> Counter:
        name, horizon = self.config["counter"], self.config["horizon"]
        return counter_for(name, horizon, self.channel, secure=self.grid > 0.0)

    def _params(self) -> ThompsonParams:
        (lo, hi), laplace = self.reward_range, isinstance(self.channel, Laplace)
        plan = Plan(self._counter, self.config["horizon"])
        return ThompsonParams(
            n_arms=self.n_arms,
            width=hi - lo,
            low=lo,
            noise_std=plan.noise_std(self.channel, self.statistic.max_sensitivity),
            widest=plan.widest(self.channel, self.noise_scale) if laplace else 0.0,
            published=laplace and self.calibration == "paper",
        )

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(
            self.reward_range, size=self.n_arms, max_records=1, counter=self._counter
        )


# Lazy-DP-TS -----------------------------------------------------------------------------------


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


class LazyClock(NamedTuple):
    """Slots of ``LazyThompsonPublic.clock``."""

    rounds: int = 0
    arm: int = 1  # of the last round


LAZY = LazyClock()


def init_lazy(params: LazyThompsonParams) -> tuple[LazyThompsonRaw, LazyThompsonPublic]:
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
def summarise_arm(params: Any, raw: Any, public: Any, memo: Vector, statistic: Vector) -> None:
    """The sum of the arm that the memo begins with, which starts again."""
    arm = int(memo[0])
    statistic[0] = raw.total[arm]
    raw.total[arm] = 0.0


@kernel
def choose_lazily(
    params: LazyThompsonParams, public: LazyThompsonPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """As ``choose``, of the mean of the last batch, raised by 3 s ln t / (w n)."""
    for a in range(params.n_arms):
        if public.awaited[a] == 0 and is_open(contexts, a):
            return a, 1.0
    best, arm = -np.inf, 0
    pressure = 3.0 * params.noise_scale / params.width * np.log(float(public.clock[LAZY.rounds]))
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
def record_lazily(
    params: LazyThompsonParams, public: LazyThompsonPublic, arm: int, x: Row, n: int
) -> None:
    public.clock[LAZY.rounds] += n
    public.fresh[arm] += n
    if n > 0:
        public.clock[LAZY.arm] = arm


@kernel
def batch_is_full(params: LazyThompsonParams, public: LazyThompsonPublic) -> bool:
    arm = public.clock[LAZY.arm]
    return public.fresh[arm] >= max(2 * public.awaited[arm], 1)


@kernel
def partition(params: LazyThompsonParams, public: LazyThompsonPublic) -> int:
    return public.clock[LAZY.arm]


@kernel
def close(params: LazyThompsonParams, public: LazyThompsonPublic, memo: Vector) -> None:
    arm = public.clock[LAZY.arm]
    memo[MEMO.arm], memo[MEMO.size] = arm, public.fresh[arm]
    public.awaited[arm], public.fresh[arm] = public.fresh[arm], 0


@kernel
def withdraw(params: LazyThompsonParams, public: LazyThompsonPublic, memo: Vector) -> None:
    """The last released batch is that by which the next one grows."""
    arm = int(memo[MEMO.arm])
    public.awaited[arm] = public.batch[arm]


@kernel
def publish_batch(
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
        source="Hu & Hegde (2022), Lazy-DP-TS; parallel composition: Azize & Basu (2024),"
        " Appendix D",
        noise=("Laplace",),
        randomised=True,
    )
    kernels = Kernels(
        init=init_lazy,
        choose=choose_lazily,
        record_pull=record_lazily,
        accumulate=accumulate_by_arm,
        release_due=batch_is_full,
        partition=partition,
        sensitivity=sensitivity,
        close=close,
        withdraw=withdraw,
        summarise=summarise_arm,
        publish=publish_batch,
        skips_closed=True,
    )

    def __init__(self, n_arms: int, *, budget: PureDP | None, **options: Unpack[Options]) -> None:
        super().__init__({"n_arms": n_arms}, budget=budget, **options)

    @staticmethod
    def _arm_estimates(params: LazyThompsonParams, public: LazyThompsonPublic) -> ArmEstimates:
        return _estimates(params, public.mean, public.batch, 2.0 * params.noise_scale**2)

    def _params(self) -> LazyThompsonParams:
        lo, hi = self.reward_range
        return LazyThompsonParams(self.n_arms, hi - lo, lo, self.noise_scale)

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(
            self.reward_range, parts=self.n_arms, memo=len(MEMO), sums_of="arm"
        )
