"""Decision problems in the words of the front door, and the default policy for each.

The words are those of ``bandit``, ``Setting``, ``plan`` and study files.  ``dpbandits reproduce
equal-budget`` measures the defaults against every other policy of their setting.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..privacy.budgets import Budget
from ..session.options import arm_names
from ..tables import features as feature_matrix
from ..validation import choice, integer, shown
from .parts import Part
from .presets import Preset
from .registry import find

TRUST = ("central", "shuffle", "local")
PROTECTS = ("rewards", "contexts and rewards")
GOALS = ("regret", "best arm")
Names = Sequence[str]


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
_DISJOINT = f"Each arm has a model of its own. {_UNMEASURED}"
_OWN = {"models": "disjoint"}
_CLASHES = {  # words, and others that no policy here serves with them
    "experts": ("features", "person"),
    "drift": ("features", "person", "experts", "goal"),
    "goal": ("features", "person", "experts"),
}

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
            own["why"] = _DISJOINT
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
