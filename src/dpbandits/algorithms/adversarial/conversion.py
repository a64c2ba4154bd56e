"""Learning from batches: the policy plays an arm for tau rounds and learns from their noisy mean
loss.

This is Algorithm 1 of Faster Rates for Private Adversarial Bandits, for any learner that accepts
unbounded and negative losses.  A reward r in (lo, hi) is a loss (hi - r) / (hi - lo) in [0, 1].

Guarantee:

* Protected: one person's reward, from all who see or override decisions, but for the operator.
* Adjacency: one record is another.  A person contributes one reward to one batch.
* Sensitivity: when a batch ends, the *sum* of its tau rewards crosses the wall.  A record moves one
  sum by at most ``hi - lo``.

Batches are disjoint sets of records, cut by counting rounds.  Hence each sum may spend the whole
budget (parallel composition; Theorem 1 of the paper).  Laplace noise of scale (hi - lo) / epsilon
on the sum is noise of scale 1 / (tau epsilon) on the mean loss.  The learner computes that mean
after the wall.  Which arm a batch plays is drawn from earlier releases and from exploration only.
A batch that the horizon cuts short is played and never released.

If some arms are closed, the learner draws among the others, from its probabilities divided by their
sum.  It weighs the loss by these quotients, which keeps estimates of open arms unbiased.  A closed
arm is charged the learner's own loss, like sleeping specialists (Freund, Schapire, Singer & Warmuth
1997).  Without this charge it would seem the best arm.

The noise on a mean loss should be no larger than a loss: tau defaults to ceil(1 / epsilon), and to
1 for epsilon >= 1.  tau = 1 with epsilon < 1 is the unbatched baseline (Tossou & Dimitrakakis 2017,
Agarwal & Singh 2017), with one noise draw per record.  That noise would protect as well if people
added it themselves.  These policies see the reward before the noise, so their guarantee is central.

**Experts** (Algorithm 5).  The policy follows an expert for a batch, and draws each arm from that
expert's advice.  What crosses the wall: again the batch's sum.  The choice of the expert and the
draws of arms use earlier releases, public advice and exploration only.  Hence each sum may spend
the whole budget (Theorem 4).  The paper says that advice is protected, too.  It is not: the arm is
drawn from the advice of its own round, and any observer of the arm learns about it.  For advice the
budget limits only the information in *later* rounds.  Another arm means another reward in the
batch's sum, which moves by at most ``hi - lo``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...calls import is_open
from ...kernel import Generator, Matrix, Vector, bind, kernel, outlined, unbound
from ...policies import Kernels
from ...protocol import Contexts, Row, one_round
from ..bases.sums import Sums, accumulate, sensitivity, summarise
from ..maths.simplex import draw

_LEAST = 1e-200  # a probability above 0: arms that are left over may all have had none


class BatchedParams(NamedTuple):
    n_arms: int  # that the learner chooses from
    batch: int  # rounds of one arm: tau
    width: float  # hi - lo
    high: float
    noise: float  # on a mean loss: scale (Laplace) or standard deviation (Gaussian)
    batches: int  # to tune for; 0 where the horizon is unknown
    published: bool  # the published constants
    rate: float  # eta, where it is given; else nan
    mixing: float  # gamma, likewise
    tries: int  # M, where it is given; else 0
    sigma: float  # of HTINF: a bound on E[|noisy loss|^alpha]^(1/alpha)
    alpha: float  # of HTINF, in (1, 2]
    memory: int  # numbers that the learner keeps besides


class BatchedPublic(NamedTuple):
    losses: np.ndarray  # (K,) estimates of the arms' cumulative losses, less the smallest of them
    probability: np.ndarray  # (K,) of the next choice, for learners that know it
    memory: np.ndarray  # (m,) of the learner
    drawn: np.ndarray  # (6 + 2 K,) see ``Drawn``: more arrays would be handed over in every call
    clock: np.ndarray  # (4,)


class Clock(NamedTuple):  # slots of ``BatchedPublic.clock``
    done: int = 0  # rounds booked in the running batch
    batches: int = 1  # learned from
    arm: int = 2  # of the last batch; of experts, who is followed
    fresh: int = 3  # whether it was drawn anew for the coming round


# Slots of what is noted of a batch when its arm is drawn: others may be released before it.
class Memo(NamedTuple):
    arm: int = 0
    probability: int = 1  # of that arm, for learners that know it
    memory: int = 2  # the first number of the learner's memory
    masked: int = 3  # 1 if some arm was closed
    closed: int = 4  # and on, for each arm, then: 1 if it was closed


class Drawn(NamedTuple):  # slots of ``BatchedPublic.drawn``: first ``Memo`` of the running batch
    arm: int = 0
    probability: int = 1
    memory: int = 2
    masked: int = 3
    share: int = 4  # of the next: the sum of the probabilities of open arms
    least: int = 5  # what each of them counts as at least; 0 where all are open
    # and on, for each arm: 1 if it is closed in the running batch, then 1 if it is in the next
    closed: int = 6


CLOCK, MEMO, DRAWN = Clock(), Memo(), Drawn()


begin = learn = prepare = pick = unbound


def init(params: BatchedParams) -> tuple[Sums, BatchedPublic]:
    k = params.n_arms
    public = BatchedPublic(
        losses=np.zeros(k),
        probability=np.full(k, 1.0 / k),
        memory=np.zeros(params.memory),
        drawn=np.zeros(DRAWN.closed + 2 * k),
        clock=np.zeros(len(CLOCK), np.int64),
    )
    # A first round may be taken back: the next draw then replaces what was noted of it.
    public.clock[CLOCK.fresh] = 1
    public.drawn[DRAWN.share] = 1.0
    return Sums(np.zeros(1)), public


@kernel
def hold_rounds(params: BatchedParams, public: BatchedPublic, arm: int) -> int:
    return params.batch


@kernel
def open_probability(public: BatchedPublic, arm: int) -> float:
    """That of an arm before it is divided by their sum; 0 of one that is closed."""
    least = public.drawn[DRAWN.least]
    if least > 0.0 and public.drawn[DRAWN.closed + public.losses.size + arm] > 0.0:
        return 0.0
    return max(public.probability[arm], least)


@kernel
def prepare_mask(
    params: BatchedParams, public: BatchedPublic, contexts: Contexts, rng: Generator
) -> None:
    """Before a draw: store which arms are closed, if any; then run the learner's ``prepare``."""
    least = 0.0
    for a in range(params.n_arms):  # without a mask there is no such loop
        if not is_open(contexts, a):
            least = _LEAST
    if least > 0.0:
        public.drawn[DRAWN.share], public.drawn[DRAWN.least] = 0.0, least
        for a in range(params.n_arms):
            # Before the sum: ``open_probability`` reads the mark.
            public.drawn[DRAWN.closed + public.losses.size + a] = (
                0.0 if is_open(contexts, a) else 1.0
            )
            public.drawn[DRAWN.share] += open_probability(public, a)
    # The mask before had closed arms, this one has none: draws need no quotient again.
    elif public.drawn[DRAWN.least] > 0.0:
        public.drawn[DRAWN.share], public.drawn[DRAWN.least] = 1.0, 0.0
    begin(params, public, contexts, rng)


