"""The best arm at a confidence: Top Two on merged batches.

Guarantee:

* Protected: one person's reward, as in ``arms.held``.  Sums of batches cross the wall, and each may
  spend the whole budget.  Everything here is computed from them.
* Error: an arm that is worse than the best by more than ``gap`` (0 by default) is recommended with
  probability at most ``failure_probability``, whenever the search stops.
* Assumed: rewards lie in the range, and given all that came before its pull, each reward of an arm
  has that arm's mean.  Noise is independent of rewards and of other noise.

**Stopping.**  Rewards and the gap g are scaled to [0, 1].  ``inference.mixture`` has the evidence
M_up,b(q) against a mean of b of at most q, and M_dn,c(q) against a mean of c of at least q.  Secure
noise rounds each reward to a grid, and moves it by at most r; devices of a shuffler move its mean
by at most r; otherwise r is 0.  Let h be g - 2 r, or -1 if that is more, and

    Z(b, c)  =  min over q of  ln M_up,b(q) + ln M_dn,c(q + h) ,    with q and q + h in [0, 1].

The leader b, of highest merged value, is recommended as soon as for every other arm c

    Z(b, c)  >=  ln((K - 1) / failure_probability) .

**The error.** Let ``*`` be an arm with the highest mean m, and b one with a mean below m - g.
Rounded rewards stay in [0, 1].  So given the past they have a mean of at most x = min(m - g + r, 1)
for b, and of at least y = max(m - r, 0) for ``*``.  Both are in [0, 1], and y - x is at least h.
Let q be max(x, -h).  Then q is in [x, 1], and q + h in [0, y].  M_up,b falls, and M_dn,* rises.
Hence exp Z(b, *) is at most M_up,b(x) M_dn,*(y).  Both arms' means are as these two factors need
them.  Batches are pulled one after another, and a release changes one factor.  By the lemma of
``inference.mixture`` the product is a nonnegative supermartingale in the releases, and 1 at the
start.  By Ville's inequality it ever reaches (K - 1) / failure_probability with probability at most
failure_probability / (K - 1).  There are at most K - 1 such arms b, so one of them is recommended
with probability at most ``failure_probability``.

Which arm is played, for how long, and by which tilts may depend on anything public.  The tilts of a
batch are fixed with its first pull, from releases made by then, also where answers come late.  The
minimum over q is bounded from below, so errors of numbers only delay the end.

If several arms are best and there is no gap, the same holds of each of them.  So the search may
never stop.  With a gap of more than 2 r it stops.

**What to play.**  Let v be the variance of an arm's merged value, with the guess of a reward's
variance in place of its bound, and n its released rounds.  If sums were normal, the evidence would
be (m_b - m_c + h)^2 / (2 (v_b + v_c)), and 0 where m_b - m_c + h is negative.  Let near(b, c) be
that, but at most max(Z(b, c), 0) + 3.  The challenger is the arm of least near(b, c) + ln n_c
(Jourdan, Degenne, Baudry, de Heide & Kaufmann 2022).  The leader is played instead while the sum
over c of n_c v_b / (n_b v_c) is above 1.  For normal sums it is 1 for the best allocation of rounds
(Garivier & Kaufmann 2016; Bandyopadhyay, Juneja & Agrawal 2024 play by its sign).

A batch should end the search: near(b, c) for the challenger rises about as the rounds, or as their
square where noise varies most, and should reach the threshold and 3 nats more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...calls import is_open
from ...constraints import Constraints, Integer, Real
from ...errors import ArgumentError
from ...kernel import Generator, Vector, bind, kernel, unbound
from ...policies import ArmEstimates, Card, Kernels, Part, Policy, Statistic
from ...policies.sums import noise_of
from ...privacy.channels import Laplace
from ...protocol import Contexts, Row
from ..arms.arms import PARALLEL, PROOF
from ..arms.batches import weight_of
from ..arms.law import MERGED, merge, merged_estimates, noise_variance
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.episodes import CLOCK, record_pull_of, release_due, withdraw
from ..bases.episodes import close as close_episode
from ..bases.sums import Sums, accumulate, sensitivity, summarise
from .evidence import (
    RELEASED,
    Evidence,
    guess_of,
    least_sum,
    level_of,
    no_evidence,
    take,
    tilt_table,
)

_BEHIND = 3.0  # nats by which evidence may be less than that of normal sums
FIRST, _SCALES = 10, 4.0  # rounds of a first batch, at least: so many, and scales of the noise
LEAST, MOST = (0.1, 0.5), (0.5, 2.0)  # growth: where rewards vary most, and where noise does
_NONE = 1e-9  # nats


class TopTwoParams(NamedTuple):
    n_arms: int
    threshold: float  # ln((K - 1) / failure_probability)
    gap: float  # h, for rewards in [0, 1]
    least: float  # growth of a batch, in proportion to its arm's rounds
    most: float
    least_in_noise: float  # the same where noise varies most
    most_in_noise: float
    first: int
    longest: int  # batch
    noise_scale: float  # s
    laplace: bool
    low: float
    width: float  # hi - lo
    table: np.ndarray  # (3, 28, 48) see ``evidence.Table``


class TopTwoPublic(NamedTuple):
    estimate: np.ndarray  # (K,) merged values, as rewards are measured
    merged: np.ndarray  # (8, K) see ``law``
    pulls: np.ndarray  # (K,) rounds in all finished batches
    evidence: Evidence
    clock: np.ndarray  # (4,) see ``bases.episodes``; batches are episodes
    plan: np.ndarray  # (4,)
    against: np.ndarray  # (K,) Z of the leader and each arm; nan before it is known
    near: np.ndarray  # (1,) near(leader, challenger), in nats


class Plan(NamedTuple):  # slots of ``TopTwoPublic.plan``
    leader: int = 0
    following: int = 1  # which arm is played next
    over: int = 2  # 1 where every other arm is refuted
    level: int = 3  # of the running batch: see ``evidence``


class Memo(NamedTuple):  # slots of what is noted of a batch
    arm: int = 0
    size: int = 1
    level: int = 2


PLAN, MEMO = Plan(), Memo()


def init(params: TopTwoParams) -> tuple[Sums, TopTwoPublic]:
    k = params.n_arms
    public = TopTwoPublic(
        estimate=np.zeros(k),
        merged=np.zeros((len(MERGED), k)),
        pulls=np.zeros(k, np.int64),
        evidence=no_evidence(k),
        clock=np.zeros(len(CLOCK), np.int64),
        plan=np.zeros(len(PLAN), np.int64),
        against=np.full(k, np.nan),
        near=np.zeros(1),
    )
    return Sums(np.zeros(1)), public


@kernel
def planned_rounds(
    params: Any, public: Any, arm: int, share: float, least: float, most: float
) -> int:
    """For how many rounds to play an arm, after which evidence may suffice: from ``least`` to
    ``most`` of its earlier ones.  ``share`` is that of noise in the variance of their sum.
    """
    # Evidence rises with the rounds, to the power 1 + share.
    wanted = (params.threshold + _BEHIND) / max(public.near[0], _NONE)
    growth = min(max(wanted ** (1.0 / (1.0 + share)) - 1.0, least), most)
    return max(params.first, int(np.ceil(growth * public.evidence.released[RELEASED.rounds, arm])))


@kernel
def hold_rounds(params: TopTwoParams, public: TopTwoPublic, arm: int) -> int:
    """Length of the arm's next batch."""
    n, noise = public.evidence.released[RELEASED.rounds, arm], noise_variance(params)
    share = noise / (noise + guess_of(public.evidence, arm, noise) * n) if noise > 0.0 else 0.0
    least = params.least + (params.least_in_noise - params.least) * share
    most = params.most + (params.most_in_noise - params.most) * share
    return min(planned_rounds(params, public, arm, share, least, most), params.longest)


