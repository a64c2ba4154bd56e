"""IMED where nobody is trusted: on rewards that were randomised one by one.

What crosses the wall: each reward by itself.  The wall stands around the person: noise is added to
the reward before anyone sees it, a record is one reward and moves it by at most ``hi - lo``, and
every reward may spend the whole budget.

The value m of an arm is the mean of its n reports, and D the exponent of ``law`` for n batches of
one round: N = n, V = 1 / n, A = 1 / n.  What is played next is the arm of least D(m_a, q) / alpha +
ln n_a, q being max m cut to [0, 1], for max(1, growth n_a) reports.
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

import numpy as np

from ...calls import is_open
from ...kernel import Generator, Vector, kernel
from ...policies import ArmEstimates, Card, Kernels, Options, register
from ...privacy.budgets import Budget
from ...privacy.channels import Laplace
from ...protocol import Contexts
from ...session.estimates import standard_error
from ...validation import real
from ..bases.every_round import record_pull, release_due
from ..bases.local import LocalPolicy
from ..bases.sums import accumulate, sensitivity, summarise
from .law import Law, exponent, noise_variance


class ReportsParams(NamedTuple):
    n_arms: int
    optimism: float  # alpha
    growth: float
    noise_scale: float  # s, for rewards in [0, 1]
    laplace: bool
    low: float
    width: float  # hi - lo


class ReportsRaw(NamedTuple):
    total: np.ndarray  # (1,) the reward of the last round


class ReportsPublic(NamedTuple):
    mean: np.ndarray  # (K,) of the reports, for rewards in [0, 1]
    plays: np.ndarray  # (K,) how many there were
    clock: np.ndarray  # (5,)


class ReportsClock(NamedTuple):
    """Slots of ``ReportsPublic.clock``; it begins with those of ``bases.every_round``."""

    rounds: int = 0
    arm: int = 1  # of the last round
    fresh: int = 2  # whether its reward is to be released
    standing: int = 3  # the arm that is played next
    left: int = 4  # for so many reports more


CLOCK = ReportsClock()


def init(params: ReportsParams) -> tuple[ReportsRaw, ReportsPublic]:
    k = params.n_arms
    clock = np.zeros(len(CLOCK), np.int64)
    return ReportsRaw(np.zeros(1)), ReportsPublic(np.zeros(k), np.zeros(k, np.int64), clock)


@kernel
def next_arm(params: ReportsParams, public: ReportsPublic, contexts: Contexts) -> int:
    """The arm of least D(m, max m) / alpha + ln n; arms without reports come first."""
    target = 0.0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        if public.plays[a] == 0:
            return a
        target = max(target, public.mean[a])
    target, best, arm = min(target, 1.0), np.inf, 0
    variance, pole = noise_variance(params), params.noise_scale if params.laplace else 0.0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        law = Law(float(public.plays[a]), variance, pole, 0.0, 1.0, 1.0)
        index = exponent(law, public.mean[a], target) / params.optimism + np.log(public.plays[a])
        if index < best:
            best, arm = index, a
    return arm


@kernel
def choose(
    params: ReportsParams, public: ReportsPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm that was chosen for the coming rounds, or if it is closed the next best."""
    standing = public.clock[CLOCK.standing]
    if not is_open(contexts, standing):
        standing = next_arm(params, public, contexts)
    return standing, 1.0


@kernel
def publish(params: ReportsParams, public: ReportsPublic, memo: Vector, release: Vector) -> None:
    clock = public.clock
    arm = clock[CLOCK.arm]
    public.plays[arm] += 1
    value = (release[0] - params.low) / params.width
    public.mean[arm] += (value - public.mean[arm]) / public.plays[arm]
    clock[CLOCK.fresh] = 0
    clock[CLOCK.left] -= 1
    if clock[CLOCK.left] <= 0:
        standing = next_arm(params, public, 0)
        clock[CLOCK.standing] = standing
        clock[CLOCK.left] = max(1, int(params.growth * public.plays[standing]))


@register(n_arms=3)
class LDPIMED(LocalPolicy):
    """Indexed minimum empirical divergence on rewards that were randomised before anyone saw them.

    The wall has to stand where the reward arises: with ``reports=True`` the person's device
    randomises the reward with ``randomiser()``, and the policy takes the report as it is.  Without,
    whoever calls ``update`` sees the reward and is trusted with it.

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise) or another notion (Gaussian noise); None
            for the non-private counterpart.
        reports: whether ``update`` is given reports instead of rewards.
        alpha: optimism; the lower, the more seldom is an arm tried that looks worse.
        growth: an arm is chosen for so many times its reports before.
        **options: see ``Options``.

    When to choose: nobody may be trusted with raw rewards.  Regret grows like 1 / epsilon^2, far
    above the central model's.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = LDPIMED(3, budget=PureDP(1.0), reports=True, seed=1)
        >>> randomise = policy.randomiser()  # pickle it, and send it to the devices
        >>> policy.pull().arm
        0
        >>> policy.update(randomise(1.0))
        True
    """

    learns_off_policy = True

    card = Card(
        title="IMED on locally randomised rewards",
        source=(
            "Honda & Takemura (2015), Non-asymptotic Analysis of a New Bandit Algorithm for"
            " Semi-bounded Rewards; reports and the exponent of their noise: this package"
        ),
        proof="dpbandits.algorithms.merged.reports",
        noise=("Laplace", "Gaussian"),
        trust_model="local",
        learns_at_once=True,
    )
    kernels = Kernels(
        init=init,
        choose=choose,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        summarise=summarise,
        publish=publish,
        skips_closed=True,
    )

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        reports: bool = False,
        alpha: float = 1.0,
        growth: float = 0.1,
        **options: Unpack[Options],
    ) -> None:
        self._optimism = real("alpha", alpha, 1e-3, 1e3)
        self._growth = real("growth", growth, 0.01, 100.0)
        own = {"n_arms": n_arms, "alpha": self._optimism, "growth": self._growth}
        super().__init__(own | self._reported(reports), budget=budget, **options)

    @staticmethod
    def _arm_estimates(params: ReportsParams, public: ReportsPublic) -> ArmEstimates:
        means = np.where(public.plays > 0, params.low + params.width * public.mean, np.nan)
        noise = params.noise_scale**2 * (2.0 if params.laplace else 1.0)  # on each report
        errors = params.width * standard_error(public.plays, 1.0, noise * public.plays)
        return ArmEstimates(means, errors, public.plays)

    def _params(self) -> ReportsParams:
        lo, hi = self.reward_range
        return ReportsParams(
            n_arms=self.n_arms,
            optimism=self._optimism,
            growth=self._growth,
            noise_scale=self.noise_scale / (hi - lo),
            laplace=isinstance(self.channel, Laplace),
            low=lo,
            width=hi - lo,
        )
