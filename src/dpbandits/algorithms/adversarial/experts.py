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
from typing import Unpack

from ...kernel import Generator, Matrix, Vector, bind, kernel, unbound
from ...policies import Card, Kernels, Options, register
from ...privacy.budgets import Budget
from ...protocol import one_round
from ..bases.advice import AdvicePolicy
from ..bases.errata import EXPERTS
from ..maths.simplex import draw
from .any_learner import learner_of
from .conversion import (
    CLOCK,
    BatchedParams,
    BatchedPolicy,
    BatchedPublic,
    Learner,
    conversion,
    note_draw,
)
from .learners import HTINF_LEARNER

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
def over_experts(learner: Learner) -> Kernels:
    """The kernels of a policy in which the learner's arms are experts."""
    return replace(
        conversion(learner),
        prepare=bind(prepare_expert, prepare=learner.prepare, pick=learner.choose),
        choose=choose_advised,
        record_pull=record_round,
        hold_rounds=one_round,
        skips_closed=False,  # of experts, not of what they advise
    )


@register(n_arms=3, n_experts=4)
class ExpertConversion(AdvicePolicy, BatchedPolicy):
    """Expert advice by a learner whose arms are the experts, on noisy batch losses (Theorem 4 and
    Corollary 4).

    ``pull`` takes the advice of every expert, shape (N, K): a probability for each arm.

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: ``PureDP`` (Laplace noise, as published) or another notion (Gaussian noise);
            None for no privacy.
        learner: ``"htinf"``, which needs no horizon, ``"exp3"`` or ``"ftpl"``: see the policies of
            these names; or one of ``register_learner``.
        horizon: rounds to tune for, which are no limit; None doubles the horizon of the tuning
            whenever it is reached.
        batch: rounds of one expert; by default the noise multiplier rounded up, which is ceil(1 /
            epsilon) for ``PureDP``.
        rate, mixing, tries, sigma, alpha: constants of learners that take them.
        **options: see ``Options``.

    When to choose: few experts, at most about as many as arms; its regret grows with the square
    root of their number, and that of the EXP4 family with its logarithm.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = ExpertConversion(2, 3, budget=PureDP(0.5), seed=1)
        >>> policy.batch, policy.pull([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).propensity in (0.5, 1.0)
        (2, True)
    """

    card = Card(
        title="a bandit learner over experts, on noisy batch losses",
        source=(
            "Faster Rates for Private Adversarial Bandits, Theorem 4, for rewards (not for advice,"
            " see the errata)"
        ),
        noise=("Laplace", "Gaussian"),
        randomised=True,
        errata=(EXPERTS,),
    )
    _learner = HTINF_LEARNER
    kernels = over_experts(_learner)

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        learner: str = "htinf",
        horizon: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        tries: int | None = None,
        sigma: float | None = None,
        alpha: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        tuning = {"rate": rate, "mixing": mixing, "tries": tries, "sigma": sigma, "alpha": alpha}
        self._learner = learner_of(learner, **tuning)
        self.kernels = over_experts(self._learner)
        own = self._tuned(horizon, batch, **tuning)
        config = {"n_arms": n_arms, "n_experts": n_experts, "learner": learner, **own}
        super().__init__(config, budget=budget, **options)

    @property
    def _choices(self) -> int:
        return self.n_experts
