"""The decision problem, as far as it is known before the first round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..environments import Bernoulli, Environment, LoggedTrial
from ..environments.base import AdviceEnvironment, ContextEnvironment, World
from ..errors import ArgumentError
from ..policies.problem import DecisionProblem
from ..simulation.simulating import what_is_shown
from ..tables import flat, frozen
from ..tables.manners import parameters
from ..validation import flag, real


@dataclass(frozen=True, eq=False)
class Setting(DecisionProblem):
    """The decision problem of a plan, in the words of ``bandit``, and further known facts.
    ``Setting.of`` derives most of it from an environment.

    Attributes:
        arms, features, person, experts, link, protects, trust, goal, drift, horizon: as of
            ``bandit``.
        changing: whether the best arm may change, also where the number of changes is unknown.
        standing_advice: whether the advice of an expert stays the same within a batch.
        failure_probability: of a search for the best arm.
        gaps: the best mean minus each arm's mean, shape (K,), for stationary arms without contexts
            of every round.  Bounds use them.
        environment: used in simulations and bounds.  By default, gaps give one with rewards 0 or 1
            and means around 1/2, which have the most variance.

    Raises:
        ArgumentError: an argument is out of range, or two do not go together.

    Example:
        >>> Setting(4, trust="shuffle").default.policy
        'MergedIMEDSDP'
        >>> Setting.of(Bernoulli([0.5, 0.6])).gaps.round(1).tolist()
        [0.1, 0.0]
    """

    changing: bool = False
    standing_advice: bool = False
    failure_probability: float = 0.05
    gaps: Sequence[float] | np.ndarray | None = None
    environment: Environment | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        flag("changing", self.changing)
        flag("standing_advice", self.standing_advice)
        real("failure_probability", self.failure_probability, 0.0, 1.0, strict=True)
        if self.gaps is not None:
            gaps = flat("gaps", self.gaps, parameters(low=0.0), rows=self.n_arms)
            if gaps.min() != 0.0:
                raise ArgumentError(
                    f"gaps must be 0 for the best arm, got {gaps.min():g} as the smallest gap",
                    "gaps",
                )
            self._set("gaps", frozen(gaps))
        self._check_beside()
        if self.environment is None and self.gaps is not None:
            self._set("environment", Bernoulli(0.5 + np.max(self.gaps) / 2.0 - self.gaps))

    def _check_beside(self) -> None:
        if self.experts is None and self.standing_advice:
            raise ArgumentError(
                "standing_advice must be False without experts, got True", "standing_advice"
            )
        if self.changing and (self.contexts != "none" or self.goal != "regret"):
            raise ArgumentError(
                "changing must be False where there are features, or a search for the best arm, got"
                " True",
                "changing",
            )
        if self.gaps is not None and self.shows != "no contexts":
            what = "the experts' advice" if self.shows == "advice" else "the features of a round"
            raise ArgumentError(
                f"gaps must not be given where the setting has {self.shows}, because gaps do not"
                f" determine {what}",
                "gaps",
            )
        world = self.simulated
        if world is not None and (world.n_arms, what_is_shown(world)) != (self.n_arms, self.shows):
            raise ArgumentError(
                f"environment must have {self.n_arms} arms and {self.shows}, got {world!r}",
                "environment",
            )

    @property
    def rewards(self) -> str:
        return "changing" if self.changing and self.drift is None else super().rewards

    @classmethod
    def of(cls, environment: Environment, **known: Any) -> Self:
        """The setting of an environment.

        Pass what the environment does not tell as arguments: ``trust``, ``protects``, ``goal`` and
        so on; see ``Setting``.

        Returns:
            A ``Setting``.  Arms without a fixed law count as "any" rewards, or as "changing" where
            regret is against the best arm of every round.  Contexts count as "public". Those of a
            log are optional.

        Raises:
            ArgumentError: ``environment`` is no ``Environment``, or a word is wrong.
        """
        if not isinstance(environment, Environment):
            raise ArgumentError(
                f"environment must be an Environment, got {environment!r}", "environment"
            )
        return cls(environment.n_arms, **{**_seen(environment), **known}, environment=environment)

    @property
    def shows(self) -> str:
        """The contexts that a policy sees before it chooses, in the words of ``what_is_taken``."""
        if self.experts is not None:
            return "advice"
        return "contexts" if self.contexts in ("public", "private") else "no contexts"

    @property
    def simulated(self) -> World | None:
        """The environment to simulate; None without one, and for a log."""
        return self.environment if isinstance(self.environment, World) else None

    @property
    def in_words(self) -> str:
        """The setting in words."""
        return f"{self.title}, {self.trust} trust"

    @property
    def best_arm(self) -> bool:
        """Whether the best arm is searched, and not reward."""
        return self.goal == "best arm"

    def arguments(self, horizon: int) -> dict[str, Any]:
        """The facts that constructors of policies may require, as far as they are known."""
        searched = {"failure_probability": self.failure_probability} if self.best_arm else {}
        return {**self.given, "horizon": horizon, **searched}


def gaps_of(world: Environment | None) -> np.ndarray | None:
    """The gaps of the arms of an environment, where each arm has one law; else None."""
    return getattr(getattr(world, "state", None), "gaps", None)


def _seen(world: Environment) -> dict[str, Any]:
    """The facts of a setting that an environment shows."""
    if isinstance(world, AdviceEnvironment):
        return {"experts": world.n_experts}
    if isinstance(world, ContextEnvironment):
        link = getattr(world, "link", None)
        told = "identity" if link is None and world.parameter is not None else link and link.name
        return {"features": world.dimension, "link": told}
    if isinstance(world, LoggedTrial):
        return {}
    if (gaps := gaps_of(world)) is None:
        changing = getattr(world, "regret_is_dynamic", False)
        return {"changing": True} if changing else {"drift": "any"}
    shown = getattr(world, "features", None)
    return {"gaps": gaps} if shown is None else {"features": shown}
