"""``conclude``: the report of a trial, from released values and public facts alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..html import Html, Section, page, tag
from ..inference import Differences, Intervals, Verdict, asked
from ..inspection import inspect
from ..policies import Policy
from ..policies.privacy_card import schedule
from ..policies.sums import CHOSEN, COUNTED, counts_answers, no_intervals, what_breaks
from ..privacy.budgets import Budget
from ..privacy.guarantees import Guarantee
from ..stores import Place
from ..validation import real
from .checklist import Item
from .found import Found, found_in
from .sections import (
    OF_LEADER,
    answer_of,
    checklist_of,
    effects_of,
    failure_probability_of,
    search_of,
    sections_of,
    values_of,
)

_NO_EFFECT = (
    "No difference is called an effect: arms were chosen by earlier results, and played at"
    " different times. The trial has no randomised holdout."
)
_ELSEWHERE = (
    "These differences are not called effects: arms were chosen by earlier results, and played at"
    " different times. The holdout has effects."
)
_WIDTHS = (
    "The policy learns each answer when it comes, so this report shows no counts. But intervals"
    " depend on the number of answers. Anyone who also sees the decisions can compute from them"
    " about how many answers of each arm are missing. No noise hides this."
)


@dataclass(frozen=True, eq=False, repr=False)
class Conclusion:
    """The report of a trial, from ``conclude``: as text, a page, or data.

    It has released values and public facts alone.  So its text, page and data may be shown to
    anyone where the guarantee holds.  They have no counts of late or missing answers, and no counts
    of arms where contexts are private.  If the policy learns each answer when it comes, its rounds
    and releases count answers, and the report does not show them.  There the report says what the
    widths of intervals tell of missing answers.

    Attributes:
        policy: the call that makes it.
        title: the policy, in a line.
        arms: their names.
        retired: the arms that were retired.
        rounds: the number of recorded rounds; None where it is that of answers.
        releases: how many there were; None likewise.
        guarantee: the privacy guarantee.
        spent: the largest privacy loss of any person; None for nothing, or without a budget.
        warning: that the place may lack later releases; empty where it has all.
        confidence: of each family of intervals.
        means: of the arms; None where no interval is proved.
        differences: to the control, or of the leader to others; None where there are none.
        decided: whether it is decided which arm is best, or better than the control; None where no
            interval is proved, for one arm, and for a search that promises an error of its own.
        control: the declared control; None without one.
        leader: the arm with the highest mean of those still played, or which a search recommends;
            None where unknown.
        search: sentences on a search for the best arm; empty where there was none.
        failure_probability: that a search was asked for; None without one.
        reason: why there are no intervals; empty where there are.
        answers: when releases were made, and what became of late and missing answers.
        effects: whether a difference may be called an effect.
        holdout: differences of held-out people; None without a holdout.
        values: what the holdout's targets would have earned; None without targets.
        breaks: sentences on what breaks the intervals.
        checklist: the items of ACE, and where this report has them.
        sections: all that the report says.
    """

    policy: str
    title: str
    arms: Sequence[str]
    retired: Sequence[str]
    rounds: int | None
    releases: int | None
    guarantee: Guarantee
    spent: Budget | None
    warning: str
    confidence: float
    means: Found | None
    differences: Found | None
    decided: Verdict | None
    control: str | None
    leader: str | None
    search: Sequence[str]
    failure_probability: float | None
    reason: str
    answers: str
    effects: str
    holdout: Intervals | None
    values: Intervals | None
    breaks: Sequence[str]
    checklist: Sequence[Item]
    sections: Sequence[Section]

    def __repr__(self) -> str:
        shown = self.differences or self.means
        level = f"{100.0 * self.confidence:.4g} % intervals"
        found = f"no intervals: {self.reason}" if shown is None else f"{level}: {shown.ends}"
        return f"<Conclusion of {self.policy}: {found}>"

    def __str__(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> Html:
        parts = (one.glance() for one in self.sections)
        return tag("div", tag("b", f"Report of {self.policy}"), *parts)

    def html(self) -> str:
        """A page of its own, which needs nothing else, and prints."""
        heading = [tag("h1", "Report of a trial"), tag("p", tag("code", self.policy))]
        return page(f"Report of {self.policy}", *heading, *(one.html() for one in self.sections))

    def markdown(self) -> str:
        """The report as Markdown."""
        heading = ["# Report of a trial", f"`{self.policy}`"]
        return "\n\n".join([*heading, *(one.markdown() for one in self.sections)]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The report as data.

        Returns:
            Attributes by name, without ``sections``.  Intervals are lists of dictionaries, with
            None for nan.
        """
        plain = {name: value for name, value in vars(self).items() if name != "sections"}
        return {
            **{k: list(v) if isinstance(v, tuple | list) else v for k, v in plain.items()},
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent and self.spent.to_dict(),
            "means": self.means and self.means.to_dict(),
            "differences": self.differences and self.differences.to_dict(),
            "decided": self.decided and answer_of(self.decided),
            "holdout": self.holdout and self.holdout.to_dict(),
            "values": self.values and self.values.to_dict(),
            "checklist": [item._asdict() for item in self.checklist],
        }


