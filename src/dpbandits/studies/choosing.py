"""Which policy to take where several would do: by what is proved of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..algorithms import EXP4, BatchedEXP4, ExpertConversion, FrozenEXP4, LocalEXP4
from ..errors import ArgumentError
from ..policies import Policy
from ..privacy.budgets import Budget
from ..validation import flag, integer

_CANDIDATES: list[tuple[Any, dict[str, Any]]] = [
    *((ExpertConversion, {"learner": learner}) for learner in ("htinf", "exp3", "ftpl")),
    (LocalEXP4, {}),
    (FrozenEXP4, {}),
    (EXP4, {}),
    (BatchedEXP4, {"variant": "improved"}),
    (BatchedEXP4, {"variant": "published"}),
]


@dataclass(frozen=True)
class Choice:
    """What ``choose_for_experts`` returns.

    Attributes:
        policy: the one with the smallest bound, ready to be used.
        bounds: one row per policy that accepts the budget, best first: ``policy``, ``bound`` on
            regret over the horizon in units of the reward range, ``share`` of the horizon (1 or
            more says nothing), ``batch`` length.  Of equal bounds the simpler policy is first.
        left_out: policies that take the budget, but not together with the other arguments, and why
            not.
    """

    policy: Policy
    bounds: pd.DataFrame
    left_out: dict[str, str]

    @property
    def says_something(self) -> bool:
        """Whether the smallest bound is below the horizon, which every policy keeps to."""
        return bool(self.bounds["share"].iloc[0] < 1.0)


def choose_for_experts(
    n_arms: int,
    n_experts: int,
    *,
    budget: Budget | None,
    horizon: int,
    advice_changes: bool = True,
    **options: Any,
) -> Choice:
    """The policy with expert advice whose proved regret bound is smallest.

    Bounds are for the worst sequence of losses.  They are the more pessimistic the more a proof has
    to assume, so that the order of policies on milder losses may be another; simulate the best few.

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: of the policy; None for no privacy.
        horizon: number of rounds.
        advice_changes: whether experts may change their advice from round to round; False makes
            ``FrozenEXP4`` a candidate, whose bound holds where advice stands for as many rounds as
            its row's ``batch``.
        **options: see ``Options``; for all policies.

    Raises:
        ArgumentError: an argument is out of range, or no policy with expert advice takes such a
            budget.

    >>> from dpbandits import PureDP
    >>> choose_for_experts(10, 2, budget=PureDP(0.01), horizon=10**6).bounds["policy"].iloc[0]
    'ExpertConversion, exp3'
    >>> type(choose_for_experts(10, 1000, budget=PureDP(1.0), horizon=10**6).policy).__name__
    'LocalEXP4'
    """
    flag("advice_changes", advice_changes)
    integer("horizon", horizon, 1)
    found: list[tuple[float, str, Any]] = []
    refused: dict[str, ArgumentError] = {}
    for cls, own in _CANDIDATES:
        if cls is FrozenEXP4 and advice_changes:
            continue
        if budget is not None and type(budget) not in cls.card.channels:
            continue
        name = ", ".join([cls.__name__, *map(str, own.values())])
        try:
            policy = cls(n_arms, n_experts, budget=budget, horizon=horizon, **own, **options)
        except ArgumentError as error:
            refused[name] = error
            continue
        found.append((policy.regret_bound, name, policy))
    if not found and refused:
        raise next(iter(refused.values()))
    if not found:
        raise ArgumentError(
            "budget must be PureDP, ZCDP or ApproxDP for policies with expert advice, got"
            f" {budget!r}",
            "budget",
        )
    found.sort(key=lambda entry: entry[0])
    rows = [
        {"policy": name, "bound": bound, "share": bound / horizon, "batch": policy.batch}
        for bound, name, policy in found
    ]
    return Choice(
        found[0][2], pd.DataFrame(rows), {name: str(error) for name, error in refused.items()}
    )
