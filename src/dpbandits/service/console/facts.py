"""What pages show of an experiment, gathered by the owner at one moment.

``diagnostics`` and ``repeats`` depend on rewards that were not released, so they are the
operator's.  All else is public where the guarantee holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from ...errors import ArgumentError
from ...inference import Intervals
from ...policies import Estimates, HeldOut, Policy
from ...privacy import Budget, Guarantee, Ledger
from ...session import Diagnostics
from .. import views
from ..declaration import Change, Declaration
from ..experiment import Experiment, Verdicts
from ..problems import Problem
from ..results import Traffic, written


class Held(NamedTuple):
    """The facts of held-out people: estimates, or with one sum the effect of the second arm; and
    the values of targets.
    """

    words: str
    estimates: Estimates
    effect: Intervals | None
    values: Intervals | None
    ledger: Ledger

    @classmethod
    def of(cls, held: HeldOut) -> Self:
        """The facts of now."""
        effect = views.effect_of(held) if held.one_sum else None
        values = held.values() if held.targets else None
        return cls(str(held), held.estimates, effect, values, held.ledger.copy())


@dataclass(frozen=True)
class Facts:
    """An experiment as its pages show it.

    Attributes:
        summary: as ``views.summary``.
        serves: what requests for decisions get, in a sentence.
        verdicts: whether it is decided which arm is best.
        breaks: what the intervals of estimates do not cover.
        changes: the words that the file declares otherwise.
        changes_arms: whether arms can be retired and added.
    """

    summary: dict[str, Any]
    serves: str
    declaration: Declaration
    guarantee: Guarantee
    ledger: Ledger
    spent: Budget | None
    holdout: Held | None
    verdicts: Verdicts
    estimates: Estimates
    breaks: list[str]
    traffic: tuple[Traffic, ...]
    trail: list[dict[str, Any]]
    changes_arms: bool
    changes: list[Change]
    diagnostics: Diagnostics
    repeats: int

    @classmethod
    def of(cls, one: Experiment, now: float) -> Self:
        """The facts of now."""
        policy = one.policy
        return cls(
            summary=views.summary(one),
            serves=_serves(one, now),
            declaration=one.declaration,
            guarantee=policy.guarantee,
            ledger=policy.ledger.copy(),
            spent=policy.spent,
            holdout=None if policy.holdout is None else Held.of(policy.holdout),
            verdicts=one.verdicts,
            estimates=policy.estimates,
            breaks=views.breaks(one),
            traffic=tuple(one.traffic),
            trail=one.trail.lines,
            changes_arms=_changes_arms(policy),
            changes=one.changes,
            diagnostics=policy.diagnostics,
            repeats=one.clients.repeats,
        )

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return str(self.summary["name"])

    @property
    def title(self) -> str:
        """What pages call it."""
        return self.declaration.title or self.name


def moment(when: str | None) -> str:
    """A time for people."""
    return "" if when is None else when.replace("T", " ").replace("+00:00", " UTC")


def _changes_arms(policy: Policy) -> bool:
    try:
        policy._refuse_masks("arm", "retired")
        policy._refuse_comparison()
    except ArgumentError:
        return False
    return True


def _serves(one: Experiment, now: float) -> str:
    if one.finished is not None:
        return "It is finished. Nothing private is left, and these pages stay."
    if one.finishes is not None:
        until = moment(written(one.finishes))
        return f"It makes no more decisions, and takes rewards until {until}. Then it finishes."
    try:
        arm = one.fixed_arm(now)
    except Problem as problem:
        return f"Requests are refused: {problem.detail}"
    if one.policy._serving:
        return f"People's devices choose. The service takes their {one.policy._serving}."
    if arm is None:
        return "Requests get the arms that the policy chooses."
    return f"All requests get the baseline, {one.declaration.baseline}."
