"""What is to be decided, as far as it is known before the first round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..environments import (
    AdviceEnvironment,
    ArmsEnvironment,
    Bernoulli,
    ContextEnvironment,
    Environment,
    LoggedTrial,
)
from ..errors import ArgumentError
from ..policies import Default, default_for
from ..policies.defaults import CONTEXTS
from ..simulation.simulating import what_is_shown
from ..tables import features, flat, frozen
from ..tables.manners import parameters
from ..validation import choice, flag, integer, real

TRUST = ("central", "shuffle", "local")
REWARDS = ("law", "changing", "any")


@dataclass(frozen=True, eq=False)
class Setting:
    """What a plan is for.  Of an environment, ``Setting.of`` knows most of it.

    Attributes:
        n_arms: number of arms.
        trust_model: who may see raw rewards: "central", whoever runs the policy; "shuffle" or
            "local", nobody.
        contexts: what is known before a choice: "none"; "fixed", features of the arms that never
            change; "public" contexts in every round; or "private" ones.
        dimension: of public or private contexts.
        features: of the arms where they are fixed, shape (K, d).
        n_experts: how many experts give advice; None without.
        standing_advice: whether experts keep to their advice for as many rounds as a batch has.
        rewards: "law", where every arm has one; "changing", where it may change now and then; or
            "any", where nobody promised that.
        rounds_per_change: about how often it changes; None where nobody knows.
        best_arm: whether the best arm is searched, and not reward.
        failure_probability: of a search.
        gaps: of stationary arms without contexts of every round, shape (K,); known to bounds.
        link: of generalised linear means; None where nobody told.
        environment: to simulate, or to read bounds off; by default of gaps one with rewards 0 or 1
            around 1/2, the noisiest that there are.

    Raises:
        ArgumentError: an argument is out of range, or two do not go together.

    Example:
        >>> Setting(4, trust_model="shuffle").default.policy
        'MergedIMEDSDP'
        >>> Setting.of(Bernoulli([0.5, 0.6])).gaps.round(1).tolist()
        [0.1, 0.0]
    """

    n_arms: int
    trust_model: str = "central"
    contexts: str = "none"
    dimension: int | None = None
    features: Any = None
    n_experts: int | None = None
    standing_advice: bool = False
    rewards: str = "law"
    rounds_per_change: int | None = None
    best_arm: bool = False
    failure_probability: float = 0.05
    gaps: Sequence[float] | np.ndarray | None = None
    link: str | None = None
    environment: Environment | None = None

    def __post_init__(self) -> None:
        integer("n_arms", self.n_arms, 1)
        choice("trust_model", self.trust_model, TRUST)
        choice("contexts", self.contexts, CONTEXTS)
        choice("rewards", self.rewards, REWARDS)
        flag("standing_advice", self.standing_advice)
        flag("best_arm", self.best_arm)
        real("failure_probability", self.failure_probability, 0.0, 1.0, strict=True)
        for name in ("dimension", "n_experts", "rounds_per_change"):
            if (given := getattr(self, name)) is not None:
                integer(name, given, 1)
        if self.features is not None:
            self._set("features", features("features", self.features))
        if self.gaps is not None:
            self._set("gaps", self._checked_gaps())
        self._check_together()
        if self.environment is None and self.gaps is not None:
            self._set("environment", Bernoulli(0.5 + np.max(self.gaps) / 2.0 - self.gaps))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _checked_gaps(self) -> np.ndarray:
        gaps = flat("gaps", self.gaps, parameters(low=0.0), rows=self.n_arms)
        if gaps.min() != 0.0:
            raise ArgumentError(
                f"gaps must hold {self.n_arms} numbers, the least of them 0, got {gaps.min():g} for"
                " the least",
                "gaps",
            )
        return frozen(gaps)

    def _check_together(self) -> None:
        plain = self.contexts == "none" and self.rewards == "law" and not self.best_arm
        if self.n_experts is not None and not plain:
            raise ArgumentError(
                "n_experts must not be given with contexts, with a search for the best arm, or with"
                f" what is said of rewards, which advice needs no law of, got {self.n_experts}",
                "n_experts",
            )
        if self.n_experts is None and self.standing_advice:
            raise ArgumentError(
                "standing_advice is for experts: n_experts must be given", "n_experts"
            )
        if (self.dimension is not None) != (self.contexts in ("public", "private")):
            raise ArgumentError(
                "dimension must be given with public or private contexts only", "dimension"
            )
        if self.gaps is not None and self.shows != "no contexts":
            raise ArgumentError(
                f"gaps must not be given where the setting shows {self.shows}: nobody could say"
                " what is seen before a choice",
                "gaps",
            )
        if (self.features is not None) != (self.contexts == "fixed"):
            raise ArgumentError(
                "features must be given with fixed contexts, and with no others", "features"
            )
        if self.features is not None and len(self.features) != self.n_arms:
            raise ArgumentError(f"features must have {self.n_arms} rows, one per arm", "features")
        if self.rewards != "law" and (self.contexts != "none" or self.best_arm):
            raise ArgumentError(
                "rewards must be 'law' where there are features or contexts, or a search for the"
                f" best arm, got {self.rewards!r}",
                "rewards",
            )
        if self.rounds_per_change is not None and self.rewards != "changing":
            raise ArgumentError(
                "rounds_per_change must be given with changing rewards only", "rounds_per_change"
            )
        world = self.simulated
        if world is not None and (world.n_arms, what_is_shown(world)) != (self.n_arms, self.shows):
            raise ArgumentError(
                f"environment must have {self.n_arms} arms and show {self.shows}, got {world!r}",
                "environment",
            )
        if self.best_arm and (self.contexts != "none" or self.trust_model != "central"):
            raise ArgumentError(
                "best_arm must be False with contexts, and where whoever runs the policy is not to"
                " be trusted, got True",
                "best_arm",
            )

    @classmethod
    def of(cls, environment: Environment, **known: Any) -> Self:
        """The setting of an environment, with what is not to be seen in it: ``trust_model``, that
        contexts are "private", ``best_arm``, and so on; see ``Setting``.

        Arms that have no law of their own count as "any" rewards, or "changing" where regret is
        against the best arm of every round; contexts count as "public", but for those of a log,
        which policies may go without.
        """
        if not isinstance(environment, Environment):
            raise ArgumentError(
                f"environment must be an Environment, got {environment!r}", "environment"
            )
        return cls(environment.n_arms, **{**_seen(environment), **known}, environment=environment)

    @cached_property
    def default(self) -> Default | None:
        """The default of the setting; None where it has none."""
        if self.n_experts is not None:
            return None
        try:
            return default_for(
                trust_model=self.trust_model,
                random=self.rewards != "any",
                contexts=self.contexts,
                drifting=self.rewards == "changing",
                searching=self.best_arm,
            )
        except ArgumentError:
            return None

    @property
    def shows(self) -> str:
        """What a policy sees before it chooses, as ``what_is_taken`` calls it."""
        if self.n_experts is not None:
            return "advice"
        return "contexts" if self.contexts in ("public", "private") else "no contexts"

    @property
    def simulated(self) -> ArmsEnvironment | ContextEnvironment | None:
        """What can be simulated of it: nothing without an environment, or of a log."""
        world = self.environment
        return world if isinstance(world, ArmsEnvironment | ContextEnvironment) else None

    @property
    def in_words(self) -> str:
        """The setting as one says it."""
        if self.n_experts is not None:
            return f"expert advice, {self.trust_model} trust"
        found = default_for(
            random=self.rewards != "any",
            contexts=self.contexts,
            drifting=self.rewards == "changing",
            searching=self.best_arm,
        )
        return f"{found.setting}, {self.trust_model} trust"

    def arguments(self, horizon: int) -> dict[str, Any]:
        """What constructors of policies may ask for, as far as it is known."""
        given = {
            "n_arms": self.n_arms,
            "dimension": self.dimension,
            "n_experts": self.n_experts,
            "arms": self.features,
            "horizon": horizon,
            "link": self.link,
            "rounds_per_change": self.rounds_per_change,
            "failure_probability": self.failure_probability if self.best_arm else None,
        }
        return {name: value for name, value in given.items() if value is not None}


def _seen(world: Environment) -> dict[str, Any]:
    """What an environment shows of its setting."""
    if isinstance(world, AdviceEnvironment):
        return {"n_experts": world.n_experts}
    if isinstance(world, ContextEnvironment):
        link = getattr(world, "link", None)
        told = "identity" if link is None and world.parameter is not None else link and link.name
        return {"contexts": "public", "dimension": world.dimension, "link": told}
    if isinstance(world, LoggedTrial):
        return {}
    gaps = getattr(getattr(world, "state", None), "gaps", None)
    if gaps is None:
        return {"rewards": "changing" if getattr(world, "regret_is_dynamic", False) else "any"}
    shown = getattr(world, "features", None)
    return {"gaps": gaps} if shown is None else {"contexts": "fixed", "features": shown}
