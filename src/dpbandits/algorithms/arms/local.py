"""Arms under local privacy: rewards that were randomised one by one.

Guarantee:

* Protected: the reward of one person.  The wall stands around the person.
* Adjacency and sensitivity: each reward crosses the wall by itself, with noise.  A record is one
  reward, which it moves by at most ``hi - lo``; it may spend the whole budget.

The value m of an arm is the mean of its n reports, and its law that of n batches of one round: N =
n, V = 1 / n, A = 1 / n.  ``IMED`` plays the arm with the least D(m_a, q) / alpha + ln n_a, where q
is max m cut to [0, 1].  ``KLUCB`` plays that with the largest q such that D(m_a, q) <= alpha ln t.
``UCB`` plays that with the largest m_a + sqrt(2 alpha ln t (1/4 + v) / n_a), v the variance of
noise.  Each choice stands for max(1, growth n_a) reports.  With a horizon ``bases.horizon`` changes
``IMED``.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from ...calls import is_open
from ...constraints import Constraints, Real
from ...errors import ArgumentError
from ...kernel import Generator, Kernel, Vector, bind, bind_places, kernel, plain, unbound
from ...policies import (
    ArmEstimates,
    Card,
    Composition,
    Kernels,
    Options,
    composed,
    like,
    preset,
)
from ...policies.parts import PartOf
from ...privacy.budgets import Budget
from ...privacy.channels import Laplace
from ...protocol import Contexts
from ...session.estimates import standard_error
from ..bases.horizon import HORIZON, rounds_worth, weighed
from ..bases.local import LocalPolicy
from ..bases.sums import EVERY_ROUND, Sums
from .arms import composed_card
from .indices import IMED, KLUCB, NOTHING_KEPT, UCB, Index
from .law import Law, exponent, noise_variance, upper_bound


class ReportsParams(NamedTuple):
    n_arms: int
    constant: float  # of the index
    horizon: int  # that the index knows; 0 for none
    highest: float  # mean that an arm is compared with
    growth: float
    noise_scale: float  # s, for rewards in [0, 1]
    laplace: bool
    low: float
    width: float  # hi - lo


class ReportsPublic(NamedTuple):
    mean: np.ndarray  # (K,) of the reports, for rewards in [0, 1]
    plays: np.ndarray  # (K,) how many there were
    clock: np.ndarray  # (5,)


class ReportsClock(NamedTuple):  # slots of ``ReportsPublic.clock``, the first as in ``bases.sums``
    rounds: int = 0
    arm: int = 1  # of the last round
    fresh: int = 2  # whether its reward is to be released
    standing: int = 3  # the arm that is played next
    left: int = 4  # for so many reports more


CLOCK = ReportsClock()


def init(params: ReportsParams) -> tuple[Sums, ReportsPublic]:
    k = params.n_arms
    clock = np.zeros(len(CLOCK), np.int64)
    return Sums(np.zeros(1)), ReportsPublic(np.zeros(k), np.zeros(k, np.int64), clock)


@kernel
def law_of_reports(params: ReportsParams, public: ReportsPublic, a: int) -> Law:
    pole = params.noise_scale if params.laplace else 0.0
    # N = n and V = A = 1 / n: both s^2 V N and s A N are free of n, and equal weights do not bend.
    return Law(float(public.plays[a]), noise_variance(params), pole, 0.0, 1.0, 1.0)


@kernel
def seen_in_reports(public: ReportsPublic, a: int) -> tuple[int, int, float]:
    return public.plays[a], public.plays[a], public.mean[a]


@kernel
def imed(params: ReportsParams, public: ReportsPublic, a: int, target: float) -> float:
    found = exponent(law_of_reports(params, public, a), public.mean[a], target)
    # A batch of one report weighs one.
    return weighed(found / params.constant, public.plays[a], rounds_worth(params, public))


@kernel
def kl_ucb(params: ReportsParams, public: ReportsPublic, a: int, level: float) -> float:
    return upper_bound(law_of_reports(params, public, a), public.mean[a], level)


@kernel
def ucb(params: ReportsParams, public: ReportsPublic, a: int, level: float) -> float:
    variance = (0.25 + noise_variance(params)) / public.plays[a]
    return public.mean[a] + np.sqrt(2.0 * level * variance)


next_arm = unbound  # by the index


@kernel
def choose(
    params: ReportsParams, public: ReportsPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm that was chosen for the coming rounds, or if it is closed the next best."""
    standing = public.clock[CLOCK.standing]
    if not is_open(contexts, standing):
        return next_arm(params, public, contexts, rng)
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
        # No mask, since ``choose`` replaces closed arms; no generator, since no index here draws.
        standing, _ = next_arm(params, public, 0, 0)
        clock[CLOCK.standing] = standing
        clock[CLOCK.left] = max(1, int(params.growth * public.plays[standing]))


