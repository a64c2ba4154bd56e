"""What a client sends and receives, as the service's OpenAPI document describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, Self

import msgspec
from msgspec import Struct

from ..errors import ArgumentError

Arm = str | int  # its name or number


class Decision(Struct, frozen=True):
    """The reply to a request for a decision.

    Attributes:
        decision_id: by which the service knows it.
        token: the service's own id of it; empty if the client decided itself.
        arm: its number; None in a fallback that was given by name.
        arm_name: None if arms have no names.
        propensity: the probability of the arm; None if it is not known.
        recorded: whether the policy will learn from the reward.
        active: whether a reward may come; False for deferred decisions until they are activated.
        answer_by: the deadline of the reward; None without one on a clock.
        held_out: whether the person is in the holdout, and got an arm by chance.
    """

    decision_id: str
    token: str
    arm: int | None
    arm_name: str | None
    propensity: float | None
    recorded: bool
    active: bool
    answer_by: datetime | None
    held_out: bool = False

    @classmethod
    def fallback(cls, decision_id: str, arm: Arm) -> Self:
        """The decision that a client makes when the service is not there."""
        number, name = (None, arm) if isinstance(arm, str) else (arm, None)
        return cls(decision_id, "", number, name, None, False, True, None)

    @property
    def choice(self) -> Arm:
        """The arm to serve: its name, or its number if arms have no names."""
        choice = self.arm if self.arm_name is None else self.arm_name
        assert choice is not None  # a decision has one of them
        return choice

    @property
    def is_local(self) -> bool:
        """Whether the client decided itself."""
        return not self.token


class RewardReply(Struct, frozen=True):
    """Whether the policy learns from a reward, and why not."""

    learned: bool
    why: str | None = None


class DecisionRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for a decision.

    Attributes:
        unit: the person, by a name or number that is always the same.
        contexts: features: a row for each arm, or one vector; lists or arrays.
        advice: for each expert, the probability of each arm.
        available: the arms that may be served; None for all.
        targets: for each target of the holdout, by name, the arm that it would give.
        deferred: whether the decision may be cancelled until it is activated.
        decision_id: an id of your own; by default the client makes one.
    """

    unit: str | int | None = None
    contexts: Any = None
    advice: Any = None
    available: Sequence[Arm] | None = None
    targets: Mapping[str, Arm] | None = None
    deferred: bool = False
    decision_id: str | None = None


class RewardRequest(Struct, frozen=True):
    """A reward.

    Attributes:
        reward: None if no reward will come.
        decision: the decision, its id or its token.
        arm: the arm that the person took, if not the one of the decision.
    """

    reward: float | None
    decision: Decision | str
    arm: Arm | None = None

    @property
    def is_local(self) -> bool:
        """Whether the service knows nothing of the decision."""
        return isinstance(self.decision, Decision) and self.decision.is_local

    def to_dict(self) -> dict[str, Any]:
        """As the body of a request."""
        one = self.decision
        # The service takes a token for an id, too, but an object has both.
        named = {"token": one.token} if isinstance(one, Decision) else {"decision_id": one}
        taken = {} if self.arm is None else {"arm": self.arm}
        return {"reward": self.reward, **named, **taken}


def encode(value: Any) -> bytes:
    """JSON, of the same numbers.

    Raises:
        ArgumentError: one of them is NaN or infinite, which JSON does not have.
    """
    plain = msgspec.to_builtins(value, enc_hook=_plain)
    _refuse_no_number(plain, "reward")
    return _encode(plain)


def _plain(value: Any) -> Any:
    """An array or a number of NumPy as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(
        "a request may hold numbers, text, lists, dictionaries, arrays, True, False and None, got"
        f" a value of type {type(value).__name__}"
    )


def _refuse_no_number(value: Any, word: str) -> None:
    """Refuse NaN and infinity, for which JSON would have null: no reward."""
    if isinstance(value, float) and not isfinite(value):
        hint = ", or None if no reward will come" if word == "reward" else ""
        raise ArgumentError(f"{word} must be a finite number{hint}", word)
    if isinstance(value, dict):
        for name, one in value.items():
            _refuse_no_number(one, str(name))
    elif isinstance(value, list | tuple):
        for one in value:
            _refuse_no_number(one, word)


_encode = msgspec.json.Encoder().encode
