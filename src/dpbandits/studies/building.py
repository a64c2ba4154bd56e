"""Calling constructors with what a study file says, and collecting everything that is wrong with
it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import DPBanditsError
from ..validation import close_name
from .schema import without_name


class Problems(list[str]):
    """What is wrong with a file, each thing once."""

    def add(self, place: str, message: str) -> None:
        """Note what is wrong at a place."""
        line = f"{place}: {message}"
        if line not in self:
            self.append(line)


def build(
    place: str,
    make: Callable[..., Any],
    given: dict[str, Any],
    fixed: dict[str, Any],
    known: set[str],
    problems: Problems,
) -> Any:
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
