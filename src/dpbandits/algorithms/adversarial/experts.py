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

import math
from dataclasses import replace
from functools import cache
from typing import Any, Unpack

from ...errors import ArgumentError
from ...kernel import bind, kernel, unbound
from ...policies import Card, Kernels, Options, register
from ...policies.protocol import Generator, Matrix, Vector, one_round
from ...privacy.budgets import Budget
from ...validation import choice, integer, real
from ..bases.advice import AdvicePolicy
from ..maths.simplex import draw
from .conversion import (
    CHANNELS,
    CLOCK,
    BatchedParams,
    BatchedPolicy,
    BatchedPublic,
    Learner,
    conversion,
)
from .learners import EXP3_LEARNER, FTPL_LEARNER, HTINF_LEARNER

LEARNERS = {"htinf": HTINF_LEARNER, "exp3": EXP3_LEARNER, "ftpl": FTPL_LEARNER}
CONSTANTS = {"htinf": ("sigma",), "exp3": ("rate", "mixing"), "ftpl": ("rate", "tries")}

prepare = pick = unbound


@kernel
def prepare_expert(
    params: BatchedParams, public: BatchedPublic, contexts: Matrix, rng: Generator
) -> None:
    """At the start of a batch, the expert to follow."""
    if public.clock[CLOCK.done] == 0:
        prepare(params, public, contexts, rng)
        public.clock[CLOCK.arm] = pick(params, public, contexts, rng)[0]


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
    )


def _refuse_foreign(learner: str, **constants: Any) -> None:
    """Refuse the constants of other learners."""
    for name, value in constants.items():
        if value is not None and name not in CONSTANTS[learner]:
            allowed = " or ".join(repr(one) for one, names in CONSTANTS.items() if name in names)
            raise ArgumentError(
                f"{name} must be None unless learner is {allowed}, got {value!r} for"
                f" learner={learner!r}",
                name,
            )


@register(n_arms=3, n_experts=4)
class ExpertConversion(AdvicePolicy, BatchedPolicy):
    """Expert advice by a learner whose arms are the experts, on noisy batch losses (Theorem 4 and
    Corollary 4).

    ``pull`` takes the advice of every expert, shape (N, K): a probability for each arm.

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: ``PureDP`` (Laplace noise, as published), ``ZCDP`` or ``ApproxDP`` (Gaussian noise);
            None for no privacy.
        learner: ``"htinf"``, which needs no horizon, ``"exp3"`` or ``"ftpl"``: see the policies of
            these names.
        horizon: rounds to tune for, which are no limit; None doubles the horizon of the tuning
            whenever it is reached.
        batch: rounds of one expert; by default the noise multiplier rounded up, which is ceil(1 /
            epsilon) for ``PureDP``.
        rate: eta of EXP3 and FTPL.
        mixing: gamma of EXP3.
        tries: M of FTPL.
        sigma: of HTINF.
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
        channels=CHANNELS,
        randomised=True,
    )
    kernels = over_experts(HTINF_LEARNER)

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
        **options: Unpack[Options],
    ) -> None:
        self._learner = choice("learner", learner, tuple(LEARNERS))
        _refuse_foreign(self._learner, rate=rate, mixing=mixing, tries=tries, sigma=sigma)
        self.kernels = over_experts(LEARNERS[self._learner])
        self._rate = None if rate is None else real("rate", rate, 0.0, strict=True)
        self._mixing = None if mixing is None else real("mixing", mixing, 0.0, 1.0)
        self._tries = None if tries is None else integer("tries", tries, 1, 10**9)
        self._sigma = None if sigma is None else real("sigma", sigma, 1e-9, 1e100)
        tuning = {
            "rate": self._rate,
            "mixing": self._mixing,
            "tries": self._tries,
            "sigma": self._sigma,
        }
        own = {
            "n_arms": n_arms,
            "n_experts": n_experts,
            "learner": self._learner,
            **self._schedule(horizon, batch),
            **tuning,
        }
        super().__init__(own, budget=budget, **options)

    @property
    def _choices(self) -> int:
        return self.n_experts

    @property
    def regret_bound(self) -> float:
        """What the policy loses at most over its horizon, in expectation, against the best expert,
        in units of the reward range.

        The learner's bound over as many batches, times their length, and a batch more (Theorem 1).
        Infinite without a horizon, and where the learner's constants are outside what its proof
        assumes, as those of its tuning may be at short horizons; above the horizon it says nothing.
        """
        if self.n_experts == 1:
            return 0.0
        learner = LEARNERS[self._learner]
        if self._horizon is None or learner.bound is None:
            return math.inf
        _, fresh = self.kernels.init(self.params)
        tuning = learner.tuning(self.params, fresh) if learner.tuning else ()
        moment = self._root_mean_square(self.params.noise) ** 2
        bound: float = self.batch * (
            learner.bound(self.params, moment, tuning, self._horizon / self.batch) + 1.0
        )
        return bound + self._rounding(self._horizon, 1)
