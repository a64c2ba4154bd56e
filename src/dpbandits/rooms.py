"""The only way from the core to rooms that import it: algorithms, and papers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

ALGORITHMS, PAPERS = "dpbandits.algorithms", "dpbandits.papers"


def algorithms() -> None:
    """Load all policies of the core, which makes their names known."""
    import_module(ALGORITHMS)


def papers(part: str = "") -> ModuleType:
    """The package ``dpbandits.papers``, or a module in it, such as "dgs.theory"."""
    return import_module(f"{PAPERS}.{part}".rstrip("."))


def moved(package: str, homes: Mapping[str, str], away: int = 2) -> Callable[[str], Any]:
    """A package's ``__getattr__`` for names that moved to the module of a paper.  ``homes`` maps
    each name to its module, as "dgs.theory".  The warning points to the code so many calls
    ``away``.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        message = f"{package}.{name} is deprecated: take dpbandits.papers.{homes[name]}"
        warnings.warn(message, DeprecationWarning, stacklevel=away)
        room, _, within = homes[name].partition(".")
        return getattr(papers(room), within)

    return get


def lazily(
    package: str, homes: Mapping[str, str], within: str | None = None
) -> Callable[[str], Any]:
    """A package's ``__getattr__`` for names that take long to import.  Each name has its module,
    ``within`` a package as ``PAPERS`` or itself.  A module has its own name.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{within or package}.{homes[name]}")
        return module if homes[name] == name else getattr(module, name)

    return get
