"""Decision problems in the words of ``bandit``, ``Setting``, ``plan`` and study files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..session.options import arm_names
from ..tables import features as feature_matrix
from ..validation import choice, integer, shown
from .defaults import DEFAULTS, DISJOINT, Default

TRUST = ("central", "shuffle", "local")
PROTECTS = ("rewards", "contexts and rewards")
GOALS = ("regret", "best arm")
Names = Sequence[str]
_OWN = {"models": "disjoint"}
_CLASHES = {  # words, and others that no policy here serves with them
    "experts": ("features", "person"),
    "drift": ("features", "person", "experts", "goal"),
    "goal": ("features", "person", "experts"),
}


@dataclass(frozen=True, eq=False)
class DecisionProblem:
    """A decision problem, as far as its default policy depends on it.  See ``bandit`` for the
    words.

    Raises:
        ArgumentError: a word is out of range, or two do not go together.

    >>> DecisionProblem(3, trust="local").default.policy
    'LDPIMED'
    """

    arms: int | Names
    features: int | ArrayLike | None = None
    person: int | None = None
    experts: int | None = None
    link: str | None = None
    protects: str = "rewards"
    trust: str = "central"
    goal: str = "regret"
    drift: int | str | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        self._check_arms()
        choice("trust", self.trust, TRUST)
        choice("protects", self.protects, PROTECTS)
        choice("goal", self.goal, GOALS)
        for name in ("person", "experts", "horizon"):
            if (given := getattr(self, name)) is not None:
                self._set(name, integer(name, given, 1))
        if self.features is not None:
            fixed = np.ndim(self.features) > 0
            read = feature_matrix if fixed else integer
            args = () if fixed else (1,)
            self._set("features", read("features", self.features, *args))
        if self.drift is not None and self.drift != "any":
            if isinstance(self.drift, str | float):
                raise ArgumentError(
                    "drift must be the number of rounds between changes of the best arm, 'any'"
                    f" if rewards follow no law (adversarial), or None, got {self.drift!r}",
                    "drift",
                )
            self._set("drift", integer("drift", self.drift, 1))
        self._check_together()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_arms(self) -> None:
        listed = isinstance(self.arms, list | tuple)
        if not listed and not isinstance(self.arms, Integral):
            raise ArgumentError(
                f"arms must be a number, or a list of names, got {shown(self.arms)}", "arms"
            )
        if listed:
            self._set("arms", arm_names(self.arms, "arms"))
            if not self.arms:
                raise ArgumentError("arms must hold at least one name, got an empty list", "arms")
        else:
            self._set("arms", integer("arms", self.arms, 1, 10**6))

    def _check_together(self) -> None:
        fixed = self.contexts == "fixed"
        if isinstance(self.features, np.ndarray) and len(self.features) != self.n_arms:
            raise ArgumentError(f"features must have {self.n_arms} rows, one per arm", "features")
        if self.features is not None and self.person is not None:
            raise ArgumentError(
                f"person must not be given with features, got {self.person}: give features if"
                " numbers describe each arm, and person if they describe only the person",
                "person",
            )
        seen = self.features is not None or self.person is not None
        if self.protects != "rewards" and (fixed or not seen):
            raise ArgumentError(
                "features or person must be given for protects='contexts and rewards', as the"
                " number of features of each arm or of each person",
                "features",
            )
        if self.link is not None and (fixed or not seen):
            raise ArgumentError(
                f"link must be given with features or person, got {self.link!r}: a link is a"
                " function of features",
                "link",
            )
        words = ("features", "person", "experts", "drift")
        said = {name for name in words if getattr(self, name) is not None}
        said |= {"goal"} if self.goal != "regret" else set()
        for name, clashing in _CLASHES.items():
            others = [other for other in clashing if other in said]
            if name in said and others:
                raise ArgumentError(
                    f"{name}={getattr(self, name)!r} cannot be combined with {others[0]}: no policy"
                    " here serves both",
                    name,
                )

    # What follows -----------------------------------------------------------------------------

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.arms if isinstance(self.arms, int) else len(self.arms)

    @property
    def arm_names(self) -> Names | None:
        """The names of the arms; None without names."""
        return None if isinstance(self.arms, int) else self.arms

    @property
    def dimension(self) -> int | None:
        """The number of features of a person, or of each arm in a round."""
        return self.features if isinstance(self.features, int) else self.person

    @property
    def contexts(self) -> str:
        """As ``Default.contexts``."""
        if self.features is None and self.person is None:
            return "none"
        if isinstance(self.features, np.ndarray):
            return "fixed"
        return "public" if self.protects == "rewards" else "private"

    @property
    def rewards(self) -> str:
        """As ``Default.rewards``."""
        return {None: "law", "any": "any"}.get(self.drift, "changing")  # type: ignore[arg-type]

    @property
    def default(self) -> Default | None:
        """The default; None where there is none."""
        found = [one for one in self._fitting if one.trust == self.trust]
        if not found:
            return None
        one = found[0]
        arguments = {**one.arguments, **self._told}
        if arguments == one.arguments:
            return one
        own = {**vars(one), "arguments": arguments}
        if self.person is not None:
            own["why"] = DISJOINT
            if one.policy == "RSLinearIMED":  # which has one model alone
                own["policy"] = "LinearIMED"
        return Default(**own)

    @property
    def _told(self) -> dict[str, Any]:
        own: dict[str, Any] = dict(_OWN) if self.person is not None else {}
        if self._bends:
            own["link"] = self.link
        if isinstance(self.drift, int):
            own["rounds_per_change"] = self.drift
        return own

    @property
    def _bends(self) -> bool:
        """Whether mean rewards are no linear function of features."""
        return self.link not in (None, "identity")

    @property
    def _fitting(self) -> list[Default]:
        """The defaults of the setting, for every kind of trust."""
        so_many_rounds = self.goal == "best arm" and self.horizon is not None
        more = "experts" if self.experts is not None else "link" if self._bends else ""
        more = "horizon" if so_many_rounds else more
        asked = (self.contexts, self.rewards, self.goal, more)
        return [one for one in DEFAULTS if (one.contexts, one.rewards, one.goal, one.more) == asked]

    @property
    def title(self) -> str:
        """The decision problem, in words."""
        return self._fitting[0].setting

    def the_default(self) -> Default:
        """The default.

        Raises:
            ArgumentError: there is none; the message says under whose trust there is one.
        """
        found = self.default
        if found is not None:
            return found
        allowed = " or ".join(repr(one.trust) for one in self._fitting)
        raise ArgumentError(
            f"trust must be {allowed} for {self.title}, got {self.trust!r}", "trust"
        )

    @property
    def given(self) -> dict[str, Any]:
        """The facts that constructors of policies may require."""
        fixed = self.contexts == "fixed"
        drift = self.drift if isinstance(self.drift, int) else None
        found = {
            "n_arms": self.n_arms,
            "dimension": self.dimension,
            "n_experts": self.experts,
            "arms": self.features if fixed else None,
            "link": self.link,
            "rounds_per_change": drift,
            "horizon": self.horizon,
        }
        return {name: value for name, value in found.items() if value is not None}


def default_for(arms: int | Names = 2, **words: Any) -> Default:
    """Find the default policy of a setting, in the words of ``bandit``.

    Returns:
        A ``Default``: the policy and its reasons.

    Raises:
        ArgumentError: a word is out of range, or there is no policy for this.

    See also: ``bandit``, ``plan``.

    >>> default_for().policy
    'MergedIMED'
    """
    return DecisionProblem(arms, **words).the_default()
