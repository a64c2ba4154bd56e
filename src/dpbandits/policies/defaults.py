"""Which policy to take where nothing speaks for another: one for each setting, by its name.

``dpbandits reproduce equal-budget`` measures them against every other policy of the setting.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import ArgumentError
from ..privacy.budgets import Budget
from ..validation import choice, flag
from .registry import registered


@dataclass(frozen=True)
class Default:
    """The policy that a setting takes by default.

    Attributes:
        setting: what is to be decided, in words.
        trust_model: who has to be trusted with raw rewards; see ``Card``.
        random: whether rewards are drawn from one law per arm.
        policy: name of the class.
        arguments: of its constructor, where they are not the usual ones.
    """

    setting: str
    trust_model: str
    random: bool
    policy: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def policy_class(self) -> Any:
        """The class itself."""
        return registered()[self.policy]

    @property
    def call(self) -> str:
        """How the policy is written, apart from arms and budget.

        >>> Default("", "central", True, "AdaCUCB", {"forget": False}).call
        'AdaCUCB(forget=False)'
        """
        return written(self.policy, self.arguments)

    def build(
        self, n_arms: int, *, budget: Budget | None, horizon: int | None = None, **options: Any
    ) -> Any:
        """The policy itself.

        Args:
            n_arms: number of arms.
            budget: of the policy; None for no privacy.
            horizon: number of rounds, for policies that take one.
            **options: see ``Options``.

        Raises:
            ArgumentError: the policy does not take such a budget, or needs a horizon.

        >>> from dpbandits import ZCDP
        >>> default_for().build(3, budget=ZCDP(1.0), seed=1).pull().arm
        0
        """
        return build(self.policy_class, self.arguments, n_arms, budget, horizon, **options)


def build(
    cls: Any,
    arguments: Mapping[str, Any],
    n_arms: int,
    budget: Budget | None,
    horizon: int | None,
    **options: Any,
) -> Any:
    """A policy for finite arms, with the horizon where it takes one."""
    own = dict(arguments)
    if "horizon" in inspect.signature(cls).parameters:
        own["horizon"] = horizon
    return cls(n_arms=n_arms, budget=budget, **own, **options)


def written(name: str, arguments: Mapping[str, Any]) -> str:
    """A policy with those of its arguments that matter, as one calls it; the name alone without."""
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({given})" if given else name


DEFAULTS = (
    Default("finite arms", "central", True, "MergedIMED"),
    Default("finite arms", "shuffle", True, "MergedIMEDSDP"),
    Default("finite arms", "local", True, "LDPIMED"),
    Default("finite arms, rewards that follow no law", "central", False, "HTINF"),
)


def default_for(*, trust_model: str = "central", random: bool = True) -> Default:
    """What to take for finite arms.

    Args:
        trust_model: "central", "shuffle" or "local".
        random: whether rewards are drawn from one law per arm; False where nobody promised that.

    Raises:
        ArgumentError: there is no policy for this.

    >>> default_for().policy
    'MergedIMED'
    """
    choice("trust_model", trust_model, ("central", "shuffle", "local"))
    flag("random", random)
    for one in DEFAULTS:
        if (one.trust_model, one.random) == (trust_model, random):
            return one
    raise ArgumentError(
        f"trust_model must be 'central' for rewards that follow no law, got {trust_model!r}",
        "trust_model",
    )
