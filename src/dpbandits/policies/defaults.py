"""The default policy of each decision problem, and the reason for it.

``dpbandits reproduce equal-budget`` measures the defaults against every other policy of their
setting.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from ..privacy.budgets import Budget
from .parts import Part
from .presets import Preset
from .registry import find


@dataclass(frozen=True)
class Default:
    """The policy that a setting takes by default.

    Attributes:
        setting: the decision problem, in words.
        trust: how raw data are protected; see ``bandit``.
        policy: its name.
        why: the reason for this choice.
        arguments: arguments of the policy that differ from their defaults.
        contexts: contexts known before a choice: "none"; "fixed", features of the arms that never
            change; "public" contexts in every round; or "private" ones.
        rewards: "law", where every arm has a fixed distribution; "changing", where it may change
            now and then; or "any", without such an assumption.
        goal: see ``bandit``.
        more: "experts", "link", "horizon" (a search in so many rounds) or nothing.
    """

    setting: str
    trust: str
    policy: str
    why: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    contexts: str = "none"
    rewards: str = "law"
    goal: str = "regret"
    more: str = ""

    @property
    def stands(self) -> bool:
        """Whether plans begin with it: with experts they begin with the least bound instead."""
        return self.more != "experts"

    @property
    def central(self) -> Default:
        """The default of the same setting under central trust."""
        asked = (self.setting, "central")
        return next(one for one in DEFAULTS if (one.setting, one.trust) == asked)

    @property
    def policy_class(self) -> type[Any] | Preset:
        """The policy: a class, or a preset, which is called alike."""
        return find(self.policy)

    @property
    def call(self) -> str:
        """The call that makes the policy, without arms and budget.

        >>> from dpbandits.policies import default_for
        >>> default_for(features=3, protects="contexts and rewards", trust="local").call
        'LinearIMEDLDP(batch=100)'
        """
        return written(self.policy, self.arguments)

    def with_parts(
        self, given: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Apply the call's facts and options.  ``options`` are the policy's, and parts of its
        class.

        Returns:
            The preset to call, and its arguments by name.  If the call chooses parts, as
            ``index=KLUCB()``, the class behind the preset.  Facts in ``given`` that the policy does
            not take are left out.

        Raises:
            ArgumentError: a given argument belongs to a part that was replaced.
        """
        preset = self.policy_class
        cls = getattr(preset, "policy_class", preset)
        taken = inspect.signature(preset).parameters
        named = {name for name in taken if not isinstance(options.get(name), Part)}
        own = inspect.signature(cls).parameters.keys() - named
        parts = {name: one for name, one in options.items() if name in own}
        said = {name: one for name, one in given.items() if name in taken}
        said |= {name: one for name, one in options.items() if name not in own}
        if not parts:
            return preset, {**self.arguments, **said}
        # A fact, which an index of the call's own need not know.
        if any("horizon" in preset.places_of(name) for name in parts):
            said.pop("horizon", None)
        return cls, preset.with_parts(parts, said, self.arguments)

    def build(
        self,
        n_arms: int | None = None,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        dimension: int | None = None,
        features: ArrayLike | None = None,
        n_experts: int | None = None,
        **options: Any,
    ) -> Any:
        """Build the policy from the arguments that it takes.

        Args:
            features: the fixed features of the arms, shape (K, d).
            **options: other arguments of the policy; see ``Options``.

        Returns:
            A new ``Policy``.

        Raises:
            ArgumentError: the policy does not take such a budget, or an argument it needs is
                missing.

        See also: ``bandit``.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.policies import default_for
        >>> default_for().build(3, budget=ZCDP(1.0), seed=1).pull().arm
        0
        """
        given = {"n_arms": n_arms, "dimension": dimension, "arms": features, "horizon": horizon}
        given["n_experts"] = n_experts
        return build(self.policy_class, given, budget=budget, **{**self.arguments, **options})


def build(cls: type[Any] | Preset, given: Mapping[str, Any], **options: Any) -> Any:
    """Build a policy from all options and those given things that it takes."""
    taken = inspect.signature(cls).parameters
    return cls(**{name: value for name, value in given.items() if name in taken}, **options)


def written(name: str, arguments: Mapping[str, Any]) -> str:
    """A policy with those of its arguments that matter, as one calls it; the name alone without."""
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({given})" if given else name


