"""The best arm at a confidence, under local privacy: Top Two on rewards that were randomised one by
one.

Guarantee:

* Protected: the reward of one person.  The wall stands around the person.
* Adjacency and sensitivity: each reward crosses the wall by itself, with noise.  A record is one
  reward, which it moves by at most ``hi - lo``; it may spend the whole budget.
* Error: as in ``search.top_two``.
* Assumed: as in ``search.top_two``; and when an answer comes, and whether, does not depend on
  rewards.  If answers come in another order than their pulls, people's rewards are independent.

**The error.**  A report is a batch of one round, and all reports have the same tilts.  By the
assumptions a reward has the mean of its arm, given all reports that were learned before.  Hence the
proof of ``search.top_two`` covers reports in the order in which they are learned.  It covers each
moment, and so those at which the search looks.

**What to play.**  As in ``search.top_two``, of means of reports.  Noise and rewards have the same
share in the variance of each report, so evidence rises with the rounds.  An arm is played until
evidence may suffice, for 1/10 to 1/2 of its earlier reports.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from ...calls import is_open
from ...constraints import Constraints, Real
from ...inference import PRIOR
from ...kernel import Generator, Vector, bind, kernel, plain
from ...policies import ArmEstimates, Card, Kernels, Options, register
from ...policies.sums import noise_of
from ...privacy.budgets import Budget
from ...protocol import Contexts
from ...session.estimates import standard_error
from ..arms.law import noise_variance
from ..arms.local import CLOCK
from ..bases.local import LocalPolicy
from ..bases.sums import EVERY_ROUND, Sums
from .evidence import RELEASED, Evidence, guess_of, level_of, no_evidence, take, tilt_table
from .top_two import (
    FIRST,
    LEAST,
    MOST,
    PLAN,
    planned_rounds,
    recommend,
    refuse_unproved,
    relevant_gap,
    stop,
    survey,
)


class ReportSearchParams(NamedTuple):
    n_arms: int
    threshold: float  # ln((K - 1) / failure_probability)
    gap: float  # h, for rewards in [0, 1]: see ``top_two``
    first: int
    level: int  # of every report: see ``evidence``
    noise_scale: float  # s, for rewards in [0, 1]
    laplace: bool
    low: float
    width: float  # hi - lo
    table: np.ndarray  # (3, 28, 48) see ``evidence.Table``


class ReportSearchPublic(NamedTuple):
    evidence: Evidence
    clock: np.ndarray  # (5,) see ``arms.local``
    plan: np.ndarray  # (3,) see ``top_two.Plan``; of its slots all but ``level``
    against: np.ndarray  # (K,) Z of the leader and each arm
    near: np.ndarray  # (1,) near(leader, challenger), in nats


def init(params: ReportSearchParams) -> tuple[Sums, ReportSearchPublic]:
    k, clock = params.n_arms, np.zeros(len(CLOCK), np.int64)
    clock[CLOCK.left] = params.first
    public = ReportSearchPublic(
        evidence=no_evidence(k),
        clock=clock,
        plan=np.zeros(PLAN.level, np.int64),
        against=np.full(k, np.nan),
        near=np.zeros(1),
    )
    return Sums(np.zeros(1)), public


@kernel
def choose(
    params: ReportSearchParams, public: ReportSearchPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm that was chosen for the coming rounds, or if it is closed that of fewest reports."""
    standing = public.clock[CLOCK.standing]
    if is_open(contexts, standing):
        return standing, 1.0
    fewest, arm = np.inf, 0
    for a in range(params.n_arms):
        if is_open(contexts, a) and public.evidence.released[RELEASED.rounds, a] < fewest:
            fewest, arm = public.evidence.released[RELEASED.rounds, a], a
    return arm, 1.0


@kernel
def _mean(public: ReportSearchPublic, arm: int) -> float:
    released = public.evidence.released
    return released[RELEASED.total, arm] / released[RELEASED.rounds, arm]


@kernel
def _variance(params: ReportSearchParams, public: ReportSearchPublic, arm: int) -> float:
    """Of the mean of an arm's reports, as far as it is known."""
    noise = noise_variance(params)
    whole = guess_of(public.evidence, arm, noise) + noise
    return whole / public.evidence.released[RELEASED.rounds, arm]


