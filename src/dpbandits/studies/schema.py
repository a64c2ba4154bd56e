"""The form of a study file: its keys, and their permitted values.

Only constructors know the permitted arguments of a policy or an environment.  ``build`` calls them
and collects all errors.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import pydantic
from pydantic import ConfigDict, Field

from ..errors import DPBanditsError
from ..privacy.budgets import NOTIONS, Budget, read_budget
from ..protocol import Card
from ..session.options import of_today
from ..simulation.deciding import Question
from ..simulation.parallel import MOST_RUNS
from ..validation import close_name, integer


def _each(named: tuple[str, Any]) -> Any:
    """The entries under a key, each with it, because a reader has to know the notion."""
    key, value = named
    if key not in NOTIONS:
        raise ValueError(f"unknown key; {close_name(key, [*NOTIONS, 'open'])}")
    return [(key, one) for one in value] if isinstance(value, list) else value


T = TypeVar("T")
_Listed = Annotated[Budget, pydantic.PlainValidator(lambda named: read_budget(*named))]


def _record(value: Any) -> int | list[int]:
    if isinstance(value, list):
        return [integer(f"record[{i}]", round_, 1) for i, round_ in enumerate(value)]
    return integer("record", value, 1)


class _Form(pydantic.BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )


class Budgets(_Form):
    """The budgets to try by notion, and whether the same policies also run without privacy."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, arbitrary_types_allowed=True)
    __pydantic_extra__: dict[str, Annotated[list[_Listed], pydantic.BeforeValidator(_each)]]

    open: bool = False

    @pydantic.model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value if key == "open" else (key, value) for key, value in data.items()}

    def accepted(self, card: Card) -> list[Budget | None]:
        """Those that a policy takes, and None for the open channel."""
        given = self.model_extra or {}
        listed = [one for kind in card.notions for one in given.get(kind.key, [])]
        return [*listed, None] if self.open else listed


class Entry(pydantic.BaseModel):
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

    @property
    def arguments(self) -> dict[str, Any]:
        return of_today(super().arguments)


Horizon = Annotated[int, Field(ge=1, le=2**62)]
Record = Annotated[int | list[int], pydantic.PlainValidator(_record)]
Decided = Annotated[Question | None, pydantic.PlainValidator(Question.of)]


class StudyForm(_Form):
    """A study file."""

    title: Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=1)]
    description: str = ""
    seed: Annotated[int, Field(ge=0)] = 0
    runs: Annotated[int, Field(ge=1, le=10**6)] = 100
    first_run: Annotated[int, Field(ge=0, le=MOST_RUNS)] = 0
    horizon: Horizon
    imports: list[str] = []
    record: Record = 200
    bounds: bool = False
    decided: Decided = None
    environments: Annotated[list[WorldEntry], Field(min_length=1)]
    policies: Annotated[list[PolicyEntry], Field(min_length=1)]
    budgets: Budgets = Budgets.model_validate({})


def place_of(loc: Iterable[int | str]) -> str:
    """A place in the file as people write it.

    >>> place_of(("policies", 1, "budgets", "zcdp", 0))
    'policies[1].budgets.zcdp[0]'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc).lstrip(".")


def form_problems(error: pydantic.ValidationError) -> list[str]:
    """The errors that pydantic found, in the words of the rest of the package."""
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
        known = StudyForm.model_fields
        return f"{place}: unknown key; {close_name(str(detail['loc'][-1]), known)}"
    if kind == "value_error":  # from our own constructors, which name the value
        error = detail["ctx"]["error"]
        argument = getattr(error, "argument", None) or ""
        longer = argument.startswith(place)
        return f"{argument}: {without_name(error)}" if longer else f"{place}: {error}"
    if kind.startswith("model_"):
        return f"{place}: must be a table, got {detail['input']!r}"
    message = re.sub(r"^\w+ should (be|have) ", r"must \1 ", detail["msg"])
    message = message.replace("a valid integer", "an integer").replace("a valid ", "a ")
    return f"{place}: {message}, got {detail['input']!r}"


class Problems(list[str]):
    """The errors in a file, each listed once."""

    def add(self, place: str, message: str) -> None:
        """Note an error at a place."""
        line = f"{place}: {message}"
        if line not in self:
            self.append(line)


def build(
    place: str,
    make: Callable[..., T],
    given: dict[str, Any],
    fixed: dict[str, Any],
    known: set[str],
    problems: Problems,
) -> T | None:
    """``make(**given, **fixed)``, or None after noting all that is wrong with the arguments."""
    before = len(problems)
    usable = {}
    for name, value in given.items():
        if name in known:
            usable[name] = value
        else:
            problems.add(f"{place}.{name}", f"unknown argument; {close_name(name, sorted(known))}")
    needed = {
        name
        for name, p in inspect.signature(make).parameters.items()
        if p.default is p.empty and p.kind != p.VAR_KEYWORD
    }
    missing = needed - usable.keys() - fixed.keys()
    for name in sorted(missing):
        problems.add(f"{place}.{name}", "is missing")
    while not missing:
        try:
            built = make(**usable, **fixed)
        except (DPBanditsError, TypeError, ValueError) as error:
            argument = getattr(error, "argument", None) or ""
            name = argument.partition("[")[0]
            if name not in usable:
                problems.add(place, str(error))
                break
            problems.add(f"{place}.{argument}", without_name(error))
            # A constructor reports one argument at a time: leave that one at its default, and see
            # what else is wrong.
            del usable[name]
            missing = needed & {name}
        else:
            return built if len(problems) == before else None
    return None
