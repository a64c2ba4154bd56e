"""What the policies of this family share: learning rates, batches, and their noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, Unpack

from ...policies import Options, Statistic
from ...privacy.budgets import Budget
from ...privacy.channels import Gaussian
from ...session.estimates import LOSSES_ALONE
from ...validation import integer, real
from ..bases.advice import AdvicePolicy
from .tuning import Noise, Tuning, exp4_regret, tune
from .weighing import (
    ROUNDED_UP,
    EXP4Params,
)

_MOST_ROUNDS = 10**12
LEAST_MIXING = 1e-12  # where noise is in proportion to 1 / gamma


class MixturePolicy(AdvicePolicy):
    """What the policies of this file share: tuning to a horizon, and the bound on regret that it
    was chosen for.
    """

    _no_estimates = LOSSES_ALONE
    _batch: int | None = None
    _rate: float | None = None
    _mixing: float | None = None
    _slack: float = 0.0  # by how much rounding to the grid moves the statistic further

    def _tuned(self, horizon: int, rate: float | None, mixing: float | None) -> dict[str, Any]:
        """The arguments about tuning, checked."""
        self._horizon = integer("horizon", horizon, 1, _MOST_ROUNDS)
        self._rate = None if rate is None else real("rate", rate, 0.0, strict=True)
        self._mixing = None if mixing is None else real("mixing", mixing, 0.0, 1.0)
        return {"horizon": self._horizon, "rate": self._rate, "mixing": self._mixing}

    @abstractmethod
    def _found(self) -> Tuning:
        """The tuning of least regret bound."""

    @abstractmethod
    def _bound(self, batch: int, rate: float, mixing: float) -> float:
        """On the regret of a given tuning."""

    @cached_property
    def _tuning(self) -> Tuning:
        found = self._found()
        rate = found.rate if self._rate is None else self._rate
        mixing = found.mixing if self._mixing is None else self._mixing
        batch = self._batch or found.batch
        if (batch, rate, mixing) == found[:3]:
            return found
        return Tuning(batch, rate, mixing, self._bound(batch, rate, mixing))

    def _params(self) -> EXP4Params:
        (lo, hi), tuning = self.reward_range, self._tuning
        return EXP4Params(
            n_arms=self.n_arms,
            n_experts=self.n_experts,
            batch=tuning.batch,
            rate=tuning.rate,
            mixing=tuning.mixing,
            width=hi - lo,
            high=hi,
            worst=self.statistic.max_sensitivity - self._slack,
            slack=self._slack,
            grid=self.grid if self._slack else 0.0,
        )

    @property
    def tuned_for(self) -> int:
        """The horizon to which constants are tuned."""
        return self._horizon

    @property
    def batch(self) -> int:
        """How many rounds a release covers."""
        return self._tuning.batch

    @property
    def regret_bound(self) -> float:
        """What the policy loses at most over its horizon, in expectation, against the best expert,
        in units of the reward range.

        Above the horizon the bound says nothing.
        """
        return self._tuning.bound + self._rounding * self._horizon

    @property
    def bound_arguments(self) -> dict[str, Any]:
        """Those of ``exp4_regret``, or of ``local_exp4_regret``, but for the horizon."""
        tuning = {"rate": self._tuning.rate, "mixing": self._tuning.mixing}
        sizes = {"n_arms": self.n_arms, "n_experts": self.n_experts, "tuned_for": self._horizon}
        return {**sizes, **tuning, "rounding": self._rounding}

    @property
    def _rounding(self) -> float:
        """What a round loses because rewards are rounded to the grid of secure noise."""
        lo, hi = self.reward_range
        return (2.0 if self._slack else 1.0) * self.grid / (hi - lo)


class BatchPolicy(MixturePolicy):
    """Policies that release a sum per batch."""

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        horizon: int,
        batch: int | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        tuned = self._tuned(horizon, rate, mixing)
        self._batch = None if batch is None else integer("batch", batch, 1, _MOST_ROUNDS)
        own = {
            "n_arms": n_arms,
            "n_experts": n_experts,
            **self._own(),
            "horizon": self._horizon,
            "batch": self._batch,
            **tuned,
        }
        super().__init__(own, budget=budget, **options)

    def _own(self) -> dict[str, Any]:
        """The arguments of a class that the others do not have."""
        return {}

    def _found(self) -> Tuning:
        return tune(self.n_arms, self.n_experts, self._horizon, self._noise_at_most(), self._batch)

    def _bound(self, batch: int, rate: float, mixing: float) -> float:
        noise = self._noise_at_most()
        sizes = self._horizon, self.n_arms, self.n_experts
        return float(exp4_regret(*sizes, noise, batch, rate, mixing))

    @property
    def bound_arguments(self) -> dict[str, Any]:
        own = {"noise": self._noise_at_most(), "batch": self.batch}
        return {**super().bound_arguments, **own}

    def _noise_at_most(self) -> Noise:
        """The noise on an expert's mean loss, at gamma = 1 and tau = 1, where records move the
        statistic farthest.
        """
        scale = self.channel.multiplier * self._reach()
        draws = float(self._size) * self._horizon
        if isinstance(self.channel, Gaussian):
            return Noise(
                scale,
                1.0,
                math.sqrt(2.0 * math.log(self.n_experts * self._horizon * self._horizon)),
            )
        return Noise(scale, 2.0, math.log(draws * self._horizon))

    def _reach(self) -> float:
        """The most that a loss can move the statistic at gamma = 1: sqrt(N) K in the L2 norm."""
        return math.sqrt(self.n_experts) * self.n_arms

    @property
    def _least_probability(self) -> float:
        """No arm is drawn with less; without uniform play, nothing is known."""
        return self._tuning.mixing / self.n_arms or 1e-12

    @property
    def _size(self) -> int:
        """Of the statistic: a number for every expert."""
        return self.n_experts

    @property
    def _slack(self) -> float:  # type: ignore[override]
        # Half a step for either of two neighbours, in every coordinate.
        return self.grid * math.sqrt(self._size)

    def _statistic(self) -> Statistic:
        lo, hi = self.reward_range
        worst = (hi - lo) * self._reach() / self.n_arms / self._least_probability * ROUNDED_UP
        return Statistic(
            size=self._size,
            max_sensitivity=worst + self._slack,
            max_abs_contribution=max(-lo, hi) / self._least_probability,
            max_weight=2.0 / self._least_probability,
        )