_record_episode = record_pull_of(hold_rounds)


@kernel
def record_pull(params: TopTwoParams, public: TopTwoPublic, arm: int, x: Row, n: int) -> None:
    """Book rounds.  With the first of a batch its level is fixed, from releases made by then."""
    begins = public.clock[CLOCK.size] == 0
    _record_episode(params, public, arm, x, n)
    if begins:
        noise = noise_variance(params)
        known = public.clock[CLOCK.size] * guess_of(public.evidence, arm, noise)
        public.plan[PLAN.level] = level_of(known, noise)


@kernel
def close(params: TopTwoParams, public: TopTwoPublic, memo: Vector) -> None:
    close_episode(params, public, memo)
    memo[MEMO.level] = public.plan[PLAN.level]


@kernel
def _merged_value(public: TopTwoPublic, arm: int) -> float:
    return public.merged[MERGED.value, arm]


@kernel
def _merged_variance(params: TopTwoParams, public: TopTwoPublic, arm: int) -> float:
    """Of the arm's merged value, as far as it is known."""
    merged, noise = public.merged[:, arm], noise_variance(params)
    rewards = guess_of(public.evidence, arm, noise) * merged[MERGED.squares]
    return (rewards + noise * merged[MERGED.noise]) / merged[MERGED.weight] ** 2


