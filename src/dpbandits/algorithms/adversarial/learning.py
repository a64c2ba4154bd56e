"""Learners as values, and what policies that take one have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ...constraints import Constraint, Constraints, Integer, Real
from ...kernel import Kernel
from ...policies import Part, Policy, Statistic
from ...privacy.channels import Laplace
from ...protocol import nothing_to_prepare
from ...rooms import papers
from ...session.estimates import LOSSES_ALONE
from .conversion import MEMO, BatchedParams

_LONGEST = 2**62
LEARNER_CONSTRAINTS: dict[str, Constraint] = {
    "rate": Real(0.0, strict=True) | None,
    "mixing": Real(0.0, 1.0) | None,
    "tries": Integer(1, 10**9) | None,
    "sigma": Real(1e-9, 1e100) | None,
    "alpha": Real(1.01, 2.0) | None,
}


class LearningPolicy(Policy):
    """Base class of policies with a ``learner``, a value that computes for them."""

    constraints: ClassVar[Constraints] = {
        "horizon": Integer(1) | None,
        "batch": Integer(1) | None,
    }
    _no_estimates = LOSSES_ALONE

    @property
    def _learner(self) -> Any:
        return self.config["learner"]

    @property
    def tuned_for(self) -> int | None:
        """The horizon that was given, to which constants are tuned."""
        horizon: int | None = self.config["horizon"]
        return horizon

    @property
    def batch_size(self) -> int:
        """Number of rounds that a release covers."""
        return int(self.params.batch)

    @property
    def regret_bound(self) -> float:
        """Upper bound on expected regret over the horizon against the best arm, or expert, in
        hindsight, in units of the reward range.

        For ``FrozenEXP4`` it is regret against experts that keep to their advice for a batch.  The
        bound is infinite without a horizon, or with constants that the proof does not cover.  It
        never exceeds a finite horizon.
        """
        return float(self._learner.regret_bound(self))

    @property
    def bound_arguments(self) -> dict[str, Any]:
        """Those of the function in ``theory`` that has the bound, but for the horizon."""
        arguments: dict[str, Any] = self._learner.bound_arguments(self)
        return arguments

    def _params(self) -> Any:
        return self._learner.params(self)

    def _statistic(self) -> Statistic:
        statistic: Statistic = self._learner.statistic(self)
        return statistic


@dataclass(frozen=True, repr=False)
class Learner(Part, base=True):
    """A learner from the losses of single batches; a loss may be any finite number, including a
    negative one.

    A subclass is a frozen dataclass.  Its fields are tuning constants, among "rate", "mixing",
    "tries", "sigma" and "alpha"; None for a constant that is computed.

    Attributes:
        choose: the arm of the next batch, as in the protocol.
        learn: ``learn(params, public, memo, loss)``: take in the loss of the batch that ended, the
            ``clock[CLOCK.batches]``-th.  It played ``memo[MEMO.arm]``; see ``Memo``.
        prepare: as in the protocol.
        tuning: ``tuning(params, public)``: its constants; None for a learner that needs none.
        skips_closed: whether ``prepare`` and ``choose`` choose among open arms: see ``is_open``.
        private: whether it accepts noisy losses, hence a budget.
    """

    choose: ClassVar[Kernel]
    learn: ClassVar[Kernel]
    prepare: ClassVar[Kernel] = nothing_to_prepare
    tuning: ClassVar[Kernel | None] = None
    skips_closed: ClassVar[bool] = False
    private: ClassVar[bool] = True
    published_sigma: ClassVar[float] = math.sqrt(6.0)

    @staticmethod
    def memory(n_arms: int) -> int:
        """Length of ``public.memory`` for a number of arms, at least 1; all zeros at first."""
        return 1

    @staticmethod
    def bound(
        params: BatchedParams, moment: float, tuning: Sequence[float], batches: float
    ) -> float:
        """Bound expected regret over a number of batches, against the best choice in hindsight, for
        losses of second moment at most ``moment``.

        Returns:
            An upper bound, in units of a batch's mean loss; infinite if none is proved for noisy
            losses.
        """
        return math.inf

    constraints: ClassVar[Constraints] = LEARNER_CONSTRAINTS

    @property
    def kind(self) -> type[Learner]:
        """The class whose kernels play."""
        return type(self)

    @property
    def constants(self) -> dict[str, float]:
        """Those that are given."""
        return {name: one for name, one in self.given.items() if name in LEARNER_CONSTRAINTS}

    def statistic(self, policy: LearningPolicy) -> Statistic:
        """One sum of rewards."""
        memo = MEMO.closed + _choices(policy)
        return Statistic.of_rewards(policy.reward_range, memo=memo)

    def params(self, policy: LearningPolicy) -> BatchedParams:
        """The numbers it learns with."""
        (lo, hi), horizon = policy.reward_range, policy.tuned_for
        # Laplace noise has the multiplier 1 / epsilon; the slack keeps 1 / (1 / 49) from being 50.
        batch = policy.config["batch"] or int(
            min(max(math.ceil(policy.channel.multiplier * (1.0 - 1e-12)), 1), _LONGEST)
        )
        noise = policy.noise_scale / (hi - lo) / batch
        published = policy.calibration == "paper"
        sigma = self.kind.published_sigma if published else _root_mean_square(policy, noise)
        given = self.constants.get
        return BatchedParams(
            n_arms=_choices(policy),
            batch=batch,
            width=hi - lo,
            high=hi,
            noise=noise,
            batches=0 if horizon is None else max(horizon // batch, 1),
            published=published,
            rate=given("rate", math.nan),
            mixing=given("mixing", math.nan),
            tries=int(given("tries", 0)),
            sigma=given("sigma", sigma),
            alpha=given("alpha", 2.0),
            memory=self.kind.memory(_choices(policy)),
        )

    def regret_bound(self, policy: LearningPolicy) -> float:
        """The learner's bound on batches, times their length, plus one batch (Theorem 1)."""
        if _choices(policy) == 1:
            return 0.0
        if policy.tuned_for is None:
            return math.inf
        batch_conversion = papers("theories").adversarial.batch_conversion
        return float(batch_conversion(policy.tuned_for, **self.bound_arguments(policy)))

    def bound_arguments(self, policy: LearningPolicy) -> dict[str, Any]:
        """The arguments of ``batch_conversion`` in ``theory``, without the horizon.

        Returns:
            ``batch`` (rounds), ``learner_regret`` (a function) and ``rounding`` (to which secure
            noise rounds rewards, in units of their range).
        """
        rounding = policy.grid / policy.params.width  # to which secure noise rounds rewards
        regret = partial(self._lost, policy)
        return {"batch": policy.batch_size, "learner_regret": regret, "rounding": rounding}

    def _lost(self, policy: LearningPolicy, batches: float) -> float:
        """At most, over so many batches; infinite beyond those for which it is tuned."""
        tuning_of, params = self.kind.tuning, policy.params
        if params.n_arms == 1:
            return 0.0
        if tuning_of is not None and batches >= params.batches + 1:
            return math.inf
        _, fresh = policy.kernels.init(params)
        tuning = tuning_of(params, fresh) if tuning_of else ()
        moment = _root_mean_square(policy, params.noise) ** 2
        return float(self.kind.bound(params, moment, tuning, batches))


def _choices(policy: LearningPolicy) -> int:
    """The choices of a learner: experts, or arms."""
    return int(policy.config.get("n_experts", policy.n_arms))


def _root_mean_square(policy: LearningPolicy, noise: float) -> float:
    """At most that of a loss in [0, 1] plus noise."""
    variance = 2.0 * noise**2 if isinstance(policy.channel, Laplace) else noise**2
    return math.sqrt(1.0 + variance)
