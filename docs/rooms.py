"""What the reference has: the rooms of the package, and their public names."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import dpbandits
import dpbandits.parts

# Rooms that users do not call.
INNER = {"cli", "html", "plotting", "report", "validation", "calls", "session", "protocol", "rooms"}

# Which algorithms share a page, by their module; the others play finite arms.
FAMILIES = {
    "adversarial": "adversaries and experts",
    "exp4": "adversaries and experts",
    "linear": "contexts",
    "glm": "generalised linear models",
    "hidden": "private contexts",
}


def rooms() -> Iterator[tuple[str, str, list[str]]]:
    """The title of every page, its first paragraph, and what stands on it."""
    for info in iter_modules(dpbandits.__path__):
        if info.name in INNER or info.name.startswith("_"):
            continue
        module = import_module(f"dpbandits.{info.name}")
        if info.name == "papers":
            yield from map(paper, module.__all__)
            continue
        names = [f"{module.__name__}.{name}" for name in public_names(module)]
        if info.name == "policies":  # parts have a page of their own
            names = [n for n in names if n.rpartition(".")[2] not in dpbandits.parts.__all__]
        if info.name == "algorithms":
            for family in sorted({family_of(name) for name in names}):
                yield f"Policies: {family}", "", [n for n in names if family_of(n) == family]
        elif names:
            yield module.__name__, inspect.getdoc(module) or "", names


def paper(room: str) -> tuple[str, str, list[str]]:
    """The page of a paper's room: what is its own, and not of the core."""
    module = import_module(f"dpbandits.papers.{room}")
    own = [
        f"{module.__name__}.{name}"
        for name in module.__all__
        if getattr(module, name).__module__.startswith(module.__name__)
    ]
    return module.__name__, inspect.getdoc(module) or "", own


def public_names(module: ModuleType) -> list[str]:
    """What a room offers: its ``__all__``, or what is defined in it."""
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    return list(getattr(module, "__all__", own))


def family_of(name: str) -> str:
    """Which page an algorithm is on."""
    policy = getattr(dpbandits.algorithms, name.rpartition(".")[2])
    defined = getattr(policy, "policy_class", policy).__module__
    return FAMILIES.get(defined.split(".")[2], "finite arms")