_survey = bind(survey, value_of=_mean, variance_of=_variance)


@kernel
def publish(
    params: ReportSearchParams, public: ReportSearchPublic, memo: Vector, release: Vector
) -> None:
    clock = public.clock
    arm, value = clock[CLOCK.arm], (release[0] - params.low) / params.width
    take(public.evidence, params.table, arm, 1.0, value, params.level)
    clock[CLOCK.fresh] = 0
    clock[CLOCK.left] -= 1
    if clock[CLOCK.left] > 0:
        return
    for a in range(params.n_arms):  # late answers may have been those of any arm
        public.against[a] = np.nan
    _survey(params, public, arm)
    following = public.plan[PLAN.following]
    clock[CLOCK.standing] = following
    clock[CLOCK.left] = planned_rounds(params, public, following, 0.0, LEAST[0], MOST[0])


@register(n_arms=3, failure_probability=0.1)
class LDPTopTwo(LocalPolicy):
    """Search for the best arm under local privacy: each reward is randomised on its own.

    It stops when reports refute every other arm.  At most the given share of searches recommends a
    wrong arm, if each arm's mean reward stays the same.

    With ``reports=True`` the person's device randomises the reward with ``randomiser()``, and the
    policy takes the report as it is.  With ``reports=False`` the policy adds the noise.  Then the
    caller of ``update`` sees the reward and is trusted with it.

    Args:
        n_arms: number of arms.
        budget: of one reward; None for the non-private counterpart.
        failure_probability: probability of recommending another arm than the best.
        gap: in units of rewards.  An arm that is worse by at most so much counts as best, too.
            Default: no gap.
        reports: whether ``update`` is given reports instead of rewards.
        **options: see ``Options``.  ``clip`` has to be True.

    When to choose: you want to know the best arm, and no party may be trusted with raw rewards.
    The number of people grows like 1 / epsilon^2, far above that of ``BestArm``.

    Example:
        >>> from dpbandits import PureDP
        >>> search = LDPTopTwo(2, budget=PureDP(2.0), failure_probability=0.1, seed=1)
        >>> while not search.stopped:
        ...     decision = search.pull()
        ...     _ = search.update(float(decision.arm == 1))
        >>> search.recommendation
        1
    """

    learns_means = True
    card = Card(
        title="Top Two on rewards that are randomised one by one",
        source=(
            "Jourdan et al. (2022), Top Two Algorithms Revisited; reports and the stopping rule:"
            " this package"
        ),
        proof="module dpbandits.algorithms.search.local",
        noise=("Laplace", "Gaussian"),
        trust_model="local",
        learns_at_once=True,
    )
    kernels = Kernels(
        init=init, choose=choose, publish=publish, stop=stop, recommend=recommend, **EVERY_ROUND
    )
    constraints: ClassVar[Constraints] = {
        "failure_probability": Real(0.0, 1.0, strict=True),
        "gap": Real(0.0, strict=True) | None,
    }

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        failure_probability: float,
        gap: float | None = None,
        reports: bool = False,
        **options: Unpack[Options],
    ) -> None:
        own = {
            "n_arms": n_arms,
            "failure_probability": failure_probability,
            "gap": gap,
            "reports": reports,
        }
        super().__init__(own, budget=budget, **options)
        refuse_unproved(self)

    @staticmethod
    def _arm_estimates(params: ReportSearchParams, public: ReportSearchPublic) -> ArmEstimates:
        rounds, total = public.evidence.released[:2]
        means = params.low + params.width * total / np.where(rounds > 0.0, rounds, np.nan)
        plays = rounds.astype(np.int64)
        noise = plain(noise_variance)(params) * plays
        return ArmEstimates(means, params.width * standard_error(plays, 1.0, noise), plays)

    def _params(self) -> Any:
        (lo, hi), noise = self.reward_range, noise_of(self)
        return ReportSearchParams(
            n_arms=self.n_arms,
            threshold=math.log(max(self.n_arms - 1, 1) / self.config["failure_probability"]),
            gap=relevant_gap(self),
            first=FIRST,
            level=plain(level_of)(PRIOR, float(noise.variance(np.ones(1))[0])),
            noise_scale=noise.scale,
            laplace=noise.is_laplace,
            low=lo,
            width=hi - lo,
            table=tilt_table(noise),
        )
