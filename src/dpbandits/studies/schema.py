"""The form of a study file: which keys there are, and what may stand behind them.

What the arguments of a policy or an environment may be is known to their constructors only, which
``study`` asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationError,
)

from ..privacy.budgets import NOTIONS, RDP, ZCDP, ApproxDP, Budget, PureDP
from ..validation import close_name, integer


def _reader(notion: Callable[..., Budget]) -> PlainValidator:
    names = [field.name for field in fields(notion)]  # type: ignore[arg-type]

    def read(value: Any) -> Budget:
        if len(names) == 1:
            return notion(value)
        if not isinstance(value, list) or len(value) != len(names):
            raise ValueError(f"must be a pair [{', '.join(names)}], got {value!r}")
        return notion(*value)

    return PlainValidator(read)


def _record(value: Any) -> int | list[int]:
    if isinstance(value, list):
        return [integer(f"record[{i}]", round_, 1) for i, round_ in enumerate(value)]
    return integer("record", value, 1)


class _Form(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )


class Budgets(_Form):
    """The budgets to try: a list of each notion, and whether the same policies also run without
    privacy.
    """

    pure: list[Annotated[PureDP, _reader(PureDP)]] = []
    zcdp: list[Annotated[ZCDP, _reader(ZCDP)]] = []
    approx: list[Annotated[ApproxDP, _reader(ApproxDP)]] = []
    rdp: list[Annotated[RDP, _reader(RDP)]] = []
    open: bool = False

    def accepted(self, classes: Iterable[type[Budget]]) -> list[Budget | None]:
        """Those of the given kinds, and None for the open channel."""
        listed: list[Budget] = [*self.pure, *self.zcdp, *self.approx, *self.rdp]
        chosen: list[Budget | None] = [budget for budget in listed if type(budget) in set(classes)]
        return [*chosen, None] if self.open else chosen


class Entry(BaseModel):
    """Its kind, and the arguments of its constructor."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str

    @property
    def arguments(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class WorldEntry(Entry):
    """An environment, and how late its answers come: arguments of ``Delay``."""

    delay: dict[str, Any] | None = None


class PolicyEntry(Entry):
    """A policy: its class, the arguments of its constructor, and budgets of its own."""

    budgets: Budgets | None = None


Horizon = Annotated[int, Field(ge=1, le=2**62)]


class StudyForm(_Form):
    """A study file."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    description: str = ""
    seed: Annotated[int, Field(ge=0)] = 0
    runs: Annotated[int, Field(ge=1, le=10**6)] = 100
    horizon: Horizon
    imports: list[str] = []
    record: Annotated[int | list[int], PlainValidator(_record)] = 200
    bounds: bool = False
    environments: Annotated[list[WorldEntry], Field(min_length=1)]
    policies: Annotated[list[PolicyEntry], Field(min_length=1)]
    budgets: Budgets = Budgets()


def notions_of(classes: Iterable[type[Budget]]) -> list[str]:
    """The names of kinds of budget, in the order of ``NOTIONS``."""
    wanted = set(classes)
    return [name for name, cls in NOTIONS.items() if cls in wanted]


def place_of(loc: Iterable[int | str]) -> str:
    """A place in the file as people write it.

    >>> place_of(("policies", 1, "budgets", "zcdp", 0))
    'policies[1].budgets.zcdp[0]'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc).lstrip(".")


def form_problems(error: ValidationError) -> list[str]:
    """What pydantic found, in the words of the rest of the package."""
    return [_sentence(detail) for detail in error.errors(include_url=False)]


def without_name(error: Exception) -> str:
    """The message of an error without the argument that it begins with.

    >>> from dpbandits import ArgumentError
    >>> without_name(ArgumentError("x must be a number", "x"))
    'must be a number'
    """
    return str(error).removeprefix(getattr(error, "argument", None) or "").lstrip()


def _sentence(detail: Any) -> str:
    place, kind = place_of(detail["loc"]), detail["type"]
    if kind == "missing":
        return f"{place}: is missing"
    if kind == "extra_forbidden":
        known = Budgets.model_fields if "budgets" in detail["loc"] else StudyForm.model_fields
        return f"{place}: unknown key; {close_name(str(detail['loc'][-1]), known)}"
    if kind == "value_error":  # from our own constructors, which name the value
        error = detail["ctx"]["error"]
        argument = getattr(error, "argument", None) or ""
        return (
            f"{argument}: {without_name(error)}"
            if argument.startswith(place)
            else f"{place}: {error}"
        )
    if kind.startswith("model_"):
        return f"{place}: must be a table, got {detail['input']!r}"
    message = re.sub(r"^\w+ should (be|have) ", r"must \1 ", detail["msg"])
    message = message.replace("a valid integer", "an integer").replace("a valid ", "a ")
    return f"{place}: {message}, got {detail['input']!r}"
