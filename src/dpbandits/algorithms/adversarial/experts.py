"""Bandits with expert advice from a bandit learner: the experts are its arms (Faster Rates for
Private Adversarial Bandits, Algorithm 5).

An expert is followed for a batch of rounds, each of which plays an arm drawn from that expert's
advice; the learner is then told the batch's mean loss plus noise.  What crosses the wall is the sum
of a batch's rewards, as in ``conversion``: the choice of the expert and the draws of arms use
earlier releases, public advice and exploration only, so that each sum may spend the whole budget
(Theorem 4).

The paper says that this protects the advice as well.  It does not: the arm that is played is drawn
from the advice of that very round, and everybody who sees the arm learns about it.  What holds for
advice is that *later* rounds tell no more of it than the budget allows: another arm means another
reward in the batch's sum, which moves by at most ``hi - lo``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from ...kernel import Generator, Matrix, Vector, bind, kernel, unbound
from ...policies import Kernels
from ...protocol import one_round
from ..maths.simplex import draw
from .conversion import CLOCK, BatchedParams, BatchedPublic, conversion, note_draw

prepare = pick = unbound


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
    """A draw from the advice of the expert who is followed."""
    advice = contexts[:, public.clock[CLOCK.arm]]
    arm = draw(advice, rng.random())
    return arm, float(advice[arm])


@kernel
def record_round(params: BatchedParams, public: BatchedPublic, arm: int, x: Vector, n: int) -> None:
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
