"""Merged batches for arms with fixed features: a regression on all released sums, weighted by their
precision, and an index that uses the variance of an arm's estimate.

The mean reward of arm a is <theta, x_a>.  An arm is played for a batch whose length is fixed when
it begins.

Guarantee:

* Protected: one person's reward, from all who see or override decisions, but for the operator.
* Adjacency: one record is another.  A person contributes one reward to one batch.
* Sensitivity: when a batch ends, the sum of its rewards crosses the wall, one number.  A record
  moves one sum by at most ``hi - lo``.

Batches are disjoint sets of records: each sum may spend the whole budget.  The batch of a record,
and its length, depend only on features and on sums released earlier (Azize & Basu 2024, Theorem
12).  All that follows is post-processing.

**Regression.**  Batch j of n_j rounds of arm a_j has the mean y_j, with a variance of at most

    s^2 / n_j + v^2 / n_j^2  =  1 / p_j ,

where s is the standard deviation of rewards and v that of the noise on a sum.  s^2 is the largest
variance that the arm's estimated mean allows (``exploration``) when the batch ends, before its sum
is used: near an end of their range rewards vary little.  With V = (lambda / R^2) I + sum of p_j x_j
x_j^T the estimate of theta is V^-1 sum of p_j y_j x_j, and w_a^2 = |x_a|^2_{V^-1} the variance of
its error along x_a, if theta is N(0, R^2 / lambda I).  R is half the width of the range, since the
variance of rewards does not limit the differences of means.

**Length.**  A batch of arm a multiplies det V by 1 + p w_a^2.  Its length makes this factor 1 + g:

    n  =  g / (2 w_a^2)  (s^2 + sqrt(s^4 + 4 v^2 w_a^2 / g)) .

So there are about d ln(T) / ln(1 + g) releases for any number of arms, and at most twice as many if
noise dominates a sum.  If noise is large, the first batches are long enough to outweigh it.  An arm
with w_a^2 <= s_a^2 / (t + 1), t the number of rounds, is known as well as if it had been played
always, and so are features of length 0.  There is nothing to learn about it, and the batch has g
(t + 1) rounds.

**Index.**  IMED (Honda & Takemura 2015; for linear models Bian & Tan 2024) plays arg min of

    D_a^2 / (2 alpha w_a^2) + ln(s_a^2 / w_a^2) ,

where D_a is the gap of <x_a, estimate> to the leader's.  s_a^2 / w_a^2 is the number of rounds that
the arm's estimate is worth, and is capped at t + 1.  With a horizon ``bases.horizon`` changes both
terms.  There is no regret theorem.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ...calls import is_open
from ...constraints import Constraints, Integer, Real
from ...kernel import Generator, Vector, kernel
from ...policies import (
    ArmEstimates,
    Card,
    Composition,
    Kernels,
    Options,
    Statistic,
    composed,
    preset,
)
from ...privacy.budgets import Budget
from ...privacy.channels import Laplace
from ...protocol import Contexts
from ...tables import features
from ..bases.episodes import CLOCK, MEMO, close, record_pull_of, release_due
from ..bases.episodes import withdraw as withdraw_episode
from ..bases.fixed_features import FixedFeaturesPolicy
from ..bases.horizon import HORIZON, rounds_worth, weighed
from ..bases.sums import Sums, accumulate, sensitivity, summarise
from ..exploration import Divergence
from ..maths.dense import factorise, invert
from ..maths.ridge import add_outer, combine, dot, largest_variance, multiply

WEIGHT = len(MEMO)  # slot of the memo: p
_LARGEST = 1e50  # feature: its square is a number
_LONGEST = 1e12  # batch
_SMALLEST = 1e-200  # variance


class MergedLinearParams(NamedTuple):
    n_arms: int
    arms: np.ndarray  # (K, d)
    columns: np.ndarray  # (d, K) the same, along which loops over arms run
    ridge: float  # lambda
    scatter: float  # s^2, the largest
    middle: float  # of the range of rewards
    noise: float  # v^2
    optimism: float  # alpha
    horizon: int  # T; 0 for none
    growth: float  # g
    width: float  # hi - lo


class MergedLinearPublic(NamedTuple):
    means: np.ndarray  # (K,) <x_a, estimate>
    variances: np.ndarray  # (K,) w_a^2
    pulls: np.ndarray  # (K,) rounds in all finished batches
    precision: np.ndarray  # (d, d) V
    awaited: np.ndarray  # (d, d) V with batches that are over and not released
    inverse: np.ndarray  # (d, d) working memory
    factor: np.ndarray  # (d, d) likewise
    moment: np.ndarray  # (d,) sum of p y x
    estimate: np.ndarray  # (d,)
    clock: np.ndarray  # (4,) see ``bases.episodes``; batches are episodes
    scratch: np.ndarray  # (d,)


@kernel
def regress(params: MergedLinearParams, public: MergedLinearPublic) -> None:
    """Estimate and means for V as it is; where rounding makes V singular, those before stay."""
    d = params.arms.shape[1]
    if not factorise(public.precision, 0.0, public.factor, d):
        return
    invert(public.factor, public.inverse, d)
    multiply(public.inverse, public.moment, public.estimate)
    combine(params.columns, public.estimate, public.means)


@kernel
def foresee(params: MergedLinearParams, public: MergedLinearPublic) -> None:
    """Count all ended batches in the variances: unreleased arms are not explored again."""
    d = params.arms.shape[1]
    if not factorise(public.awaited, 0.0, public.factor, d):
        return
    invert(public.factor, public.inverse, d)
    for a in range(params.n_arms):
        multiply(public.inverse, params.arms[a], public.scratch)
        public.variances[a] = max(dot(params.arms[a], public.scratch), _SMALLEST)


def init(params: MergedLinearParams) -> tuple[Sums, MergedLinearPublic]:
    k, d = params.arms.shape
    public = MergedLinearPublic(
        means=np.zeros(k),
        variances=np.zeros(k),
        pulls=np.zeros(k, np.int64),
        precision=np.eye(d) * (4.0 * params.ridge / params.width**2),
        awaited=np.eye(d) * (4.0 * params.ridge / params.width**2),
        inverse=np.zeros((d, d)),
        factor=np.zeros((d, d)),
        moment=np.zeros(d),
        estimate=np.zeros(d),
        clock=np.zeros(len(CLOCK), np.int64),
        scratch=np.zeros(d),
    )
    regress(params, public)
    foresee(params, public)
    return Sums(np.zeros(1)), public


@kernel
def scatter_of(params: MergedLinearParams, public: MergedLinearPublic, arm: int) -> float:
    """s^2 of an arm."""
    error = np.sqrt(public.variances[arm])
    most = largest_variance(public.means[arm], error, params.middle, 0.5 * params.width)
    return min(params.scatter, most)


@kernel
def choose(
    params: MergedLinearParams, public: MergedLinearPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of least D^2 / (2 alpha w^2) + ln(s^2 / w^2), the first of equals."""
    rounds, best = public.clock[CLOCK.rounds] + 1.0, -np.inf
    for a in range(params.n_arms):
        if is_open(contexts, a):
            best = max(best, public.means[a])
    least, arm = np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        lack, variance = best - public.means[a], public.variances[a]
        pulls = min(scatter_of(params, public, a) / variance, rounds)
        distance = 0.5 * lack * lack / (params.optimism * variance)
        index = weighed(distance, pulls, rounds_worth(params, public))
        if index < least:
            least, arm = index, a
    return arm, 1.0


