"""The policies and budgets that a result compares; its tables refer to them by keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..plotting.labels import NO_GUARANTEE, budget_label
from ..plotting.styles import PlotStyle, PolicyFacts, plot_styles
from ..policies import Holdout, Part, Policy
from ..privacy.budgets import Budget, Currency
from ..privacy.guarantees import Guarantee
from .clipping import clipping_range


@dataclass(frozen=True)
class PolicySetting:
    """One policy at one budget.

    Attributes:
        policy: its key in the tables of a result: its name, or its class and arguments.
        class_name: of the algorithm.
        name: the user's name for it; None without one.
        arguments: its configuration, apart from the budget, the name, and options at their default;
            a table of arms as a digest.
        reward_range: the range that rewards are clipped to; None where they are not.
        currency, limit: the currency of ``spent``, and its limit; None where no budget holds.
        guarantee: the guarantee of simulated runs.
    """

    policy: str
    class_name: str
    name: str | None
    arguments: Mapping[str, Any]
    reward_range: tuple[float, float] | None
    currency: Currency | None
    limit: float | None
    guarantee: Guarantee

    @classmethod
    def of(cls, policy: Policy) -> PolicySetting:
        """The setting of a policy."""
        meter = policy.meter
        return cls(
            policy=policy.label,
            class_name=policy.preset,
            name=policy.name,
            arguments=policy.arguments,
            reward_range=clipping_range(policy),
            currency=None if meter is None else meter.currency,
            limit=None if meter is None else meter.limit,
            guarantee=policy.guarantee_in_simulations,
        )

    @property
    def configuration(self) -> str:
        """Class and arguments, as a call in Python."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.class_name}({given})"

    @property
    def budget(self) -> Budget | None:
        """The budget that was asked for."""
        return self.guarantee.asked

    @property
    def holds(self) -> Budget | None:
        """The budget that really holds in its place."""
        return self.guarantee.holds

    @property
    def keys(self) -> dict[str, str]:
        """The values of the columns ``policy``, ``budget`` and ``holds`` of a result's tables."""
        budgets = {"budget": self.budget, "holds": self.holds}
        return {"policy": self.policy, **{name: str(b or "none") for name, b in budgets.items()}}

    def to_dict(self) -> dict[str, Any]:
        """Write the setting as JSON data.

        Returns:
            Its attributes by name; parts and the guarantee in the form of their ``to_dict``.
        """
        own = {
            name: value.to_dict() if isinstance(value, Part | Holdout) else value
            for name, value in self.arguments.items()
        }
        return {**vars(self), "arguments": own, "guarantee": self.guarantee.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PolicySetting:
        """The setting that ``to_dict`` wrote, after a way through JSON."""
        given = {name: _with_tuples(value) for name, value in data.items()}
        if "holdout" in given["arguments"]:
            given["arguments"]["holdout"] = Holdout(**given["arguments"]["holdout"])
        return cls(**{**given, "guarantee": Guarantee.from_dict(data["guarantee"])})


SettingsByKey = dict[tuple[str, str], PolicySetting]


def keyed(settings: Iterable[PolicySetting]) -> SettingsByKey:
    """Settings by the values of the columns ``policy`` and ``budget``."""
    return {(one.keys["policy"], one.keys["budget"]): one for one in settings}


def policy_styles(settings: SettingsByKey) -> dict[str, PlotStyle]:
    """Labels and plot styles of the policies of a result, by their keys."""
    facts = {}
    for one in settings.values():
        alike = [other for other in settings.values() if other.policy == one.policy]
        facts[one.policy] = PolicyFacts(one.class_name, one.arguments, one.name, _remark(alike))
    return plot_styles(facts)


def with_budget_labels(table: pd.DataFrame, settings: SettingsByKey) -> pd.DataFrame:
    """A table with a column ``budget_label``: how its budgets are written and drawn."""
    labels = {one.keys["budget"]: budget_label(one.budget) for one in settings.values()}
    return table.assign(budget_label=table["budget"].map(labels))


def _remark(settings: list[PolicySetting]) -> str:
    """A remark in legends: that no promise holds, or whom the policy trusts, if not its host."""
    private = [one for one in settings if one.budget is not None]
    if private and all(one.holds is None for one in private):
        return NO_GUARANTEE
    trusted = {one.guarantee.trust_model for one in settings} & {"local", "shuffle"}
    return ", ".join(sorted(trusted))


def _with_tuples(value: Any) -> Any:
    """JSON data with tuples for lists, which have none of their own."""
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    if isinstance(value, dict):
        if "kind" in value:
            return Part.from_dict(value)
        return {name: _with_tuples(part) for name, part in value.items()}
    return value