def conclude(
    of: Policy | str | os.PathLike[str] | Place,
    control: int | str | None = None,
    confidence: float = 0.95,
) -> Conclusion:
    """Report the end of a trial, or its present state, from released values alone.

    With a control, all other arms are compared with it, and the error is divided among these
    differences.  Without one, the arm that leads is compared with all others.  Then the releases
    choose the comparison, and the error is divided among all pairs of arms.

    Args:
        of: a policy, or a place that keeps one, which is only read.
        control: an arm, by number or name, that was chosen before the trial.
        confidence: the probability that none of the arms' intervals is ever wrong, and that none of
            those of the differences is.

    Returns:
        A ``Conclusion``.

    Raises:
        ArgumentError: an argument is out of range.
        StateFileError, FileNotFoundError, StoreError: as of ``inspect``.

    See also: ``Policy.intervals``, ``inspect``.

    Example:
        >>> import dpbandits as dpb
        >>> policy = dpb.bandit(["old", "new"], budget=dpb.ZCDP(0.5), seed=1)
        >>> for person in range(2000):
        ...     decision = policy.pull()
        ...     _ = policy.update(float(decision.name == "new"), decision)
        >>> dpb.conclude(policy, control="old").differences.intervals
        <95 % intervals after 20 releases: new - old: 0.1089 to 1>
    """
    if isinstance(of, Policy):
        return _concluded(of, control, confidence, "")
    seen = inspect(of)
    return _concluded(seen._policy, control, confidence, seen.facts.get("warning", ""))


def _concluded(
    policy: Policy, control: int | str | None, confidence: float, warning: str
) -> Conclusion:
    confidence = real("confidence", confidence, 0.0, 1.0, strict=True)
    with policy._lock:
        arms = policy.arm_names or [str(a) for a in range(policy.n_arms)]
        number = policy.session.arms.number
        pairs = asked(None, control, policy.n_arms, number)
        against = None if control is None else arms[number("control", control)]
        estimates, ended = policy.estimates, policy.session.choices.found()
        leader = policy._leader
        if pairs is None and leader is not None and policy.n_arms > 1:
            pairs = Differences.of_leader(leader, policy.n_arms)
        breaks, means, differences = list(what_breaks(policy)), None, None
        counted = not counts_answers(policy)
        if not counted:
            breaks[breaks.index(COUNTED)] = _WIDTHS
        if estimates.sums is not None:
            given = (estimates.sums, confidence, arms, estimates.releases, counted)
            means = found_in(*given, None)
            differences = None if pairs is None else found_in(*given, pairs)
            if differences and control is None:
                breaks[breaks.index(CHOSEN)] = OF_LEADER
            for one in (means, differences):
                breaks += one.intervals.breaks if one else []
        facts: dict[str, Any] = {
            "policy": policy.heading,
            "title": policy.card.title,
            "arms": tuple(arms),
            "retired": tuple(arms[a] for a in policy.retired),
            "rounds": policy.rounds if counted else None,
            "releases": policy.ledger.releases if counted else None,
            "guarantee": policy.guarantee,
            "spent": policy.spent,
            "warning": warning,
            "confidence": confidence,
            "means": means,
            "differences": differences,
            "decided": policy._verdict(confidence, control),
            "control": against,
            "leader": None if leader is None else arms[leader],
            "search": tuple(search_of(policy, ended and arms[ended.arm])),
            "failure_probability": failure_probability_of(policy),
            "reason": no_intervals(policy),
            "answers": schedule(policy),
            "effects": _NO_EFFECT if policy.holdout is None else _ELSEWHERE,
            "holdout": effects_of(policy, control, confidence),
            "values": values_of(policy, confidence),
            "breaks": tuple(breaks) if means else (),
            "checklist": tuple(checklist_of(policy, bool(means), bool(ended))),
        }
        return Conclusion(**facts, sections=tuple(sections_of(policy, facts)))
