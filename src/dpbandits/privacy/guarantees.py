"""What a policy promises, to a person and to a program.

Three notions say *from which view* a policy is private (Azize & Basu 2024, Section III); neighbours
differ in one person's row.

* **View**: the adversary sees the sequence of arms; the input is the list of observed rewards.
* **Table**: the same, where the input is the table of all potential rewards of each person, seen or
  not.  Table implies View with the same budget; the converse holds for pure DP only (Proposition
  1).
* **Interactive**: the adversary also replaces recommended arms by others of its choice, round by
  round, after seeing what was recommended.  It implies Table, and covers people who do not follow
  the recommendation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from .budgets import Budget

TrustModel = Literal["central", "local", "none"]
View = Literal["interactive", "table", "view"]

_OBSERVERS = {
    "interactive": "anyone who sees every decision and may even override recommendations",
    "table": "anyone who sees every decision",
    "view": "anyone who sees every decision, with respect to the observed rewards",
}
_TRUST = {
    "central": "The party that runs the policy sees the true rewards and is trusted with them",
    "local": (
        "Each reward is randomised before the party that runs the policy sees it; nobody is trusted"
    ),
    "none": "The party that runs the policy sees the true rewards",
}


@dataclass(frozen=True)
class Guarantee:
    """The promise of one policy; ``str`` gives it as sentences, ``to_dict`` as data.

    Attributes:
        holds: the budget that really holds, or None where nothing does.
        asked: the budget that was asked for; it differs from ``holds`` where a published
            calibration is too optimistic.
        trust_model: who has to be trusted with raw data.
        protects: which data of a person.
        view: from which view, see the module's words on Interactive, Table and View.
        unit: whose data: what differs between neighbours.
        assumptions: what has to be true, and how it is enforced.
        source: the theorem.
        caveats: reasons for which less holds than one might think.
        simulated: whether noise comes from a seeded generator: what holds then describes an
            experiment, and nobody is protected.
    """

    holds: Budget | None
    asked: Budget | None
    trust_model: TrustModel
    protects: str
    view: View
    unit: str
    assumptions: tuple[str, ...]
    source: str
    caveats: tuple[str, ...] = ()
    simulated: bool = False

    def __str__(self) -> str:
        if self.holds is None:
            promise = (
                f"This policy gives no privacy guarantee for the {self.protects} it learns from."
            )
        else:
            promise = (
                f"The {self.protects} of {self.unit} are protected with {self.holds} ({self.view}"
                f" privacy) from {_OBSERVERS[self.view]}."
            )
        sentences = [promise, _TRUST[self.trust_model] + "."]
        if self.assumptions:
            sentences.append("This assumes that " + "; ".join(self.assumptions) + ".")
        sentences += [caveat if caveat.endswith(".") else caveat + "." for caveat in self.caveats]
        if self.holds is not None:
            sentences.append(f"Proof: {self.source}.")
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """The same, for files and tables."""
        data = asdict(self)
        for name in ("holds", "asked"):
            budget = getattr(self, name)
            data[name] = (
                None if budget is None else {"notion": type(budget).__name__, **asdict(budget)}
            )
        for name in ("assumptions", "caveats"):
            data[name] = list(data[name])
        return data