@kernel
def hold_rounds(params: MergedLinearParams, public: MergedLinearPublic, arm: int) -> int:
    scatter, variance = scatter_of(params, public, arm), public.variances[arm]
    rounds, g = public.clock[CLOCK.rounds] + 1.0, params.growth
    # There is nothing to learn, and the formula below would divide by next to nothing.
    if variance * rounds <= scatter:
        return int(np.ceil(min(g * rounds, _LONGEST)))
    # The positive root n of p w^2 = g, p = n^2 / (s^2 n + v^2).
    root = np.sqrt(scatter**2 + 4.0 * params.noise * variance / g)
    return int(np.ceil(min(0.5 * g / variance * (scatter + root), _LONGEST)))


record_pull = record_pull_of(hold_rounds)


@kernel
def close_and_foresee(params: MergedLinearParams, public: MergedLinearPublic, memo: Vector) -> None:
    close(params, public, memo)
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    # p, from what was known before the batch's own sum: a weight must not depend on what it weighs.
    memo[WEIGHT] = n * n / (scatter_of(params, public, arm) * n + params.noise)
    add_outer(public.awaited, memo[WEIGHT], params.arms[arm])
    foresee(params, public)


@kernel
def withdraw(params: MergedLinearParams, public: MergedLinearPublic, memo: Vector) -> None:
    """All batches that were not released are withdrawn: the released ones are left."""
    withdraw_episode(params, public, memo)
    public.awaited[:] = public.precision
    foresee(params, public)


@kernel
def publish(
    params: MergedLinearParams, public: MergedLinearPublic, memo: Vector, release: Vector
) -> None:
    x, n, weight = params.arms[int(memo[MEMO.arm])], memo[MEMO.size], memo[WEIGHT]
    add_outer(public.precision, weight, x)
    for i in range(x.size):
        public.moment[i] += weight * release[0] / n * x[i]
    regress(params, public)