@outlined  # for it is seldom called
def note_masked(public: BatchedPublic, arm: int) -> None:
    public.drawn[DRAWN.probability] = open_probability(public, arm) / public.drawn[DRAWN.share]
    public.drawn[DRAWN.masked] = 1.0
    for a in range(public.losses.size):
        public.drawn[DRAWN.closed + a] = public.drawn[DRAWN.closed + public.losses.size + a]


@kernel
def note_draw(public: BatchedPublic, arm: int) -> None:
    """Store the weight of the coming loss, once: a round may be taken back and others released."""
    if public.clock[CLOCK.fresh] == 1:
        public.clock[CLOCK.fresh] = 0
        public.drawn[DRAWN.arm], public.drawn[DRAWN.memory] = arm, public.memory[0]
        public.drawn[DRAWN.probability] = public.probability[arm]
        public.drawn[DRAWN.masked] = 0.0
        if public.drawn[DRAWN.least] > 0.0:
            note_masked(public, arm)


@kernel
def record_pull(params: BatchedParams, public: BatchedPublic, arm: int, x: Row, n: int) -> None:
    note_draw(public, arm)
    public.clock[CLOCK.arm] = arm
    public.clock[CLOCK.done] += n


@kernel
def release_due(params: BatchedParams, public: BatchedPublic) -> bool:
    return public.clock[CLOCK.done] >= params.batch


