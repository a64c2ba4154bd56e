"""The registry of policies by name: classes, and presets of classes that take parts.  Study files,
saved policies and choosers use these names.
"""

from __future__ import annotations

import copyreg
import inspect
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from ..errors import ArgumentError, MissingExtra, StateFileError
from ..rooms import algorithms, papers
from ..session.options import of_today
from ..stores.arguments import arguments
from ..validation import close_name
from .presets import Preset

_REGISTRY: dict[str, Any] = {}
_COMPOSED: dict[str, Any] = {}  # classes that take parts; their presets are in the list
_PRESETS: dict[Any, list[Preset]] = {}  # by class
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


def composed(**example: Any) -> Callable[[P], P]:
    """Make a class known that takes parts: ``find`` knows it, and lists have its presets instead.
    Its card is that of its default parts, unless it has one.

    ``example`` are constructor arguments as of ``register``.
    """

    def enter(policy: Any) -> Any:
        policy.example = example
        if "card" not in vars(policy):
            taken = inspect.signature(policy.__init__).parameters
            asked = inspect.signature(policy.composition).parameters.keys() & taken.keys()
            policy.card = policy.composition(**{name: taken[name].default for name in asked}).card
        _COMPOSED[policy.__name__] = policy
        return policy

    return enter


def preset(
    name: str,
    policy_class: type[Any],
    order: str,
    doc: str,
    *,
    about: Mapping[str, Any] | None = None,
    example: Mapping[str, Any] | None = None,
    **template: Any,
) -> Preset:
    """Make a preset, and make it known.

    ``order`` lists the preset's own arguments as names do, ``doc`` is its docstring, ``example`` is
    that of ``register``, by default that of the class; for ``about`` and ``template`` see
    ``Preset``.
    """
    made = Preset(
        name=name,
        policy_class=policy_class,
        template=template,
        order=tuple(order.split()),
        about=about or {},
        example=policy_class.example if example is None else example,
        doc=doc,
        home=sys._getframe(1).f_globals["__name__"],
    )
    _REGISTRY[name] = made
    named = _PRESETS.setdefault(policy_class, [])
    named.append(made)
    named.sort(key=lambda one: not one.home.startswith("dpbandits."))  # whatever came first
    return made


def registered() -> dict[str, Any]:
    """List every policy, in alphabetical order.

    Returns:
        Name -> a class, or a preset, which is called alike.
    """
    papers()
    return dict(sorted(_REGISTRY.items()))


def find(name: str) -> Any:
    """The policy of a name: a class, or a preset, which is called alike.

    Raises:
        ArgumentError: there is none.

    >>> find("MergedIMED").policy_class.__name__
    'Arms'
    """
    algorithms()
    core = _COMPOSED | _REGISTRY
    known = core if name in core else _COMPOSED | registered()
    if name not in known:
        raise ArgumentError(f"there is no policy {name!r}; {close_name(name, known)}")
    return known[name]


copyreg.pickle(Preset, lambda one: (find, (one.name,)))


def arguments_of_today(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments that this version or an earlier one has saved."""
    return of_today(arguments(dict(saved)))


def home_of(policy: type[Any] | Preset) -> str:
    """The module that has a policy of the list."""
    return str(policy.home if isinstance(policy, Preset) else policy.__module__)


def preset_of(
    policy_class: type, config: Mapping[str, Any]
) -> tuple[Preset, dict[str, Any]] | None:
    """The preset that makes policies of that configuration, and its arguments; None without one."""
    found = _first_match(policy_class, config)
    if found is None and policy_class in _COMPOSED.values():
        papers()  # which have names for classes of the core
        found = _first_match(policy_class, config)
    return found


def _first_match(
    policy_class: type, config: Mapping[str, Any]
) -> tuple[Preset, dict[str, Any]] | None:
    budget = config["budget"]
    for one in _PRESETS.get(policy_class, ()):
        own = one.config_of(config)
        if own is not None and (budget is None or one.card.takes(budget)):
            return one, own
    return None


_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, struct.error)


@contextmanager
def of_this_version(source: object) -> Iterator[None]:
    """Turn errors in making a policy from stored data into a ``StateFileError``."""
    try:
        yield
    except MissingExtra:
        raise
    except _MALFORMED as error:
        raise StateFileError(
            f"{source} does not hold a policy of this version: {error!r}"
        ) from error