value_of, variance_of = unbound, unbound  # of what an arm is compared by


@kernel
def survey(params: Any, public: Any, arm: int) -> None:
    """After a release of an arm, find the leader, whether all others are refuted, and the next arm:
    arms without a release first.
    """
    rounds = public.evidence.released[RELEASED.rounds]
    plan, against, leader = public.plan, public.against, 0
    for a in range(params.n_arms):
        if rounds[a] == 0.0:
            plan[PLAN.following] = a
            return
        if value_of(public, a) > value_of(public, leader):
            leader = a
    over, least, challenger, balance = True, np.inf, leader, 0.0
    new = leader == arm or leader != plan[PLAN.leader]
    highest, v = value_of(public, leader), variance_of(params, public, leader)
    for c in range(params.n_arms):
        if c == leader:
            continue
        w = variance_of(params, public, c)
        ahead = max(highest - value_of(public, c) + params.gap, 0.0)
        if new or c == arm or np.isnan(against[c]):
            middle = highest - ahead * v / (v + w)
            against[c] = least_sum(public.evidence, params.table, leader, c, params.gap, middle)
        over = over and against[c] >= params.threshold
        # Without the bound an arm whose rewards are far from normal may be played too seldom.
        near = min(0.5 * ahead * ahead / (v + w), max(against[c], 0.0) + _BEHIND)
        balance += rounds[c] * v / (rounds[leader] * w)
        if near + np.log(rounds[c]) < least:
            least, challenger = near + np.log(rounds[c]), c
            public.near[0] = near
    plan[PLAN.leader], plan[PLAN.over] = leader, over
    plan[PLAN.following] = leader if balance > 1.0 else challenger


_survey_merged = bind(survey, value_of=_merged_value, variance_of=_merged_variance)