@kernel
def estimate(params: MergedLinearParams, public: MergedLinearPublic, i: int) -> float:
    return public.estimate[i]


_COMPOSITION = Composition(
    Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        close=close_and_foresee,
        withdraw=withdraw,
        summarise=summarise,
        publish=publish,
        estimate=estimate,
        skips_closed=True,
    ),
    Card(
        title="linear IMED on merged noisy sums",
        source=f"{Divergence.source}; merged batches: this package",
        proof=(
            "module dpbandits.algorithms.linear.fixed; parallel composition by Azize & Basu (2024,"
            " Theorem 12, and Appendix D for pure DP)"
        ),
        noise=("Laplace", "Gaussian"),
    ),
)


@composed(arms=((1.0, 0.0), (0.0, 1.0), (0.9, 0.8)))
class FixedLinear(FixedFeaturesPolicy):
    """Bandit whose arms have fixed features: indexed minimum empirical divergence on all released
    sums.

    Plays arg min of ``D^2 / (2 alpha w^2) + ln(s^2 / w^2)``.  ``D`` is an arm's gap to the leader,
    ``w`` the standard deviation of its estimated mean, and ``s`` the largest standard deviation of
    rewards with such a mean.  Batches are long enough to learn in spite of the noise.

    Args:
        arms: features, shape (K, d); the mean reward of arm a is <theta, arms[a]> for some theta.
            They need not span R^d.
        budget: of any notion; None for the non-private counterpart.
        alpha: optimism.  With a lower alpha, arms that look worse are explored less often, and the
            best arm is more likely to be lost for good.  1 is the value for normal means.
        growth: a batch multiplies the determinant of V by one plus this.
        ridge: lambda, the regulariser.
        subgaussian: bound on the subgaussian constant of rewards; half the width of the reward
            range by default.
        horizon: the planned number of rounds that the policy learns from; None where it is unknown.
        **options: see ``Options``.

    Raises:
        ArgumentError: ``arms`` is no table of finite numbers, or an argument is outside its range.

    When to choose: arms are fixed, and there are more of them than features.  It takes any notion,
    makes a few dozen releases, and needs no horizon.

    Example:
        >>> from dpbandits import ZCDP
        >>> arms = [[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]]
        >>> policy = FixedLinear(arms, budget=ZCDP(0.5), seed=1)
        >>> decision = policy.pull()
        >>> policy.update(1.0)
        True
    """

    card = _COMPOSITION.card
    learns_off_policy = True
    constraints: ClassVar[Constraints] = {
        "alpha": Real(1e-3, 1e3),
        "growth": Real(0.01, 100.0),
        "ridge": Real(0.0, 1e12, strict=True),
        "subgaussian": Real(0.0, 1e12) | None,
        "horizon": Integer(1) | None,
    }

    @classmethod
    def composition(cls, **_: object) -> Composition:
        """Kernels and card."""
        return _COMPOSITION

    def __init__(
        self,
        arms: ArrayLike,
        *,
        budget: Budget | None,
        alpha: float = 0.9,
        growth: float = 0.5,
        ridge: float = 1.0,
        subgaussian: float | None = None,
        horizon: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        config = {"alpha": alpha, "growth": growth, "ridge": ridge, "subgaussian": subgaussian}
        config["horizon"] = horizon
        table, composition = features("arms", arms, _LARGEST), self.composition()
        super().__init__(table, config, budget=budget, composition=composition, **options)

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(self.reward_range, memo=len(MEMO) + 1, sums_of="arm")

    @staticmethod
    def _arm_estimates(params: MergedLinearParams, public: MergedLinearPublic) -> ArmEstimates:
        return ArmEstimates(public.means, np.sqrt(public.variances), public.pulls)

    def _params(self) -> MergedLinearParams:
        (lo, hi), config = self.reward_range, self.config
        scatter = (hi - lo) / 2 if config["subgaussian"] is None else config["subgaussian"]
        return MergedLinearParams(
            n_arms=self.n_arms,
            arms=self._arms,
            columns=self._arms.T.copy(),  # never read-only, which would be another type to compile
            ridge=config["ridge"],
            scatter=max(scatter, 1e-6 * (hi - lo)) ** 2,
            middle=(lo + hi) / 2,
            noise=self.noise_scale**2 * (2.0 if isinstance(self.channel, Laplace) else 1.0),
            optimism=config["alpha"],
            horizon=config["horizon"] or 0,
            growth=config["growth"],
            width=hi - lo,
        )


MergedLinearIMED = preset(
    "MergedLinearIMED",
    FixedLinear,
    "arms alpha growth ridge subgaussian horizon",
    """IMED for arms with fixed features, on all released sums: ``FixedLinear`` by name.""",
    horizon=HORIZON,
)
