"""The policies that a setting can take at a budget, and why the others are left out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..algorithms import Adversarial, FrozenEXP4
from ..policies import Policy, Preset, registered
from ..policies.defaults import written
from ..privacy.budgets import Budget
from ..protocol import no_arm
from ..simulation.simulating import what_is_taken
from .setting import Setting

# Arguments that make another policy of a class; no entry: as it is.  Learners of a conversion of
# arms are classes of their own.
_VARIANTS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "BatchConversion": (),
    "ExpertConversion": tuple({"learner": one} for one in ("htinf", "exp3", "ftpl")),
    "BatchedEXP4": tuple({"variant": one} for one in ("improved", "published")),
}
_SAID = {"arms": "the features of its arms"}


@dataclass(frozen=True)
class Candidate:
    """A policy for a setting, with any budget."""

    cls: Any
    arguments: Mapping[str, Any] = field(default_factory=dict)  # beyond what the setting says

    @property
    def title(self) -> str:
        """Its name in tables, such as "EXP3(batch=5)"."""
        return written(self.cls.__name__, self.arguments)

    def build(
        self, setting: Setting, budget: Budget | None, horizon: int, **options: Any
    ) -> Policy:
        """The policy itself."""
        given = {**setting.arguments(horizon), **self.arguments, **options}
        taken = inspect.signature(self.cls).parameters
        own = {name: one for name, one in given.items() if name in taken or name in options}
        policy: Policy = self.cls(**own, budget=budget)
        return policy


def candidates(setting: Setting, budget: Budget | None) -> tuple[list[Candidate], dict[str, str]]:
    """The policies that fit, and the reason for each class that does not.

    All get the sizes of batches that the default of the setting gets.

    >>> from dpbandits import ZCDP
    >>> fitting, left_out = candidates(Setting(3, trust="local"), ZCDP(1.0))
    >>> [one.title for one in fitting], left_out["MergedIMED"]
    (['LDPIMED', 'LDPUCB'], 'the party that runs it sees raw rewards')
    """
    usual = {} if setting.default is None else setting.default.arguments
    known = setting.arguments(horizon=1)
    fitting: list[Candidate] = []
    left_out: dict[str, str] = {}
    for name, cls in registered().items():
        if reason := misfit(cls, setting, budget) or unsuited(cls, setting):
            left_out[name] = reason
            continue
        variants = _VARIANTS.get(name, ({},))
        if not variants:
            left_out[name] = "its learners are policies of their own"
        taken = inspect.signature(cls).parameters
        told = {name: value for name, value in usual.items() if name in taken.keys() - known.keys()}
        fitting += [Candidate(cls, {**told, **own}) for own in variants]
    return fitting, left_out


def misfit(cls: type[Policy] | Preset, setting: Setting, budget: Budget | None) -> str | None:
    """Why policies of a class do not fit, for any law of rewards; None where they do."""
    card = cls.card
    if (taken := what_is_taken(cls)) != setting.shows:
        return f"takes {taken}, but the setting has {setting.shows}"
    if (cls.kernels.recommend is not no_arm) != setting.best_arm:
        return "plays for reward" if setting.best_arm else "searches for the best arm"
    if card.refuted_because:
        return f"gives no guarantee: {card.refuted_because}"
    if budget is not None and not card.noise:
        return "has no privacy"
    if budget is not None and not card.takes(type(budget)):
        return f"takes only {' or '.join(sorted(one.__name__ for one in card.notions))}"
    if reason := _of_trust(cls, setting):
        return reason
    if card.noise and card.hides_contexts != (setting.contexts == "private"):
        if card.hides_contexts:
            return "hides contexts, too, at the price of more noise"
        return "hides rewards, not contexts"
    if missing := _needed(cls) - {"budget", *setting.arguments(horizon=1)}:
        return f"needs {', '.join(_SAID.get(name, name) for name in sorted(missing))}"
    return None


def unsuited(cls: type[Policy] | Preset, setting: Setting) -> str | None:
    """Why policies of a class are not for such rewards; None where they are."""
    if setting.experts is not None:
        stands = cls is not FrozenEXP4 or setting.standing_advice
        return None if stands else "its bound needs advice that stays the same within a batch"
    any_rewards = getattr(cls, "policy_class", cls) is Adversarial
    if setting.rewards == "law":
        return (
            "is for rewards that follow no law (adversarial), at the price of more regret"
            if any_rewards
            else None
        )
    if any_rewards:
        return None
    if setting.rewards == "changing" and "rounds_per_change" in inspect.signature(cls).parameters:
        return None
    never = " that never changes" if setting.rewards == "changing" else ""
    return f"assumes one law for each arm{never}"


def _of_trust(cls: Any, setting: Setting) -> str | None:
    trust, asked = cls.card.trust_model, setting.trust
    if trust in ("none", asked):
        return None
    if asked == "central":
        # Where experts are many, noise on every reward costs least.
        if cls.sees == "advice":
            return None
        return "also protects from the party that runs it, at the price of more noise"
    if trust == "central":
        return "the party that runs it sees raw rewards"
    return (
        "needs a shuffler"
        if trust == "shuffle"
        else "needs no shuffler, at the price of more noise"
    )


def _needed(cls: Any) -> set[str]:
    """The arguments that the constructor requires."""
    return {
        name
        for name, one in inspect.signature(cls).parameters.items()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    }