@kernel
def choose(
    params: TopTwoParams, public: TopTwoPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The follower, or the open arm of fewest rounds; arms never played come first."""
    fewest, arm = np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        if public.pulls[a] == 0:  # while what was played before still waits for answers
            return a, 1.0
        if public.pulls[a] < fewest:
            fewest, arm = public.pulls[a], a
    following = public.plan[PLAN.following]
    return following if is_open(contexts, following) else arm, 1.0


@kernel
def publish(params: TopTwoParams, public: TopTwoPublic, memo: Vector, release: Vector) -> None:
    arm, n = int(memo[MEMO.arm]), memo[MEMO.size]
    total, merged = (release[0] - n * params.low) / params.width, public.merged[:, arm]
    merge(merged, n, total / n, weight_of(params, n))
    public.estimate[arm] = params.low + params.width * merged[MERGED.value]
    take(public.evidence, params.table, arm, n, total, int(memo[MEMO.level]))
    _survey_merged(params, public, arm)


@kernel
def stop(params: TopTwoParams, public: TopTwoPublic) -> bool:
    return public.plan[PLAN.over] == 1 or params.n_arms == 1


@kernel
def recommend(params: TopTwoParams, public: TopTwoPublic) -> int:
    """The leader."""
    return public.plan[PLAN.leader]


def relevant_gap(policy: Policy) -> float:
    """h: the gap, less what rounding may add to a difference of means, for rewards in [0, 1]."""
    lo, hi = policy.reward_range
    gap = (policy.config["gap"] or 0.0) - 2.0 * policy._rounding
    return max(gap / (hi - lo), -1.0)


def refuse_unproved(policy: Policy) -> None:
    """Refuse rewards outside of the range, and a gap by which no mean can exceed another."""
    (lo, hi), gap = policy.reward_range, policy.config["gap"]
    if not policy.clip:
        raise ArgumentError(
            "clip must be True with failure_probability, got False: the proof needs rewards within"
            " reward_range",
            "clip",
        )
    if gap is not None and gap >= hi - lo:
        raise ArgumentError(
            f"gap must be less than the width of reward_range, which is {hi - lo:g}, got {gap}",
            "gap",
        )


@dataclass(frozen=True, repr=False)
class TopTwo(Part):
    """Top Two on all released sums: plays the leader and its closest challenger until releases
    refute every other arm (after Jourdan, Degenne, Baudry, de Heide & Kaufmann 2022; batches and
    the stopping rule: this package).

    The search stops when the evidence against every other arm is at least ln((K - 1) /
    failure_probability), for K arms.  No price is due for the number of releases.

    Args:
        growth: length of a batch, as a multiple of all released rounds of its arm.  Default: the
            multiple after which evidence may suffice.  It is at least 0.1 and at most 0.5 where
            rewards vary more than noise, and at least 0.5 and at most 2 where noise does.
        first: rounds of an arm's first batch, and of its shortest.  Default: 10, or four times the
            scale of the noise on a sum if that is more.

    When to choose: you want to know the best arm, and rewards of the search do not matter.

    >>> TopTwo(growth=0.2)
    TopTwo(growth=0.2)
    """

    kernels: ClassVar[Kernels] = Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        close=close,
        withdraw=withdraw,
        summarise=summarise,
        publish=publish,
        stop=stop,
        recommend=recommend,
        skips_closed=True,
    )
    card: ClassVar[Card] = Card(
        title="Top Two on merged noisy sums",
        source=(
            "Jourdan et al. (2022), Top Two Algorithms Revisited; merged batches and the stopping"
            f" rule: this package; {PARALLEL}"
        ),
        proof=PROOF,
        noise=("Laplace", "Gaussian"),
    )
    estimates: ClassVar[Callable[[Any, Any], ArmEstimates]] = staticmethod(merged_estimates)

    growth: float | None = None
    first: int | None = None

    constraints: ClassVar[Constraints] = {
        "growth": Real(0.01, 100.0) | None,
        "first": Integer(1, MOST_ROUNDS) | None,
    }

    def params(self, policy: Policy) -> TopTwoParams:
        """The numbers it searches with."""
        (lo, hi), config = policy.reward_range, policy.config
        scale, others = policy.noise_scale / (hi - lo), max(policy.n_arms - 1, 1)
        least, most = LEAST, MOST
        if self.growth is not None:  # the same for rewards and for noise
            least = most = self.growth, self.growth
        first = max(FIRST, math.ceil(min(_SCALES * scale, MOST_ROUNDS)))
        return TopTwoParams(
            n_arms=policy.n_arms,
            threshold=math.log(others / config["failure_probability"]),
            gap=relevant_gap(policy),
            least=least[0],
            most=most[0],
            least_in_noise=least[1],
            most_in_noise=most[1],
            first=first if self.first is None else self.first,
            longest=MOST_ROUNDS,
            noise_scale=scale,
            laplace=isinstance(policy.channel, Laplace),
            low=lo,
            width=hi - lo,
            table=tilt_table(noise_of(policy)),
        )

    def statistic(self, policy: Policy) -> Statistic:
        """The sum of a batch."""
        return Statistic.of_rewards(policy.reward_range, memo=len(MEMO), sums_of="arm")
