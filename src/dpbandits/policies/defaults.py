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
from .registry import find

CONTEXTS = ("none", "fixed", "public", "private")


@dataclass(frozen=True)
class Default:
    """The policy that a setting takes by default.

    Attributes:
        setting: what is to be decided, in words.
        trust_model: who has to be trusted with raw rewards; see ``Card``.
        random: whether rewards are drawn from one law per arm.
        policy: name of the class.
        arguments: of its constructor, where they are not the usual ones.
        contexts: what is known before a choice: "none"; "fixed", features of the arms that never
            change; "public" contexts in every round; or "private" ones.
        drifting: whether that law may change now and then.
        searching: whether the best arm is to be found, and not reward.
    """

    setting: str
    trust_model: str
    random: bool
    policy: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    contexts: str = "none"
    drifting: bool = False
    searching: bool = False

    @property
    def central(self) -> Default:
        """The default of the same setting under central trust."""
        return default_for(
            random=self.random,
            contexts=self.contexts,
            drifting=self.drifting,
            searching=self.searching,
        )

    @property
    def policy_class(self) -> Any:
        """The class itself."""
        return find(self.policy)

    @property
    def call(self) -> str:
        """How the policy is written, apart from arms and budget.

        >>> Default("", "central", True, "AdaCUCB", {"forget": False}).call
        'AdaCUCB(forget=False)'
        """
        return written(self.policy, self.arguments)

    def build(
        self,
        n_arms: int | None = None,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        dimension: int | None = None,
        features: Any = None,
        **options: Any,
    ) -> Any:
        """The policy itself.

        Args:
            n_arms: number of arms; not needed with features.
            budget: of the policy; None for no privacy.
            horizon: number of rounds, for policies that take one.
            dimension: of contexts.
            features: of the arms, shape (K, d), where they are fixed.
            **options: other arguments of the policy; see ``Options``.

        Raises:
            ArgumentError: the policy does not take such a budget, or needs what was not given.

        >>> from dpbandits import ZCDP
        >>> default_for().build(3, budget=ZCDP(1.0), seed=1).pull().arm
        0
        """
        given = {"n_arms": n_arms, "dimension": dimension, "arms": features, "horizon": horizon}
        return build(self.policy_class, given, budget=budget, **{**self.arguments, **options})


def build(cls: Any, given: Mapping[str, Any], **options: Any) -> Any:
    """A policy with what it takes of the things given, and all options."""
    taken = inspect.signature(cls).parameters
    return cls(**{name: value for name, value in given.items() if name in taken}, **options)


def written(name: str, arguments: Mapping[str, Any]) -> str:
    """A policy with those of its arguments that matter, as one calls it; the name alone without."""
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({given})" if given else name


DEFAULTS = (
    Default("finite arms", "central", True, "MergedIMED"),
    Default("finite arms", "shuffle", True, "MergedIMEDSDP"),
    Default("finite arms", "local", True, "LDPIMED"),
    Default("finite arms, rewards that follow no law", "central", False, "HTINF"),
    Default("finite arms, rewards that change", "central", True, "DiscountedIMED", drifting=True),
    Default(
        "search for the best arm",
        "central",
        True,
        "MergedTopTwo",
        {"failure_probability": 0.05},
        searching=True,
    ),
    Default("fixed features", "central", True, "MergedLinearIMED", contexts="fixed"),
    Default("public contexts", "central", True, "RSLinearIMED", contexts="public"),
    Default(
        "private contexts", "central", True, "LinearIMEDJDP", {"batch": 50}, contexts="private"
    ),
    Default(
        "private contexts", "shuffle", True, "LinearIMEDSDP", {"batch": 500}, contexts="private"
    ),
    Default("private contexts", "local", True, "LinearIMEDLDP", {"batch": 100}, contexts="private"),
)


def default_for(
    *,
    trust_model: str = "central",
    random: bool = True,
    contexts: str = "none",
    drifting: bool = False,
    searching: bool = False,
) -> Default:
    """What to take in a setting.

    Args:
        trust_model: "central", "shuffle" or "local".
        random: whether rewards are drawn from one law per arm, or given contexts from one per arm
            and context; False where nobody promised that.
        contexts: "none"; "fixed", features of the arms that never change; "public" or "private"
            contexts in every round.
        drifting: whether the law of an arm may change now and then, so that another one becomes the
            best.
        searching: whether the best of finite arms is to be found, and not reward.

    Raises:
        ArgumentError: there is no policy for this.

    >>> default_for().policy
    'MergedIMED'
    >>> default_for(contexts="private", trust_model="local").call
    'LinearIMEDLDP(batch=100)'
    """
    choice("trust_model", trust_model, ("central", "shuffle", "local"))
    choice("contexts", contexts, CONTEXTS)
    flag("random", random)
    if flag("drifting", drifting) and not (random and contexts == "none"):
        raise ArgumentError(
            "drifting must be False where there are features or contexts, or rewards follow no law,"
            " got True",
            "drifting",
        )
    if flag("searching", searching) and (drifting or not (random and contexts == "none")):
        raise ArgumentError(
            "searching must be False where there are features or contexts, or rewards change or"
            " follow no law, got True",
            "searching",
        )
    asked = (random, contexts, drifting, searching)
    found = [
        one for one in DEFAULTS if (one.random, one.contexts, one.drifting, one.searching) == asked
    ]
    if not found:
        raise ArgumentError(
            "random must be True where there are features or contexts, got False", "random"
        )
    for one in found:
        if one.trust_model == trust_model:
            return one
    raise ArgumentError(
        f"trust_model must be 'central' for {found[0].setting}, got {trust_model!r}", "trust_model"
    )
