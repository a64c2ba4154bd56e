"""Searches for the best arm: at a confidence, or with a number of rounds.

What crosses the wall, and why a budget covers it, stands with the rules: ``top_two``, ``halving``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from ...constraints import Constraints, Integer, Real
from ...errors import ArgumentError, StateFileError
from ...policies import (
    ArmEstimates,
    Composition,
    Options,
    Policy,
    Statistic,
    composed,
    given,
    like,
    preset,
)
from ...policies.parts import PartOf
from ...privacy.budgets import Budget
from .halving import Halving, HalvingPublic
from .top_two import TopTwo, refuse_unproved

_PROBABILITY = Real(0.0, 1.0, strict=True)
_ROUNDS = Integer(1)


@composed(n_arms=3, failure_probability=0.1)
class BestArm(Policy):
    """Search for the best arm: with few errors, or in a given number of rounds.

    With ``failure_probability`` it stops when releases refute every other arm.  At most this share
    of searches recommends a wrong arm, if each arm's mean reward stays the same.  With ``horizon``
    it stops after that many rounds, without a bound on errors.

    Args:
        n_arms: number of arms.
        budget: of any notion; None for the non-private counterpart.
        failure_probability: probability of recommending another arm than the best.
        gap: in units of rewards.  An arm that is worse by at most so much counts as best, too, so
            the search stops sooner, and also where arms are equally good.  Default: no gap.
        horizon: number of rounds; afterwards the policy serves the remaining arm and stops
            learning.  The last phase is released at the next ``pull``, or by ``finish`` if no
            person comes.
        rule: ``TopTwo()`` with a failure probability, ``Halving()`` with a horizon; None for the
            fitting one.
        **options: see ``Options``.  With ``failure_probability``, ``clip`` has to be True.

    When to choose: you want to know the best arm, and rewards of the search do not matter; under
    any notion.  Batches whose rewards were lost begin anew, and are no evidence: after ``restore``,
    or a release that was interrupted.

    Example:
        >>> from dpbandits import PureDP
        >>> search = BestArm(2, failure_probability=0.05, budget=PureDP(1.0), seed=1)
        >>> while not search.stopped:
        ...     decision = search.pull()
        ...     _ = search.update(float(decision.arm == 1))
        >>> search.recommendation
        1
    """

    card = TopTwo.card
    constraints: ClassVar[Constraints] = {
        "failure_probability": _PROBABILITY | None,
        "gap": Real(0.0, strict=True) | None,
        "horizon": _ROUNDS | None,
        "rule": PartOf(TopTwo, Halving, exactly=True) | None,
    }

    @classmethod
    def composition(cls, *, rule: TopTwo | Halving, **_: object) -> Composition:
        """The kernels and the card of a rule."""
        return Composition(rule.kernels, rule.card)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        failure_probability: float | None = None,
        gap: float | None = None,
        horizon: int | None = None,
        rule: TopTwo | Halving | None = None,
        **options: Unpack[Options],
    ) -> None:
        if rule is None and failure_probability is None and horizon is None:
            raise ArgumentError(
                "failure_probability or horizon must be given, got None for both",
                "failure_probability",
            )
        fitting = Halving() if failure_probability is None else TopTwo()
        chosen = fitting if rule is None else rule
        if isinstance(chosen, Halving):
            _refuse("failure_probability", failure_probability, chosen)
            _refuse("gap", gap, chosen)
            horizon = _ROUNDS("horizon", horizon)  # which it needs
        else:
            _refuse("horizon", horizon, chosen)
            failure_probability = _PROBABILITY("failure_probability", failure_probability)
        own = {
            "n_arms": n_arms,
            "failure_probability": failure_probability,
            "gap": gap,
            "horizon": horizon,
            "rule": chosen,
        }
        super().__init__(own, budget=budget, composition=self.composition(rule=chosen), **options)
        if isinstance(chosen, TopTwo):
            refuse_unproved(self)

    def _of_today(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if "public.batches" in arrays:
            raise StateFileError(
                "an earlier version of dpbandits began this search. It kept too little for the"
                " present stopping rule. Use that version to end the search"
            )
        return dict(arrays)

    def _params(self) -> Any:
        return self.config["rule"].params(self)

    def _statistic(self) -> Statistic:
        statistic: Statistic = self.config["rule"].statistic(self)
        return statistic

    @staticmethod
    def _arm_estimates(params: Any, public: Any) -> ArmEstimates:
        rule = Halving if isinstance(public, HalvingPublic) else TopTwo
        return rule.estimates(params, public)


def _refuse(name: str, value: Any, rule: Any) -> None:
    if value is not None:
        raise ArgumentError(f"{name} must be None for rule={rule!r}, got {value!r}", name)


MergedTopTwo = preset(
    "MergedTopTwo",
    BestArm,
    "n_arms failure_probability gap growth first",
    """The best arm at a confidence, by Top Two on merged noisy sums.""",
    rule=like(TopTwo, "growth", "first"),
    failure_probability=given("failure_probability"),
    gap=given("gap", None, quiet=True),
    horizon=None,
)
SequentialHalving = preset(
    "SequentialHalving",
    BestArm,
    "n_arms horizon",
    """The best arm with a number of rounds, by sequential halving.""",
    example={"n_arms": 3, "horizon": 1000},
    rule=Halving(),
    failure_probability=None,
    gap=None,
    horizon=given("horizon"),
)
