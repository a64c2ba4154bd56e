"""How the reference reads docstrings and signatures.

Our sections "Example:" are what others call "Examples:"; ``**options`` of policies are spelled out;
arguments tell the values that they may have.
"""

import inspect
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import griffe

from dpbandits.constraints import Constraints, constraints_of
from dpbandits.session.options import Settings


class Examples(griffe.Extension):
    """Doctests are shown as code, and names that share a line as names."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the text before it is parsed."""
        if obj.docstring:
            text = re.sub(
                r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE
            )
            # Without such a section they would be quotes of quotes, and lists in them links.
            text = re.sub(r"^>>> .*(?:\n.+)*", r"```pycon\n\g<0>\n```", text, flags=re.MULTILINE)
            # "a, b: ..." are two names; after this space b is not taken for the type of a.
            obj.docstring.value = re.sub(
                r"^    \w+(?:, \w+)+(?=:)",
                lambda names: names[0].replace(", ", ",\N{NO-BREAK SPACE}"),
                text,
                flags=re.MULTILINE,
            )


class Allowed(griffe.Extension):
    """Each argument of a class tells the values that its ``constraints`` allow."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Add them to the section of arguments."""
        known = getattr(import_module(cls.module.path), cls.name, None)
        if cls.docstring and isinstance(getattr(known, "constraints", None), Mapping):
            cls.docstring.value = with_allowed(cls.docstring.value, constraints_of(known))


def with_allowed(docstring: str, constraints: Constraints) -> str:
    """A docstring whose entries of arguments end with the values that are allowed."""
    head, found, rest = docstring.partition("Args:\n")
    entries, end, tail = rest.partition("\n\n")

    def completed(entry: re.Match[str]) -> str:
        allowed = {
            name: str(constraints[name])
            for name in re.findall(r"\w+", entry["names"])
            if name in constraints
        }
        if len(set(allowed.values())) != 1:
            return entry[0]
        text = entry[0].rstrip("\n")
        return f"{text}\n        Allowed: {next(iter(allowed.values()))}."

    pattern = r"^    (?P<names>\w+(?:,[ \N{NO-BREAK SPACE}]\w+)*): .*(?:\n     .*)*"
    return head + found + re.sub(pattern, completed, entries, flags=re.MULTILINE) + end + tail


class AllOptions(griffe.Extension):
    """Signatures of policies, and of ``bandit``, name every keyword argument, where the source has
    ``**options``.
    """

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Put the arguments that Python knows in the place of ``**options``."""
        init = cls.members.get("__init__")
        if isinstance(init, griffe.Function) and "options" in init.parameters:
            spell_out(init, getattr(import_module(cls.module.path), cls.name))

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """The front door: one signature instead of one for each class that it may return."""
        if func.path == "dpbandits.door.bandit":
            func.overloads = []
            spell_out(func, Settings, {"arm_names"})
            for name in ("arms", "budget"):  # without which it raises
                func.parameters[name].default = None


def spell_out(made: griffe.Function, known: Any, renamed: Iterable[str] = ()) -> None:
    """Replace ``**options`` by the keyword arguments of ``known``, but for those in ``renamed``."""
    written = [one for one in made.parameters if one.name != "options"]
    names = {one.name for one in written} | set(renamed)
    more = [
        griffe.Parameter(
            name,
            kind=griffe.ParameterKind.keyword_only,
            default=None if one.default is one.empty else repr(one.default),
        )
        for name, one in inspect.signature(known).parameters.items()
        if name not in names and one.default is not one.empty
    ]
    made.parameters = griffe.Parameters(*written, *more)