_COMPARED = "The policy's regret was compared with that of others at equal budgets."
_MEASURED = (
    f"{_COMPARED} No other policy had less regret, except some that often miss the best arm"
    " (docs/defaults/measured)."
)
_MEASURED_WITH_FEATURES = (
    f"{_COMPARED} On every instance its regret was at most 1.2 times the least. Policies that often"
    " miss the best arm were left out (docs/defaults/features)."
)
_UNMEASURED = "The policy's regret was not compared with that of others."
_PRIVATE = (
    "The policy chooses arms by private features, and publishes only noisy sums."
    f" {_MEASURED_WITH_FEATURES}"
)
_LINKED = f"The policy fits a model with the given link. {_UNMEASURED}"
DISJOINT = f"Each arm has a model of its own. {_UNMEASURED}"

DEFAULTS = (
    Default(
        "finite arms",
        "central",
        "MergedIMED",
        f"Each arm's rewards follow one fixed law. {_MEASURED}",
    ),
    Default(
        "finite arms",
        "shuffle",
        "MergedIMEDSDP",
        "People's devices share the noise. Together they add no more noise than under central"
        " trust.",
    ),
    Default(
        "finite arms",
        "local",
        "LDPIMED",
        f"No party sees a true reward. {_MEASURED}",
    ),
    Default(
        "finite arms, rewards that follow no law (adversarial)",
        "central",
        "HTINF",
        f"The policy's regret bound holds for any rewards. {_COMPARED} Its largest"
        " regret over six instances was the smallest (docs/defaults/measured).",
        rewards="any",
    ),
    Default(
        "finite arms, rewards that change",
        "central",
        "DiscountedIMED",
        "Old sums lose weight, hence every arm is tried again. Where the best arm changed, no"
        " compared policy had less regret (docs/drift).",
        rewards="changing",
    ),
    Default(
        "search for the best arm",
        "central",
        "MergedTopTwo",
        "The policy stops once releases show the best arm with the allowed error probability. No"
        " other search here needed fewer rounds.",
        {"failure_probability": 0.05},
        goal="best arm",
    ),
    Default(
        "search for the best arm",
        "shuffle",
        "MergedTopTwoSDP",
        "People's devices share the noise. Together they add no more noise than under central"
        " trust. Under central trust no other search here needed fewer rounds.",
        {"failure_probability": 0.05},
        goal="best arm",
    ),
    Default(
        "search for the best arm",
        "local",
        "LDPTopTwo",
        "No party sees a true reward. It was not compared with other searches.",
        {"failure_probability": 0.05},
        goal="best arm",
    ),
    Default(
        "search for the best arm within a horizon",
        "central",
        "SequentialHalving",
        "The policy uses all rounds, and drops half of the arms in each phase. It was not compared"
        " with other searches.",
        goal="best arm",
        more="horizon",
    ),
    Default(
        "search for the best arm within a horizon",
        "shuffle",
        "SequentialHalvingSDP",
        "The policy uses all rounds, and drops half of the arms in each phase. People's devices"
        " share the noise. It was not compared with other searches.",
        goal="best arm",
        more="horizon",
    ),
    Default(
        "fixed features",
        "central",
        "MergedLinearIMED",
        f"The policy releases a few dozen sums in all. {_MEASURED_WITH_FEATURES}",
        contexts="fixed",
    ),
    Default(
        "public contexts",
        "central",
        "RSLinearIMED",
        "The policy releases a sum when features have added enough information."
        f" {_MEASURED_WITH_FEATURES}",
        contexts="public",
    ),
    Default(
        "private contexts", "central", "LinearIMEDJDP", _PRIVATE, {"batch": 50}, contexts="private"
    ),
    Default(
        "private contexts", "shuffle", "LinearIMEDSDP", _PRIVATE, {"batch": 500}, contexts="private"
    ),
    Default(
        "private contexts", "local", "LinearIMEDLDP", _PRIVATE, {"batch": 100}, contexts="private"
    ),
    Default(
        "public contexts and a link",
        "central",
        "GLMThompson",
        _LINKED,
        contexts="public",
        more="link",
    ),
    Default(
        "private contexts and a link",
        "central",
        "GLMThompsonJDP",
        _LINKED,
        contexts="private",
        more="link",
    ),
    Default(
        "private contexts and a link", "local", "LDPSGD", _LINKED, contexts="private", more="link"
    ),
    Default(
        "expert advice",
        "central",
        "ExpertConversion",
        "With up to some dozens of experts its regret was a tenth to nine tenths of that of EXP4,"
        " and at most 1.1 times that with hundreds (docs/experts).",
        {"learner": "htinf"},
        more="experts",
    ),
    Default(
        "expert advice",
        "local",
        "LocalEXP4",
        f"The policy gives more weight to experts whose advice brought high rewards. {_UNMEASURED}",
        more="experts",
    ),
)
