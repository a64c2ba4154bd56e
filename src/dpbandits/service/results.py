"""What goes into an experiment and comes out of it: requests, replies, and their problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from .problems import Problem
from .replies import Remembered


class Decided(NamedTuple):
    """The reply to a request for a decision."""

    decision_id: str
    token: str
    arm: int
    arm_name: str | None
    propensity: float | None
    recorded: bool
    active: bool
    answer_by: str | None
    held_out: bool


class Taken(NamedTuple):
    """The reply to a reward: whether the policy learns from it, and why not."""

    learned: bool
    why: str | None = None


class Traffic(NamedTuple):
    """How many decisions the policy had made by the first tick of a minute."""

    minute: int  # since the epoch
    decisions: int
    recorded: int


class Asked(NamedTuple):
    """A request for a decision."""

    decision_id: str | None = None
    unit: str | int | None = None
    contexts: Any = None
    advice: Any = None
    available: Sequence[str | int] | None = None
    targets: Mapping[str, str | int] | None = None
    deferred: bool = False
    body: bytes = b""  # by which a repeated request is recognised


def unknown() -> Problem:
    """The problem of a decision that is not the experiment's."""
    return Problem(404, "unknown-decision", "There is no such decision in this experiment.")


def reused(word: str) -> Problem:
    """The problem of an id that came with another request."""
    return Problem(409, "id-reused", f"{word} was used with another request; choose a new one.")


def late() -> Problem:
    """The problem of a reward that comes after its deadline."""
    return Problem(410, "too-late", "The deadline of the decision has passed.")


def cancelled(known: Remembered) -> Problem | None:
    """The problem of a decision that counts as not made; None for others."""
    if known.is_cancelled:
        return Problem(410, "cancelled", "The decision was cancelled.")
    return None


def written(moment: float) -> str:
    """A time as text."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
