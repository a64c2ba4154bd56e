"""Guarantees of policies, as sentences for people and as data for programs.

A guarantee says *from which view* a policy is private; neighbours differ in one unit's data.  Three
views are for policies with public decisions (Azize & Basu 2024, Section III):

* **View**: the adversary sees the sequence of arms; the input is the list of observed rewards.
* **Table**: the same, where the input is the table of all potential rewards of each person, seen or
  not.  Table implies View at the same budget; the converse holds for pure DP only (Proposition 1).
* **Interactive**: the adversary also replaces recommended arms by others of its choice, round by
  round, after seeing the recommendation.  It implies Table, and covers people who take another arm.

Where contexts are private, a decision is a function of them, and goes to its person alone:

* **Joint**: the adversary sees all but the decisions of that one unit (Shariff & Sheffet 2018).
* **Anticipating joint**: the same where arms are overridden up to and including that unit's round.
  So later decisions do not depend on the arm that would have been chosen for it.
* **Shuffle**: the adversary sees the shuffler's output, without order or identity.

An estimate that is learnt once, from a table of people, has no rounds:

* **Non-interactive**: the adversary sees all published values, including the estimate (joint
  privacy of non-interactive algorithms, Chen, Li, Rakhlin & Simchi-Levi 2025).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..html import Html, glance
from .budgets import Budget
from .meaning import Meaning

TrustModel = Literal["central", "local", "shuffle", "none"]
Protects = Literal["rewards", "contexts and rewards", "features and outcomes"]
View = Literal[
    "interactive", "table", "view", "joint", "anticipating joint", "shuffle", "non-interactive"
]
Unit = Literal["round", "user", "person"]

_OBSERVERS = {
    "interactive": "anyone who sees every decision, and may even override decisions",
    "table": "anyone who sees every decision",
    "view": "anyone who sees every decision, with respect to the observed rewards",
    "joint": "anyone who sees all releases and all decisions except {decisions}",
    "anticipating joint": (
        "anyone who sees all releases and all decisions except {decisions}, and who may override"
        " all decisions up to and including {decisions}"
    ),
    "shuffle": "anyone who sees all messages that leave the shuffler",
    "non-interactive": "anyone who sees what is published",
}
_TRUST = {
    "central": (
        "The party that runs the {algorithm} sees the true {protects} and is trusted with them"
    ),
    "local": (
        "The {protects} of each person are randomised before the party that runs the {algorithm} "
        "sees them; a person trusts their own device alone"
    ),
    "shuffle": (
        "The party that runs the policy sees shuffled messages. The shuffler is trusted to remove "
        "order and identity. The people of a batch are trusted to add noise"
    ),
    "none": "The party that runs the {algorithm} sees the true {protects}",
}
_BUDGETS = ("holds", "asked")
_LISTS = ("assumptions", "caveats")


@dataclass(frozen=True)
class Guarantee:
    """The guarantee of one policy; ``str`` gives it as sentences, ``to_dict`` as data.

    Attributes:
        holds: the budget that really holds, or None where nothing does.
        asked: the budget that was asked for; it differs from ``holds`` where a published
            calibration is too optimistic.
        trust_model: the party that is trusted with raw data.
        protects: the protected data of a person.
        view: the adversary's view; see the docstring of this module.
        unit: the unit whose data differ between neighbours.
        assumptions: the assumptions, and how each is enforced.
        source: the theorem, or where the proof stands.
        caveats: limits of the guarantee that readers might overlook.
        simulated: whether noise comes from a seeded generator.  The guarantee then describes an
            experiment, and does not protect anyone.
        secure_needs: what else the policy needs to take secure noise, as "messages=True"; empty
            where nothing.
    """

    holds: Budget | None
    asked: Budget | None
    trust_model: TrustModel
    protects: Protects
    view: View
    unit: Unit
    assumptions: tuple[str, ...]
    source: str
    caveats: tuple[str, ...] = ()
    simulated: bool = False
    secure_needs: str = ""

    def __str__(self) -> str:
        return self.in_words(self._holds, *([self.means] if self.holds else []))

    @property
    def _holds(self) -> str:
        return "nothing" if self.holds is None else self.holds.shown()

    @property
    def _algorithm(self) -> str:
        return "estimator" if self.view == "non-interactive" else "policy"

    @property
    def observers(self) -> str:
        """The observers that the data are protected from."""
        seen = _OBSERVERS[self.view].format(decisions=f"this {self.unit}'s")
        reports = self.trust_model == "local"  # whose noise protects them from the operator, too
        return (
            seen.replace("every decision", "every report and every decision") if reports else seen
        )

    @property
    def trust(self) -> str:
        """The parties that see raw data, and have to be trusted with them."""
        return _TRUST[self.trust_model].format(protects=self.protects, algorithm=self._algorithm)

    def promise(self, budget: str) -> str:
        """What the first sentences say, with these words for the budget that holds."""
        if self.holds is None:
            nothing = f"This {self._algorithm} gives no privacy guarantee for the {self.protects}"
            return f"{nothing} that it learns from."
        who, end = f"{self.protects} of one {self.unit}", f"({self.view} privacy)."
        protected = f"protected with {budget} from {self.observers} {end}"
        if self.simulated:
            nobody = "The noise is simulated and protects nobody"
            needs = f"{self.secure_needs} and " if self.secure_needs else ""
            return f"{nobody}. With {needs}secure noise, the {who} would be {protected}"
        return f"The {who} are {protected}"

    def in_words(self, budget: str, *means: str) -> str:
        """As sentences, with the given words for the budget and, if any, for its meaning."""
        sentences = [self.promise(budget), *means, self.trust + "."]
        if self.assumptions:
            several = len(self.assumptions) > 1
            numbered = [
                f"({i}) {one}" if several else one for i, one in enumerate(self.assumptions, 1)
            ]
            sentences.append(f"This assumes that {'; '.join(numbered)}.")
        sentences += [f"{caveat.rstrip('.')}." for caveat in self.caveats]
        if self.holds is not None:
            sentences.append(f"Proof: {self.source}.")
        return " ".join(sentences)

    @property
    def means(self) -> str:
        """The meaning of the budget that holds, in two numbers; see ``Meaning``."""
        return Meaning.of(self.holds).sentence(self.protects, self.unit)

    def _repr_html_(self) -> Html:
        asked = "" if self.holds == self.asked else f"; asked for: {self.asked}"
        nobody = "; simulated noise, which protects nobody" if self.simulated else ""
        rows = [
            ["holds", f"{self._holds}{asked}{nobody}"],
            ["protects", f"the {self.protects} of one {self.unit}"],
            ["from", self.observers],
            ["in other words", self.means],
            ["trust", self.trust],
            *(["assumes", assumption] for assumption in self.assumptions),
            *(["mind", caveat] for caveat in self.caveats),
        ]
        if self.holds is not None:
            return glance("Guarantee", [], [*rows, ["proof", self.source]])
        return glance("No guarantee", [], rows[4:])

    def to_dict(self) -> dict[str, Any]:
        """Write this guarantee for files and tables.

        Returns:
            Its attributes by name: budgets as of ``Budget.to_dict``, or None, and tuples as lists.
        """
        budgets = {name: getattr(self, name) for name in _BUDGETS}
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        written = {name: budget and budget.to_dict() for name, budget in budgets.items()}
        return {**vars(self), **written, **lists}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """The guarantee that ``to_dict`` wrote."""
        budgets = {name: data[name] and Budget.from_dict(data[name]) for name in _BUDGETS}
        return cls(**{**data, **budgets, **{name: tuple(data[name]) for name in _LISTS}})
