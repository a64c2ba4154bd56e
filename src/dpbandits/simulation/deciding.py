"""After how many people it is decided which arm is best, in simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ..environments.base import ArmsEnvironment, World
from ..errors import ArgumentError
from ..policies import HeldOut, Policy
from ..policies.sums import no_intervals
from ..validation import real, shown


class Question(NamedTuple):
    """The arguments of ``Policy.decided``."""

    confidence: float
    gap: float = 0.0

    @classmethod
    def of(cls, given: object) -> Self | None:
        """The question that a confidence, or a table of both arguments, asks; None for None."""
        if given is None:
            return None
        told = given if isinstance(given, Mapping) else {"confidence": given}
        if not {"confidence"} <= set(told) <= set(cls._fields):
            raise ArgumentError(
                "decided must be a confidence, or a table of confidence and gap, got"
                f" {shown(given)}",
                "decided",
            )
        confidence = real("decided", told["confidence"], 0.0, 1.0, strict=True)
        return cls(confidence, real("decided", told.get("gap", 0.0), 0.0))

    def fits(self, policy: Policy, environment: World) -> bool:
        """Whether the policy can answer, and the environment knows what is right."""
        known = isinstance(environment, ArmsEnvironment) and policy.n_arms > 1
        return known and not no_intervals(policy)

    def answer(self, of: Policy | HeldOut) -> int | None:
        """The arm that is decided; None where none is."""
        if isinstance(of, HeldOut) and of.one_sum:
            found = of.decided(self.confidence, gap=self.gap)
            return found.arm if found.decided else None
        leader, sums = of._leader, of.estimates.sums
        if leader is None or sums is None or not sums.decides(leader, self.confidence, self.gap):
            return None
        return leader


class Answer(NamedTuple):
    """The first answer of a run: after how many rounds it came, and the arm; nan without one."""

    rounds: float = np.nan
    arm: float = np.nan


class Watch:
    """Asks a question at recorded rounds of a run, until it is answered."""

    def __init__(self, question: Question, policy: Policy) -> None:
        self._question = question
        self._asked: dict[str, Policy | HeldOut] = {"": policy}
        if policy.holdout is not None:
            self._asked["holdout_"] = policy.holdout
        self._seen = dict.fromkeys(self._asked, 0)  # releases
        self.answers = dict.fromkeys(self._asked, Answer())

    def look(self, rounds: int) -> None:
        """Ask whether it is decided, where there are new releases."""
        for name, of in self._asked.items():
            releases = of.ledger.releases
            if np.isnan(self.answers[name].rounds) and releases > self._seen[name]:
                arm, self._seen[name] = self._question.answer(of), releases
                if arm is not None:
                    self.answers[name] = Answer(rounds, arm)


def columns(
    answers: Sequence[Mapping[str, Answer] | None], question: Question | None, environment: World
) -> dict[str, Any]:
    """The columns on answers of a table of runs; none where nobody asked, or can answer."""
    known = [one for one in answers if one is not None]
    if question is None or not known or not isinstance(environment, ArmsEnvironment):
        return {}
    means, found = environment.means(), dict[str, Any]()
    for name in known[0]:
        rounds, arms = np.array([one[name] for one in known]).T
        # An arm is wrong if another one's mean is higher by the gap, or without one as high.
        best = np.array([np.delete(means, a).max() for a in range(len(means))])
        wrong = best - means >= question.gap
        found[f"{name}decided"] = rounds
        found[f"{name}decided_wrong"] = [float(a >= 0.0 and wrong[int(a)]) for a in arms]
    return found