_NEXT: dict[type[Index], Kernel] = {
    kind: bind_places(kind.loop, {"seen": seen_in_reports, "index": each, **NOTHING_KEPT})
    for kind, each in ((IMED, imed), (KLUCB, kl_ucb), (UCB, ucb))
}


@cache
def report_kernels(index: Any) -> Kernels:
    """Of policies that learn from one report at a time."""
    return Kernels(
        init=init,
        choose=bind(choose, next_arm=_NEXT[index]),
        publish=bind(publish, next_arm=_NEXT[index]),
        **EVERY_ROUND,
    )


@composed(n_arms=3)
class ArmsLocal(LocalPolicy):
    """Bandit with a finite number of arms under local privacy: each reward is randomised on its
    own.

    With ``reports=True`` the person's device randomises the reward with ``randomiser()``, and the
    policy takes the report as it is.  With ``reports=False`` the policy adds the noise.  Then the
    caller of ``update`` sees the reward and is trusted with it.

    Args:
        n_arms: number of arms.
        budget: of one reward; None for the non-private counterpart.
        index: which arm to play: ``IMED()``, ``KLUCB()`` or ``UCB()``.
        growth: number of reports for which an arm is chosen, as a multiple of its earlier reports.
        reports: whether ``update`` is given reports instead of rewards.
        **options: see ``Options``.

    When to choose: no party may be trusted with raw rewards.  Regret grows like 1 / epsilon^2, far
    above the central model's.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = ArmsLocal(3, budget=PureDP(1.0), reports=True, seed=1)
        >>> randomise = policy.randomiser()  # pickle it, and send it to the devices
        >>> policy.pull().arm
        0
        >>> policy.update(randomise(1.0))
        True
    """

    learns_off_policy = True
    learns_means = True
    card = Card(
        title="arms on rewards that are randomised one by one",
        source="this package: the reports, and the noise in the index",
        proof="module dpbandits.algorithms.arms.local",
        noise=("Laplace", "Gaussian"),
        trust_model="local",
        learns_at_once=True,
    )

    constraints: ClassVar[Constraints] = {"index": PartOf(Index), "growth": Real(0.01, 100.0)}

    @classmethod
    def composition(cls, index: Index) -> Composition:
        """Kernels and card of an index.

        Raises:
            ArgumentError: reports have no such index.
        """
        kind: Any = type(index)
        if kind not in _NEXT or index.learns_variance:
            raise ArgumentError(
                "index must be IMED(), KLUCB() or UCB() with variance='bound', got"
                f" {index!r}: every reward arrives with noise of its own",
                "index",
            )
        return Composition(report_kernels(kind), composed_card(cls.card, index))

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        index: Index | str = IMED(),  # noqa: B008  (a value)
        growth: float = 0.1,
        reports: bool = False,
        **options: Unpack[Options],
    ) -> None:
        chosen: Any = index  # its constraint made it a part
        own = {
            "n_arms": n_arms,
            "index": chosen,
            "growth": growth,
            "reports": reports,
        }
        super().__init__(own, budget=budget, composition=self.composition(chosen), **options)

    @staticmethod
    def _arm_estimates(params: ReportsParams, public: ReportsPublic) -> ArmEstimates:
        means = np.where(public.plays > 0, params.low + params.width * public.mean, np.nan)
        noise = plain(noise_variance)(params) * public.plays
        errors = params.width * standard_error(public.plays, 1.0, noise)
        return ArmEstimates(means, errors, public.plays)

    def _params(self) -> ReportsParams:
        (lo, hi), index = self.reward_range, self.config["index"]
        return ReportsParams(
            n_arms=self.n_arms,
            constant=index.constant,
            horizon=index.known_horizon,
            highest=1.0,
            growth=self.config["growth"],
            noise_scale=self.noise_scale / (hi - lo),
            laplace=isinstance(self.channel, Laplace),
            low=lo,
            width=hi - lo,
        )


LDPIMED = preset(
    "LDPIMED",
    ArmsLocal,
    "n_arms alpha growth reports horizon",
    """IMED on rewards that devices have randomised: the default under local trust.""",
    about={
        "title": "IMED on rewards that are randomised one by one",
        "source": f"{IMED.source}; {ArmsLocal.card.source}",
    },
    index=like(IMED, "alpha", horizon=HORIZON),
)
