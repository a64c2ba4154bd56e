"""The best arm at a confidence: Top Two on merged batches.

Guarantee: that of ``arms.held``.  Its sums cross the wall, and ``arms.law`` merges them.  The
decision to stop is made after each release, from releases alone.

**Stopping.**  Let D_c(m_c, q) be the exponent of ``arms.law`` for an estimate as low as m_c with a
mean of q or more.  U_b(m_b, q) is its mirror, for an estimate as high as m_b with a mean of q or
less.  Rewards r and 1 - r have noise of the same law, so U_b(m_b, q) = D_b(1 - m_b, 1 - q).  The
cubic term is in the cost of every q, which only makes both smaller, and both convex in q.  The
evidence against the arm c being as good as b is

    Z(b, c)  =  min over q of  U_b(m_b, q) + D_c(m_c, q) .

The leader b, of highest m, is recommended as soon as for every other arm c

    Z(b, c)  >=  ln(1 / w_j) + ln(1 / w_k) + z ,

j and k their numbers of batches, z = z(failure_probability / (K - 1)) of ``two_exponentials``.

**The price of batches.**  The length of an arm's j-th batch is known beforehand; only the number of
batches of an arm depends on releases.  Let rewards of each arm be independent and of one law.  Then
the merged value of the first j batches of an arm, and that of the first k of another, have the law
of rewards drawn in advance.  Hence a bound for fixed j and k holds, and a union bound over all j
and k covers random ones.  Its weights are w_j = c / ((j + c - 1)(j + c)), j >= 1.  They sum to one,
as w_j is c times the difference of 1 / (j + c - 1) and the next.  They hardly fall before the c-th
batch.

**The error.**  Let rewards lie in the range, be independent, and those of an arm have one law.  Let
``*`` be an arm with the highest mean q, and b one with a lower mean.  To recommend b, Z(b, *) must
pass the test.  It is at most X + Y, X = U_b(m_b, q) and Y = D_*(m_*, q).  For the first j batches
of b, P(U_b >= x) <= exp(-x): U_b rises with m_b, and at U_b = x, exp(-x) bounds the probability of
an m_b so high for a mean of q or less.  Hence X' = max over j of X - ln(1 / w_j) exceeds x with
probability at most sum of w_j exp(-x) = exp(-x).  So does Y'.  X' and Y' are independent, as they
belong to different arms.  So X' + Y' >= z has probability at most failure_probability / (K - 1).
There are at most K - 1 such arms, so one of them is recommended with probability at most
``failure_probability``.

If several arms are best, the search may never stop.

**What to play.**  The challenger is the arm of least Z(b, c) + ln n_c, n_c the rounds of c
(Jourdan, Degenne, Baudry, de Heide & Kaufmann 2022).  The leader is played instead while the sum
over c of (U_b / n_b) / (D_c / n_c), both at the q of Z(b, c), is above 1.  The sum is 1 for the
best allocation of rounds (Garivier & Kaufmann 2016; Bandyopadhyay, Juneja & Agrawal 2024 play by
its sign).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...calls import is_open
from ...constraints import Constraints, Integer, Real
from ...kernel import Generator, Vector, kernel
from ...policies import ArmEstimates, Card, Kernels, Part, Policy, Statistic
from ...privacy.channels import Laplace
from ...protocol import Contexts
from ..arms.arms import PARALLEL, PROOF
from ..arms.batches import batch_rounds, weight_of
from ..arms.law import MERGED, Law, convex_exponent, law_of, merge, merged_estimates
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.episodes import CLOCK, MEMO, close, record_pull_of, release_due, withdraw
from ..bases.sums import Sums, accumulate, sensitivity, summarise

_EDGE = 1e-12  # as near to 0 and 1 as q comes
_IN_SIGHT = 20.0  # c: batches grow geometrically, and a search rarely takes more per arm
_HALVINGS = 24  # of the interval in which Z is attained, where it is flat


class TopTwoParams(NamedTuple):
    n_arms: int
    threshold: float  # z
    growth: float
    growth_in_noise: float
    first: int
    noise_scale: float  # s
    laplace: bool
    low: float
    width: float  # hi - lo


class TopTwoPublic(NamedTuple):
    estimate: np.ndarray  # (K,) merged values, as rewards are measured
    merged: np.ndarray  # (8, K) see ``law``
    pulls: np.ndarray  # (K,) rounds in all finished batches
    batches: np.ndarray  # (K,)
    clock: np.ndarray  # (4,) see ``bases.episodes``; batches are episodes
    plan: np.ndarray  # (3,)


class Plan(NamedTuple):  # slots of ``TopTwoPublic.plan``
    leader: int = 0
    following: int = 1  # which arm is played next
    over: int = 2  # 1 where every other arm is refuted


PLAN = Plan()


def init(params: TopTwoParams) -> tuple[Sums, TopTwoPublic]:
    k = params.n_arms
    public = TopTwoPublic(
        estimate=np.zeros(k),
        merged=np.zeros((len(MERGED), k)),
        pulls=np.zeros(k, np.int64),
        batches=np.zeros(k, np.int64),
        clock=np.zeros(len(CLOCK), np.int64),
        plan=np.zeros(len(PLAN), np.int64),
    )
    return Sums(np.zeros(1)), public


@kernel
def hold_rounds(params: TopTwoParams, public: TopTwoPublic, arm: int) -> int:
    return batch_rounds(params, public.pulls[arm])


@kernel
def price_of_batches(j: int) -> float:
    """ln(1 / w_j)."""
    return math.log((j + _IN_SIGHT - 1.0) * (j + _IN_SIGHT) / _IN_SIGHT)


def two_exponentials(probability: float) -> float:
    """A z that the sum of two independent variables exceeds with at most this probability, if each
    exceeds any x with probability at most exp(-x).

    The sum is, in law, at most that of two exponential variables, which exceeds z with probability
    (1 + z) exp(-z).  With L = ln(1 / p) and s = sqrt(2 L) that is at most p for z = L + ln(1 + L +
    s).  Indeed ln(1 + z) <= z - L means 1 + L + ln(1 + L + s) <= 1 + L + s, which holds as ln(1 +
    s + s^2 / 2) <= s.
    """
    log = math.log(1.0 / probability)
    return log + math.log(1.0 + log + math.sqrt(2.0 * log))


@kernel
def evidence(best: Law, high: float, other: Law, low: float) -> tuple[float, float]:
    """U(high, q) and D(low, q) for the q in (0, 1) of least sum: slopes cancel, or an end."""
    if low >= high:
        return 0.0, 0.0
    left, right = max(low, _EDGE), min(high, 1.0 - _EDGE)
    if left > right:  # noise has carried both values beyond one end
        left = right = 1.0 - _EDGE if low > _EDGE else _EDGE
    above = below = 0.0
    for _ in range(_HALVINGS):
        q = 0.5 * (left + right)
        # The sum is convex in q, so its slope says on which side of q the least one is.
        above, falling = convex_exponent(best, 1.0 - high, 1.0 - q)
        below, rising = convex_exponent(other, low, q)
        if rising < falling:
            left = q
        else:
            right = q
    return above, below


@kernel
def _survey(params: TopTwoParams, public: TopTwoPublic) -> None:
    """Find the leader, whether all others are refuted, and the next arm: arms without a release
    first.
    """
    merged, pulls, plan = public.merged, public.pulls, public.plan
    leader = 0
    for a in range(params.n_arms):
        if public.batches[a] == 0:
            plan[PLAN.following] = a
            return
        if merged[MERGED.value, a] > merged[MERGED.value, leader]:
            leader = a
    law, high = law_of(params, merged[:, leader]), merged[MERGED.value, leader]
    over, least, challenger, balance = True, np.inf, leader, 0.0
    for c in range(params.n_arms):
        if c == leader:
            continue
        above, below = evidence(law, high, law_of(params, merged[:, c]), merged[MERGED.value, c])
        price = price_of_batches(public.batches[leader]) + price_of_batches(public.batches[c])
        over = over and above + below >= price + params.threshold
        cost, share = above + below + np.log(pulls[c]), pulls[c] / pulls[leader]
        # Without evidence, the limit of this term as both values meet.
        balance += share * above / below if min(above, below) > 1e-9 else share * share
        if cost < least:
            least, challenger = cost, c
    plan[PLAN.leader], plan[PLAN.over] = leader, over
    plan[PLAN.following] = leader if balance > 1.0 else challenger


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
    merged = public.merged[:, arm]
    merge(merged, n, (release[0] / n - params.low) / params.width, weight_of(params, n))
    public.estimate[arm] = params.low + params.width * merged[MERGED.value]
    # Before the survey, whose price is that of all released batches.
    public.batches[arm] += 1
    _survey(params, public)


@kernel
def stop(params: TopTwoParams, public: TopTwoPublic) -> bool:
    return public.plan[PLAN.over] == 1 or params.n_arms == 1


@kernel
def recommend(params: TopTwoParams, public: TopTwoPublic) -> int:
    """The leader."""
    return public.plan[PLAN.leader]


@dataclass(frozen=True, repr=False)
class TopTwo(Part):
    """Top Two on all released sums: plays the leader and its closest challenger until releases
    refute every other arm (after Jourdan, Degenne, Baudry, de Heide & Kaufmann 2022; batches and
    exponents of ``Arms``: this package).

    The challenger is the arm c of least Z + ln n, with n its rounds and Z the evidence against its
    being as good as the leader.  The search stops when every Z exceeds ln(1 / failure_probability)
    plus a price for the number of arms and batches.

    Args:
        growth: length of a batch, as a multiple of all earlier rounds of its arm.
        first: rounds of an arm's first batch, and of its shortest.

    When to choose: you want to know the best arm, and rewards of the search do not matter.

    >>> TopTwo(growth=0.2)
    TopTwo(growth=0.2)
    """

    kernels: ClassVar[Kernels] = Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull_of(hold_rounds),
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

    growth: float = 0.5
    first: int = 10

    constraints: ClassVar[Constraints] = {
        "growth": Real(0.01, 100.0),
        "first": Integer(1, MOST_ROUNDS),
    }

    def params(self, policy: Policy) -> TopTwoParams:
        """The numbers it searches with."""
        (lo, hi), failure = policy.reward_range, policy.config["failure_probability"]
        return TopTwoParams(
            n_arms=policy.n_arms,
            threshold=two_exponentials(failure / max(policy.n_arms - 1, 1)),
            growth=self.growth,
            growth_in_noise=self.growth,
            first=self.first,
            noise_scale=policy.noise_scale / (hi - lo),
            laplace=isinstance(policy.channel, Laplace),
            low=lo,
            width=hi - lo,
        )

    def statistic(self, policy: Policy) -> Statistic:
        """The sum of a batch."""
        return Statistic.of_rewards(policy.reward_range, memo=len(MEMO), sums_of="arm")
