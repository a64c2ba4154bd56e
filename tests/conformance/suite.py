"""What the conformance suite runs on: every registered policy, and what an algorithm may add about
itself.

A registered class is in the suite by being registered.  What the registry cannot know stands in
tables: ``REFERENCES`` in ``references.py``, where every class needs a textbook implementation, of
which ``test_open_channel`` reminds; ``SMALL``, for classes whose example releases late;
``VARIANTS``, for arguments that make another algorithm of a class; ``MAPPED``, for those whose
statistic is a linear map of sums; and ``BOUNDS``, for those with a published regret theorem.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import dpbandits  # noqa: F401  (registers the algorithms)
from dpbandits.algorithms import Arms, ArmsLocal, ArmsShuffled, Linear
from dpbandits.parts import KLUCB, UCB, Discount, Fixed, Forget, Growing, Merge, Sampling, Switching
from dpbandits.policies import Policy, Preset, like, registered
from dpbandits.privacy import GDP, RDP, ZCDP, ApproxDP, Budget, Channel, Open, PureDP
from dpbandits.privacy.channels import noise_for
from dpbandits.protocol import never
from kinds import KINDS

# Constructor arguments that make a small instance release sooner than its example.
SMALL: dict[str, dict[str, Any]] = {
    name: {"failure_probability": 0.9}
    for name in (
        "DPSE",
        "DPSEBAI",
        "DPSESDP",
        "GOPE",
        "AdaCGOPE",
        "AdaRGOPEVar",
        "OutputGOPE",
        "HannaGOPE",
        "DPDPE",
    )
} | {name: {"batch": 4} for name in ("EXP4", "BatchedEXP4", "FrozenEXP4")}

# Arguments of further cases, in the suite as ``Class/value``.
VARIANTS: dict[str, list[tuple[str, Any]]] = {
    "AdaCGOPE": [("variant", "published")],
    "BatchedEXP4": [("variant", "improved")],
    "ExpertConversion": [("learner", "exp3"), ("learner", "ftpl")],
    # one class for each set of kernels
    "GLMUCB": [("models", "disjoint")],
    "GLMUCBJDP": [("models", "disjoint")],
    "LinUCBJDP": [("models", "disjoint")],
    "LinearIMED": [("models", "disjoint")],
    "LinearIMEDJDP": [("models", "disjoint")],
    "LinearThompson": [("models", "disjoint")],
    "LinearThompsonJDP": [("models", "disjoint")],
    "LDPIMED": [("horizon", 1000)],
    "MergedIMED": [("variance", "released"), ("horizon", 2000)],
    "MergedLinearIMED": [("horizon", 2000)],
    "MergedThompson": [("variance", "released")],
    "PrivateLinUCB": [("models", "disjoint")],
}

# Records of different arms move a linear map of sums differently far: the bound is that of the arm
# that moves it most, and is attained up to the rounding of the map.
MAPPED = {"AdaCGOPE", "AdaCGOPE/published", "OutputGOPE"}
ROUNDING = 1e-9

# What a record is in their sums follows from a public point, from which none may be worst: their
# sensitivity is attained in tests of their own.
LOOKED_AT = {
    "GLMThompsonJDP",
    "GLMUCBJDP",
    "GLMUCBJDP/disjoint",
    "WeightedGLMJDP",
    "WeightedGLMLDP",
    "LDPGLOC",
    "LDPSGD",
}

# Their sums weigh every record differently.  A realised sensitivity is that of the record of the
# batch which moves the sums farthest; a sensitivity for the worst case is attained where there is
# one.
REALISED = {"EXP4", "FrozenEXP4"}
WORST = {"BatchedEXP4", "BatchedEXP4/improved"}


def theorem_10(policy: Policy, gaps: np.ndarray, horizon: int) -> float:
    """Azize & Basu (2024), Theorem 10, for rewards in [0, 1] and beta > 3."""
    assert isinstance(policy.budget, ZCDP)
    beta, log = policy.params.constant, np.log(horizon)
    per_arm = (
        8 * beta / gaps * log + 8 * np.sqrt(beta / policy.budget.rho * log) + 2 * beta / (beta - 3)
    )
    return float(per_arm.sum())


class Bound(NamedTuple):
    """A published regret bound: for which arguments it holds, and its value for positive gaps."""

    arguments: dict[str, Any]
    budgets: list[Budget]
    value: Callable[[Policy, np.ndarray, int], float]


BOUNDS: dict[str, Bound] = {
    "AdaCUCB": Bound({"beta": 3.5}, [ZCDP(0.01), ZCDP(0.1), ZCDP(1.0)], theorem_10)
}


@dataclass(frozen=True)
class Case:
    """A registered class with one kind of budget."""

    cls: type[Policy]
    budget: Budget | None
    variant: tuple[tuple[str, Any], ...] = ()

    def make(self, **options: Any) -> Policy:
        given = {
            **self.cls.example,
            **SMALL.get(self.cls.__name__, {}),
            **dict(self.variant),
            **options,
        }
        return self.cls(**given, budget=self.budget)

    @property
    def policy_class(self) -> type[Policy]:
        """The class, of which a preset makes instances."""
        return getattr(self.cls, "policy_class", self.cls)

    def own(self, policy: Policy) -> Mapping[str, Any]:
        """Its arguments by this name."""
        preset = isinstance(self.cls, Preset)
        return self.cls.config_of(policy.config) if preset else policy.config

    def under(self, budget: Budget | None) -> Case:
        """The same with another budget."""
        return dataclasses.replace(self, budget=budget)

    @property
    def name(self) -> str:
        """The class, and the value that makes the variant."""
        return "/".join([self.cls.__name__, *(str(value) for _, value in self.variant)])

    @property
    def noise(self) -> Channel:
        """What a release goes through, but for its scale; known without an instance, so that nothing
        is compiled where tests are collected.
        """
        if self.budget is None:
            return Open()
        channel: Channel = noise_for(self.budget, self.cls.card.noise).calibrated(self.budget)
        return channel

    @property
    def rounding(self) -> float:
        """How far, in proportion, a distance between statistics may be off."""
        return ROUNDING if self.name in MAPPED else 0.0

    def __str__(self) -> str:
        return f"{self.name}-{type(self.budget).__name__ if self.budget else 'open'}"


def _unnamed(name: str, policy_class: Any, order: str, **template: Any) -> Preset:
    """Values of a class that together have no name, as a preset which the registry does not know."""
    return Preset(
        name=name,
        policy_class=policy_class,
        template=template,
        order=tuple(order.split()),
        example=policy_class.example,
    )


_ALPHA = {"index": like(UCB, "alpha"), "batches": Growing()}
UNNAMED = [
    _unnamed(
        "Linear/Sampling",
        Linear,
        "n_arms dimension horizon counter inflation",
        explore=like(Sampling, "inflation"),
        updates=Switching(1.0),
        models="shared",
    ),
    _unnamed(
        "Arms/UCB-Forget",
        Arms,
        "n_arms alpha",
        **_ALPHA | {"memory": Forget(), "batches": Fixed(40)},
    ),
    _unnamed("Arms/UCB-Discount", Arms, "n_arms alpha", **_ALPHA, memory=Discount(1000)),
    _unnamed(
        "Arms/KLUCB-Forget", Arms, "n_arms", index=KLUCB(), memory=Forget(), batches=Growing()
    ),
    _unnamed(
        "ArmsShuffled/KLUCB",
        ArmsShuffled,
        "n_arms messages dropout",
        index=KLUCB(),
        memory=Merge(),
        batches=Growing(),
    ),
    _unnamed("ArmsLocal/KLUCB", ArmsLocal, "n_arms growth reports", index=KLUCB()),
    _unnamed("ArmsLocal/UCB", ArmsLocal, "n_arms alpha growth reports", index=like(UCB, "alpha")),
]
CLASSES: list[Any] = [*registered().values(), *UNNAMED]
CASES = [
    Case(cls, budget, variant)
    for cls in CLASSES
    for variant in ((), *((argument,) for argument in VARIANTS.get(cls.__name__, [])))
    for budget in (*cls.example_budgets(), None)
]
# all but what is here to be reproduced without its claim
CLAIMED = [case for case in CASES if not case.cls.card.refuted_because]
PRIVATE = [case for case in CLAIMED if case.budget is not None]
FIRST_OF_CLASS = [next(case for case in CASES if case.cls is cls) for cls in CLASSES]


def _distinct(cases: Iterable[Case], key: Callable[[Case], Any]) -> list[Case]:
    """The first case of each kind."""
    found: dict[Any, Case] = {}
    for case in cases:
        found.setdefault(key(case), case)
    return list(found.values())


FIRST_OF_NAME = _distinct(CASES, lambda case: case.name)  # a variant is another name

OF_KINDS = [str(case) for case in FIRST_OF_CLASS if case.cls.__name__ in KINDS]


def _door(case: Case) -> Any:
    """What decides how a policy meets whoever calls it: the class, unless its parts do."""
    card, kernels = case.cls.card, case.cls.kernels
    ways = card.learns_at_once, card.hides_contexts, kernels.skips_closed, kernels.stop is never
    return case.policy_class, case.cls.sees, ways


# For what callers meet: arguments that all policies take, answers, contexts and advice.
BY_CLASS = _distinct(sorted(FIRST_OF_CLASS, key=lambda case: str(case) not in OF_KINDS), _door)


def _but_for_choices(case: Case) -> Any:
    """What two names share whose policies differ in how they choose alone."""
    kernels = vars(case.cls.kernels).items()
    rest = tuple(one for name, one in kernels if name not in ("choose", "prepare"))
    return case.policy_class, case.cls.card.randomised, rest


# For what has nothing to do with how a policy chooses: crashes, users who return, what is booked.
BY_MACHINE = _distinct(
    sorted(FIRST_OF_CLASS, key=lambda case: str(case) not in OF_KINDS), _but_for_choices
)
# The same under a budget of every notion: for what is spent.
BY_NOTION = _distinct(
    sorted(PRIVATE, key=lambda case: str(case) not in OF_KINDS),
    lambda case: (_but_for_choices(case), type(case.budget)),
)
EPISODIC = [case for case in BY_MACHINE if not case.cls.card.learns_at_once]
AT_ONCE = [case for case in BY_MACHINE if case.cls.card.learns_at_once]

# One budget for each noise that an algorithm is played with, and for each norm of its sensitivity.
BY_FAMILY = _distinct(CASES, lambda case: (case.name, case.noise.family))
PRIVATE_BY_FAMILY = [case for case in BY_FAMILY if case in PRIVATE]
BY_NORM = _distinct(CLAIMED, lambda case: (case.name, case.noise.norm))


CONTEXTUAL = [case for case in CASES if case.cls.sees == "contexts"]
ADVISED = [case for case in CASES if case.cls.sees == "advice"]
INFORMED = CONTEXTUAL + ADVISED


def over(cases: Iterable[Case], *, short: Iterable[str] | None = None) -> pytest.MarkDecorator:
    """One test for each case, which are long but for those whose name, of the class or with the kind
    of budget, is in ``short``.

    One process runs all tests of a class, so that its kernels are compiled, and loaded, once.
    """
    named, marked = None if short is None else set(short), []
    for case in cases:
        marks = [pytest.mark.xdist_group(case.cls.__name__)]
        if not (named is None or {case.name, str(case)} & named):
            marks.append(pytest.mark.long)
        marked.append(pytest.param(case, marks=marks))
    return pytest.mark.parametrize("case", marked, ids=str)


def gaussian_mu_of(budget: Budget) -> float:
    """The mu of the Gaussian release that a budget allows."""
    if isinstance(budget, ZCDP):
        return float(np.sqrt(2 * budget.rho))
    if isinstance(budget, RDP):
        return float(np.sqrt(2 * budget.epsilon / budget.alpha))
    assert isinstance(budget, ApproxDP | GDP)
    return budget.mu


def scaled(budget: Budget | None, factor: float) -> Budget:
    """A budget of the same notion, ``factor`` times as large."""
    if isinstance(budget, ZCDP):
        return ZCDP(budget.rho * factor)
    assert isinstance(budget, PureDP)
    return PureDP(budget.epsilon * factor)
