"""Which policies there are: classes by their names, by which study files, saved policies and
choosers call them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..errors import ArgumentError, MissingExtra, StateFileError
from ..rooms import papers
from ..validation import close_name

_REGISTRY: dict[str, Any] = {}
P = TypeVar("P", bound=type)


def register(**example: Any) -> Callable[[P], P]:
    """Make a policy class known to ``dpbandits list``, to study files and to the conformance suite.

    ``example`` are constructor arguments, apart from the budget, of a small instance with three
    arms that the suite can run.
    """

    def enter(policy: P) -> P:
        policy.example = example  # type: ignore[attr-defined]
        _REGISTRY[policy.__name__] = policy
        return policy

    return enter


def registered() -> dict[str, Any]:
    """Every policy class by name, in alphabetical order; those of papers are imported for it."""
    papers()
    return dict(sorted(_REGISTRY.items()))


def find(name: str) -> Any:
    """The policy class of that name, of the core or else of a paper.

    Raises:
        ArgumentError: there is none.
    """
    known = _REGISTRY if name in _REGISTRY else registered()
    if name not in known:
        raise ArgumentError(f"name must be that of a policy; {close_name(name, known)}", "name")
    return known[name]


@contextmanager
def of_this_version(source: object) -> Iterator[None]:
    """Where a policy is made of what a store gave.

    Raises:
        StateFileError: it was something else.
    """
    try:
        yield
    except MissingExtra:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise StateFileError(
            f"{source} does not hold a policy of this version: {error!r}"
        ) from error
