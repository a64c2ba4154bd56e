"""Call a class of policies, and explain a call whose arguments do not fit.

Python's own error names the function that refuses an argument, which may be the constructor of an
internal base. It does not say which argument to write instead.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, get_args, get_type_hints

from ..constraints import checked
from ..errors import ArgumentError
from ..privacy.budgets import examples
from ..session.options import DEFAULTS, RENAMED
from ..validation import close_name

_LONGEST_EXAMPLE = 40  # characters of an argument that is shown


class PolicyClass(ABCMeta):
    """The class of classes of policies: a call checks arguments by the class's ``constraints``.

    A call that does not fit the signature raises one sentence with the called class and the right
    form.
    """

    def __call__(cls, *args: Any, **given: Any) -> Any:
        try:
            return super().__call__(*_checked(cls, args), **checked(cls, **given))
        except (TypeError, ArgumentError):
            wrong = misfit(cls, args, given)
            if wrong is None:  # something within, or a value
                raise
        raise TypeError(wrong)


def _checked(cls: Any, args: Sequence[Any]) -> Sequence[Any]:
    """Arguments by position, each as its constraint keeps it."""
    if not args:
        return args
    named = dict(zip(inspect.signature(cls).parameters, args, strict=False))
    return (*checked(cls, **named).values(), *args[len(named) :])


class Signature:
    """``__signature__`` of a class of policies, computed at the first use."""

    def __get__(self, instance: object, cls: Any) -> inspect.Signature:
        return _signature(cls)


@cache
def _signature(cls: Any) -> inspect.Signature:
    _, *own = inspect.signature(cls.__init__).parameters.values()
    declared = get_args(get_type_hints(cls.__init__).get("options"))
    if not declared:
        return inspect.Signature(own)
    defaults = {**DEFAULTS, **cls._options}
    taken = {one.name for one in own}
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind
        )
        for name, kind in get_type_hints(declared[0]).items()
        if name not in taken
    ]
    return inspect.Signature([one for one in own if one.kind is not one.VAR_KEYWORD] + shared)


def misfit(cls: Any, args: Sequence[Any], given: Mapping[str, Any]) -> str | None:
    """Why ``cls(*args, **given)`` does not fit its signature; None where it does."""
    signature = inspect.signature(cls)
    try:
        signature.bind(*args, **given)
    except TypeError as error:
        reason = str(error)
    else:
        return None
    parameters = signature.parameters
    kinds = {one.kind for one in parameters.values()}
    anything = inspect.Parameter.VAR_KEYWORD in kinds
    unknown = [name for name in given if name not in parameters and not anything]
    if unknown:
        hint = unknown_argument(cls, unknown[0], parameters)
        return f"{cls.__name__} takes no argument {', '.join(unknown)}; {hint}"
    by_position = [
        name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    if len(args) > len(by_position):
        return (
            f"{cls.__name__} takes {_listed(by_position)} by position, and all else by name, as in"
            f" {_budget(cls)}"
        )
    taken = {*by_position[: len(args)], *given}
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    missing = [
        name
        for name, one in parameters.items()
        if one.default is one.empty and one.kind not in variable and name not in taken
    ]
    return _missing(cls, missing, given) if missing else f"{cls.__name__}: {reason}"


def unknown_argument(cls: Any, name: str, known: Iterable[str]) -> str:
    """A hint after an unknown argument: that it has a new name, belongs to the budget, or a close
    name.
    """
    if name in RENAMED:
        return f"the argument is now called {RENAMED[name]}"
    if not any(name in _numbers(budget) for budget in examples()):
        return close_name(name, known)
    taken = cls.example_budgets()
    if not taken:
        return f"{name} belongs to a budget, and this policy has no privacy"
    holders = [repr(one) for one in taken if name in _numbers(one)]
    return f"{name} belongs to the budget, as in budget={' or '.join(holders or map(repr, taken))}"


def _missing(cls: Any, names: Sequence[str], given: Mapping[str, Any]) -> str:
    last = sorted(names, key=lambda name: name == "budget")  # its example is the longest
    examples = ", ".join(filter(None, (_example(cls, name, given) for name in last)))
    return f"{cls.__name__} needs {_listed(names)}" + (f": {examples}" if examples else "")


def _example(cls: Any, name: str, given: Mapping[str, Any]) -> str:
    """An example of an argument; empty where that is long."""
    if name == "budget":
        return _budget(cls)
    value = cls.example.get(name)
    if name == "n_arms" and isinstance(given.get("arm_names"), list | tuple):
        value = len(given["arm_names"])
    text = repr(value)
    return "" if value is None or len(text) > _LONGEST_EXAMPLE else f"{name}={text}"


def _budget(cls: Any) -> str:
    private = [repr(one) for one in cls.example_budgets()]
    return f"budget={', '.join(private)} or None for no privacy" if private else "budget=None"


def _numbers(budget: Any) -> list[str]:
    return [one.name for one in fields(budget)]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "nothing"
