"""Batches, noise and budgets as published by Chowdhury & Zhou (2022), without correction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError
from ...privacy import ApproxDP
from ...privacy.channels import Certified
from ...shuffle.protocols import LEVELS
from ...validation import choice, flag, integer

_NOTHING = 1e-6  # the multiplier of Gaussian noise that hides nothing


def published_batch(
    budget: ApproxDP | None,
    *,
    features: int,
    people: int,
    protocol: str = "bits",
    level: str = "shuffle",
    returning: bool = False,
) -> int:
    """People in a batch, for which the paper balances the regret of waiting and of noise.

    The paper has these numbers up to constants; here they are 1.

    Args:
        budget: (epsilon, delta); None for the rule without a budget: T^(3/5) for T people
            (Corollary 3.3, Remark 3.6), and T^(2/3) where they return.
        features: numbers in a feature vector, d.
        people: T; where they return, rounds.
        protocol: "bits" (P_Vec) or "reports" (P_Amp).
        level: "shuffle" if the budget is that of the shuffler's output ("utility-targeted":
            Corollaries B.2 and C.2), "local" if it is that of a person's messages by themselves
            ("privacy-targeted": Corollaries B.3 and C.3).
        returning: whether a user may be in every batch, and the budget is for all of them
            (Corollaries E.4 and E.6).

    Returns:
        Rounded people per batch, from 1 to ``people``.

    Raises:
        ArgumentError: a number is out of its range, or ``returning`` goes with another level.

    >>> published_batch(ApproxDP(1.0, 0.1), features=5, people=20_000)
    547
    >>> published_batch(None, features=5, people=20_000)
    381
    """
    d, rounds = integer("features", features, 1), integer("people", people, 1)
    bits = choice("protocol", protocol, ("bits", "reports")) == "bits"
    local = choice("level", level, LEVELS) == "local"
    if flag("returning", returning) and local:
        raise ArgumentError(
            f"level must be 'shuffle' for returning users, got {level!r}: the paper has no other"
            " rule for them",
            "level",
        )
    if budget is None:
        size = rounds ** (2 / 3 if returning else 3 / 5)
        return min(max(1, round(size)), rounds)
    if not isinstance(budget, ApproxDP):
        raise ArgumentError(f"budget must be ApproxDP or None, got {budget!r}", "budget")
    epsilon, delta = budget.epsilon, budget.delta
    dimensions = math.log(d * d / delta)
    if returning:
        log = math.log(rounds * (d * d if bits else 1) / delta)
        size = d ** (-1 / 6) * epsilon ** (-1 / 3) * rounds ** (2 / 3) * math.sqrt(log)
    elif local:
        logs = dimensions**0.5 if bits else math.log(1.0 / delta) ** 0.25
        size = d**-0.25 * epsilon**-0.5 * rounds**0.75 * logs
    else:
        amplified = math.log(rounds / delta) * math.log(2.0 / delta)
        logs = dimensions**0.4 if bits else amplified**0.2
        size = d**-0.2 * epsilon**-0.4 * rounds**0.6 * logs
    return min(max(1, round(size)), rounds)


def for_bits(
    budget: ApproxDP, batch: int, features: int, batches: int, level: str
) -> dict[str, float]:
    """See ``BitSum.published``."""
    if not (isinstance(budget, ApproxDP) and budget.epsilon <= 15 and budget.delta < 0.5):
        raise ArgumentError(
            f"budget must be ApproxDP with epsilon <= 15 and delta < 1/2, got {budget!r}"
        )
    budget = divided_budget(budget, batches)
    hiding = 1 if choice("level", level, LEVELS) == "local" else batch
    levels = math.ceil(max(2.0 * math.sqrt(hiding), features, 4))
    log = math.log(4.0 * (features**2 + 1) / budget.delta)
    noise = math.ceil(24e4 * (levels * log / budget.epsilon) ** 2 / hiding)
    return {"levels": levels, "noise": noise, **_shape(batch, features)}


def for_reports(
    budget: ApproxDP, batch: int, features: int, batches: int, level: str
) -> dict[str, float]:
    """See ``GaussianReports.published``."""
    if not isinstance(budget, ApproxDP):
        raise ArgumentError(f"budget must be ApproxDP, got {budget!r}")
    budget = divided_budget(budget, batches)
    logs = math.log(2.5 * batch / budget.delta) * math.log(2.0 / budget.delta) / batch
    if choice("level", level, LEVELS) == "local":
        logs = math.log(2.5 / budget.delta)
    std = 4.0 * math.sqrt(2.0 * logs) / budget.epsilon
    levels = math.ceil(1000.0 / std)
    return {"levels": levels, "noise": math.ceil(std * levels), **_shape(batch, features)}


def _shape(batch: int, features: int) -> dict[str, Any]:
    """The size and the bounds of x y with the upper triangle of x x', for norms at most 1."""
    d = integer("features", features, 1)
    size, bound = d + d * (d + 1) // 2, math.sqrt(2.0)
    norms = {"bound": bound, "largest": 1.0, "sensitivity": math.sqrt(4.5)}
    return {"batch": integer("batch", batch, 1), "dimension": size, **norms}


def divided_budget(budget: ApproxDP, batches: int) -> ApproxDP:
    """The budget of each of so many batches by advanced composition (Theorem E.2)."""
    if integer("batches", batches, 1) == 1:
        return budget
    epsilon = budget.epsilon / (2.0 * math.sqrt(2.0 * batches * math.log(2.0 / budget.delta)))
    return ApproxDP(epsilon, budget.delta / (2.0 * batches))


class AsPublished:
    """In a channel's place: noise not made for the budget, which keeps its epsilon with another
    delta, ``delta_at``, that may be computed after the policy has been configured.
    """

    name, takes = Certified.name, Certified.takes

    def __init__(self, delta_at: Callable[[ApproxDP], float]) -> None:
        self._delta_at = delta_at

    def calibrated(self, budget: ApproxDP, **_: Any) -> Certified:
        delta = self._delta_at(budget)
        if delta >= 0.999:
            return Certified(_NOTHING)
        return Certified(1.0 / ApproxDP(budget.epsilon, max(delta, 1e-300)).mu)