@outlined  # for it is seldom called
def copy_closed(public: BatchedPublic, memo: Vector) -> None:
    """Keep which arms were closed."""
    for a in range(public.losses.size):
        memo[MEMO.closed + a] = public.drawn[DRAWN.closed + a]


@kernel
def close(params: BatchedParams, public: BatchedPublic, memo: Vector) -> None:
    for i in range(MEMO.closed):
        memo[i] = public.drawn[i]
    if memo[MEMO.masked] > 0.0:
        copy_closed(public, memo)
    public.clock[CLOCK.done], public.clock[CLOCK.fresh] = 0, 1


@kernel
def publish(params: BatchedParams, public: BatchedPublic, memo: Vector, release: Vector) -> None:
    public.clock[CLOCK.batches] += 1
    # A sum has crossed, whose sensitivity is the width for any batch; its mean is post-processing.
    loss = (params.high - release[0] / params.batch) / params.width
    if memo[MEMO.masked] > 0.0:
        for a in range(params.n_arms):
            # Before ``learn``, which makes the next probabilities from these losses.
            public.losses[a] += memo[MEMO.closed + a] * loss
    learn(params, public, memo, loss)


@cache
def conversion(learner: Any) -> Kernels:
    """The kernels of playing in batches with a class of ``Learner`` (Algorithm 1)."""
    return Kernels(
        init=init,
        prepare=bind(prepare_mask, begin=learner.prepare),
        choose=learner.choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        close=close,
        summarise=summarise,
        publish=bind(publish, learn=learner.learn),
        skips_closed=learner.skips_closed,
    )


# Experts in the place of arms ------------------------------------------------------------------


@kernel
def prepare_expert(
    params: BatchedParams, public: BatchedPublic, contexts: Matrix, rng: Generator
) -> None:
    """At the start of a batch, the expert to follow."""
    if public.clock[CLOCK.done] == 0:
        prepare(params, public, contexts, rng)
        public.clock[CLOCK.arm] = pick(params, public, contexts, rng)[0]
        public.clock[CLOCK.fresh] = 1


@kernel
def choose_advised(
    params: BatchedParams, public: BatchedPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """Draw an arm from the advice of the expert in use."""
    advice = contexts[:, public.clock[CLOCK.arm]]
    arm = draw(advice, rng.random())
    return arm, float(advice[arm])


@kernel
def record_round(params: BatchedParams, public: BatchedPublic, arm: int, x: Vector, n: int) -> None:
    # The batch's loss belongs to the expert, not to the arm that was drawn from its advice.
    note_draw(public, public.clock[CLOCK.arm])
    public.clock[CLOCK.done] += n


@cache
def over_experts(learner: Any) -> Kernels:
    """The kernels of a policy in which the learner's arms are experts."""
    return replace(
        conversion(learner),
        prepare=bind(prepare_expert, prepare=learner.prepare, pick=learner.choose),
        choose=choose_advised,
        record_pull=record_round,
        hold_rounds=one_round,
        skips_closed=False,  # of experts, not of what they advise
    )
