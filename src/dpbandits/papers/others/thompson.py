"""DP-TS: Thompson sampling on the arms' released running sums (Hu & Hegde 2022).

What crosses the wall: after every answer, the running sums of all arms' rewards, as a continual sum
of vectors (``privacy.continual``).  One person contributes one reward to one coordinate of one
increment, so that a record moves it by at most ``hi - lo`` in the L1 and in the L2 norm.  Which arm
she meets depends on what was released before her and on the sampling only, and how often each arm
was played is public.

The paper has two counters for each arm, of half the budget.  One counter of vectors counts the
releases of all arms, and so has a few more nodes; but it has the whole budget, and may be any that
the toolkit knows.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Unpack

import numpy as np

from ...algorithms.bases.counter_choice import Plan, counter_for, running_sum
from ...algorithms.bases.every_round import CLOCK, EVERY_ROUND
from ...algorithms.bases.sums import accumulate_by_arm
from ...calls import is_open
from ...kernel import Generator, Vector, kernel
from ...policies import ArmEstimates, Card, Kernels, Options, Policy, Statistic, register
from ...privacy.budgets import Budget
from ...privacy.channels import Laplace
from ...privacy.continual import Counter
from ...protocol import Contexts
from ...session.estimates import standard_error


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
    """Arg max of Beta(m n + 1, (1 - m) n + 1) draws for means m of n rewards, which are clipped to
    [0, 1]; unplayed arms first.

    A sum is raised by what its noise exceeds with probability t^-3 at most.  A Laplace variable of
    scale b has ln E exp(s X) = -ln(1 - (s b)^2) <= (s b)^2 / (1 - s b), so that their sum, with
    variance sigma^2 and no scale above w, stays below sigma sqrt(2 L) + w L but with probability
    exp(-L); Gaussian noise has w = 0.  As published it is 6 sigma ln t, which is the paper's 6
    sqrt(8 ln(n + 1)) ln t / epsilon for its counters.
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
    for a in range(params.n_arms):
        if public.plays[a] > 0.0:
            public.mean[a] = (release[a] / public.plays[a] - params.low) / params.width
    public.clock[CLOCK.fresh] = 0


@register(n_arms=3, horizon=30_000, counter="tree")
class DPTS(Policy):
    """Thompson sampling on the arms' running sums, released after every answer (Hu & Hegde 2022,
    DP-TS).

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
        title="Thompson sampling on continual sums",
        source="Hu & Hegde (2022), DP-TS, with one continual sum of vectors for all arms",
        noise=("Laplace", "Gaussian"),
        learns_at_once=True,
        randomised=True,
    )
    kernels = Kernels(
        init=init,
        choose=choose,
        publish=publish,
        **EVERY_ROUND | {"accumulate": accumulate_by_arm},
    )

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
        means = np.where(public.plays > 0.0, params.low + params.width * public.mean, np.nan)
        errors = standard_error(public.plays, params.width, params.noise_std**2)
        return ArmEstimates(means, errors, public.plays)

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
